//! Turns with a scripted model and fakes for everything else.

mod attachments;
mod budgets;
mod clarification;
mod client_tools;
mod fakes;
mod hooks;
mod images;
mod interrupted;
mod loops;
mod plans;
mod plugin_questions;
mod setting;
mod spans;
mod stopped;
mod summaries;
mod tool_search;
mod tools;
