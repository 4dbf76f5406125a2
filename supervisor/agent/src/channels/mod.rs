//! Channels: people's messages that plugins tell as events become turns, and their answers go out through the plugins' actions.
//!
//! ```text
//!  plugin ─ event ─► plugin_events ─► inbound ─► routing ─► pending message: a row ─► conversation: one at a time ─► a turn
//!                       │                                                            │ answer, question, approval
//!                       └─ button ─► decision                         action ◄─ send ─┘
//! ```
//!
//! - `inbound`: what an event says; `routing`: for whom it is, and whether it becomes a turn; `subject`: as whom people count. Pure.
//! - `pending`: a message that is not answered yet; `store`: their rows, and which event was the last
//! - `plugin_events`, `event_reader`: the plugins' events, in their order, and buttons never behind messages that wait for room; `lane`, `conversation`: the messages of one sender or group, one after the other
//! - `files`, `fetch_places`: what came with a message, fetched for few at once; `typing`, `verbose`: what is shown while a turn runs: that it does, and its calls
//! - `session_command`, `session_settings`: what people set of their sessions by commands of a chat
//! - `prompts`: approvals and questions with their buttons; `decision`: what a button or a text decides
//! - `send`: one call of a channel's action; `outbound`: a text until it is sent; `open`: the calls that open channels
//!
//! A message is a row before its event counts as read, and the name of its turn in the session is the event's id. So a process that is
//! killed loses none and asks none twice. A row says how much of the answer was sent, and goes when all of it was.

mod conversation;
mod decision;
mod event_reader;
mod fetch_places;
mod files;
mod inbound;
mod lane;
mod open;
mod outbound;
mod pending;
mod plugin_events;
mod prompts;
mod routing;
mod send;
mod service;
mod session_command;
mod session_settings;
mod store;
mod subject;
mod typing;
mod verbose;

pub(crate) use service::Channels;
pub(crate) use store::forget_sender;
