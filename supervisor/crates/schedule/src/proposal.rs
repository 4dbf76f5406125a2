//! Jobs that plugins propose: what a plugin says, checked, and the exact text that an operator decides about.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::check::EntryProblem;
use crate::entry::ScheduleEntry;
use crate::interval::{Interval, ParseIntervalError};
use crate::job::Job;
use crate::job_id::{JobId, JobIdError};

/// The most jobs that one plugin proposes. 16: an operator reads each of them. Of further ones none is taken, and
/// `talon schedule list` says so.
pub const MAX_PROPOSALS: usize = 16;
/// The most bytes of a proposal's arguments as JSON. 4 KiB: an operator reads them before accepting; an entry of
/// `extensions.schedule` may have more.
pub const MAX_PROPOSED_ARGS_BYTES: usize = 4 << 10;
/// The longest text of each of its times. 256 bytes: far more than a cron expression needs.
const MAX_TIME_BYTES: usize = 256;

/// What a plugin says about a job that it would like to have. Empty texts say nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeclaredJob {
    /// Its name within the plugin; by default the action's.
    pub name: String,
    /// A cron expression.
    pub cron: String,
    /// An interval.
    pub every: String,
    /// The time zone of `cron`.
    pub timezone: String,
    /// The action's arguments as a JSON object.
    pub arguments_json: String,
}

/// A job that a plugin proposes, checked.
///
/// Its id begins with the plugin's name and a dot, so that no plugin can propose a job by another's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// The job's id.
    pub id: JobId,
    /// `plugin.action`.
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every: Option<Interval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timezone: Option<String>,
    /// The action's arguments.
    pub args: Map<String, Value>,
}

/// Why a proposal cannot be accepted. For the plugin's author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposalError {
    /// Plugin and name make no id of a job.
    #[error("its name: {0}")]
    Id(#[from] JobIdError),
    /// The interval.
    #[error("`every`: {0}")]
    Every(#[from] ParseIntervalError),
    /// A text is too long.
    #[error("`{key}` has {bytes} bytes: write at most {most}")]
    TooLong {
        /// The key.
        key: &'static str,
        /// Its length.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// The arguments.
    #[error("`arguments_json` is no JSON object: write the arguments of the action, such as {{\"days\": 7}}")]
    Arguments,
    /// What an entry of the configuration could not have either.
    #[error(transparent)]
    Entry(#[from] EntryProblem),
}

impl Proposal {
    /// Checks what a plugin says about a job of one of its actions.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(plugin: &str, action: &str, declared: &DeclaredJob) -> Result<Self, ProposalError> {
        let DeclaredJob { name, cron, every, timezone, arguments_json } = declared;
        let limits = [
            ("cron", cron, MAX_TIME_BYTES),
            ("every", every, MAX_TIME_BYTES),
            ("timezone", timezone, MAX_TIME_BYTES),
            ("arguments_json", arguments_json, MAX_PROPOSED_ARGS_BYTES),
        ];
        for (key, text, most) in limits {
            if text.len() > most {
                return Err(ProposalError::TooLong { key, bytes: text.len(), most });
            }
        }
        let mut args = match arguments_json.trim() {
            "" => Value::Object(Map::new()),
            json => serde_json::from_str(json).map_err(|_| ProposalError::Arguments)?,
        };
        // Some languages write a map in another order each time.
        args.sort_all_objects();
        let Value::Object(args) = args else { return Err(ProposalError::Arguments) };
        let name = if name.is_empty() { action } else { name };
        let text = |text: &String| (!text.is_empty()).then(|| text.clone());
        let proposal = Self {
            id: format!("{plugin}.{name}").parse()?,
            action: format!("{plugin}.{action}"),
            cron: text(cron),
            every: text(every).map(|every| every.parse()).transpose()?,
            timezone: text(timezone),
            args,
        };
        proposal.job()?;
        Ok(proposal)
    }

    /// The job, as the same entry of `extensions.schedule` would make it, with the defaults of all other keys.
    ///
    /// # Errors
    /// What is wrong with it: a proposal that was stored by another version may not be one any more.
    pub fn job(&self) -> Result<Job, EntryProblem> {
        let entry = self.entry();
        let job = entry.check().map_err(|mut problems| problems.swap_remove(0))?;
        Ok(Job { accepted: true, ..job })
    }

    /// The entry of `extensions.schedule` that makes the same job.
    #[must_use]
    pub fn entry(&self) -> ScheduleEntry {
        ScheduleEntry {
            cron: self.cron.clone(),
            every: self.every,
            timezone: self.timezone.clone(),
            ..ScheduleEntry::of_action(self.id.clone(), self.action.clone(), self.args.clone())
        }
    }

    /// The plugin's name.
    #[must_use]
    pub fn plugin(&self) -> &str {
        self.action.split_once('.').map_or(self.action.as_str(), |(plugin, _)| plugin)
    }

    /// The exact text that is decided about: JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Texts, and maps with string keys.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`Proposal::to_json`] wrote.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// SHA-256 of [`Proposal::to_json`], in lower-case hex. It is not shortened: a plugin writes both of two texts, and could
    /// search for two with the same short digest.
    #[must_use]
    pub fn digest(&self) -> String {
        hex::encode(Sha256::digest(self.to_json()))
    }
}

#[cfg(test)]
#[path = "proposal_tests.rs"]
mod tests;
