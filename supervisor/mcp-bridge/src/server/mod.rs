//! The server: its process or its address, and the path of its messages.

pub(crate) mod child;
pub(crate) mod import_failure;
pub(crate) mod lines;
pub(crate) mod message_filter;
mod probe_log;
pub(crate) mod progress;
pub(crate) mod request_text;
pub(crate) mod resource_updates;
pub(crate) mod scan;
#[cfg(test)]
pub(crate) mod scripted;
pub(crate) mod stdio;
