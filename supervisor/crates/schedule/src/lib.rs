//! When scheduled jobs run.
//!
//! Everything here is pure: time is an argument, and nothing waits. The command line shows by it when a job
//! will run, the supervisor checks by it what an operator wrote, and the agent runs jobs by it, so that all
//! three agree.
//!
//! - [`CronExpression`]: five or six fields, parsed
//! - [`Zone`]: a time zone of the bundled IANA database, the same on every machine
//! - [`Recurrence`]: the planned times of a job: by cron, every so often, or once
//! - [`jitter`]: how much later than planned an occurrence begins
//! - [`ScheduleEntry`]: what an operator writes about a job; [`Job`]: the same, checked
//! - [`Proposal`]: a job that a plugin proposes, and the text that an operator decides about
//! - [`decide`]: which occurrences of a job are due, and which were missed
//!
//! # Changes of the clock
//!
//! The rule is Vixie's, for lists and ranges as for single values. A job at *fixed times* (no field of its
//! time of day has a `*`) runs once for each of its times: a time that the clock skips runs right after the
//! skip, and of a time that the clock repeats the first counts. A job *by the clock* (`*` in one of these
//! fields) runs whenever the clock shows one of its times: in a skipped hour never, in a repeated hour twice.

mod check;
mod cron;
mod daily_hours;
mod decide;
mod entry;
mod interval;
mod jitter;
mod job;
mod job_id;
mod local_time;
mod missed;
mod proposal;
mod recurrence;
mod zone;

pub use check::{EntryProblem, check_jobs};
pub use cron::{CronError, CronExpression, Field};
pub use daily_hours::DailyHours;
pub use decide::{Decision, Due, Progress, decide, wait};
pub use entry::{MAX_JOBS, MissedKey, Overlap, ScheduleEntry};
pub use interval::{Interval, ParseIntervalError};
pub use jiff::Timestamp;
pub use jitter::jitter;
pub use job::{Job, Target};
pub use job_id::{JobId, JobIdError};
pub use missed::MissedPolicy;
pub use proposal::{DeclaredJob, MAX_PROPOSALS, MAX_PROPOSED_ARGS_BYTES, Proposal, ProposalError};
pub use recurrence::{ClockChange, Recurrence, RecurrenceError};
pub use zone::{UnknownZoneError, Zone};
