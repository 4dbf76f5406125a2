//! A client of `host.sock`, and of the agent's `agent.sock`, that comes through a restart of who listens there.
//!
//! A supervisor is replaced while its clients are at work: by its service manager, by an upgrade, by `talon serve --takeover`.
//! A client that was connected looks for the next one, and repeats what can be repeated without a doubt:
//!
//! | what is known of a request | examples | repeated |
//! |---|---|---|
//! | it was not begun | nobody listened, the supervisor drains, it was refused unread | always |
//! | it may have been | the connection broke after it was sent | calls of actions that declare `read_only`, and questions |
//! | it was answered | every other error | never |
//!
//! | file | what |
//! |---|---|
//! | `dial` | the connection, and whether who listens is believed |
//! | `known` | what an error says about its request |
//! | `patience` | how long is waited for the next supervisor |
//! | `client`, `call` | questions and calls |
//! | `follow` | streams that begin again |
//! | `agent` | the agent's socket, and turns that are followed through a restart of the agent |
//! | [`tool`] | how an action looks to a model |

mod agent;
mod call;
mod client;
mod dial;
mod follow;
mod known;
mod patience;
pub mod tool;

pub use agent::{AGENT_SOCKET, Agent, Heard, Turn, TurnError};
pub use call::CallError;
pub use client::{Client, MAX_ANSWER_BYTES};
pub use dial::{Connect, Connecting, channel, dial, is_nobody, reason};
pub use follow::{Followed, Follower};
pub use known::Known;
pub use patience::RECONNECT_WINDOW;
