//! The dispatcher's state that depends on the configuration and not on a plugin. Each configuration gets a
//! new one, which replaces the old one as a whole.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use talon_guard::trace::UNKNOWN_PLUGIN_LABEL;
use talon_guard::{Quarantine, QuarantineSettings, Stack, TraceLayer};
use talon_plugin::Registry;
use talon_plugin_config::name::PluginName;
use talon_proto::plugin::PluginCapabilities;
use talon_sanitize::{Sanitizer, Settings, SettingsError};

use super::StackEntry;
use super::core::{self, Core, CoreDirectory};
use super::counters::Counters;
use super::directory::UnknownPluginDirectory;
use super::plugin_service::UnknownPluginService;
use super::stack::{self, SharedLayers};
use crate::config::{CallPolicy, Config};

pub(super) struct ConfiguredStacks {
    pub(super) config: Arc<Config>,
    pub(super) shared: Arc<SharedLayers>,
    /// The stack for calls to unknown plugins.
    pub(super) unknown_plugin: StackEntry,
    pub(super) core: Option<CoreEntry>,
}

/// The supervisor's own actions.
pub(super) struct CoreEntry {
    pub(super) stack: Stack,
    pub(super) counters: Arc<Counters>,
    pub(super) capabilities: Arc<PluginCapabilities>,
}

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
        let core = CoreEntry::new(policy.clone(), &shared, registry, core_counters.unwrap_or_default());
        let counters = before.map(|before| Arc::clone(&before.unknown_plugin.counters)).unwrap_or_default();
        let directory = UnknownPluginDirectory { registry: registry.clone() };
        let trace = TraceLayer::for_unknown_plugins();
        let quarantine = Quarantine::new(UNKNOWN_PLUGIN_LABEL, QuarantineSettings::default());
        let (stack, gauges) =
            stack::build(trace, policy.clone(), &shared, quarantine.clone(), directory, UnknownPluginService);
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
        Self { config, shared, unknown_plugin, core }
    }
}

impl CoreEntry {
    fn new(
        policy: CallPolicy,
        shared: &SharedLayers,
        registry: &Registry,
        counters: Arc<Counters>,
    ) -> Option<Self> {
        let pages = shared.pages.clone()?;
        let directory = CoreDirectory::new(registry.clone());
        let innermost = Core { pages, page_bytes: policy.max_response_bytes };
        Some(Self {
            stack: stack::build_core(policy, shared, directory, innermost),
            counters,
            capabilities: Arc::new(core::capabilities()),
        })
    }
}

/// The limits of calls to unknown plugins: the defaults, without overrides.
fn unknown_plugin_policy(config: &Config) -> CallPolicy {
    let name = PluginName::new("nowhere").expect("it follows the rule for names");
    // No override has an empty name, so no plugin's override can apply here.
    config.call_policy("", &config.spec_defaults().spec(name, "", ""))
}
