//! Resource usage of processes: for metrics and for the host API.

mod process_tree;
mod reader;

pub use reader::{SupervisorUsage, UsageReader, UsageReading};
