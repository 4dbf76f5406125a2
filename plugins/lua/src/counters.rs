//! What has become of calls, counted since the plugin's process started.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use talon_lua_engine::{CallError, FailureKind};

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        let _ = self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Calls of one script that passed their time limit.
#[derive(Debug, Default)]
pub(crate) struct EndCounters {
    /// Ended by an interrupt.
    pub(crate) interrupted: Counter,
    /// Ended with the worker.
    pub(crate) killed: Counter,
}

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) calls: Counter,
    pub(crate) failed: Counter,
    /// Ended at the deadline by an interrupt.
    pub(crate) interrupted: Counter,
    /// Ended with the worker, since no interrupt reached what the script did.
    pub(crate) killed: Counter,
    pub(crate) over_memory: Counter,
    /// Workers that ended by themselves.
    pub(crate) crashed: Counter,
    pub(crate) reloads: Counter,
}

/// What they are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) failed: u64,
    pub(crate) ended_by_interrupt: u64,
    pub(crate) ended_with_worker: u64,
    pub(crate) over_memory: u64,
    pub(crate) worker_crashes: u64,
    pub(crate) reloads: u64,
}

impl Counters {
    /// A call has ended in the worker.
    pub(crate) fn count<T>(&self, outcome: &Result<T, CallError>) {
        self.calls.add();
        if let Err(error) = outcome {
            self.failed.add();
            match error.kind {
                FailureKind::Deadline => self.interrupted.add(),
                FailureKind::Memory => self.over_memory.add(),
                FailureKind::Raised
                | FailureKind::Cancelled
                | FailureKind::Returned
                | FailureKind::Worker => {}
            }
        }
    }

    /// A call has ended with its worker.
    pub(crate) fn count_killed(&self) {
        self.calls.add();
        self.failed.add();
        self.killed.add();
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            calls: self.calls.get(),
            failed: self.failed.get(),
            ended_by_interrupt: self.interrupted.get(),
            ended_with_worker: self.killed.get(),
            over_memory: self.over_memory.get(),
            worker_crashes: self.crashed.get(),
            reloads: self.reloads.get(),
        }
    }
}
