//! Metrics: the catalogue, the recorder, and the text format.

pub mod catalogue;
pub(super) mod page;
mod recorder;

pub use recorder::{Series, install};
