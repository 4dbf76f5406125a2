//! A job that calls an action, in the role `scheduled_task`.
//!
//! Before the call its row says that it is made. A run that was interrupted after that is not called again by itself: the
//! action may have done its work. Only the operator's `retries` say that it may be called twice, and its arguments say that it
//! is the same run.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use talon_extensions::contract::{ScheduledRun, ScheduledTaskRequest};
use talon_extensions::{EntryKey, Role, template};
use talon_proto::host::{ExecuteResponse, Outcome};
use talon_sanitize::truncate;
use talon_schedule::{Job, Target};
use talon_store::limits::{MAX_RESULT_JSON_BYTES, MAX_RESULT_TEXT_BYTES};
use talon_store::{Occurrence, RunResult, Schedule};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::run_id::run_id;
use super::target::{JobTarget, RunAnswer, RunOutcome};
use super::timestamps::{now, to_store};
use crate::hooks::{AcceptedJobs, EntryState, EntryStates, RoleCall, RoleHost};

/// How often a plugin that is not ready is looked at again. 2 s: it starts in less, and one that does not come up costs a
/// request of the local socket each time.
const READY_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// How long a call may go on when the agent ends. 2 s, within what the agent takes for its end: a shorter call is not cut
/// off by a restart.
const ENDING_GRACE: Duration = Duration::from_secs(2);
/// Why an interrupted run is not called again.
const UNKNOWN: &str = "the agent ended while the action ran, and it is not known what it did: look before `talon schedule run` \
                       repeats it; with `retries` it is called again by itself";

/// Calls actions.
pub(crate) struct ActionTarget {
    host: Arc<dyn RoleHost>,
    entries: Arc<dyn EntryStates>,
    accepted: Arc<dyn AcceptedJobs>,
    schedule: Arc<dyn Schedule>,
    ending: CancellationToken,
}

/// What actions are called through.
pub(crate) struct ActionHosts {
    pub(crate) host: Arc<dyn RoleHost>,
    pub(crate) entries: Arc<dyn EntryStates>,
    pub(crate) accepted: Arc<dyn AcceptedJobs>,
}

/// An action, and with which arguments of the entry.
struct Action<'j> {
    job: &'j Job,
    name: &'j str,
    args: &'j Map<String, Value>,
    entry: EntryKey,
}

impl ActionTarget {
    /// `ending` says that the agent ends.
    pub(crate) fn new(
        hosts: ActionHosts,
        schedule: Arc<dyn Schedule>,
        ending: CancellationToken,
    ) -> Arc<Self> {
        let ActionHosts { host, entries, accepted } = hosts;
        Arc::new(Self { host, entries, accepted, schedule, ending })
    }

    /// Calls the action, once it is ready.
    async fn call(
        &self,
        action: &Action<'_>,
        occurrence: &Occurrence,
        stop: &CancellationToken,
    ) -> Result<RunOutcome, RunOutcome> {
        let declares = self.wait_ready(action, stop).await?;
        let arguments = arguments(action, occurrence, declares).map_err(RunOutcome::failed)?;
        let (plugin, name) = action.name.split_once('.').unwrap_or((action.name, ""));
        let call = RoleCall {
            entry: action.entry.clone(),
            plugin: plugin.to_owned(),
            action: name.to_owned(),
            // Maps with string keys serialize.
            arguments_json: serde_json::to_string(&arguments).unwrap_or_default(),
            deadline: action.job.deadline,
            call_id: String::new(),
        };
        if stop.is_cancelled() {
            return Err(RunOutcome::failed("it was stopped before its action was called"));
        }
        let noted = self.schedule.set_called(&occurrence.handle(), to_store(now())).await;
        if !noted.map_err(|error| RunOutcome::failed(talon_error_chain::error_chain(&error)))? {
            return Err(RunOutcome::Lost);
        }
        let ended = async {
            self.ending.cancelled().await;
            sleep(ENDING_GRACE).await;
        };
        let answer = tokio::select! {
            answer = self.host.call(&call) => answer,
            () = stop.cancelled() => return Err(RunOutcome::failed("it was stopped while its action ran")),
            // Whoever goes on finds that it was called.
            () = ended => return Err(RunOutcome::Interrupted),
        };
        match answer {
            Ok(response) => Ok(outcome_of(&response)),
            Err(_) if self.ending.is_cancelled() => Err(RunOutcome::Interrupted),
            Err(error) => Err(RunOutcome::failed(error.to_string())),
        }
    }

