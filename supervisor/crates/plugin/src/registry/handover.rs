//! Handing all processes over to another supervisor, and taking them up from one.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use talon_control::parcel::Packer;

use super::Registry;
use crate::events::{EventKind, Events, NewEvent};
use crate::handover::{Adopted, HandOverError, Handed, Inherited, MAX_PROCESSES};
use crate::launch::Launcher;
use crate::plugin::Plugin;
use crate::settings::{Settings, SetupError};

impl Registry {
    /// Like [`Registry::new`], with the processes that another supervisor handed over. It may be called before that one has let go of them
    /// ([`Registry::release`], or its end): it has to hold its drivers still until then ([`Registry::pause`]), so that only one of
    /// the two starts and ends anything. In that time both read what the processes print, so that a line may be split between
    /// their logs. Each is taken up when its plugin is registered and
    /// started, if it still is what that plugin should be; [`Registry::discard_unclaimed`] ends those that nobody asked for. What
    /// else an earlier supervisor left is cleared. Blocking, within a tokio runtime.
    ///
    /// # Errors
    /// As of [`Registry::new`]; the processes die then.
    pub fn taking_over(
        settings: Settings,
        stage: Arc<talon_jail::Stage>,
        events: Events,
        inherited: Inherited,
    ) -> Result<Self, SetupError> {
        let settings = Arc::new(settings);
        let launcher = Arc::new(Launcher::prepare(settings.clone(), stage, Some(inherited))?);
        Ok(Self::with_launcher(settings, launcher, events))
    }

    /// Writes down what each process that is ready is made of, and duplicates its descriptors. Changes nothing: the processes go
    /// on being ours, and this may be done again. Processes that are not ready are left out; they die with this supervisor, and so
    /// do those beyond the 4,096 that one document has room for.
    ///
    /// # Errors
    /// [`HandOverError`]; what is in the packer by then speaks of nothing.
    pub async fn hand_over(&self, packer: &mut Packer) -> Result<Handed, HandOverError> {
        if self.inner.closing.load(Ordering::Acquire) {
            return Err(HandOverError::ShuttingDown);
        }
        let mut handed = self.inner.launcher.hand_over(packer)?;
        for plugin in self.list() {
            for ready in plugin.standing().await {
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
                        return Err(HandOverError::Descriptors { whose, source });
                    }
                }
            }
        }
        Ok(handed)
    }

    /// Forgets all processes without ending them, for when somebody else has them, and stops what is left of services. What they
    /// printed so far is in their logs when this returns, a line without an end as a line. Nothing of theirs is removed from here
    /// on, neither now nor when the registry is dropped; those that nobody else holds die as their lifelines close, with this
    /// process at the latest. No plugin can be registered afterwards.
    pub async fn release(&self) {
        {
            // Under the lock, so that whoever registers has either been here before or sees it.
            let _plugins = self.write();
            let _services = self.services();
            self.inner.closing.store(true, Ordering::Release);
        }
        let services = std::mem::take(&mut *self.services());
        join_all(services.iter().map(|service| service.retire(None))).await;
        // From here on a process whose handle is dropped is left to itself.
        self.inner.launcher.let_go();
        // Drivers that hold still do not hear that they are to end.
        self.resume();
        let plugins = self.list();
        let text = format!("{} plugins are left to another supervisor", plugins.len());
        self.inner.events.emit(NewEvent::new(EventKind::Supervisor, text));
        join_all(plugins.iter().map(Plugin::end)).await;
        self.inner.launcher.read_out().await;
        join_all(plugins.iter().map(Plugin::flush_logs)).await;
        self.write().clear();
    }

    /// Takes back the cgroup controllers that were given on, if this process had to leave its unit's cgroup for a leaf of its own:
    /// systemd before 254 could not start the next supervisor there otherwise. The plugins' limits do not hold until that one has
    /// set them again. For the very end, and only if the next supervisor is started by the service manager. Gives whether there was
    /// anything to do.
    pub fn let_go_of_groups(&self) -> bool {
        self.inner.launcher.let_go_of_groups()
    }

    /// What became of the processes that were handed over; all zero if none were.
    #[must_use]
    pub fn adopted(&self) -> Adopted {
        self.inner.launcher.adopted()
    }

    /// The monitors of processes that were handed over and still live. They are nobody's children here, but everything below them
    /// is a plugin's.
    #[must_use]
    pub fn monitors(&self) -> BTreeSet<u32> {
        self.inner.launcher.monitors()
    }

    /// Ends the processes that were handed over and that no plugin has asked for, and gives how many there were. For when all
    /// plugins are registered and have had their start ([`Plugin::settled`]): what is left belongs to plugins that were removed or
    /// disabled, or to instances that are no longer wanted.
    pub fn discard_unclaimed(&self) -> usize {
        self.inner.launcher.discard_unclaimed()
    }
}
