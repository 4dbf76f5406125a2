//! What is stored of jobs and their occurrences.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::limits::{
    MAX_NOTE_BYTES, MAX_PLANNED, MAX_RESULT_JSON_BYTES, MAX_RESULT_TEXT_BYTES, count, name, size,
};
use crate::page::{PageRequest, PageToken};
use crate::time::Timestamp;

/// A job as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTiming {
    /// Its id.
    pub job: String,
    /// A digest of what decides when it runs.
    pub timing: String,
}

/// A job as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledJob {
    /// Its id.
    pub job: String,
    /// A digest of what decides when it runs.
    pub timing: String,
    /// Up to which planned time everything is decided.
    pub progress: Timestamp,
    /// Whether it rests, by a person's wish.
    pub paused: bool,
}

/// A decision about a job's planned times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The job.
    pub job: String,
    /// How far it was decided before.
    pub from: Timestamp,
    /// How far it is decided now.
    pub to: Timestamp,
    /// New occurrences.
    pub occurrences: Vec<NewOccurrence>,
}

/// A new occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOccurrence {
    /// When it was planned for.
    pub planned_at: Timestamp,
    /// When it begins, at the earliest.
    pub begins_at: Timestamp,
    /// Why it runs.
    pub kind: OccurrenceKind,
    /// Why it does not run, for one that was missed.
    pub missed: Option<String>,
}

/// Why an occurrence is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OccurrenceKind {
    /// Its time has come.
    Planned,
    /// Its time had come while nothing could run.
    Late,
    /// A person wished it.
    Manual,
}

/// What an occurrence is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OccurrenceState {
    /// It waits for its beginning, for an earlier one, or for a retry.
    Planned,
    /// Somebody has claimed it.
    Running,
    /// It ran.
    Done,
    /// It ran, and failed.
    Failed,
    /// It did not run, and will not.
    Missed,
}

/// A planned time of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Occurrence {
    /// The job's id.
    pub job: String,
    /// When it was planned for; unique for the job.
    pub planned_at: Timestamp,
    /// When it begins, at the earliest: later than planned by jitter, or by the wait for a retry.
    pub begins_at: Timestamp,
    /// Why it is there.
    pub kind: OccurrenceKind,
    /// What it is at.
    pub state: OccurrenceState,
    /// The number of its attempts.
    pub attempt: u32,
    /// Who claimed it last.
    pub holder: Option<String>,
    /// The number of claims.
    pub epoch: u64,
    /// Until when the claim holds.
    pub lease_until: Timestamp,
    /// When its first attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The session in which it is asked.
    pub session: Option<String>,
    /// The turn in which it is asked.
    pub turn: Option<u64>,
    /// Why it failed or was missed.
    pub note: String,
    /// When the action of its present attempt was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_at: Option<Timestamp>,
    /// What its action answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RunResult>,
}

/// What the action of a run answered, as far as it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// Its text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Its structured answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<serde_json::Value>,
}

/// A claim of an occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The job.
    pub job: String,
    /// The planned time.
    pub planned_at: Timestamp,
    /// Who claims it.
    pub holder: String,
    /// How long the claim holds, unless it is renewed.
    pub lease: Duration,
    /// The present time.
    pub now: Timestamp,
}

/// A run of an occurrence, by its claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHandle {
    /// The job.
    pub job: String,
    /// The planned time.
    pub planned_at: Timestamp,
    /// The claim's epoch.
    pub epoch: u64,
}

/// How a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// It did what it should, with what its action answered.
    Done(Option<RunResult>),
    /// It failed, with the reason.
    Failed(String),
    /// It failed, and is tried again at a time.
    Retry {
        /// Why it failed.
        note: String,
        /// When the next attempt begins, at the earliest.
        at: Timestamp,
    },
    /// It was given up half way, as its process ends: another may claim it at once and go on.
    Released,
}

impl OccurrenceKind {
    /// The kind as a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Late => "late",
            Self::Manual => "manual",
        }
    }

    pub(crate) fn parse(word: &str) -> Result<Self, Error> {
        match word {
            "planned" => Ok(Self::Planned),
            "late" => Ok(Self::Late),
            "manual" => Ok(Self::Manual),
            other => Err(Error::unreadable("occurrence's kind", format!("{other:?} is none"))),
        }
    }
}

impl OccurrenceState {
    /// The state as a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Missed => "missed",
        }
    }

    pub(crate) fn parse(word: &str) -> Result<Self, Error> {
        match word {
            "planned" => Ok(Self::Planned),
            "running" => Ok(Self::Running),
            "done" => Ok(Self::Done),
            "failed" => Ok(Self::Failed),
            "missed" => Ok(Self::Missed),
            other => Err(Error::unreadable("occurrence's state", format!("{other:?} is none"))),
        }
    }
}

