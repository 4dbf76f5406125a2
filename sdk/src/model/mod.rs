//! Completions of language models, for a plugin that the operator grants some: `talon.model.v1` on a socket
//! that belongs to this plugin alone.
//!
//! A completion belongs to the call that causes it ([`Context::model`](crate::Context::model)): it is charged
//! to that call's turn, keeps the turn's rules about models, and is cancelled when the call ends. There are no
//! tools, no sessions and no memory: texts go to a model, and its text comes back.
//!
//! ```no_run
//! # use talon_sdk::{Context, ToolError};
//! use talon_sdk::model::CompletionRequest;
//!
//! /// Translates a text.
//! # async fn translate(text: String, cx: Context) -> Result<String, ToolError> {
//! let request = CompletionRequest::new(text).system("Translate into French.").max_tokens(500);
//! let completion = cx.model()?.complete(request).await?;
//! Ok(completion.text)
//! # }
//! ```

mod canned;
mod client;
mod completion;
mod error;

pub(crate) use canned::Canned;
pub use client::Model;
pub(crate) use client::ModelSource;
pub use completion::{
    Completion, CompletionRequest, FinishReason, GrantedModels, ModelUsage, PromptMessage, PromptRole,
};
pub use error::ModelError;

/// Where the host puts the socket's path.
pub(crate) const SOCKET_ENV: &str = "TALON_MODEL_SOCKET";

#[cfg(test)]
mod tests;
