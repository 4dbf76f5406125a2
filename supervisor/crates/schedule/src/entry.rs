//! What an operator writes about a job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use talon_agent_settings::{Money, TimeSpan};

use crate::interval::Interval;
use crate::job_id::JobId;

/// The most jobs. 1000: far more than anybody writes by hand; each is looked at whenever one is due.
pub const MAX_JOBS: usize = 1000;

/// A job that runs at planned times: an entry of `extensions.schedule`.
///
/// It has one of `cron`, `every` and `at`, and one of `ask` and `action`. Each planned time is stored before
/// it begins, and runs once whatever is restarted meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleEntry {
    /// Its name, which is unique: a letter or digit, then at most 63 letters, digits, `-`, `_` or `.`.
    ///
    /// Its history is kept by it. An entry with another id is another job.
    pub id: JobId,
    /// When it runs, as a cron expression of five fields, or of six with the second in front: `0 9 * * 1-5`,
    /// `*/15 * * * *`, `@daily`. `talon schedule check` shows the times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// How often it runs: `90s`, `6h`, `7d`. It runs at the multiples since the beginning of 1970 in UTC, so
    /// that a restart does not shift it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Interval>,
    /// When it runs, once: RFC 3339 with an offset, or a local time of `timezone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The time zone of `cron` and `at`, by its IANA name: `Europe/Berlin`. Default: `UTC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The most by which it begins later than planned, so that many jobs do not begin at once. How much
    /// follows from the id and the planned time. It is never as long as the time to the next planned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<TimeSpan>,
    /// What becomes of planned times at which nothing could run, as the agent or the machine was down. Times
    /// within the last minute are not missed, and run.
    #[serde(default)]
    pub missed: MissedKey,
    /// The most missed times that run if `missed` is `all`. The latest ones run, one after the other; older
    /// ones are in the history as missed.
    #[schemars(range(min = 1, max = 100))]
    #[serde(default = "default_missed_max")]
    pub missed_max: u32,
    /// What happens at a planned time while the job still runs.
    #[serde(default)]
    pub overlap: Overlap,
    /// How often a run that failed is tried again. It stays the same run.
    ///
    /// Default 0: a question to a model has a fallback of its own, and an action may have done its work. Retries also say
    /// that an action may be called again whose call was interrupted by a kill; it gets the same `run.id`.
    #[schemars(range(max = 10))]
    #[serde(default)]
    pub retries: u32,
    /// The time before the first retry; it doubles with each, up to an hour.
    #[serde(default = "default_retry_after")]
    pub retry_after: TimeSpan,
    /// The most time of one attempt. At the deadline it is cancelled and has failed. At most a day.
    #[serde(default = "default_deadline")]
    pub deadline: TimeSpan,
    /// Whether it rests. Planned times meanwhile are not missed ones. `talon schedule pause` does the same
    /// without a change of the configuration.
    #[serde(default)]
    pub paused: bool,
    /// The most that one attempt may cost, in US dollars. Default: `agent.turn.cost`. For `ask`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Money>,
    /// What the agent is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// The name of the conversation in which it is asked, kept from run to run. Default: a new conversation
    /// for each run, which costs less. For `ask`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The name of an entry of `extensions.notifications`, to which the answer goes as well, as an event of the kind `answer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliver: Option<String>,
    /// The action that is called, as `plugin.action`, in the role `scheduled_task`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The action's arguments. Texts may hold `{{ run.id }}`, `{{ run.job }}`, `{{ run.planned_unix_ms }}` and
    /// `{{ run.attempt }}`; see docs/extensions/templates.md. An action that declares the role gets `run` beside them. For
    /// `action`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
}

impl ScheduleEntry {
    /// An entry that calls an action, without a time yet, and with the defaults of all other keys.
    pub(crate) fn of_action(id: JobId, action: String, args: Map<String, Value>) -> Self {
        Self {
            id,
            cron: None,
            every: None,
            at: None,
            timezone: None,
            jitter: None,
            missed: MissedKey::default(),
            missed_max: default_missed_max(),
            overlap: Overlap::default(),
            retries: 0,
            retry_after: default_retry_after(),
            deadline: default_deadline(),
            paused: false,
            budget: None,
            ask: None,
            session: None,
            deliver: None,
            action: Some(action),
            args: Some(args),
        }
    }
}

/// What becomes of missed times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissedKey {
    /// None runs.
    Skip,
    /// The latest runs once for all of them.
    #[default]
    Once,
    /// All run, at most `missed_max`.
    All,
}

/// What happens at a planned time while the job still runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It does not run, and is in the history as missed.
    #[default]
    Skip,
    /// It waits and runs next. At most 10 wait; further ones are missed.
    Queue,
    /// The earlier run is cancelled and has failed; the new one begins.
    Replace,
}

fn default_missed_max() -> u32 {
    10
}

fn default_retry_after() -> TimeSpan {
    TimeSpan::from_secs(60)
}

fn default_deadline() -> TimeSpan {
    TimeSpan::from_secs(600)
}
