//! The server: its process or its address, and the path of its messages.

pub(crate) mod child;
pub(crate) mod lines;
pub(crate) mod message_filter;
pub(crate) mod progress;
pub(crate) mod request_text;
pub(crate) mod scan;
pub(crate) mod stdio;
