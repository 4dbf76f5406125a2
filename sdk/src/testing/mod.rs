//! Testing a plugin without a daemon.
//!
//! [`call`] runs one tool in the test's own process: the arguments are converted to text and parsed as on the
//! wire, so a test sees what a caller would. [`Call`] sets what [`call`] leaves out: settings, injected
//! values, credentials, state, models, a deadline; and it collects progress reports.
//!
//! [`Host`] launches a plugin binary as a host does and calls it over its socket. It has neither guard nor
//! jail; `talon exec PATH ACTION` has both.
//!
//! ```
//! use serde_json::json;
//! use talon_sdk::{ToolError, testing};
//!
//! #[talon_sdk::args]
//! struct Double { number: i32 }
//!
//! /// Doubles a number.
//! #[talon_sdk::tool(read_only)]
//! async fn double(args: Double) -> Result<String, ToolError> {
//!     Ok((args.number * 2).to_string())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let output = testing::call(double(), json!({"number": 21})).await.unwrap();
//! assert_eq!(output.content(), "42");
//!
//! let error = testing::call(double(), json!({"number": "many"})).await.unwrap_err();
//! assert!(error.message().contains("expected an integer"));
//! # }
//! ```

mod call;
mod client;
mod events;
mod host;
mod launch;
mod model;
mod notices;
mod role;
mod state;

pub use call::{Call, call};
pub use client::{Answer, CallError};
pub use events::Events;
pub use host::{Builder, Host};
pub use launch::LaunchError;
pub use model::CannedModel;
pub use notices::{Notice, Notices};
pub use role::role_sample;
pub use state::MemoryState;

pub use crate::progress::{Progress, ProgressLog};

use serde_json::Value;
use talon_arguments::Arguments;

/// The arguments as a host sends them.
///
/// # Panics
/// When `args` is no object: a mistake in the test.
fn arguments(args: &Value) -> Arguments {
    let Value::Object(fields) = args else {
        panic!("arguments are a JSON object such as json!({{\"name\": \"Ada\"}}), not {args}")
    };
    Arguments::of(fields)
}
