//! The verbs of the agent. Like every other front end they are clients of `agent.sock`.
//!
//! | module | contents |
//! |---|---|
//! | `connection` | the connection, and what its errors mean |
//! | `turn` | one turn: streaming, rendering, approvals, cancellation |
//! | `turn_error` | a turn without an answer, for people |
//! | `ask`, `chat` | one question; a conversation |
//! | `attachment` | files and piped data that go with a question |
//! | `media_file` | images and other files that go with a question |
//! | `session_overrides` | the options that both have |
//! | `plan` | the plan of a session: words that change it, and how it is shown |
//! | `session`, `memory`, `model`, `approval` | what the agent stores, and pending approvals |
//! | `schedule` | jobs that run at planned times |
//! | `notification` | what people are told of events |
//! | `shadow` | what the shadow loop proposes |
//! | `extension` | the actions that extend the system |
//! | `forget` | everything of one sender |
//! | `bus` | what the event bus carries |
//! | `json`, `formatting` | output for programs, and for people |

mod approval;
mod ask;
mod attachment;
mod bus;
mod chat;
mod connection;
mod extension;
mod forget;
mod formatting;
mod json;
mod media_file;
mod memory;
mod model;
mod notification;
mod pages;
mod plan;
pub(in crate::client) mod plugin_cost;
mod schedule;
mod session;
mod session_overrides;
mod shadow;
mod storage_sample;
mod turn;
mod turn_error;

pub(crate) use approval::ApprovalVerb;
pub(crate) use ask::AskArgs;
pub(in crate::client) use bus::BusWatch;
pub(crate) use chat::ChatArgs;
pub(crate) use extension::ExtensionVerb;
pub(crate) use forget::ForgetSenderArgs;
pub(crate) use memory::MemoryVerb;
pub(crate) use model::ModelVerb;
pub(crate) use notification::NotificationVerb;
pub(crate) use schedule::{
    AcceptArgs, HistoryArgs, ListArgs as ScheduleListArgs, NextArgs, PauseArgs, RejectArgs, ResumeArgs,
    RunArgs,
};
pub(crate) use session::SessionVerb;
pub(crate) use shadow::ShadowVerb;