    /// Waits until the entry can be called, and says whether its action declares the role.
    async fn wait_ready(&self, action: &Action<'_>, stop: &CancellationToken) -> Result<bool, RunOutcome> {
        loop {
            let state = match action.job.accepted {
                true => self.accepted.accepted_job_state(&action.entry.name, action.name).await,
                false => self.entries.entry_state(&action.entry).await,
            };
            let why = match state {
                Ok(EntryState::Ready { declares_role }) => return Ok(declares_role),
                Ok(EntryState::Failing(why)) => {
                    return Err(RunOutcome::failed(format!("{} cannot be called: {why}", action.name)));
                }
                Ok(EntryState::Waiting(why)) => why,
                Err(error) => error.to_string(),
            };
            tokio::select! {
                () = sleep(READY_CHECK_INTERVAL) => {}
                () = self.ending.cancelled() => return Err(RunOutcome::Interrupted),
                () = stop.cancelled() => {
                    return Err(RunOutcome::failed(format!("{} was waited for: {why}", action.name)));
                }
            }
        }
    }
}

#[async_trait]
impl JobTarget for ActionTarget {
    async fn run(&self, job: &Job, occurrence: &Occurrence, stop: &CancellationToken) -> RunOutcome {
        let Target::Action { action, args } = &job.target else {
            return RunOutcome::Failed { reason: "the job asks the agent".to_owned(), retryable: false };
        };
        if occurrence.called_at.is_some() {
            return RunOutcome::failed(UNKNOWN);
        }
        let entry = EntryKey { role: Role::ScheduledTask, name: job.id.to_string() };
        let action = Action { job, name: action, args, entry };
        self.call(&action, occurrence, stop).await.unwrap_or_else(|other| other)
    }
}

/// The entry's arguments with their placeholders filled in, and the run beside them for an action that declares the role.
fn arguments(
    action: &Action<'_>,
    occurrence: &Occurrence,
    declares_role: bool,
) -> Result<Map<String, Value>, String> {
    let run = ScheduledRun {
        id: run_id(occurrence).to_string(),
        job: occurrence.job.clone(),
        planned_unix_ms: occurrence.planned_at.as_millis(),
        attempt: occurrence.attempt,
    };
    let of_run = ScheduledTaskRequest { run, args: Map::new() };
    // Maps with string keys serialize.
    let of_run = serde_json::to_value(of_run).unwrap_or_default();
    let rendered = template::render(action.args, &of_run);
    let mut arguments =
        rendered.map_err(|error| format!("the arguments of {} cannot be made: {error}", action.name))?;
    if declares_role && let Value::Object(of_run) = of_run {
        arguments.extend(of_run);
    }
    Ok(arguments)
}

fn outcome_of(response: &ExecuteResponse) -> RunOutcome {
    if response.outcome() != Outcome::Ok {
        let text = format!("its action failed ({}): {}", response.reason, response.error);
        return RunOutcome::failed(text);
    }
    if response.input_request.is_some() {
        let reason = "its action asks a question, and nobody is there to answer".to_owned();
        return RunOutcome::Failed { reason, retryable: false };
    }
    let whole = response.content.clone();
    let mut text = whole.clone();
    let structured = match response.structured_content.len() {
        0 => None,
        1..=MAX_RESULT_JSON_BYTES => serde_json::from_str(&response.structured_content).ok(),
        bytes => {
            text = format!(
                "[Its structured answer of {bytes} bytes is not kept: {MAX_RESULT_JSON_BYTES} are the most.] {text}"
            );
            None
        }
    };
    let text = truncate(&text, MAX_RESULT_TEXT_BYTES - '…'.len_utf8(), "…").into_owned();
    RunOutcome::Done(RunAnswer { text: whole, session: None, kept: Some(RunResult { text, structured }) })
}

#[cfg(test)]
#[path = "action_tests.rs"]
mod tests;
