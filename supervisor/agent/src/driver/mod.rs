//! Performs what the machine decides.
//!
//! One task runs a turn: it passes facts to [`machine::Turn`](crate::machine::Turn), and performs the
//! resulting effects in the [`TurnEnvironment`]. Everything outside is behind one of these traits, which
//! tests replace.
//!
//! | trait | implemented by |
//! |---|---|
//! | [`Host`] | the supervisor's host service: plugins, guarded ([`crate::host_client`]) |
//! | [`RoleHost`](crate::hooks::RoleHost) | the same, for [hooks](crate::hooks) |
//! | [`BuiltinTools`] | the built-in tools: `memory.*` ([`crate::recall`]), sub-agents ([`crate::subagent`]) |
//! | [`Recall`] | memory beyond a session ([`crate::recall`]) |
//! | [`CallApprover`] | approval of calls: policy, and a person's decision ([`crate::approval`]) |
//! | [`Journal`](crate::journal::Journal) | the session in the store ([`crate::journal`]) |
//! | [`ImageSource`] | the bytes of images ([`crate::media_store`]) |
//! | [`AttachmentSource`] | the bytes of other files ([`crate::media_store`]) |
//! | [`SessionPlan`](crate::plan::SessionPlan) | the session's plan in the store ([`crate::plan`]) |
//! | [`Listener`] | the clients that follow the turn |
//! | [`TurnObserver`] | metrics, and the event bus |
//! | [`TurnRunner`] | the driver itself, for tools that start turns within turns |

mod account;
mod allowed;
mod ask;
mod attachment_source;
mod attachments;
mod batch_progress;
mod begin;
mod builtin_tools;
mod caller;
mod calls;
mod checked_text;
mod client;
mod client_side;
mod clock;
mod conversation;
mod cost_tracking_listener;
mod drive;
mod guard_trace;
mod hooks;
mod host;
mod host_calls;
mod image_source;
mod images;
mod interrupted_calls;
mod listener;
mod notify;
mod observe;
mod originals;
mod persistence;
mod plan;
mod plugin_question;
mod prepare;
mod read_more;
mod recall;
mod search;
mod similarity;
mod spec;
mod summarize;
mod trace;
mod turn_actions;
mod turn_trace;

pub use allowed::AllowedTools;
pub use attachment_source::{AttachmentError, AttachmentSource};
pub use batch_progress::{BatchProgress, CallPosition};
#[cfg(test)]
pub(crate) use begin::own_actions;
pub use builtin_tools::{BuiltinCall, BuiltinTools};
pub use caller::Caller;
pub use client_side::{ClientSide, HandedOverCalls, ISSUED, KEEPING};
pub use clock::{Clock, ClockHold};
pub use drive::Driver;
pub use guard_trace::GuardTrace;
pub use host::{CallUpdate, DeclaredPlugins, Host, HostCall, HostError, Progress};
pub use image_source::{ImageSource, ImageStoreError};
pub(crate) use images::images;
pub use listener::{Listener, NoListener};
pub use observe::{FinishedCall, TurnObserver};
pub use plan::APPROVE_PLAN;
pub use recall::{CompletedTurn, Recall, Recollection, ShownWorkflow};
pub use similarity::{SimilarityError, ToolSimilarity};
pub(crate) use similarity::{check_pins, is_confined};
pub use spec::{
    CallApprover, CallToConfirm, Confirmation, MessageOrigin, Reply, TurnEnd, TurnEnvironment, TurnRunner,
    TurnSpec,
};

#[cfg(test)]
mod tests;
