//! What all sockets of a plugin share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use tokio::sync::Semaphore;

use super::grant::Grant;
use super::limits::{MORE_REQUESTS, REQUESTS_PER_PLACE};
use super::own_account::OwnAccount;
use super::refusal::RefusalError;

/// The plugins that have sockets.
#[derive(Debug, Default)]
pub(super) struct Plugins(Mutex<BTreeMap<String, Weak<PluginModels>>>);

impl Plugins {
    /// The plugin of this name, with this grant from now on.
    pub(super) fn with_grant(&self, name: &str, grant: Grant) -> Arc<PluginModels> {
        let mut plugins = self.0.lock();
        plugins.retain(|_, plugin| plugin.strong_count() > 0);
        if let Some(plugin) = plugins.get(name).and_then(Weak::upgrade) {
            plugin.set_grant(grant);
            return plugin;
        }
        let plugin = Arc::new(PluginModels::new(name, grant));
        plugins.insert(name.to_owned(), Arc::downgrade(&plugin));
        plugin
    }
}

/// A plugin's grant, and what it has in flight.
#[derive(Debug)]
pub(super) struct PluginModels {
    pub(super) name: String,
    limits: RwLock<Arc<Limits>>,
    requests: AtomicUsize,
    /// What it spends without a call of a turn.
    pub(super) own: OwnAccount,
}

/// A grant, and places for as many completions as it permits at once.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) grant: Grant,
    pub(super) places: Semaphore,
}

impl Limits {
    fn new(grant: Grant) -> Arc<Self> {
        Arc::new(Self { places: Semaphore::new(grant.concurrency), grant })
    }
}

impl PluginModels {
    fn new(name: &str, grant: Grant) -> Self {
        Self {
            name: name.to_owned(),
            limits: RwLock::new(Limits::new(grant)),
            requests: AtomicUsize::new(0),
            own: OwnAccount::default(),
        }
    }

    /// What holds for a request that begins now.
    pub(super) fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.limits.read())
    }

    /// What has begun finishes under the grant that it began with.
    fn set_grant(&self, grant: Grant) {
        let mut limits = self.limits.write();
        if limits.grant != grant {
            *limits = Limits::new(grant);
        }
    }

    /// Admits a request, if the plugin has not too many.
    pub(super) fn admit(self: &Arc<Self>) -> Result<RequestPermit, RefusalError> {
        let most = self.limits().grant.concurrency.saturating_mul(REQUESTS_PER_PLACE) + MORE_REQUESTS;
        let permit = RequestPermit(Arc::clone(self));
        if self.requests.fetch_add(1, Ordering::Relaxed) >= most {
            return Err(RefusalError::Busy { most });
        }
        Ok(permit)
    }
}

/// One request of a plugin, until it is dropped.
#[derive(Debug)]
pub(super) struct RequestPermit(Arc<PluginModels>);

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    // Promises: EXT-127
    #[test]
    fn requests_of_a_plugin_are_bounded_over_all_its_sockets() {
        let grant = Grant {
            aliases: vec!["auto".to_owned()],
            max_calls: 1,
            max_tokens: 1,
            timeout: Duration::from_secs(1),
            concurrency: 2,
            own_budget: None,
        };
        let plugins = Plugins::default();
        let (one, other) = (plugins.with_grant("p", grant.clone()), plugins.with_grant("p", grant.clone()));
        let most = 2 * REQUESTS_PER_PLACE + MORE_REQUESTS;
        let mut held: Vec<_> = (0..most).map(|_| one.admit().unwrap()).collect();
        assert_eq!(other.admit().unwrap_err(), RefusalError::Busy { most });
        assert!(plugins.with_grant("q", grant).admit().is_ok());
        held.pop();
        assert!(other.admit().is_ok());
    }
}
