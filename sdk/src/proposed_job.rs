//! Jobs that a plugin would like to have.

use serde_json::{Map, Value};
use talon_proto::plugin::JobProposal;

/// A job that a plugin proposes: see [`Tool::propose_job`](crate::Tool::propose_job). The operator sees exactly this, and
/// nothing runs before it is accepted.
///
/// ```
/// use talon_sdk::{Plugin, ProposedJob, ScheduledRun, ToolError};
///
/// #[talon_sdk::args]
/// struct Tidy {
///     run: ScheduledRun,
///     /// What is older goes.
///     days: u32,
/// }
///
/// /// Removes old files.
/// #[talon_sdk::scheduled_task]
/// async fn tidy(args: Tidy) -> Result<String, ToolError> {
///     Ok(format!("nothing older than {} days", args.days))
/// }
///
/// let job = ProposedJob::cron("30 3 * * *").timezone("Europe/Berlin").argument("days", 30);
/// let plugin = Plugin::new("files").tool(tidy().propose_job(job));
/// # assert_eq!(tidy().propose_job(ProposedJob::every("6h")).action().proposed_jobs.len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ProposedJob {
    name: String,
    cron: String,
    every: String,
    timezone: String,
    arguments: Map<String, Value>,
}

impl ProposedJob {
    /// A job by a cron expression of five fields, or of six with the second in front, or `@daily` and the like.
    #[must_use]
    pub fn cron(expression: impl Into<String>) -> Self {
        Self { cron: expression.into(), ..Self::empty() }
    }

    /// A job that runs every so often: `90s`, `6h`, `7d`.
    #[must_use]
    pub fn every(interval: impl Into<String>) -> Self {
        Self { every: interval.into(), ..Self::empty() }
    }

    /// Its name within the plugin; by default the action's. The job's id is the plugin's configured name, a dot, and this: letters,
    /// digits, `-`, `_` and `.`, at most 64 together.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// The time zone of its cron expression, by its IANA name. Default: `UTC`.
    #[must_use]
    pub fn timezone(self, name: impl Into<String>) -> Self {
        Self { timezone: name.into(), ..self }
    }

    /// An argument of the action, beside `run`. All of them have at most 4 KiB of JSON.
    #[must_use]
    pub fn argument(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.arguments.insert(name.into(), value.into());
        self
    }

    fn empty() -> Self {
        let (name, cron, every, timezone) = Default::default();
        Self { name, cron, every, timezone, arguments: Map::new() }
    }

    pub(crate) fn into_declared(self) -> JobProposal {
        let Self { name, cron, every, timezone, arguments } = self;
        let arguments_json =
            if arguments.is_empty() { String::new() } else { Value::Object(arguments).to_string() };
        JobProposal { name, cron, every, timezone, arguments_json }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Output, Tool};

    // Promises: EXT-165
    #[test]
    fn a_tool_that_proposes_a_job_declares_the_role() {
        let tool = Tool::new("tidy", "Removes old files.", |(): (), _| async {
            Ok::<_, crate::ToolError>(Output::text(""))
        })
        .propose_job(ProposedJob::cron("@daily").timezone("Europe/Berlin").argument("days", 30))
        .propose_job(ProposedJob::every("6h").named("often"));
        let action = tool.action();
        assert_eq!(action.roles, ["scheduled_task"]);
        let [daily, often] = action.proposed_jobs.as_slice() else { panic!("{action:?}") };
        assert_eq!((daily.name.as_str(), daily.cron.as_str(), daily.every.as_str()), ("", "@daily", ""));
        assert_eq!(
            (daily.timezone.as_str(), daily.arguments_json.as_str()),
            ("Europe/Berlin", r#"{"days":30}"#)
        );
        assert_eq!(
            (often.name.as_str(), often.every.as_str(), often.arguments_json.as_str()),
            ("often", "6h", "")
        );
    }
}
