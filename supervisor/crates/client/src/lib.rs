//! A client of `host.sock`, and of the agent's `agent.sock`, that survives a restart of the server.
//!
//! A supervisor may be replaced while its clients work: by its service manager, by an upgrade, by `talon
//! serve --takeover`. A client that was connected looks for the next one, and repeats requests where that is
//! safe:
//!
//! | state of the request | examples | repeated |
//! |---|---|---|
//! | it was not started | no listener, the supervisor drains, it was refused unread | always |
//! | it may have been | the connection broke after it was sent | calls of actions that declare `read_only`, and queries |
//! | it was answered | every other error | never |
//!
//! | file | contents |
//! |---|---|
//! | `dial` | the connection, and whether its listener is trusted |
//! | `until_end` | the connection, read to its end after the other side closed it |
//! | `request_fate` | what an error says about its request |
//! | `retry_window` | how long to wait for the next supervisor |
//! | `client`, `call`, `calls_in_flight` | queries and calls |
//! | `subscription` | streams that are reopened |
//! | `agent` | the agent's socket, and turns that are followed across a restart of the agent |
//! | [`tool`] | actions as tools of a model |

mod agent;
mod call;
mod calls_in_flight;
mod client;
mod dial;
mod request_fate;
mod retry_window;
mod subscription;
pub mod tool;
mod until_end;

pub use agent::{AGENT_SOCKET, Agent, Turn, TurnError, TurnEvent};
pub use call::{CallError, CallUpdate};
pub use client::{Client, MAX_ANSWER_BYTES};
pub use dial::{Connect, Connecting, channel, connect_error, dial, is_not_listening};
pub use request_fate::RequestFate;
pub use retry_window::RECONNECT_WINDOW;
pub use subscription::{StreamUpdate, Subscription};
