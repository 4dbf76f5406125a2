//! Why a request cannot be routed.

use super::rejection::{RejectionReason, SkippedCandidate, reasons};
use crate::route::catalog::{ModelRef, UnknownModelError};

/// A request cannot be routed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// A pin matches no model.
    #[error("{0}")]
    UnknownPin(UnknownModelError),
    /// A pinned model cannot answer this.
    #[error("{model} was asked for and {why}: choose another model, or none, so that one is chosen for you")]
    PinUnfit {
        /// The model.
        model: ModelRef,
        /// The reason.
        why: RejectionReason,
    },
    /// The catalog is empty.
    #[error("no model is configured: list one under models.catalog")]
    NoModels,
    /// No model can answer this.
    #[error("no model can answer this{}", reasons(passed_over))]
    NoneFits {
        /// All of them, with the reason for each.
        passed_over: Vec<SkippedCandidate>,
    },
}
