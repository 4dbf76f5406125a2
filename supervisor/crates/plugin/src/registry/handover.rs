//! Hands all processes over to another supervisor, and takes them over from one.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use talon_control::fd_bundle::Packer;

use super::Registry;
use crate::events::{EventKind, Events, NewEvent};
use crate::handover::{AdoptionCounts, HandoverDocument, HandoverError, MAX_PROCESSES, ReceivedHandover};
use crate::launch::Launcher;
use crate::plugin::Plugin;
use crate::settings::{Settings, SetupError};

impl Registry {
    /// Like [`Registry::new`], with the processes that another supervisor handed over. May be called before
    /// that supervisor has released them ([`Registry::release`], or its end); until then it must keep its
    /// drivers paused ([`Registry::pause`]), so that only one of the two starts and ends processes. In that
    /// time both read the processes' output, so a line may be split between their logs. Each process is taken
    /// over when its plugin is registered and started, if it still fits the plugin;
    /// [`Registry::discard_unclaimed`] ends the unclaimed ones. Other leftovers of an earlier supervisor are
    /// cleared. Blocking, within a tokio runtime.
    ///
    /// # Errors
    /// As for [`Registry::new`]; the processes die then.
    pub fn with_inherited(
        settings: Settings,
        stage: Arc<talon_jail::Stage>,
        events: Events,
        inherited: ReceivedHandover,
    ) -> Result<Self, SetupError> {
        let settings = Arc::new(settings);
        let launcher = Arc::new(Launcher::prepare(settings.clone(), stage, Some(inherited))?);
        Ok(Self::with_launcher(settings, launcher, events))
    }

    /// Describes each ready process and duplicates its descriptors. Changes nothing: the processes stay with
    /// this supervisor, and the call may be repeated. Processes that are not ready are left out and die with
    /// this supervisor, as do those beyond the 4,096 that one document can hold.
    ///
    /// # Errors
    /// [`HandoverError`]; ignore the content of the packer then.
    pub async fn hand_over(&self, packer: &mut Packer) -> Result<HandoverDocument, HandoverError> {
        if self.inner.closing.load(Ordering::Acquire) {
            return Err(HandoverError::ShuttingDown);
        }
        let mut handed = self.inner.launcher.hand_over(packer)?;
        for plugin in self.list() {
            for ready in plugin.ready_processes().await {
                let name = plugin.name();
                if handed.processes.len() == MAX_PROCESSES {
                    tracing::warn!(plugin = %name, instance = ready.instance, "there is no room to hand it over");
                    continue;
                }
                match ready.process.hand_over(name, ready.instance, ready.counted, packer) {
                    Ok(process) => handed.processes.push(process),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        tracing::warn!(plugin = %name, instance = ready.instance, "it has just ended, or cannot be handed over");
                    }
                    Err(source) => {
                        let whose = format!("{name}, instance {}", ready.instance);
                        return Err(HandoverError::Descriptors { whose, source });
                    }
                }
            }
        }
        Ok(handed)
    }

    /// Releases all processes without ending them, once another supervisor has them, and stops the services.
    /// When this returns, their output so far is in their logs; an unfinished line is logged as a line. None
    /// of their files is removed from here on, not even when the registry is dropped. Processes that no
    /// supervisor holds die as their lifelines close, at the latest with this process. No plugin can be
    /// registered afterwards.
    pub async fn release(&self) {
        {
            // Under the lock, so that a concurrent registration is either complete or sees `closing`.
            let _plugins = self.write();
            let _services = self.inner.services.lock();
            self.inner.closing.store(true, Ordering::Release);
        }
        let services = std::mem::take(&mut *self.inner.services.lock());
        join_all(services.iter().map(|service| service.stop_within(None))).await;
        // From here on dropping a process's handle leaves the process running.
        self.inner.launcher.release();
        // Paused drivers do not receive the command to end.
        self.resume();
        let plugins = self.list();
        let text = format!("{} plugins are left to another supervisor", plugins.len());
        self.inner.events.emit(NewEvent::new(EventKind::Supervisor, text));
        join_all(plugins.iter().map(Plugin::end)).await;
        self.inner.launcher.flush_output().await;
        join_all(plugins.iter().map(Plugin::flush_logs)).await;
        self.write().clear();
    }

    /// Disables the delegated cgroup controllers again, if this process had to move from its unit's cgroup
    /// into a leaf: systemd before 254 could not start the next supervisor there otherwise. The plugins'
    /// limits do not apply until the next supervisor sets them again. Call it at the very end, and only if
    /// the service manager starts the next supervisor. Returns whether there was anything to do.
    pub fn release_cgroup_controllers(&self) -> bool {
        self.inner.launcher.release_cgroup_controllers()
    }

    /// Counts of the processes that were handed over; all zero if none were.
    #[must_use]
    pub fn adoption_counts(&self) -> AdoptionCounts {
        self.inner.launcher.adoption_counts()
    }

    /// The monitors of handed-over processes that are still alive. They are not children of this process, but
    /// all their descendants belong to plugins.
    #[must_use]
    pub fn adopted_monitors(&self) -> BTreeSet<u32> {
        self.inner.launcher.adopted_monitors()
    }

    /// Ends the handed-over processes that no plugin claimed, and returns how many there were. Call it when
    /// all plugins are registered and were started ([`Plugin::settled`]): the remaining processes belong to
    /// removed or disabled plugins, or to instances beyond the configured number.
    pub fn discard_unclaimed(&self) -> usize {
        self.inner.launcher.discard_unclaimed()
    }
}
