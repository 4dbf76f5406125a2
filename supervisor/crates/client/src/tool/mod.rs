//! How an action looks to a model, whichever way the model gets to it: clients that offer actions as tools all offer the same.

mod names;
mod schema;

pub use names::{MAX_NAME_LEN, tool_name};
pub use schema::{of_answer, of_arguments};
