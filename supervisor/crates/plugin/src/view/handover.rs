//! Views that outlive their supervisor.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::{View, Views};
use crate::handover::HandedView;
use crate::name::PluginName;
use crate::rundir::open_dir;

impl View {
    /// What another supervisor has to know of it. Its script's name is text, as everything that is in a configuration.
    pub(crate) fn hand_over(&self) -> HandedView {
        HandedView {
            name: self.name.clone(),
            digest: self.digest.clone(),
            script: self.script.as_ref().map(|script| script.to_string_lossy().into_owned()),
            gid: self.gid,
        }
    }
}

impl Views {
    /// The view that a process of another supervisor's runs from. It counts as the plugin's latest from here on, so that it is
    /// used again if it still is what its source is.
    pub(crate) fn adopt(&self, plugin: &PluginName, handed: &HandedView) -> io::Result<Arc<View>> {
        let HandedView { name, digest, script, gid } = handed;
        let plain = |script: &String| !script.contains('/') && !script.starts_with('.');
        let numbered = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        if !numbered || !script.iter().all(plain) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = latest.entry(plugin.clone()).or_default().clone();
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        // Its instances share it.
        if let Some(view) = slot.as_ref().filter(|view| view.name == *name) {
            return Ok(view.clone());
        }
        open_dir(&self.path.join(name))?;
        let view = Arc::new(View {
            path: self.path.join(name),
            digest: digest.clone(),
            name: name.clone(),
            parent: self.dir.clone(),
            let_go: self.let_go.clone(),
            script: script.as_ref().map(OsString::from),
            gid: *gid,
        });
        *slot = Some(view.clone());
        Ok(view)
    }

    /// Leaves all of them to another supervisor: nothing is removed from here on.
    pub(crate) fn let_go(&self) {
        self.let_go.store(true, Ordering::Release);
    }

    /// The lock, for the supervisor that goes on with them.
    pub(crate) fn share_lock(&self) -> io::Result<OwnedFd> {
        self.lock.share()
    }
}
