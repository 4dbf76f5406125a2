//! The supervisor's configuration as its clients write it in JSON: the host's messages carry typed values, so that the supervisor
//! parses no JSON.

mod merge_patch;
mod value;

pub use merge_patch::{MergePatchError, edits};
pub use value::{json, message};