impl Occurrence {
    /// Its latest claim.
    #[must_use]
    pub fn handle(&self) -> RunHandle {
        RunHandle { job: self.job.clone(), planned_at: self.planned_at, epoch: self.epoch }
    }

    pub(crate) fn weight(&self) -> usize {
        let result = self.result.as_ref().map(result_json);
        let texts = [
            self.holder.as_deref(),
            self.session.as_deref(),
            result.as_deref(),
            Some(&self.note),
            Some(&self.job),
        ];
        size_of::<Self>() + texts.into_iter().flatten().map(str::len).sum::<usize>()
    }
}

/// The columns of an occurrence, as both engines read them.
pub(crate) struct OccurrenceColumns {
    pub(crate) job: String,
    pub(crate) planned_at: i64,
    pub(crate) begins_at: i64,
    pub(crate) kind: String,
    pub(crate) state: String,
    pub(crate) attempt: i64,
    pub(crate) holder: Option<String>,
    pub(crate) epoch: i64,
    pub(crate) lease_until: i64,
    pub(crate) started_at: Option<i64>,
    pub(crate) ended_at: Option<i64>,
    pub(crate) session: Option<String>,
    pub(crate) turn: Option<i64>,
    pub(crate) note: String,
    pub(crate) called_at: Option<i64>,
    pub(crate) result: Option<String>,
}

impl TryFrom<OccurrenceColumns> for Occurrence {
    type Error = Error;

    fn try_from(columns: OccurrenceColumns) -> Result<Self, Error> {
        Ok(Self {
            job: columns.job,
            planned_at: Timestamp::from_millis(columns.planned_at),
            begins_at: Timestamp::from_millis(columns.begins_at),
            kind: OccurrenceKind::parse(&columns.kind)?,
            state: OccurrenceState::parse(&columns.state)?,
            attempt: u32::try_from(columns.attempt).unwrap_or(u32::MAX),
            holder: columns.holder,
            epoch: columns.epoch.unsigned_abs(),
            lease_until: Timestamp::from_millis(columns.lease_until),
            started_at: columns.started_at.map(Timestamp::from_millis),
            ended_at: columns.ended_at.map(Timestamp::from_millis),
            session: columns.session,
            turn: columns.turn.map(i64::unsigned_abs),
            note: columns.note,
            called_at: columns.called_at.map(Timestamp::from_millis),
            result: columns.result.as_deref().map(parse_result).transpose()?,
        })
    }
}

/// Checks what a plan stores.
pub(crate) fn check_plan(plan: &Plan) -> Result<(), Error> {
    name("a job's id", &plan.job)?;
    count("a plan's occurrences", plan.occurrences.len(), MAX_PLANNED)?;
    plan.occurrences.iter().filter_map(|new| new.missed.as_deref()).try_for_each(check_note)
}

pub(crate) fn check_note(note: &str) -> Result<(), Error> {
    size("an occurrence's note", note.len(), MAX_NOTE_BYTES)?;
    if note.contains('\0') {
        return Err(Error::invalid("an occurrence's note", "must not hold a NUL"));
    }
    Ok(())
}

/// Checks what a run keeps of an answer.
pub(crate) fn check_result(result: &RunResult) -> Result<(), Error> {
    size("the text of a run's result", result.text.len(), MAX_RESULT_TEXT_BYTES)?;
    let structured = result.structured.as_ref().map_or(0, |structured| structured.to_string().len());
    size("the structured result of a run", structured, MAX_RESULT_JSON_BYTES)?;
    Ok(())
}

pub(crate) fn result_json(result: &RunResult) -> String {
    serde_json::to_string(result).expect("a value of texts is always JSON")
}

fn parse_result(text: &str) -> Result<RunResult, Error> {
    serde_json::from_str(text).map_err(|error| Error::unreadable("occurrence's result", error.to_string()))
}

/// Where a page of a history ends.
pub(crate) fn page_end(last: &Occurrence) -> Vec<u8> {
    format!("{},{}", last.planned_at.as_millis(), last.job).into_bytes()
}

/// After which planned time and job a page of a history begins.
pub(crate) fn page_start(page: &PageRequest) -> Result<Option<(i64, String)>, Error> {
    let Some(text) = page.last_text()? else { return Ok(None) };
    let parts = text.split_once(',').and_then(|(planned, job)| Some((planned.parse().ok()?, job.to_owned())));
    parts.map(Some).ok_or_else(PageToken::invalid)
}
