//! Texts measured in tokens: counting, cutting to a budget, dividing a budget.

mod calibration;
mod count_cache;
mod counter;
pub mod cut;
mod shares;

pub use calibration::{Calibration, ModelCounter};
pub use counter::{Accuracy, Estimate, OpenAiTokenizer, TokenCounter, counter_for, fit};
pub use shares::shares;

#[cfg(test)]
mod tests;
