//! Jobs that run at planned times, and their occurrences.
//!
//! An occurrence is a row that is unique by job and planned time. It is stored before it begins; who runs it
//! claims it for a while, by a lease, and each claim has a larger epoch. Only the holder of the latest epoch
//! may write, so that of two that believe to run it only one ends it.
//!
//! ```text
//! planned ──claim──► running ──► done, failed
//!    ▲ │                │ │
//!    │ └──► missed      │ └── the lease expired: another claims it, with a larger epoch
//!    └──── retry ───────┘
//! ```

mod occurrence;

use async_trait::async_trait;

pub use occurrence::{
    Claim, JobTiming, NewOccurrence, Occurrence, OccurrenceKind, OccurrenceState, Plan, RunEnd, RunHandle,
    RunResult, ScheduledJob,
};
pub(crate) use occurrence::{
    OccurrenceColumns, check_note, check_plan, check_result, page_end, page_start, result_json,
};

use crate::error::Error;
use crate::page::{Page, PageRequest};
use crate::time::Timestamp;

/// The schedule: how far jobs are decided, and their occurrences.
#[async_trait]
pub trait Schedule: Send + Sync {
    /// Makes the stored jobs these ones. A job that is new, or whose timing changed, begins at `now`; one that
    /// is not listed is forgotten, and its occurrences stay until they are old. Returns all.
    async fn set_jobs(&self, jobs: Vec<JobTiming>, now: Timestamp) -> Result<Vec<ScheduledJob>, Error>;

    /// All jobs, by id.
    async fn jobs(&self) -> Result<Vec<ScheduledJob>, Error>;

    /// Stores a decision: new occurrences, and how far the job is decided. `false` if another has decided
    /// meanwhile; nothing is stored then. An occurrence that exists already stays as it is.
    async fn plan(&self, plan: Plan) -> Result<bool, Error>;

    /// Lets a job rest, or go on. A job that goes on begins at `now`. `false` if there is no such job, or it
    /// is so already.
    async fn set_paused(&self, job: &str, paused: bool, now: Timestamp) -> Result<bool, Error>;

    /// Occurrences that are planned or running, in the order in which they begin, at most `limit`.
    async fn unfinished(&self, limit: u32) -> Result<Vec<Occurrence>, Error>;

    /// Claims an occurrence that is planned, or whose lease expired. `None` if another has it, or if another
    /// occurrence of the job is running.
    async fn claim(&self, claim: Claim) -> Result<Option<Occurrence>, Error>;

    /// Extends the lease of a run by as much from now. `false` if another has claimed it.
    async fn renew(&self, run: &RunHandle, lease: std::time::Duration) -> Result<bool, Error>;

    /// Notes in which session and turn a run takes place, before it does. `false` if another has claimed it.
    async fn set_turn(&self, run: &RunHandle, session: &str, turn: u64) -> Result<bool, Error>;

    /// Notes that the action of a run is called, before it is: from then on it may have done its work. `false` if
    /// another has claimed the run.
    async fn set_called(&self, run: &RunHandle, now: Timestamp) -> Result<bool, Error>;

    /// Ends a run. `false` if another has claimed it.
    async fn end(&self, run: &RunHandle, end: RunEnd, now: Timestamp) -> Result<bool, Error>;

    /// Makes a planned occurrence a missed one, with the reason. `false` if it is not planned any more.
    async fn miss(&self, job: &str, planned_at: Timestamp, note: &str) -> Result<bool, Error>;

    /// Lets all leases expire, where one process has the store alone: what they were for is over. With
    /// PostgreSQL nothing changes, since another process may hold them.
    async fn expire_leases(&self) -> Result<(), Error>;

    /// One occurrence.
    async fn get(&self, job: &str, planned_at: Timestamp) -> Result<Option<Occurrence>, Error>;

    /// Occurrences of a job, or of all, the latest planned first.
    async fn history(&self, job: Option<&str>, page: &PageRequest) -> Result<Page<Occurrence>, Error>;

    /// Deletes finished occurrences but the latest `keep` of each job; returns how many.
    async fn prune(&self, keep: u32) -> Result<u64, Error>;

    /// Stores an occurrence as it was exported, unless there is one of its job and planned time. Returns
    /// whether it is new.
    async fn import(&self, occurrence: Occurrence) -> Result<bool, Error>;
}
