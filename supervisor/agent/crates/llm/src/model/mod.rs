//! Requests and answers, independent of providers.

mod answer;
mod error;
mod message;
mod request;

pub use answer::{Answer, Chunk, Finish, Usage};
pub use error::{ErrorClass, ProviderError};
pub use message::{Arguments, Message, NOTE_BEGINS, Thoughts, ToolCall};
pub use request::{Request, Thinking, ToolSpec};
