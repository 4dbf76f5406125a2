//! From the entries of a schedule to jobs, or to what is wrong with them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use talon_agent_settings::TimeSpan;
use talon_sanitize::truncate;

use crate::cron::CronError;
use crate::entry::{MAX_JOBS, MissedKey, ScheduleEntry};
use crate::job::{Job, Target};
use crate::job_id::JobId;
use crate::missed::MissedPolicy;
use crate::recurrence::{Recurrence, RecurrenceError};
use crate::zone::{UnknownZoneError, Zone};

/// The longest question. 64 KiB: what is longer belongs into a file that a tool can read.
const MAX_ASK_BYTES: usize = 64 << 10;
/// The most bytes of arguments as JSON.
const MAX_ARGS_BYTES: usize = 64 << 10;
/// The longest name of a conversation or a sink.
const MAX_NAME_BYTES: usize = 64;
/// The longest name of an action: a plugin's name, a dot, and the action's.
const MAX_ACTION_BYTES: usize = 200;

/// What is wrong with an entry. Each message ends with what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryProblem {
    /// There are too many entries.
    #[error("there are {found} jobs, and {MAX_JOBS} are the most: put jobs with the same times together")]
    TooMany {
        /// How many there are.
        found: usize,
    },
    /// Another entry has the same id.
    #[error("the id {id} is taken by entry {first}: each job needs an id of its own")]
    SameId {
        /// The id.
        id: JobId,
        /// The first entry with it, from 0.
        first: usize,
    },
    /// It has none or several of a group of keys.
    #[error("it has {found}: write exactly one of {keys}")]
    NotOne {
        /// The keys that it has.
        found: String,
        /// The group.
        keys: &'static str,
    },
    /// A key has no meaning beside the others.
    #[error("`{key}` has no meaning here: it belongs to {owner}; remove it")]
    Stray {
        /// The key.
        key: &'static str,
        /// The keys to which it belongs.
        owner: &'static str,
    },
    /// The cron expression.
    #[error("`cron`: {0}")]
    Cron(#[from] CronError),
    /// The time zone.
    #[error("`timezone`: {0}")]
    Zone(#[from] UnknownZoneError),
    /// The time of `at`.
    #[error("`at`: {0}")]
    At(#[from] RecurrenceError),
    /// A number is out of its range.
    #[error("`{key}` is {found}: write {first} to {last}")]
    OutOfRange {
        /// The key.
        key: &'static str,
        /// What it is.
        found: String,
        /// The least.
        first: String,
        /// The most.
        last: String,
    },
    /// A text is empty, too long, or not of its form.
    #[error("`{key}` is {found}: {wanted}")]
    BadText {
        /// The key.
        key: &'static str,
        /// What it is, truncated.
        found: String,
        /// What it has to be.
        wanted: String,
    },
}

impl EntryProblem {
    /// The key of the entry that it concerns, for its place in the file; `None` for the entry as a whole.
    #[must_use]
    pub fn key(&self) -> Option<&'static str> {
        match self {
            Self::TooMany { .. } | Self::NotOne { .. } => None,
            Self::SameId { .. } => Some("id"),
            Self::Stray { key, .. } | Self::OutOfRange { key, .. } | Self::BadText { key, .. } => Some(key),
            Self::Cron(_) => Some("cron"),
            Self::Zone(_) => Some("timezone"),
            Self::At(_) => Some("at"),
        }
    }
}

/// Checks all entries: the jobs, and every problem with the number of its entry.
///
/// # Errors
/// All problems, if there is one.
pub fn check_jobs(entries: &[ScheduleEntry]) -> Result<Vec<Job>, Vec<(usize, EntryProblem)>> {
    if entries.len() > MAX_JOBS {
        return Err(vec![(MAX_JOBS, EntryProblem::TooMany { found: entries.len() })]);
    }
    let (mut jobs, mut problems) = (Vec::new(), Vec::new());
    let mut ids = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        if let Some(first) = ids.get(&entry.id).copied() {
            problems.push((at, EntryProblem::SameId { id: entry.id.clone(), first }));
        } else {
            ids.insert(&entry.id, at);
        }
        match entry.check() {
            Ok(job) => jobs.push(job),
            Err(found) => problems.extend(found.into_iter().map(|problem| (at, problem))),
        }
    }
    if problems.is_empty() { Ok(jobs) } else { Err(problems) }
}

impl ScheduleEntry {
    /// The job, or all that is wrong with the entry.
    ///
    /// # Errors
    /// The problems, at least one.
    pub fn check(&self) -> Result<Job, Vec<EntryProblem>> {
        let mut problems = Vec::new();
        let recurrence = self.recurrence().map_err(|problem| problems.push(problem)).ok();
        let target = self.target().map_err(|problem| problems.push(problem)).ok();
        problems.extend(self.range_problems());
        match (recurrence, target) {
            (Some(recurrence), Some(target)) if problems.is_empty() => Ok(Job {
                id: self.id.clone(),
                recurrence,
                jitter: self.jitter.map_or(Duration::ZERO, TimeSpan::get),
                missed: match self.missed {
                    MissedKey::Skip => MissedPolicy::Skip,
                    MissedKey::Once => MissedPolicy::Once,
                    MissedKey::All => MissedPolicy::All { most: self.missed_max as usize },
                },
                overlap: self.overlap,
                retries: self.retries,
                retry_after: self.retry_after.get(),
                deadline: self.deadline.get(),
                paused: self.paused,
                accepted: false,
                deliver: self.deliver.clone(),
                target,
            }),
            _ => Err(problems),
        }
    }

