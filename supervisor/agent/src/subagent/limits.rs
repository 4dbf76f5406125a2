//! The limits on sub-agents and their tasks.

/// The longest name, which is also a tool's.
pub(super) const MAX_NAME_BYTES: usize = 64;
/// The most of a task. What is longer is context, or two tasks.
pub(super) const MAX_TASK_BYTES: usize = 4 * 1024;
/// The largest schema that a model may ask for; it is sent with every question.
pub(super) const MAX_SCHEMA_BYTES: usize = 8 * 1024;
