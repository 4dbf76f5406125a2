//! Applies a plugin's entry and settings to its spec.

use std::collections::BTreeMap;

use super::{CallLimits, LifecycleKeys, PluginEntry, PluginSettings};
use crate::spec::{CallSettings, Dialect, ForeignService, LifecycleSettings, NetworkAccess, PluginSpec};
use crate::units::{ByteSize, Duration};

impl PluginEntry {
    /// Applies everything but the program to the spec.
    pub fn apply(&self, spec: &mut PluginSpec) {
        set(&mut spec.args, self.args.clone());
        set(&mut spec.dialect, self.dialect);
        if let Some(sha256) = &self.sha256 {
            spec.sha256 = Some(sha256.to_ascii_lowercase());
        }
        set(&mut spec.cookie, self.cookie.clone());
        set(&mut spec.app_versions, self.app_versions.clone());
        set(&mut spec.service, self.service.clone());
        set(&mut spec.tls, self.tls);
        if let Some(descriptor) = &self.descriptor {
            let methods = BTreeMap::new();
            spec.foreign_service = Some(ForeignService { descriptor: descriptor.clone(), methods });
        }
        // Without a descriptor the checks of the entry refuse them.
        if let Some(foreign) = &mut spec.foreign_service
            && !self.methods.is_empty()
        {
            foreign.methods = self.methods.clone();
        }
        if let Some(url) = &self.url {
            spec.url = Some(url.clone());
            spec.dialect = Dialect::Mcp;
            // Allows only the server's host. The network settings of the entry itself are applied after this.
            spec.sandbox.network = NetworkAccess::Proxy;
            // An invalid URL is refused by the checks; until then the list stays empty.
            spec.sandbox.allow = super::place_of_url(url).into_iter().collect();
        }
        self.settings.apply(spec);
    }
}

impl PluginSettings {
    /// Applies these settings to the spec. Environment variables, keys of `config` and actions are merged one
    /// by one; all other settings replace the earlier value.
    pub fn apply(&self, spec: &mut PluginSpec) {
        set(&mut spec.max_message_bytes, self.calls.max_message_bytes.map(ByteSize::as_usize));
        self.calls.apply(&mut spec.calls);
        let timeouts = self.actions.iter().filter_map(|(action, over)| Some((action, over.timeout?)));
        spec.calls.action_timeouts.extend(timeouts.map(|(action, timeout)| (action.clone(), timeout.get())));
        set(&mut spec.allow_tcp, self.allow_tcp);
        set(&mut spec.enabled, self.enabled);
        set(&mut spec.changed_tools, self.changed_tools);
        set(&mut spec.watch, self.watch);
        set(&mut spec.instances, self.instances);
        set(&mut spec.connections, self.connections);
        spec.env.extend(self.env.clone());
        for (key, value) in &self.config {
            spec.config.insert(key.clone(), value.clone());
        }
        self.sandbox.apply(&mut spec.sandbox);
        spec.sandbox.limits = self.limits.with_defaults(spec.sandbox.limits);
        self.lifecycle.apply(&mut spec.lifecycle);
    }
}

impl CallLimits {
    fn apply(&self, calls: &mut CallSettings) {
        let size = |size: Option<ByteSize>| size.map(ByteSize::as_usize);
        calls.timeout = time(self.timeout).or(calls.timeout);
        calls.max_response_bytes = size(self.max_response_bytes).or(calls.max_response_bytes);
        calls.max_structured_bytes = size(self.max_structured_bytes).or(calls.max_structured_bytes);
        calls.max_argument_bytes = size(self.max_argument_bytes).or(calls.max_argument_bytes);
        calls.concurrency = self.concurrency.or(calls.concurrency);
        calls.queue = self.queue.or(calls.queue);
    }
}

impl LifecycleKeys {
    fn apply(&self, life: &mut LifecycleSettings) {
        set(&mut life.health_check_interval, time(self.health_check_interval));
        set(&mut life.health_check_timeout, time(self.health_check_timeout));
        set(&mut life.health_failure_threshold, self.health_failure_threshold);
        set(&mut life.restart_on_failure, self.restart_on_failure);
        set(&mut life.max_restarts, self.max_restarts);
        set(&mut life.restart_window, time(self.restart_window));
        set(&mut life.backoff_initial, time(self.backoff_initial));
        set(&mut life.backoff_max, time(self.backoff_max));
        set(&mut life.start_timeout, time(self.start_timeout));
        set(&mut life.grace_period, time(self.grace_period));
        set(&mut life.ready_wait, time(self.ready_wait));
        set(&mut life.kill_overdue_after, self.kill_overdue_after.map(overdue_limit));
    }
}

/// Zero disables the limit. A plugin cannot end a call exactly at its deadline, so a limit of zero would kill
/// every plugin that is ever late.
#[must_use]
pub fn overdue_limit(duration: Duration) -> Option<std::time::Duration> {
    Some(duration.get()).filter(|duration| !duration.is_zero())
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn time(duration: Option<Duration>) -> Option<std::time::Duration> {
    duration.map(Duration::get)
}
