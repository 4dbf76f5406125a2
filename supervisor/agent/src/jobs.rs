//! The jobs: those of the configuration, and those that plugins proposed and the operator accepted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};
use talon_schedule::{Job, ScheduleEntry, Timestamp, check_jobs};
use tokio::sync::{Notify, watch};

/// The jobs by their ids.
pub(crate) type Jobs = BTreeMap<String, Arc<Job>>;

/// The present jobs.
#[derive(Debug, Default)]
pub(crate) struct JobTable {
    jobs: RwLock<Arc<Jobs>>,
    sources: Mutex<JobSources>,
    /// Whether they changed since the store was told.
    changed: AtomicBool,
    wake: Notify,
    /// Whether the store knows them.
    stored: watch::Sender<bool>,
    status: Mutex<Option<JobsStatus>>,
}

/// Where jobs come from.
#[derive(Debug, Default)]
struct JobSources {
    /// The configuration's. They come first: a proposal of the same id does not run.
    configured: Jobs,
    /// Proposals that the operator accepted.
    accepted: Jobs,
}

impl JobSources {
    fn merged(&self) -> Jobs {
        let mut jobs = self.accepted.clone();
        jobs.extend(self.configured.iter().map(|(id, job)| (id.clone(), Arc::clone(job))));
        jobs
    }
}

/// The schedule when the scheduler last looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobsStatus {
    /// Configured jobs.
    pub(crate) jobs: usize,
    /// Those of them that rest.
    pub(crate) paused: usize,
    /// Runs of this process.
    pub(crate) running: usize,
    /// Occurrences that wait for their turn or for a retry.
    pub(crate) waiting: usize,
    /// When the next job begins.
    pub(crate) next: Option<Timestamp>,
}

impl JobTable {
    /// Takes over what is configured.
    pub(crate) fn configure(&self, entries: &[ScheduleEntry]) {
        match check_jobs(entries) {
            Ok(jobs) => {
                let mut sources = self.sources.lock();
                sources.configured = by_id(jobs);
                self.set(sources.merged());
            }
            // The supervisor refuses such jobs, so it must be of another version.
            Err(problems) => {
                for (entry, problem) in problems {
                    tracing::error!(entry, %problem, "the schedule is not taken over, and the one before stays");
                }
            }
        }
    }

    /// Takes over what the operator accepted. Nothing happens if nothing changed.
    pub(crate) fn set_accepted(&self, jobs: Vec<Job>) {
        let mut sources = self.sources.lock();
        sources.accepted = by_id(jobs);
        let merged = sources.merged();
        if merged != **self.jobs.read() {
            self.set(merged);
        }
    }

    /// Whether the configuration has a job of this id.
    pub(crate) fn is_configured(&self, id: &str) -> bool {
        self.sources.lock().configured.contains_key(id)
    }

    fn set(&self, jobs: Jobs) {
        *self.jobs.write() = Arc::new(jobs);
        self.changed.store(true, Ordering::Release);
        self.stored.send_replace(false);
        self.wake();
    }

    /// Notes that the store knows them.
    pub(crate) fn set_stored(&self) {
        self.stored.send_replace(true);
    }

    /// Returns when the store knows them.
    pub(crate) async fn wait_stored(&self) {
        // The sender lives as long as `self`.
        let mut stored = self.stored.subscribe();
        let _known = stored.wait_for(|stored| *stored).await;
    }

    /// The jobs.
    pub(crate) fn get(&self) -> Arc<Jobs> {
        Arc::clone(&self.jobs.read())
    }

    /// The status; `None` without jobs.
    pub(crate) fn status(&self) -> Option<JobsStatus> {
        *self.status.lock()
    }

    pub(crate) fn set_status(&self, status: Option<JobsStatus>) {
        *self.status.lock() = status;
    }

    /// Has the scheduler look again: something in the store was changed.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Resolves when the scheduler should look again.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Whether they changed since this was asked last.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// Has the next look take them over again, since it failed.
    pub(crate) fn set_changed(&self) {
        self.changed.store(true, Ordering::Release);
    }
}

fn by_id(jobs: Vec<Job>) -> Jobs {
    jobs.into_iter().map(|job| (job.id.to_string(), Arc::new(job))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, every: &str) -> ScheduleEntry {
        serde_json::from_value(serde_json::json!({ "id": id, "every": every, "action": "a.b" }))
            .expect("an entry")
    }

    fn accepted(id: &str, every: &str) -> Job {
        Job { accepted: true, ..entry(id, every).check().expect("a job") }
    }

    // Promises: EXT-163
    #[test]
    fn a_job_of_the_configuration_comes_before_an_accepted_one() {
        let jobs = JobTable::default();
        jobs.configure(&[entry("a.x", "1h")]);
        jobs.set_accepted(vec![accepted("a.x", "1m"), accepted("a.y", "1m")]);
        assert!(!jobs.get()["a.x"].accepted && jobs.get()["a.y"].accepted);
        assert!(jobs.is_configured("a.x") && !jobs.is_configured("a.y"));
        jobs.configure(&[]);
        assert!(jobs.get()["a.x"].accepted, "it runs once the configuration has none of its id");
        jobs.set_accepted(Vec::new());
        assert!(jobs.get().is_empty());
    }

    #[test]
    fn what_did_not_change_has_nobody_look() {
        let jobs = JobTable::default();
        jobs.set_accepted(vec![accepted("a.x", "1m")]);
        assert!(jobs.take_changed());
        jobs.set_accepted(vec![accepted("a.x", "1m")]);
        assert!(!jobs.take_changed());
        jobs.set_accepted(vec![accepted("a.x", "2m")]);
        assert!(jobs.take_changed());
    }
}
