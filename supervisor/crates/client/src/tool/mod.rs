//! Actions as tools of a model: all clients that offer actions as tools use the same names and schemas.

mod names;
mod schema;

pub use names::{MAX_NAME_LEN, tool_name};
pub use schema::{of_answer, of_arguments};
