//! Turns with a scripted model and fakes for everything else.

mod budgets;
mod clarification;
mod fakes;
mod images;
mod interrupted;
mod loops;
mod plugin_questions;
mod setting;
mod spans;
mod stopped;
mod summaries;
mod tool_search;
mod tools;
