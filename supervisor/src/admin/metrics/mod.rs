//! What there is to measure, what of it crates record, and how it reads.

pub mod catalogue;
pub(super) mod page;
mod recorder;

pub use recorder::{Series, install};
