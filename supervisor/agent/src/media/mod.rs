//! Images in questions and in results of tools: what is taken.
//!
//! | file | content |
//! |---|---|
//! | `accept` | what a person sends: type, number and size |
//! | `of_result` | what of a tool's media a model may see, and what is said of the rest |
//!
//! A transcript has an image's digest, type and size. The bytes are in the database ([`crate::image_store`]), and are
//! loaded for each question as far as the budget has room ([`crate::context`]). A model without vision gets the
//! text that stands in their place.

mod accept;
mod of_result;

use std::sync::Arc;

use talon_llm::model::Image;

pub(crate) use accept::accept;
pub use of_result::{PluginImages, of_result};

/// An image with its bytes.
pub type ImageWithBytes = (Image, Arc<[u8]>);
