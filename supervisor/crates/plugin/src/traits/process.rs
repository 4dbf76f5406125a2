//! The handle on one process.

use std::io;

use futures_util::future::BoxFuture;
use talon_control::fd_bundle::Packer;
use talon_plugin_config::name::PluginName;
use talon_sanitize::Sanitized;

use crate::handover::{InstanceCounters, ProcessRecord};
use crate::usage::Reading;

/// One process. Dropping the last handle kills it and everything it started.
pub(crate) trait ProcessHandle: Send + Sync + 'static {
    fn pid(&self) -> u32;
    fn uid(&self) -> u32;
    /// Resolves as soon as the program ends, with its exit status as text. May be awaited many times.
    fn exited(&self) -> BoxFuture<'_, Sanitized>;
    /// Resolves when no process and no directory of it is left.
    fn gone(&self) -> BoxFuture<'_, ()>;
    /// Resource usage of it and everything it started; blocking. `None`: not known.
    fn reading(&self) -> Option<Reading> {
        None
    }
    /// Whether it was ended for using too much memory.
    fn was_oom_killed(&self) -> bool {
        false
    }
    fn interrupt(&self);
    fn terminate(&self);
    fn kill_all(&self);
    /// What another supervisor needs to take it over; `NotFound` if it cannot be handed over.
    fn hand_over(
        &self,
        _name: &PluginName,
        _instance: u32,
        _counted: InstanceCounters,
        _packer: &mut Packer,
    ) -> io::Result<ProcessRecord> {
        Err(io::ErrorKind::NotFound.into())
    }
}
