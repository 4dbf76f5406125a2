//! Processes that outlive their supervisor: what it hands over, and how the next one takes it up.
//!
//! ```text
//! old:  Registry::hand_over ─► Handed + descriptors ─► … ─► Registry::release: forgets them, and kills nothing
//! new:  Registry::taking_over(Inherited) ─► shelf ─► launch(plugin, instance): is one of mine there? ─► ready
//!                                             └─ what nobody asks for, or what fails a check: killed
//! ```
//!
//! Handing over duplicates descriptors and changes nothing, so that it may come to nothing, as often as it likes. As long as
//! anybody holds a process's lifeline it lives; when nobody does any more, it dies, and all that it started. So whatever becomes
//! of a parcel, no process is left that nobody watches.
//!
//! To the driver a process from the shelf is a start that went through, and one that fails its check is killed and started anew
//! in the same launch: calls wait, as they do after any restart.

mod document;
mod fingerprint;

use std::path::Path;
use std::time::{Duration, SystemTime};

use talon_control::parcel::Unpacker;

use crate::rundir::Left;

pub use self::document::Handed;
pub(crate) use self::document::{
    HandedAddress, HandedDir, HandedIdentity, HandedMonitor, HandedProcess, HandedView, MAX_PROCESSES,
};
pub(crate) use self::fingerprint::fingerprint;

/// What a supervisor got from the one before it.
#[derive(Debug)]
pub struct Inherited {
    /// What there is.
    pub handed: Handed,
    /// The descriptors that it speaks of, and perhaps others, which are closed with it.
    pub unpacker: Unpacker,
}

/// What an instance counted so far, for a successor to go on with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    /// How often a process was started for it.
    pub(crate) starts: u64,
    /// Since when the process is ready.
    pub(crate) ready_since: Option<SystemTime>,
    /// How long its start took.
    pub(crate) start_to_ready: Option<Duration>,
}

/// How many processes were handed over, and what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Were handed over.
    pub handed: usize,
    /// Run on.
    pub taken_over: usize,
    /// Were killed: they failed a check, or died, or nobody wanted them any more.
    pub refused: usize,
    /// Wait for their plugin to be started.
    pub waiting: usize,
}

/// Why nothing was handed over. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandOverError {
    /// A descriptor could not be duplicated.
    #[error(
        "the descriptors of {whose} cannot be duplicated: {source}; raise the limit on open files (LimitNOFILE=), or restart without a handover"
    )]
    Descriptors {
        /// Whose.
        whose: String,
        /// Why.
        source: std::io::Error,
    },
    /// It shuts down.
    #[error("the supervisor is shutting down, so there is nothing to hand over")]
    ShuttingDown,
    /// This registry holds no runtime directory.
    #[error(
        "this supervisor has no processes that could be handed over; start the other one without --takeover"
    )]
    Nothing,
}

/// What of the directories must not be cleared, and the processes that have something in them.
#[derive(Default)]
pub(crate) struct LeftBehind {
    pub(crate) processes: Vec<HandedProcess>,
    /// In the runtime directory.
    pub(crate) runtime: Left,
    /// In the place for views.
    pub(crate) views: Left,
    pub(crate) unpacker: Unpacker,
}

impl LeftBehind {
    /// A lock that is not there is taken anew, if nobody else has it.
    pub(crate) fn of(inherited: Inherited, runtime_dir: &Path) -> Self {
        let Inherited { handed, mut unpacker } = inherited;
        let Handed { lock, views_lock, processes, .. } = handed;
        // The processes know their sockets by paths in it.
        if runtime_dir.canonicalize().ok().as_ref() != Some(&handed.runtime_dir) {
            tracing::warn!(
                handed = %handed.runtime_dir.display(),
                "runtime_dir has changed, so that no process is taken over: every plugin starts anew"
            );
            return Self::default();
        }
        let dirs = processes.iter().map(|process| process.dir.name.clone()).collect();
        let views = processes.iter().filter_map(|process| process.view.as_ref());
        let views = views.map(|view| view.name.clone()).collect();
        Self {
            runtime: Left { lock: unpacker.take(lock).ok(), names: dirs },
            views: Left { lock: unpacker.take(views_lock).ok(), names: views },
            processes,
            unpacker,
        }
    }
}
