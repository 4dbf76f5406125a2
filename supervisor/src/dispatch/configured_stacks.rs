//! Builds the stacks: those of a configuration, and each plugin's at its first call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use talon_guard::trace::UNKNOWN_PLUGIN_LABEL;
use talon_guard::{Quarantine, QuarantineSettings, TraceLayer};
use talon_plugin::{Plugin, Registry};
use talon_plugin_config::name::PluginName;
use talon_sanitize::{Sanitizer, Settings, SettingsError};

use super::core::{self, Core, CoreDirectory};
use super::counters::Counters;
use super::directory::PluginDirectory;
use super::dispatcher::Dispatcher;
use super::execute::{PluginService, core_stack, plugin_stack};
use super::shared_layers::SharedLayers;
use super::stack_entry::{ConfiguredStacks, CoreEntry, StackEntry};
use super::unknown_plugin::{UnknownPluginDirectory, UnknownPluginService};
use crate::config::{CallPolicy, Config};

impl ConfiguredStacks {
    pub(super) fn new(config: Arc<Config>, sanitizer: Sanitizer, registry: &Registry) -> Self {
        let shared = Arc::new(SharedLayers::new(&config.guard_stores(), sanitizer));
        Self::build(config, shared, registry, None)
    }

    /// The successor for a new configuration: it takes over the counters, and all stored data whose limits
    /// did not change.
    pub(super) fn successor(
        before: &Self,
        config: Arc<Config>,
        registry: &Registry,
    ) -> Result<Self, SettingsError> {
        let patterns = &config.guard.forbidden_patterns;
        let same_patterns = *patterns == before.config.guard.forbidden_patterns;
        let (old, new) = (before.config.guard_stores(), config.guard_stores());
        let shared = if same_patterns && old == new {
            Arc::clone(&before.shared)
        } else {
            let sanitizer = match same_patterns {
                true => before.shared.sanitizer.clone(),
                false => Sanitizer::new(&Settings { forbidden_patterns: patterns.clone() })?,
            };
            let mut shared = SharedLayers::new(&new, sanitizer);
            shared.reuse(&before.shared, &old, &new, same_patterns);
            Arc::new(shared)
        };
        Ok(Self::build(config, shared, registry, Some(before)))
    }

    fn build(
        config: Arc<Config>,
        shared: Arc<SharedLayers>,
        registry: &Registry,
        before: Option<&Self>,
    ) -> Self {
        let policy = unknown_plugin_policy(&config);
        let core_counters = before.and_then(|before| Some(Arc::clone(&before.core.as_ref()?.counters)));
        let core = core_entry(policy.clone(), &shared, registry, core_counters.unwrap_or_default());
        let counters = before.map(|before| Arc::clone(&before.unknown_plugin.counters)).unwrap_or_default();
        let directory = UnknownPluginDirectory { registry: registry.clone() };
        let trace = TraceLayer::for_unknown_plugins();
        let quarantine = Quarantine::new(UNKNOWN_PLUGIN_LABEL, QuarantineSettings::default());
        let (stack, gauges) =
            plugin_stack(trace, policy.clone(), &shared, quarantine.clone(), directory, UnknownPluginService);
        let unknown_plugin = StackEntry {
            spec: None,
            policy,
            stale: AtomicBool::new(false),
            stack,
            gauges,
            counters,
            quarantine_updates: Mutex::new(quarantine.subscribe()),
            quarantine,
            capabilities: Mutex::default(),
        };
        Self { config, shared, unknown_plugin: Arc::new(unknown_plugin), core: core.map(Arc::new) }
    }
}

fn core_entry(
    policy: CallPolicy,
    shared: &SharedLayers,
    registry: &Registry,
    counters: Arc<Counters>,
) -> Option<CoreEntry> {
    let pages = shared.pages.clone()?;
    let directory = CoreDirectory::new(registry.clone());
    let innermost = Core { pages, page_bytes: policy.max_response_bytes };
    Some(CoreEntry {
        stack: core_stack(policy, shared, directory, innermost),
        counters,
        capabilities: Arc::new(core::capabilities()),
    })
}

/// The limits of calls to unknown plugins: the defaults, without overrides.
fn unknown_plugin_policy(config: &Config) -> CallPolicy {
    let name = PluginName::new("nowhere").expect("it follows the rule for names");
    // No override has an empty name, so no plugin's override can apply here.
    config.call_policy("", &config.spec_defaults().spec(name, "", ""))
}

impl Dispatcher {
    /// The stack of a plugin. It is built at the first call, and rebuilt when the spec or the configuration
    /// has changed.
    pub(super) fn entry(&self, plugin: &Plugin) -> Arc<StackEntry> {
        let spec = plugin.spec();
        let name = plugin.name().as_str();
        let fresh = |entry: &&Arc<StackEntry>| {
            let built_from = entry.spec.as_ref();
            built_from.is_some_and(|built| Arc::ptr_eq(built, &spec)) && !entry.stale.load(Ordering::Acquire)
        };
        if let Some(entry) = self.entries.read().get(name).filter(fresh) {
            return Arc::clone(entry);
        }
        let mut entries = self.entries.write();
        // Another call may have built it meanwhile. A second stack would mean a second queue.
        if let Some(entry) = entries.get(name).filter(fresh) {
            return Arc::clone(entry);
        }
        let current = self.current.load();
        let policy = current.config.call_policy(name, &spec);
        // The counters survive a change of the spec; entries of removed plugins are deleted.
        let before = entries.get(name);
        let counters = before.map(|entry| Arc::clone(&entry.counters)).unwrap_or_default();
        let quarantine = match before {
            Some(entry) if entry.policy.quarantine == policy.quarantine => entry.quarantine.clone(),
            before => {
                let quarantine = Quarantine::new(name, policy.quarantine);
                if let Some(quarantined) = before.and_then(|entry| entry.quarantine.quarantined()) {
                    quarantine.impose(quarantined.neutralised);
                }
                quarantine
            }
        };
        entries.retain(|name, _| self.registry.get(name).is_some());
        let directory = PluginDirectory::new(plugin.clone(), self.registry.clone());
        let innermost = PluginService { plugin: plugin.clone(), executor: plugin.executor() };
        let trace = TraceLayer::new(name);
        let (stack, gauges) =
            plugin_stack(trace, policy.clone(), &current.shared, quarantine.clone(), directory, innermost);
        let news = Mutex::new(quarantine.subscribe());
        let entry = Arc::new(StackEntry {
            spec: Some(spec),
            policy,
            stale: AtomicBool::new(false),
            stack,
            gauges,
            counters,
            quarantine,
            quarantine_updates: news,
            capabilities: Mutex::default(),
        });
        entries.insert(name.to_owned(), Arc::clone(&entry));
        entry
    }
}
