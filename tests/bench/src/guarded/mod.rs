//! Talon's own contenders: a program that embeds the guard and runs the plugins, and a client of a
//! supervisor.

pub(crate) mod bubblewrap;
mod echo;
mod host;
mod in_process;
mod layers;
mod lines;
mod listeners;
mod lua;
mod many;
mod part;
mod sanitizer;
mod start;
mod start_true;

pub use lines::LINES;
pub use listeners::EVENTS;
pub use many::plugin_name;
pub use part::Part;

/// The plugin that all of them call; its program is `talon-bench-plugin`.
pub const PLUGIN: &str = "says";
/// Its action: returns this many bytes of text.
pub const ACTION: &str = "say";
/// Has the length of the ids that clients generate.
pub const CALL_ID: &str = "01JCZ6N8V2K4W5Q7R9T0X1Y3Z5";
