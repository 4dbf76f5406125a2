//! Selects what a model sees of a session.
//!
//! [`assemble()`] builds one question from the prompt, the running summary, the latest turns and the tools
//! that fit, each within its [section](Sections), which follow from the [`ContextPlan`] and the model's
//! [`Window`]. It reports what has to be summarized first, and how full the window is. What is left out of a
//! question stays in the store.

mod assemble;
pub mod choose;
mod fitting;
pub mod history;
mod images;
mod message;
mod plan;
mod sections;
mod shorten;
mod stats;
mod summary;
mod units;
mod view;
mod window;

pub use assemble::{AssembledRequest, Material, assemble};
pub use choose::UsedTools;
pub use message::{HistoryMessage, count_messages};
pub use plan::ContextPlan;
pub use sections::{Pressure, Sections};
pub use shorten::{handle, is_handle};
pub use stats::Stats;
pub use summary::{Summary, request};
pub use window::{Window, WindowStatus};

#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod tests;
