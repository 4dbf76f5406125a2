//! The dispatcher: every call to a plugin, from any client, goes through here and takes that plugin's guard
//! stack.
//!
//! This is the only place where `talon-plugin` and `talon-guard` meet. `execute.rs` is the way of one call,
//! to the plugin and back, in one file: read that first.
//!
//! | module | contents |
//! |---|---|
//! | `execute` | one call: what comes in, the list of layers, the plugin, the way back |
//! | `progress`, `output_queue` | the same call with its progress and output |
//! | `call_id`, `grant`, `request_context` | the parts of a request: its ids, what it may call, its conversation |
//! | `role_call`, `role_meter` | calls for extensions |
//! | `response` | the answer as a message |
//! | `dispatcher` | the stacks, their limits and their state |
//! | `stack_entry`, `configured_stacks`, `shared_layers` | the stacks' state, and how they are built |
//! | `executor` | work on large answers |
//! | `plugin_request` | the request to a plugin, and the mapping of its errors |
//! | `directory`, `unknown_plugin` | how `resolve` sees plugins |
//! | `core` | the supervisor's own actions, which are called like a plugin's |
//! | [`capabilities`] | a plugin's declaration, sanitized |
//! | `call_log`, `layer_verdicts` | the latest calls, for an operator; what each layer did to one |
//! | `call_finished`, `counters`, `latency_window`, `statistics` | what is recorded of calls |

mod call_finished;
mod call_id;
mod call_log;
pub mod capabilities;
mod configured_stacks;
mod core;
mod counters;
mod directory;
mod dispatcher;
mod execute;
mod executor;
mod grant;
mod latency_window;
mod layer_verdicts;
mod output_queue;
mod plugin_request;
mod progress;
mod request_context;
mod response;
mod role_call;
mod role_meter;
mod shared_layers;
mod stack_entry;
mod statistics;
mod unknown_plugin;

pub(crate) use call_id::requested_id;
pub use call_log::{CallEnd, CallLog, KEPT_CALLS, LoggedCall};
pub use counters::{OTHER_ACTION, OUTCOMES, OutcomeCounts};
pub use dispatcher::{CallGauge, Dispatcher, DrainingError};
pub(crate) use execute::execute;
pub(crate) use layer_verdicts::layers;
pub(crate) use progress::execute_streaming;
pub use response::{report_on_wire, response};
pub use statistics::CallStatistics;
