//! Images and other files in questions, and images in results of tools: what is taken.
//!
//! | file | content |
//! |---|---|
//! | `accept` | what a person sends: type, number and size |
//! | `attachment` | a file that is no image: its type, its id, what a model is told of it |
//! | `of_result` | what of a tool's media a model may see, and what is said of the rest |
//!
//! A transcript has an image's digest, type and size. The bytes are in the database ([`crate::media_store`]), and are
//! loaded for each question as far as the budget has room ([`crate::context`]). A model without vision gets the
//! text that stands in their place.

mod accept;
mod attachment;
mod of_result;
#[cfg(test)]
mod test_images;

use std::sync::Arc;

use talon_llm::model::Image;

pub(crate) use accept::{AcceptedMedia, accept};
pub use attachment::{Attachment, introduction, is_attachment_id};
pub use of_result::{PluginImages, of_result};

/// An image with its bytes.
pub type ImageWithBytes = (Image, Arc<[u8]>);
/// A file with its bytes.
pub type AttachmentWithBytes = (Attachment, Arc<[u8]>);
