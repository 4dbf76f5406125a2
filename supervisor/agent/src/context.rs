//! Selects what a model sees of a session: never the whole history, never whole tool logs.
//!
//! [`assemble()`] builds one question from the prompt, the running summary, the latest turns and the tools
//! that fit, each within its [section](Sections). It reports what has to be summarized first, and how full
//! the model's [window](Window) is. What is left out of a question stays in the store.
//!
//! | section | tokens | when there is more |
//! |---|---|---|
//! | safety rules | about 750, never cut | – |
//! | system: operator's rules, workspace, memories, hints | 500 | files and hints are cut, with a notice ([`crate::prompt`]) |
//! | running summary | 800 | cut, with a notice |
//! | recent turns | 2,000 | older turns go into the summary ([`history`]) |
//! | latest tool results | 500 | each is cut to its share, with a notice ([`crate::tokens::cut`]) |
//! | tools | 1,500 | the most relevant are offered ([`choose`]) |
//! | all | about 6,000 | |

mod assemble;
pub mod choose;
pub mod history;
mod message;
mod sections;
mod stats;
mod summary;
mod units;
mod window;

pub use assemble::{AssembledRequest, Material, assemble};
pub use history::MIN_RESULT_TOKENS;
pub use message::{HistoryMessage, count_messages};
pub use sections::Sections;
pub use stats::Stats;
pub use summary::{Summary, request};
pub use window::{Window, WindowStatus};

#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod tests;