    fn recurrence(&self) -> Result<Recurrence, EntryProblem> {
        let zone = self.timezone.as_deref().map_or(Ok(Zone::utc()), str::parse)?;
        match (&self.cron, self.every, &self.at) {
            (Some(cron), None, None) => Ok(Recurrence::Cron { cron: cron.parse()?, zone }),
            (None, Some(_), None) if self.timezone.is_some() => {
                Err(EntryProblem::Stray { key: "timezone", owner: "`cron` and `at`" })
            }
            (None, Some(every), None) => Ok(Recurrence::Every(every)),
            (None, None, Some(at)) => Ok(Recurrence::at(at, &zone)?),
            _ => {
                let has = [
                    ("`cron`", self.cron.is_some()),
                    ("`every`", self.every.is_some()),
                    ("`at`", self.at.is_some()),
                ];
                Err(EntryProblem::NotOne { found: list(&has), keys: "`cron`, `every` and `at`" })
            }
        }
    }

    fn target(&self) -> Result<Target, EntryProblem> {
        match (&self.ask, &self.action) {
            (Some(text), None) => {
                if self.args.is_some() {
                    return Err(EntryProblem::Stray { key: "args", owner: "`action`" });
                }
                check_ask(text)?;
                check_name("session", self.session.as_deref())?;
                Ok(Target::Ask { text: text.clone(), session: self.session.clone(), budget: self.budget })
            }
            (None, Some(action)) => {
                let strays = [("session", self.session.is_some()), ("budget", self.budget.is_some())];
                if let Some((key, _)) = strays.into_iter().find(|(_, has)| *has) {
                    return Err(EntryProblem::Stray { key, owner: "`ask`" });
                }
                check_action(action)?;
                let args = self.args.clone().unwrap_or_default();
                let bytes = Value::Object(args.clone()).to_string().len();
                if bytes > MAX_ARGS_BYTES {
                    return Err(EntryProblem::BadText {
                        key: "args",
                        found: format!("{bytes} bytes of JSON"),
                        wanted: format!("write at most {MAX_ARGS_BYTES}"),
                    });
                }
                Ok(Target::Action { action: action.clone(), args })
            }
            (ask, action) => {
                let has = [("`ask`", ask.is_some()), ("`action`", action.is_some())];
                Err(EntryProblem::NotOne { found: list(&has), keys: "`ask` and `action`" })
            }
        }
    }

    fn range_problems(&self) -> Vec<EntryProblem> {
        let mut problems = Vec::new();
        let numbers = [("missed_max", self.missed_max, 1, 100), ("retries", self.retries, 0, 10)];
        for (key, found, first, last) in numbers {
            if !(first..=last).contains(&found) {
                let [found, first, last] = [found, first, last].map(|number| number.to_string());
                problems.push(EntryProblem::OutOfRange { key, found, first, last });
            }
        }
        problems
    }
}

fn list(keys: &[(&str, bool)]) -> String {
    let has: Vec<&str> = keys.iter().filter(|(_, has)| *has).map(|(key, _)| *key).collect();
    if has.is_empty() { "none of them".to_owned() } else { has.join(" and ") }
}

fn check_ask(text: &str) -> Result<(), EntryProblem> {
    if !text.trim().is_empty() && text.len() <= MAX_ASK_BYTES {
        return Ok(());
    }
    Err(EntryProblem::BadText {
        key: "ask",
        found: if text.trim().is_empty() { "empty".to_owned() } else { format!("{} bytes long", text.len()) },
        wanted: format!("write a question of at most {MAX_ASK_BYTES} bytes"),
    })
}

fn check_name(key: &'static str, name: Option<&str>) -> Result<(), EntryProblem> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match name {
        Some(name) if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(fits) => {
            Err(EntryProblem::BadText {
                key,
                found: format!("{:?}", truncate(name, MAX_NAME_BYTES, "…")),
                wanted: format!("write 1 to {MAX_NAME_BYTES} letters, digits, '-', '_' or '.'"),
            })
        }
        _ => Ok(()),
    }
}

fn check_action(action: &str) -> Result<(), EntryProblem> {
    let parts = action.split_once('.').filter(|(plugin, name)| !plugin.is_empty() && !name.is_empty());
    let clean =
        action.len() <= MAX_ACTION_BYTES && !action.chars().any(|c| c.is_control() || c.is_whitespace());
    if parts.is_some() && clean {
        return Ok(());
    }
    Err(EntryProblem::BadText {
        key: "action",
        found: format!("{:?}", truncate(action, MAX_NAME_BYTES, "…")),
        wanted: "write a plugin's name, a dot, and its action, such as reports.send".to_owned(),
    })
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
