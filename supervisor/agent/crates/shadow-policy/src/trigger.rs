//! What one trigger led to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{HoldReason, TriggerRate};

/// What became of the observations of one trigger.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TriggerStats {
    /// All of them.
    pub observations: u64,
    /// Those that went to a model.
    pub asked: u64,
    /// Those of which it made something.
    pub ghosts: u64,
    /// Ghosts that the person approved.
    pub approved: u64,
    /// Ghosts that the person dismissed.
    pub dismissed: u64,
    /// Ghosts that nobody answered.
    pub expired: u64,
    /// Those that led to nothing, by the reason.
    pub held_back: BTreeMap<HoldReason, u64>,
    /// Which share passes.
    pub rate: TriggerRate,
}

/// How a ghost ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GhostEnd {
    /// The person had it done.
    Approved,
    /// The person did not want it.
    Dismissed,
    /// Nobody answered in time.
    Expired,
}

impl TriggerStats {
    pub(crate) fn hold(&mut self, reason: HoldReason) {
        *self.held_back.entry(reason).or_default() += 1;
    }

    pub(crate) fn ended(&mut self, end: GhostEnd) {
        match end {
            GhostEnd::Approved => {
                self.approved += 1;
                self.rate.approved();
            }
            GhostEnd::Dismissed => {
                self.dismissed += 1;
                self.rate.dismissed();
            }
            GhostEnd::Expired => {
                self.expired += 1;
                self.rate.expired();
            }
        }
    }
}
