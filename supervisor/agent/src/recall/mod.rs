//! Memory beyond a session: facts, preferences, workflows.
//!
//! - [`StoreRecall`] adds what matches a request to the prompt, as quoted data, and learns from a turn's end
//! - [`MemoryTools`] lets the model itself save and search: `memory.save`, `memory.search`, and
//!   `memory.conversations` for what was said in the sender's other sessions
//!
//! A search is by the words that a request and a memory share, in any of their forms, in any script
//! ([`talon_store::Memory::related`]). With `models.embeddings` it is by meaning, too (`memory_index`), and both orders
//! are fused (`hybrid`). Without an answer of that model a search is by words alone, and says so. Workflows are recalled
//! by words and steps alone: a similar task with other tools is no help.
//!
//! **Owner of a memory.** What is saved or learned in a person's session has the tag `sender:NAME`, and is
//! recalled and found only in that person's sessions: no one's words enter another person's prompt. A memory
//! without such a tag, as an operator imports it, is visible to all.
//!
//! **Workflows.** A turn becomes a workflow if it ended with an answer and made two or more different
//! successful calls of plugins. The short form of the request ([`trigger`]), the steps, and the last outcome
//! are stored. The same steps again increase its count. A failed run marks the workflow that it followed,
//! which then comes after all others and says so, until it works again.

mod arguments;
mod conversations;
mod error;
mod hybrid;
mod keywords;
mod limits;
mod memory_index;
mod owner;
mod save;
mod search;
mod store_recall;
mod tools;
pub mod trigger;
mod workflow;

pub(crate) use memory_index::{IndexReport, MemoryIndex};
pub(crate) use owner::{is_shared, is_visible_to};
pub use store_recall::{NoRecall, StoreRecall};
pub use tools::MemoryTools;

/// The plugin name under which the agent offers it.
pub const MEMORY: &str = "memory";

#[cfg(test)]
mod fixture_tests;
#[cfg(test)]
mod store_recall_tests;
#[cfg(test)]
mod tools_tests;
