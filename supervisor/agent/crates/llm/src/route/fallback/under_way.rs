//! What an attempt costs, however it ends.

use super::chain::Chain;
use super::event::Event;
use super::listen::Signs;
use crate::model::Answer;
use crate::route::catalog::Entry;
use crate::route::cost::{Charge, Reservation};

/// An attempt whose cost is set aside. If it is dropped while it speaks, what it said is paid for.
pub(super) struct UnderWay<'a> {
    pub(super) chain: &'a Chain,
    pub(super) session: &'a str,
    pub(super) entry: &'a Entry,
    pub(super) input_tokens: u64,
    pub(super) signs: &'a Signs,
    pub(super) reservation: Option<Reservation>,
}

impl UnderWay<'_> {
    pub(super) fn charge_for(&self, answer: &Answer) -> Charge {
        match answer.usage {
            Some(usage) => Charge::counted(&self.entry.model, usage),
            None => {
                // A provider need not have said in pieces what it answered.
                let said = u64::try_from(answer.text.chars().count()).unwrap_or(u64::MAX);
                Charge::guessed(&self.entry.model, self.input_tokens, self.signs.chars().max(said))
            }
        }
    }

    /// Providers count what they had said when it broke off, and do not say how much that was.
    pub(super) fn charge_for_nothing(&self) -> Charge {
        if self.signs.any() {
            Charge::guessed(&self.entry.model, self.input_tokens, self.signs.chars())
        } else {
            Charge::default()
        }
    }

    pub(super) fn over(mut self, charge: &Charge, answered: bool) {
        self.settle(charge, answered);
    }

    fn settle(&mut self, charge: &Charge, answered: bool) {
        if let Some(reservation) = self.reservation.take() {
            let model = &self.entry.id;
            reservation.charge(model, charge, answered);
            self.chain.watch.seen(&Event::Charged { session: self.session, model, charge, answered });
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        // Nothing is left to settle unless the request was given up.
        let charge = self.charge_for_nothing();
        self.settle(&charge, false);
    }
}
