//! Payloads of `task.*`.

use serde::{Deserialize, Serialize};
use talon_proto::agent::{BusEvent, TaskUpdate};
use utoipa::ToSchema;

use super::ids::session_id;

/// A run of a scheduled job, or the task of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskEvent {
    /// The job; absent for a sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// By what its run is known in `GET /api/schedule/history`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The sub-agent; absent for a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// The first attempt is 1.
    pub attempt: u32,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The session in which it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_id: Option<String>,
}

impl TaskEvent {
    pub(crate) fn of(update: &TaskUpdate, event: &BusEvent) -> Self {
        let set = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Self {
            job: set(&update.job),
            run: set(&update.run),
            subagent: set(&update.subagent),
            attempt: update.attempt,
            reason: set(&update.reason),
            session_id: set(&event.session_id).map(|id| session_id(&id)),
            sender_id: set(&event.sender),
        }
    }
}
