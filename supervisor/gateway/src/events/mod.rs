//! Events of sessions, as clients of the gateway read and send them: over WebSocket, and as server-sent events.
//!
//! | module | contents |
//! |---|---|
//! | `envelope` | what stands around every event |
//! | `server_event` | the closed list of what the gateway sends |
//! | `agent`, `tool`, `session`, `approval`, `task` | the payloads of these |
//! | `client_message` | the closed list of what clients send, and how it is read |
//! | `thinking_level` | how long models think, as clients say it |
//! | `ids` | ids of sessions, events and calls outside the agent |
//! | `translate` | what a message of the agent becomes |
//! | `chunk` | what a piece of a turn becomes |
//! | `session_envelopes` | what an event of the agent becomes |
//!
//! Everything here is pure: no connection, no clock.

pub(crate) mod agent;
pub(crate) mod approval;
pub(crate) mod chunk;
pub(crate) mod client_message;
pub(crate) mod envelope;
pub(crate) mod ids;
pub(crate) mod server_event;
pub(crate) mod session;
pub(crate) mod session_envelopes;
pub(crate) mod task;
pub(crate) mod thinking_level;
pub(crate) mod tool;
pub(crate) mod translate;

pub(crate) use client_message::ClientMessageError;
pub(crate) use envelope::Envelope;
pub(crate) use server_event::ServerEvent;
pub(crate) use thinking_level::ThinkingLevel;

#[cfg(test)]
mod tests;
