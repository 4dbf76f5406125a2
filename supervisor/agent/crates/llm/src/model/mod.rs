//! Requests and answers, independent of providers.

mod answer;
mod embedding;
mod error;
mod image;
mod message;
mod request;

pub use answer::{Answer, Chunk, Finish, Usage};
pub use embedding::EmbeddingRequest;
pub use error::{ErrorClass, ProviderError};
pub use image::{Image, ImageError, ImageKind, MAX_IMAGE_PIXELS, ShownImages};
pub use message::{Arguments, Message, NOTE_BEGINS, Thoughts, ToolCall};
pub use request::{DeferredTools, Request, Thinking, ToolChoice, ToolSpec};
