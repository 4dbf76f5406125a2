//! From a spec to a process that is ready for calls, or to the reason why there is none.
//!
//! ```text
//! check ─► private directory ─► spawn ─► handshake ─► connect ─► Init ─► Capabilities ─► SERVING
//!   files, digest, uid          jail     stdout       socket,                            health
//!                                                     uid, process
//! ```
//!
//! If a plugin turns out to speak the oldest protocol, the attempt is cleaned up and repeated behind a bridge
//! ([`framed`]).
//!
//! For a plugin whose replacement failed, or whose program is gone from the disk, the last program that
//! became ready is checked and started instead ([`last_good`]).
//!
//! A process that another supervisor handed over skips all of this: it is taken from the adoption pool
//! ([`adoption_pool`]).
//!
//! On any failure, and if the caller cancels, nothing of the attempt is left: no process, no socket, no
//! directory.

mod adopt;
mod adoption_pool;
mod attempt;
mod blocking;
mod certificates;
mod error;
mod framed;
mod handover;
mod handshake_wait;
mod isolation;
mod last_good;
mod last_good_unavailable;
mod process;
mod program;
mod service;
mod setup;
mod shared;
mod spawn;
mod start;
mod steps;
mod stepwise;

use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use talon_jail::{Mode, Stage};
use talon_plugin_config::privileges::may_change_uid;
use talon_plugin_config::spec::PluginSpec;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use self::adoption_pool::AdoptionPool;
pub(crate) use self::error::LaunchError;
use self::framed::FramedPlugins;
pub(crate) use self::last_good::{DiskChoice, LastGoodCache, ProgramChoice};
pub(crate) use self::process::{Exit, Process};
use self::shared::Shared;
pub(crate) use self::stepwise::StepwiseStart;
use crate::handover::{Leftovers, ReceivedHandover};
use crate::identity::Identities;
use crate::rundir::{RuntimeDir, prepare_data_dir};
use crate::settings::{Settings, SetupError};
use crate::view::Views;

/// Starts processes.
#[derive(Debug)]
pub(crate) struct Launcher {
    shared: Arc<Shared>,
    starts: Arc<Semaphore>,
    framed: FramedPlugins,
    /// Processes that another supervisor handed over.
    adoption_pool: AdoptionPool,
}

impl Launcher {
    /// Prepares everything that starts need: the runtime directory with its lock, the directory for views,
    /// the uids. Blocking.
    pub(crate) fn new(settings: Arc<Settings>, stage: Arc<Stage>) -> Result<Self, SetupError> {
        Self::prepare(settings, stage, None)
    }

    /// Like [`Launcher::new`], with the processes of another supervisor. Within a tokio runtime.
    pub(crate) fn prepare(
        settings: Arc<Settings>,
        stage: Arc<Stage>,
        inherited: Option<ReceivedHandover>,
    ) -> Result<Self, SetupError> {
        // Otherwise a plugin with the supervisor's uid could read its environment and memory, which hold
        // every plugin's secrets, and take its descriptors. The price: only root can debug it, and it dumps
        // no core.
        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!(%error, "plugins that share the supervisor's uid may read its memory");
        }
        let range = settings.uid_range.clone();
        let leftovers = inherited.map(|inherited| Leftovers::from_handover(inherited, &settings.runtime_dir));
        let Leftovers { processes, runtime, views, mut unpacker } = leftovers.unwrap_or_default();
        let runtime = Arc::new(RuntimeDir::take_over(&settings.runtime_dir, range.is_some(), runtime)?);
        let data_dir = prepare_data_dir(&settings.data_dir, range.is_some())?;
        let views = Views::take_over(&settings.data_dir, runtime.path(), views)?;
        let identities = range.map(|range| Identities::open(&settings.data_dir, range)).transpose()?;
        let starts = Arc::new(Semaphore::new(settings.start_concurrency.max(1)));
        let may_change_uid = may_change_uid();
        let kept: Vec<_> = processes.iter().filter_map(|process| process.group.clone()).collect();
        let groups =
            spawn::open_groups(runtime.path(), &kept.iter().map(PathBuf::as_path).collect::<Vec<_>>());
        let adoption_pool = AdoptionPool::unpack(processes, &mut unpacker, &runtime, &views);
        let shared = Shared {
            settings,
            stage,
            runtime,
            data_dir,
            views,
            identities,
            groups,
            may_change_uid,
            readers: TaskTracker::new(),
        };
        Ok(Self { shared: Arc::new(shared), starts, framed: FramedPlugins::default(), adoption_pool })
    }

    /// Announces a plugin that is about to be started.
    pub(crate) fn announce(&self, spec: &PluginSpec) {
        if let Some(identities) = &self.shared.identities
            && spec.enabled
            && spec.sandbox.mode != Mode::Off
        {
            identities.announce(&spec.name);
        }
    }

    /// Removes the supervisor's files from the runtime directory, and the views. Call it when no process is
    /// left.
    pub(crate) fn remove_all(&self) {
        self.starts.close();
        self.shared.runtime.clear();
        self.shared.views.clear();
    }
}
