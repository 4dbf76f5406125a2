//! What a scheduled task is asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The arguments of a scheduled task: its run, and beside it the arguments that the job's entry gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduledTaskRequest {
    /// The run.
    pub run: ScheduledRun,
    /// The arguments of the job's entry (`args`), each under its own name.
    #[serde(flatten)]
    pub args: Map<String, Value>,
}

/// One run of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduledRun {
    /// What identifies it, the same in every attempt.
    pub id: String,
    /// The job's id.
    pub job: String,
    /// The planned time, in milliseconds since the beginning of 1970 in UTC.
    pub planned_unix_ms: i64,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

pub(super) fn sample() -> ScheduledTaskRequest {
    let run = ScheduledRun {
        id: "01J00000000000000000000000".to_owned(),
        job: "nightly".to_owned(),
        planned_unix_ms: 1_780_000_000_000,
        attempt: 1,
    };
    ScheduledTaskRequest { run, args: Map::new() }
}
