//! The files on the disk that a plugin runs from: which other users could change them, what they hold, and
//! digests.

pub mod digest;
pub mod program;
pub mod tree;
pub mod trust;

pub use program::ProgramError;
pub use tree::TreeError;
