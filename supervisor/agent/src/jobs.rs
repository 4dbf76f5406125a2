//! The configured jobs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};
use talon_schedule::{Job, ScheduleEntry, Timestamp, check_jobs};
use tokio::sync::{Notify, watch};

/// The jobs by their ids.
pub(crate) type Jobs = BTreeMap<String, Arc<Job>>;

/// The jobs of the present configuration.
#[derive(Debug, Default)]
pub(crate) struct ConfiguredJobs {
    jobs: RwLock<Arc<Jobs>>,
    /// Whether they changed since the store was told.
    changed: AtomicBool,
    wake: Notify,
    /// Whether the store knows them.
    stored: watch::Sender<bool>,
    status: Mutex<Option<JobsStatus>>,
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

impl ConfiguredJobs {
    /// Takes over what is configured.
    pub(crate) fn configure(&self, entries: &[ScheduleEntry]) {
        match check_jobs(entries) {
            Ok(jobs) => self.set(jobs),
            // The supervisor refuses such jobs, so it must be of another version.
            Err(problems) => {
                for (entry, problem) in problems {
                    tracing::error!(entry, %problem, "the schedule is not taken over, and the one before stays");
                }
            }
        }
    }

    fn set(&self, jobs: Vec<Job>) {
        let jobs = jobs.into_iter().map(|job| (job.id.to_string(), Arc::new(job))).collect();
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
