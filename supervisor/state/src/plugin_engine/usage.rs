//! How much each plugin keeps: counted once in the backend, and then kept up to date by this process, which is the only one
//! that writes.

use std::collections::HashMap;

use parking_lot::Mutex;
use talon_store::{Error, Key, Namespace, PluginId, Quota, Usage};

use super::backend::Backend;
use super::names;

/// Usages that are known. One for each plugin that ever wrote: bounded by the plugins of the configuration.
#[derive(Default)]
pub(super) struct Usages {
    known: Mutex<HashMap<PluginId, Usage>>,
    /// One plugin is counted at a time.
    counting: tokio::sync::Mutex<()>,
}

impl Usages {
    /// Counts in the backend.
    pub(super) async fn count(backend: &Backend, plugin: &PluginId) -> Result<Usage, Error> {
        let prefix = names::prefix(plugin);
        let (mut usage, mut after) = (Usage::default(), None::<Vec<u8>>);
        loop {
            let (items, more) = backend.scan(&prefix, after.as_deref(), usize::MAX).await?;
            for item in &items {
                usage.keys += 1;
                usage.bytes += item.bytes + (item.name.len() - prefix.len()) as u64;
            }
            match items.into_iter().last() {
                Some(last) if more => after = Some(last.name),
                _ => return Ok(usage),
            }
        }
    }

    /// Reserves what a key grows by, before it is written.
    ///
    /// # Errors
    /// [`Error::Quota`], or when it cannot be counted.
    pub(super) async fn reserve(
        &self,
        backend: &Backend,
        namespace: &Namespace,
        key: &Key,
        old: Option<u64>,
        new: Option<u64>,
    ) -> Result<(), Error> {
        let plugin = &namespace.plugin;
        if !self.known.lock().contains_key(plugin) {
            let _turn = self.counting.lock().await;
            if !self.known.lock().contains_key(plugin) {
                let counted = Self::count(backend, plugin).await?;
                self.known.lock().insert(plugin.clone(), counted);
            }
        }
        let mut known = self.known.lock();
        // Another write may have made it unknown meanwhile: then this one is counted with the next.
        let Some(usage) = known.get_mut(plugin) else { return Ok(()) };
        *usage = usage.after_change(namespace, key, old, new)?;
        Ok(())
    }

    /// Gives a reservation back, since nothing was written.
    pub(super) fn release(&self, plugin: &PluginId, key: &Key, old: Option<u64>, new: Option<u64>) {
        let free = Namespace { plugin: plugin.clone(), quota: Quota { bytes: u64::MAX, keys: u64::MAX } };
        let mut known = self.known.lock();
        if let Some(usage) = known.get_mut(plugin)
            && let Ok(before) = usage.after_change(&free, key, new, old)
        {
            *usage = before;
        }
    }

    /// Whether something was written is not known: it is counted anew before the next write.
    pub(super) fn forget(&self, plugin: &PluginId) {
        self.known.lock().remove(plugin);
    }
}
