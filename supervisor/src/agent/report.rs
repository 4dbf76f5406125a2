//! The agent's report about itself, bounded and sanitized.

use talon_proto::agent::{self, GetStatusResponse, ProviderState};
use talon_sanitize::Sanitized;

use crate::service::sanitize_report;

/// Maximum number of stored complaints. Each is about a provider, a file or a model; the first ones are
/// enough to start with.
pub(super) const MAX_COMPLAINTS: usize = 32;
/// Maximum number of stored providers: a configuration has a few.
pub(super) const MAX_PROVIDERS: usize = 32;

/// The agent's report about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentReport {
    pub(crate) turns_running: u32,
    pub(crate) approvals_pending: u32,
    pub(crate) providers: Vec<Provider>,
    /// Problems, each with what to do.
    pub(crate) problems: Vec<Sanitized>,
    pub(crate) memory_vectors: Option<MemoryVectors>,
    pub(crate) schedule: Option<agent::ScheduleStatus>,
    pub(crate) notifications: Option<agent::NotificationStatus>,
    /// Its texts are sanitized.
    pub(crate) shadow: Option<agent::ShadowStatus>,
}

/// How many memories are found by meaning, as the agent reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryVectors {
    pub(crate) model: Sanitized,
    pub(crate) memories: u64,
    pub(crate) vectors: u64,
    pub(crate) local_only: u64,
    pub(crate) refused: u64,
    pub(crate) engine: Sanitized,
    pub(crate) failure: Sanitized,
}

/// A provider of models, as the agent reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Provider {
    pub(crate) name: Sanitized,
    pub(crate) state: Sanitized,
    pub(crate) why: Sanitized,
}

impl AgentReport {
    /// The report in the agent's answer to a status request.
    pub(super) fn of(status: &GetStatusResponse) -> Self {
        let provider = |one: &ProviderState| Provider {
            name: sanitize_report(&one.name),
            state: sanitize_report(&one.state),
            why: sanitize_report(&one.why),
        };
        Self {
            turns_running: status.turns_running,
            approvals_pending: status.approvals_pending,
            providers: status.providers.iter().take(MAX_PROVIDERS).map(provider).collect(),
            problems: status
                .problems
                .iter()
                .take(MAX_COMPLAINTS)
                .map(|problem| sanitize_report(problem))
                .collect(),
            memory_vectors: status.memory_vectors.as_ref().map(MemoryVectors::of),
            schedule: status.schedule,
            notifications: status.notifications,
            shadow: status.shadow.as_ref().map(shadow),
        }
    }
}

fn shadow(told: &agent::ShadowStatus) -> agent::ShadowStatus {
    let text = |text: &String| sanitize_report(text).into_string();
    agent::ShadowStatus {
        limits: told.limits.iter().take(MAX_COMPLAINTS).map(text).collect(),
        quiet_hours: text(&told.quiet_hours),
        local_time: text(&told.local_time),
        problem: text(&told.problem),
        ..*told
    }
}

impl MemoryVectors {
    fn of(told: &agent::MemoryVectors) -> Self {
        let agent::MemoryVectors { model, memories, vectors, local_only, refused, engine, failure } = told;
        Self {
            model: sanitize_report(model),
            memories: *memories,
            vectors: *vectors,
            local_only: *local_only,
            refused: *refused,
            engine: sanitize_report(engine),
            failure: sanitize_report(failure),
        }
    }
}
