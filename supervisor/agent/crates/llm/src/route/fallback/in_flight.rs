//! Charges an attempt, however it ends.

use super::chain::Chain;
use super::event::Event;
use super::listener::AttemptProgress;
use crate::model::Answer;
use crate::route::catalog::CatalogEntry;
use crate::route::cost::{AccountReservation, Charge, Reservation};

/// An attempt with a reservation. If it is dropped after its first piece, its pieces are charged.
pub(super) struct InFlightAttempt<'a> {
    pub(super) chain: &'a Chain,
    pub(super) session: &'a str,
    pub(super) plugin: Option<&'a str>,
    pub(super) entry: &'a CatalogEntry,
    pub(super) input_tokens: u64,
    pub(super) signs: &'a AttemptProgress,
    pub(super) reservation: Option<Reservation>,
    /// That of the request's own account, if it has one.
    pub(super) account: Option<AccountReservation<'a>>,
}

impl InFlightAttempt<'_> {
    pub(super) fn charge_for(&self, answer: &Answer) -> Charge {
        match answer.usage {
            Some(usage) => Charge::counted(&self.entry.model, usage),
            None => {
                // The pieces may be less than the answer.
                let said = u64::try_from(answer.text.chars().count()).unwrap_or(u64::MAX);
                Charge::guessed(&self.entry.model, self.input_tokens, self.signs.chars().max(said))
            }
        }
    }

    /// Providers charge for what they had sent when it broke off, and do not report how much that was.
    pub(super) fn charge_for_nothing(&self) -> Charge {
        if self.signs.any() {
            Charge::guessed(&self.entry.model, self.input_tokens, self.signs.chars())
        } else {
            Charge::default()
        }
    }

    pub(super) fn complete(mut self, charge: &Charge, answered: bool) {
        self.settle(charge, answered);
    }

    fn settle(&mut self, charge: &Charge, answered: bool) {
        if let Some(reservation) = self.reservation.take() {
            let model = &self.entry.id;
            reservation.charge(model, charge, answered);
            let Self { session, plugin, .. } = *self;
            self.chain.observer.on_event(&Event::Charged { session, plugin, model, charge, answered });
            // After the observer: what the account is opened with later may hold this charge as well, and never lacks it.
            if let Some(reservation) = self.account.take() {
                reservation.settle(model, charge);
            }
        }
    }
}

impl Drop for InFlightAttempt<'_> {
    fn drop(&mut self) {
        // Only an abandoned request is not settled yet.
        let charge = self.charge_for_nothing();
        self.settle(&charge, false);
    }
}
