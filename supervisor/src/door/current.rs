//! The dispatcher's state that depends on the configuration and not on a plugin. Each configuration gets a
//! new one, which replaces the old one as a whole.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use talon_guard::trace::UNKNOWN_PLUGIN_LABEL;
use talon_guard::{Quarantine, QuarantineSettings, Stack, TraceLayer};
use talon_plugin::Registry;
use talon_plugin::name::PluginName;
use talon_proto::plugin::PluginCapabilities;
use talon_sanitize::{Sanitizer, Settings, SettingsError};

use super::Entry;
use super::core::{self, Core, CoreDirectory};
use super::counters::Counters;
use super::directory::NoPlugin;
use super::innermost::Nowhere;
use super::stack::{self, Shared};
use crate::config::{CallPolicy, Config};

pub(super) struct Current {
    pub(super) config: Arc<Config>,
    pub(super) shared: Arc<Shared>,
    /// The stack for calls to unknown plugins.
    pub(super) nowhere: Entry,
    pub(super) core: Option<CoreEntry>,
}

/// The supervisor's own actions.
pub(super) struct CoreEntry {
    pub(super) stack: Stack,
    pub(super) counters: Arc<Counters>,
    pub(super) capabilities: Arc<PluginCapabilities>,
}

impl Current {
    pub(super) fn new(config: Arc<Config>, sanitizer: Sanitizer, registry: &Registry) -> Self {
        let shared = Arc::new(Shared::new(&config.guard_stores(), sanitizer));
        Self::of(config, shared, registry, None)
    }

    /// The successor for a new configuration: it takes over the counters, and all stored data whose limits
    /// did not change.
    pub(super) fn after(
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
            let mut shared = Shared::new(&new, sanitizer);
            shared.keep_from(&before.shared, &old, &new, same_patterns);
            Arc::new(shared)
        };
        Ok(Self::of(config, shared, registry, Some(before)))
    }

    fn of(config: Arc<Config>, shared: Arc<Shared>, registry: &Registry, before: Option<&Self>) -> Self {
        let policy = nowhere_policy(&config);
        let core_counters = before.and_then(|before| Some(Arc::clone(&before.core.as_ref()?.counters)));
        let core = CoreEntry::new(policy.clone(), &shared, registry, core_counters.unwrap_or_default());
        let counters = before.map(|before| Arc::clone(&before.nowhere.counters)).unwrap_or_default();
        let directory = NoPlugin { registry: registry.clone() };
        let trace = TraceLayer::for_unknown_plugins();
        let quarantine = Quarantine::new(UNKNOWN_PLUGIN_LABEL, QuarantineSettings::default());
        let (stack, gauges) =
            stack::build(trace, policy.clone(), &shared, quarantine.clone(), directory, Nowhere);
        let nowhere = Entry {
            spec: None,
            policy,
            stale: AtomicBool::new(false),
            stack,
            gauges,
            counters,
            news: Mutex::new(quarantine.subscribe()),
            quarantine,
            shown: Mutex::default(),
        };
        Self { config, shared, nowhere, core }
    }
}

impl CoreEntry {
    fn new(
        policy: CallPolicy,
        shared: &Shared,
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
fn nowhere_policy(config: &Config) -> CallPolicy {
    let name = PluginName::new("nowhere").expect("it follows the rule for names");
    // No override has an empty name, so no plugin's override can apply here.
    config.call_policy("", &config.spec_defaults().spec(name, "", ""))
}
