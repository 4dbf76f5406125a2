//! Clients of language models.
//!
//! [`model`] has the types that all providers share; a [`Provider`] translates them into one provider's
//! format and back. [`config`] has the operator's configuration, and builds providers from it.

mod anthropic;
pub mod config;
mod gemini;
mod key;
pub mod limits;
pub mod model;
mod ollama;
mod openai;
mod provider;
mod remote;
mod responses;
pub mod route;
pub mod scripted;
mod wire;

pub use key::{KeyError, KeySource, Secret};
pub use provider::{ChunkListener, Provider};
