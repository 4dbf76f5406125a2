//! An account beside the ledger: that of whoever a request is made for.

use std::fmt;

use super::Charge;
use crate::route::Money;
use crate::route::catalog::ModelRef;

/// Pays for the attempts of a request, beside the ledger. It is told of each attempt, also of one that is dropped.
pub trait Account: fmt::Debug + Send + Sync {
    /// Reserves the most that an attempt may cost, before it is sent.
    ///
    /// # Errors
    /// [`AccountError`], which ends the request.
    fn reserve(&self, most: Money) -> Result<(), AccountError>;

    /// Replaces a reservation by what the attempt cost. Called once for each reservation.
    fn settle(&self, most: Money, model: &ModelRef, charge: &Charge);
}

/// Why an account does not pay for an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// It could cost more than is left.
    #[error("${left} of the budget of ${budget} are left, and it could cost ${most}")]
    OverBudget {
        /// The limit.
        budget: Money,
        /// What is neither spent nor reserved.
        left: Money,
        /// The most that the attempt may cost.
        most: Money,
    },
    /// As many were made as are permitted.
    #[error("{most} requests are made, and no more are permitted")]
    TooManyRequests {
        /// The limit.
        most: u32,
    },
}

/// The reservation of one attempt. [`super::super::fallback`] settles each, also where its attempt is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct AccountReservation<'a> {
    account: &'a dyn Account,
    most: Money,
}

impl<'a> AccountReservation<'a> {
    /// Reserves.
    ///
    /// # Errors
    /// [`AccountError`]
    pub(crate) fn reserve(account: &'a dyn Account, most: Money) -> Result<Self, AccountError> {
        account.reserve(most)?;
        Ok(Self { account, most })
    }

    /// Replaces it by the true cost.
    pub(crate) fn settle(self, model: &ModelRef, charge: &Charge) {
        self.account.settle(self.most, model, charge);
    }
}
