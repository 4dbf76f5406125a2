//! Which share of a trigger's observations passes.

use serde::{Deserialize, Serialize};

/// The lowest rate. 10 %: one of ten is still asked, so that a trigger can prove itself again.
const LOWEST: u32 = 10;
/// What a dismissal leaves of the rate, in percent. 60: after five in a row the lowest is reached.
const AFTER_DISMISSAL: u32 = 60;
/// What a ghost that nobody answered leaves of the rate, in percent: silence says less than a dismissal.
const AFTER_EXPIRY: u32 = 90;
/// What an approval adds to the rate, in percent. 30: three make up for all dismissals.
const APPROVAL: u32 = 30;
const WHOLE: u32 = 100;

/// The share of a trigger's observations that passes, and how much of the next one is saved up. Without chance: of a rate
/// of 50 % each second one passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerRate {
    percent: u32,
    credit: u32,
}

impl Default for TriggerRate {
    fn default() -> Self {
        Self { percent: WHOLE, credit: 0 }
    }
}

impl TriggerRate {
    /// The share, in percent.
    #[must_use]
    pub const fn percent(self) -> u32 {
        self.percent
    }

    /// Whether one more passes.
    #[must_use]
    pub fn take(&mut self) -> bool {
        self.credit += self.percent;
        let passes = self.credit >= WHOLE;
        if passes {
            self.credit -= WHOLE;
        }
        passes
    }

    pub(crate) fn approved(&mut self) {
        self.percent = (self.percent + APPROVAL).min(WHOLE);
    }

    pub(crate) fn dismissed(&mut self) {
        self.percent = (self.percent * AFTER_DISMISSAL / WHOLE).max(LOWEST);
    }

    pub(crate) fn expired(&mut self) {
        self.percent = (self.percent * AFTER_EXPIRY / WHOLE).max(LOWEST);
    }
}
