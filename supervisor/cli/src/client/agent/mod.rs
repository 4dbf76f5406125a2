//! The verbs of the agent. Like every other front end they are clients of `agent.sock`.
//!
//! | module | contents |
//! |---|---|
//! | `connection` | the connection, and what its errors mean |
//! | `turn` | one turn: streaming, rendering, approvals, cancellation |
//! | `turn_error` | a turn without an answer, for people |
//! | `ask`, `chat` | one question; a conversation |
//! | `attachment` | files and piped data that go with a question |
//! | `image_file` | images that go with a question |
//! | `session_overrides` | the options that both have |
//! | `session`, `memory`, `model`, `approval` | what the agent stores, and pending approvals |
//! | `forget` | everything of one sender |
//! | `json`, `formatting` | output for programs, and for people |

mod approval;
mod ask;
mod attachment;
mod chat;
mod connection;
mod forget;
mod formatting;
mod image_file;
mod json;
mod memory;
mod model;
mod session;
mod session_overrides;
mod turn;
mod turn_error;

pub(crate) use approval::ApprovalVerb;
pub(crate) use ask::AskArgs;
pub(crate) use chat::ChatArgs;
pub(crate) use forget::ForgetSenderArgs;
pub(crate) use memory::MemoryVerb;
pub(crate) use model::ModelVerb;
pub(crate) use session::SessionVerb;
