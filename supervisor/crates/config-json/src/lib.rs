//! Values of the configuration as JSON has them, and as the host's messages do: those carry typed values, so that the supervisor parses
//! no JSON of its clients.

mod merge_patch;
mod value;

pub use merge_patch::{MergePatchError, edits};
pub use value::{bounded_json, json, message};
