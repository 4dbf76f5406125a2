//! What runs of a script, as a plugin tells its host.

use talon_proto::notices as wire;

use crate::text::cut;

/// The longest problem that is sent, in bytes; hosts keep no more (`talon.plugin.v1`).
const MAX_PROBLEM_BYTES: usize = 4 << 10;
/// The most functions that are sent, and how much of each name, in bytes; hosts keep no more.
const MAX_FUNCTIONS: usize = 16;
const MAX_FUNCTION_BYTES: usize = 32;

/// What runs of one script: [`Notifier::script`](crate::Notifier::script).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScriptStatus {
    /// Its name.
    pub name: String,
    /// The functions that are called.
    pub functions: Vec<String>,
    /// SHA-256 of the source that runs, in lower-case hex; empty while none runs.
    pub sha256: String,
    /// How many versions were loaded since the process started.
    pub loads: u64,
    /// Why the newest version does not run, with line and traceback; empty if it does. 4 KiB are sent.
    pub problem: String,
    /// Calls that were ended at their time limit by an interrupt, since the process started.
    pub ended_by_interrupt: u64,
    /// Calls that were ended at their time limit with the process that ran them.
    pub ended_with_process: u64,
}

impl From<ScriptStatus> for wire::ScriptStatus {
    fn from(status: ScriptStatus) -> Self {
        let functions = status.functions.iter().take(MAX_FUNCTIONS);
        Self {
            name: status.name,
            functions: functions.map(|name| cut(name, MAX_FUNCTION_BYTES).to_owned()).collect(),
            sha256: status.sha256,
            loads: status.loads,
            problem: cut(&status.problem, MAX_PROBLEM_BYTES).to_owned(),
            ended_by_interrupt: status.ended_by_interrupt,
            ended_with_process: status.ended_with_process,
            removed: false,
        }
    }
}

impl From<wire::ScriptStatus> for ScriptStatus {
    fn from(status: wire::ScriptStatus) -> Self {
        Self {
            name: status.name,
            functions: status.functions,
            sha256: status.sha256,
            loads: status.loads,
            problem: status.problem,
            ended_by_interrupt: status.ended_by_interrupt,
            ended_with_process: status.ended_with_process,
        }
    }
}
