//! Processes that outlive their supervisor: what it hands over, and how the next one takes it over.
//!
//! ```text
//! old:  Registry::hand_over ─► HandoverDocument + descriptors ─► … ─► Registry::release: releases them, kills nothing
//! new:  Registry::with_inherited(ReceivedHandover) ─► adoption pool ─► launch(plugin, instance): one for me? ─► ready
//!                                                       └─ unclaimed, or failed a check: killed
//! ```
//!
//! Handing over duplicates descriptors and changes nothing, so it may fail and may be repeated. A process
//! lives as long as some supervisor holds its lifeline; when none does, it dies with everything that it
//! started. So whatever happens to the descriptors, no process is left unsupervised.
//!
//! For the driver a process from the adoption pool is a start that succeeded. One that fails its check is
//! killed and started fresh in the same launch: calls wait, as they do after any restart.

mod document;

use std::path::Path;
use std::time::{Duration, SystemTime};

use talon_control::fd_bundle::Unpacker;

use crate::rundir::InheritedEntries;

pub use self::document::HandoverDocument;
pub(crate) use self::document::{
    AddressRecord, DirRecord, InnerSocketRecord, MAX_PROCESSES, MonitorRecord, ProcessRecord, ViewRecord,
};

/// What a supervisor received from its predecessor.
#[derive(Debug)]
pub struct ReceivedHandover {
    /// The document.
    pub document: HandoverDocument,
    /// The descriptors that it refers to. Others are closed when this is dropped.
    pub unpacker: Unpacker,
}

/// The counters of an instance, continued by the next supervisor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InstanceCounters {
    /// How many processes were started for it.
    pub(crate) starts: u64,
    /// When the process became ready.
    pub(crate) ready_since: Option<SystemTime>,
    /// How long its start took.
    pub(crate) start_to_ready: Option<Duration>,
}

/// How many processes were handed over, and what happened to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdoptionCounts {
    /// All that were handed over.
    pub received: usize,
    /// Those that were taken over and run.
    pub taken_over: usize,
    /// Those that were killed: they failed a check, died, or were not claimed.
    pub refused: usize,
    /// Those that wait for their plugin to be started.
    pub waiting: usize,
}

/// Why nothing was handed over. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandoverError {
    /// A descriptor could not be duplicated.
    #[error(
        "the descriptors of {whose} cannot be duplicated: {source}; raise the limit on open files (LimitNOFILE=), or restart without a handover"
    )]
    Descriptors {
        /// The owner of the descriptors.
        whose: String,
        /// Why.
        source: std::io::Error,
    },
    /// The supervisor is shutting down.
    #[error("the supervisor is shutting down, so there is nothing to hand over")]
    ShuttingDown,
    /// This registry has no runtime directory.
    #[error(
        "this supervisor has no processes that could be handed over; start the other one without --takeover"
    )]
    NothingToHandOver,
}

/// The entries of the directories that must not be cleared, and the processes that use them.
#[derive(Default)]
pub(crate) struct Leftovers {
    pub(crate) processes: Vec<ProcessRecord>,
    /// In the runtime directory.
    pub(crate) runtime: InheritedEntries,
    /// In the directory of views.
    pub(crate) views: InheritedEntries,
    pub(crate) unpacker: Unpacker,
}

impl Leftovers {
    /// Opens the document's locks. A lock that was not passed on is acquired again, if it is free.
    pub(crate) fn from_handover(inherited: ReceivedHandover, runtime_dir: &Path) -> Self {
        let ReceivedHandover { document: handed, mut unpacker } = inherited;
        let HandoverDocument { lock, views_lock, processes, .. } = handed;
        // The processes know their sockets by paths in this directory.
        if runtime_dir.canonicalize().ok().as_ref() != Some(&handed.runtime_dir) {
            tracing::warn!(
                handed = %handed.runtime_dir.display(),
                "runtime_dir has changed, so that no process is taken over: every plugin starts fresh"
            );
            return Self::default();
        }
        let dirs = processes.iter().map(|process| process.dir.name.clone()).collect();
        let views = processes.iter().filter_map(|process| process.view.as_ref());
        let views = views.map(|view| view.name.clone()).collect();
        Self {
            runtime: InheritedEntries { lock: unpacker.take(lock).ok(), names: dirs },
            views: InheritedEntries { lock: unpacker.take(views_lock).ok(), names: views },
            processes,
            unpacker,
        }
    }
}
