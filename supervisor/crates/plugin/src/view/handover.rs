//! Handover of views to the next supervisor.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use talon_plugin_config::name::PluginName;

use super::{View, Views};
use crate::handover::ViewRecord;
use crate::rundir::open_dir;

impl View {
    /// The record of this view for another supervisor. The script's name is UTF-8, because it comes from the
    /// configuration.
    pub(crate) fn to_handover(&self) -> ViewRecord {
        ViewRecord {
            name: self.name.clone(),
            digest: self.digest.clone(),
            script: self.script.as_ref().map(|script| script.to_string_lossy().into_owned()),
            gid: self.gid,
        }
    }
}

impl Views {
    /// Adopts the view that a process of another supervisor runs from. It becomes the plugin's latest view,
    /// so that it is reused if its source has not changed.
    pub(crate) fn adopt(&self, plugin: &PluginName, handed: &ViewRecord) -> io::Result<Arc<View>> {
        let ViewRecord { name, digest, script, gid } = handed;
        let plain = |script: &String| !script.contains('/') && !script.starts_with('.');
        let numbered = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        if !numbered || !script.iter().all(plain) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut latest = self.latest.lock();
        let slot = latest.entry(plugin.clone()).or_default().clone();
        let mut slot = slot.lock();
        // The instances of a plugin share one view.
        if let Some(view) = slot.as_ref().filter(|view| view.name == *name) {
            return Ok(view.clone());
        }
        open_dir(&self.path.join(name))?;
        let view = Arc::new(View {
            path: self.path.join(name),
            digest: digest.clone(),
            name: name.clone(),
            parent: self.dir.clone(),
            released: self.released.clone(),
            script: script.as_ref().map(OsString::from),
            gid: *gid,
        });
        *slot = Some(view.clone());
        Ok(view)
    }

    /// Leaves all views to another supervisor: nothing is removed from here on.
    pub(crate) fn release(&self) {
        self.released.store(true, Ordering::Release);
    }

    /// A duplicate of the lock, for the supervisor that takes over.
    pub(crate) fn duplicate_lock(&self) -> io::Result<OwnedFd> {
        self.lock.duplicate_fd()
    }
}
