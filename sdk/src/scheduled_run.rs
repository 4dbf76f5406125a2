//! What a scheduled task learns of its run.

use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::Deserialize;

/// One run of a job of the schedule: the field `run` of the arguments of a function with
/// [`#[scheduled_task]`](macro@crate::scheduled_task). The job's own arguments are the other fields.
///
/// ```
/// use talon_sdk::{ScheduledRun, ToolError};
///
/// #[talon_sdk::args]
/// struct Tidy {
///     run: ScheduledRun,
///     /// What is older goes.
///     older_than_days: u32,
/// }
///
/// /// Removes old files.
/// #[talon_sdk::scheduled_task]
/// async fn tidy(args: Tidy) -> Result<String, ToolError> {
///     Ok(format!("{}: nothing older than {} days", args.run.job, args.older_than_days))
/// }
/// # assert_eq!(tidy().action().roles, ["scheduled_task"]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ScheduledRun {
    /// What identifies it, the same in every attempt: with it an action can tell whether it did its work already.
    pub id: String,
    /// The job's id.
    pub job: String,
    /// The planned time, in milliseconds since the beginning of 1970 in UTC.
    pub planned_unix_ms: i64,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

impl ScheduledRun {
    /// The planned time; the beginning of 1970 for an earlier one.
    #[must_use]
    pub fn planned(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(self.planned_unix_ms).unwrap_or(0))
    }
}
