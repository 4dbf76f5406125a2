//! What is remembered beyond a session: facts, preferences, workflows.
//!
//! - [`Remembering`] brings what goes with a request into the prompt, as quoted data, and learns from a turn's end
//! - [`MemoryTools`] lets the model itself save and search: `memory.save`, `memory.search`
//!
//! The founding documents speak of a hybrid search by vectors and keywords. Here it is by words alone: what a request and a memory
//! share, in any of their forms, in any script ([`talon_store::Memory::related`]). It needs no model to answer and gives the same
//! tomorrow.
//!
//! **Whose a memory is.** What is saved or learned in a person's session has the tag `sender:NAME`, and is recalled and found in that
//! person's sessions alone: nobody's words come into another one's prompt. A memory without such a tag, as an operator imports it, is
//! everybody's.
//!
//! **What a workflow is.** A turn that ended with an answer and made two calls or more that mattered: they succeeded, they are a
//! plugin's, and they are not the same one over again. What is kept is the request made short ([`trigger`]), the steps, and how it
//! ended last. Done again in the same steps it is counted; a failed run marks the workflow that it followed, which then stands behind
//! all others and says so, until it works again.

mod followed;
mod remembering;
mod save;
mod search;
mod tools;
pub mod trigger;
mod whose;
mod words;

pub use remembering::{Nothing, Remembering};
pub use tools::MemoryTools;
pub(crate) use whose::{is_everybodys, is_for};

/// The name under which the agent offers it.
pub const MEMORY: &str = "memory";

#[cfg(test)]
mod remembering_tests;
#[cfg(test)]
mod tools_tests;
