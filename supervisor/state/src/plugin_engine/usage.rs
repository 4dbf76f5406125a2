//! How much each plugin keeps: counted once in the backend, and then kept up to date by this process, which is the only one
//! that writes.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use talon_store::{Error, Key, Namespace, PluginId, Quota, Usage};

use super::backend::Backend;
use super::names;

/// How often a plugin is counted for one write, because another write ended in between that the count may lack. Then the plugin is
/// told to try again: a write whose quota is not known is none.
const MAX_COUNTS: usize = 3;
/// When it may try again.
const RETRY_IN: Duration = Duration::from_secs(1);

/// Usages that are known. One for each plugin that ever wrote: bounded by the plugins of the configuration.
#[derive(Default)]
pub(super) struct Usages {
    plugins: Mutex<HashMap<PluginId, PluginUsage>>,
    /// One plugin is counted at a time.
    counting: tokio::sync::Mutex<()>,
}

/// The usage of one plugin.
#[derive(Default)]
struct PluginUsage {
    /// Grows whenever the usage becomes unknown: a count or a reservation of an earlier generation is not of this usage.
    generation: u64,
    /// What is stored and what is reserved; `None` while it is unknown.
    usage: Option<Usage>,
}

impl PluginUsage {
    fn forget(&mut self) {
        self.generation += 1;
        self.usage = None;
    }
}

/// What a key grows by, reserved before it is written.
pub(super) struct Reservation {
    plugin: PluginId,
    key: Key,
    old: Option<u64>,
    new: Option<u64>,
    generation: u64,
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

    /// Reserves what a key grows by, before it is written. It is ended by `commit`, `release` or `forget`.
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
    ) -> Result<Reservation, Error> {
        let plugin = &namespace.plugin;
        let reserve = |known: &mut PluginUsage, usage: Usage| {
            known.usage = Some(usage.after_change(namespace, key, old, new)?);
            let (plugin, key) = (plugin.clone(), key.clone());
            Ok(Reservation { plugin, key, old, new, generation: known.generation })
        };
        for _ in 0..MAX_COUNTS {
            let known = || {
                let mut plugins = self.plugins.lock();
                let now = plugins.entry(plugin.clone()).or_default();
                now.usage.map(|usage| reserve(now, usage)).ok_or(now.generation)
            };
            if let Ok(reserved) = known() {
                return reserved;
            }
            let _turn = self.counting.lock().await;
            let generation = match known() {
                Ok(reserved) => return reserved,
                Err(generation) => generation,
            };
            let counted = Self::count(backend, plugin).await?;
            let mut plugins = self.plugins.lock();
            let now = plugins.entry(plugin.clone()).or_default();
            if now.generation == generation {
                now.usage = Some(counted);
                return reserve(now, counted);
            }
        }
        Err(Error::Unavailable {
            reason: "how much the plugin keeps cannot be counted now: its writes fail".to_owned(),
            retry_in: RETRY_IN,
        })
    }

    /// It was written.
    pub(super) fn commit(&self, reservation: &Reservation) {
        let mut plugins = self.plugins.lock();
        if let Some(now) = plugins.get_mut(&reservation.plugin)
            && now.generation != reservation.generation
        {
            // It was counted meanwhile, with this write or without it.
            now.forget();
        }
    }

    /// Gives a reservation back, since nothing was written.
    pub(super) fn release(&self, reservation: Reservation) {
        let Reservation { plugin, key, old, new, generation } = reservation;
        let mut plugins = self.plugins.lock();
        let Some(now) = plugins.get_mut(&plugin).filter(|now| now.generation == generation) else { return };
        let free = Namespace { plugin, quota: Quota { bytes: u64::MAX, keys: u64::MAX } };
        now.usage = now.usage.and_then(|usage| usage.after_change(&free, &key, new, old).ok());
    }

    /// Whether something was written is not known: it is counted anew before the next write.
    pub(super) fn forget(&self, reservation: &Reservation) {
        self.plugins.lock().entry(reservation.plugin.clone()).or_default().forget();
    }
}

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
