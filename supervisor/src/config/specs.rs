//! The configuration in the form that plugins and the guard stack need.
//!
//! Values from several places are resolved here and in [`talon_plugin_config::discover`], the most specific
//! first: `overrides.<plugin>`, then the plugin's entry under `plugins`, then its manifest, then `defaults`,
//! then `guard`. The operator's settings have precedence over the author's: a plugin-wide timeout of the
//! operator also replaces the action timeouts of a manifest.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use talon_guard::admission::AdmissionSettings;
use talon_guard::breaker::BreakerSettings;
use talon_guard::deadline::Timeouts;
use talon_guard::resolve::ContextGrants;
use talon_guard::{EnvelopeMode, MediaKind, MediaPolicy, PagesSettings, QuarantineSettings, quarantine};
use talon_plugin::{EventLimits, LogLimits, Settings, default_start_concurrency};
use talon_plugin_config::Bridges;
use talon_plugin_config::discover::{self, RejectedPlugin, SpecDefaults};
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::PluginSpec;
use talon_plugin_config::units::ByteSize;

use crate::program_lookup;

use super::environment::Environment;
use super::types::{Config, Media, ModelGrant, Oversize, Quota};

/// The settings of one plugin's guard stack.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CallPolicy {
    /// For `DeadlineLayer`.
    pub timeouts: Timeouts,
    /// For `TruncateLayer`, in bytes.
    pub max_response_bytes: usize,
    /// For `TruncateLayer`, in bytes.
    pub max_structured_bytes: usize,
    /// For `TruncateLayer`.
    pub media: MediaPolicy,
    /// For `ResolveLayer`, in bytes.
    pub max_argument_bytes: usize,
    /// For `AdmissionLayer`.
    pub admission: AdmissionSettings,
    /// For `BreakerLayer`.
    pub breaker: BreakerSettings,
    /// For `ResolveLayer`.
    pub grants: ContextGrants,
    /// For `WrapLayer`.
    pub envelope: EnvelopeMode,
    /// For `Quarantine`.
    pub quarantine: QuarantineSettings,
}

/// The settings of the stores that all stacks share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuardStores {
    /// Where texts over their limit are stored for `read_more`; `None` if they are cut.
    pub pages: Option<PagesSettings>,
    /// The size limit of the store of raw answers, in bytes.
    pub raw_bytes: usize,
    /// Whether arguments are compared with earlier answers.
    pub taint: bool,
}

impl Config {
    /// The defaults for all plugins, and the overrides of single ones.
    #[must_use]
    pub fn spec_defaults(&self) -> SpecDefaults {
        let tools = &self.plugins.tools;
        let max_message_bytes = tools.defaults.max_message_bytes.unwrap_or(self.guard.max_message_bytes);
        let overrides = tools.overrides.iter().map(|(name, over)| (name.clone(), over.settings.clone()));
        SpecDefaults {
            lifecycle: (&tools.lifecycle).into(),
            sandbox: self.sandbox.settings(),
            max_message_bytes: max_message_bytes.as_usize(),
            granted_models: self.plugins_with_models(),
            overrides: overrides.collect(),
            bridges: self.bridges(),
            watch: tools.watch,
            ..SpecDefaults::default()
        }
    }

    /// The installed bridges, which translate protocols for plugins. A configured bridge that is missing is
    /// reported when a plugin needs it.
    fn bridges(&self) -> Bridges {
        let find = |name: &'static str| match &self.plugins.tools.bridge_dir {
            Some(dir) => Some(dir.join(name)),
            None => program_lookup::find(name).ok(),
        };
        Bridges {
            mcp: find("talon-mcp-bridge"),
            framed: find("talon-framed-bridge"),
            service: find("talon-service-bridge"),
        }
    }

    /// The plugins under `plugins.tools.plugins`, checked like discovered ones. Blocking: where a digest is
    /// configured, it reads the plugin's files.
    #[must_use]
    pub fn configured_plugins(&self) -> (Vec<PluginSpec>, Vec<RejectedPlugin>) {
        let defaults = self.spec_defaults();
        let mut plugins = Vec::new();
        let mut refused = Vec::new();
        for (key, entry) in &self.plugins.tools.plugins {
            let spec = match PluginName::new(key) {
                Ok(name) => {
                    let source = format!("plugins.tools.plugins.{name}");
                    discover::from_config(&name, &source, &entry.plugin, &defaults)
                }
                Err(error) => {
                    let path = entry.plugin.command.clone().unwrap_or_default();
                    Err(RejectedPlugin { name: key.clone(), path, reason: error.to_string() })
                }
            };
            match spec {
                Ok(spec) => plugins.push(spec),
                Err(reason) => refused.push(reason),
            }
        }
        (plugins, refused)
    }

    /// The settings of one plugin's guard stack.
    #[must_use]
    pub fn call_policy(&self, plugin: &str, spec: &PluginSpec) -> CallPolicy {
        let guard = &self.guard;
        let wider = &self.plugins.tools.defaults;
        let own = &spec.calls;
        let size = |own: Option<usize>, wider: Option<ByteSize>, widest: ByteSize| {
            own.unwrap_or_else(|| wider.unwrap_or(widest).as_usize())
        };
        CallPolicy {
            timeouts: Timeouts {
                default: own.timeout.unwrap_or_else(|| wider.timeout.unwrap_or(guard.timeout).get()),
                actions: own.action_timeouts.clone(),
            },
            max_response_bytes: size(
                own.max_response_bytes,
                wider.max_response_bytes,
                guard.max_response_bytes,
            ),
            max_structured_bytes: size(
                own.max_structured_bytes,
                wider.max_structured_bytes,
                guard.max_structured_bytes,
            ),
            media: self.media(plugin),
            max_argument_bytes: size(
                own.max_argument_bytes,
                wider.max_argument_bytes,
                guard.max_argument_bytes,
            ),
            admission: AdmissionSettings {
                concurrency: own.concurrency.or(wider.concurrency).unwrap_or(guard.concurrency),
                queue: own.queue.or(wider.queue).unwrap_or(guard.queue),
            },
            breaker: BreakerSettings {
                failures: guard.breaker.failures,
                window: guard.breaker.window.get(),
                open_for: guard.breaker.open_for.get(),
            },
            grants: self.grants(plugin),
            envelope: guard.envelope.into(),
            quarantine: QuarantineSettings {
                threshold: guard.quarantine.and_then(|set| NonZeroU32::new(set.marks)),
                window: guard.quarantine.map_or(quarantine::DEFAULT_WINDOW, |set| set.window.get()),
            },
        }
    }

    /// The settings of the stores that all stacks share.
    #[must_use]
    pub fn guard_stores(&self) -> GuardStores {
        let guard = &self.guard;
        let pages = PagesSettings {
            max_bytes: guard.pages.max_bytes.as_usize(),
            max_text_bytes: guard.pages.max_text_bytes.as_usize(),
            max_age: guard.pages.keep.get(),
            ..PagesSettings::default()
        };
        GuardStores {
            pages: (guard.oversize == Oversize::Excerpt).then_some(pages),
            raw_bytes: guard.keep_raw_bytes.as_usize(),
            taint: guard.taint,
        }
    }

    /// The state quota of a plugin.
    #[must_use]
    pub fn state_quota(&self, plugin: &str) -> Quota {
        let tools = &self.plugins.tools;
        let entry = tools.plugins.get(plugin).and_then(|entry| entry.grants.state_quota);
        let over = tools.overrides.get(plugin).and_then(|over| over.grants.state_quota);
        entry.into_iter().chain(over).fold(self.state.quota, Quota::with)
    }

    /// The models that a plugin may ask. An override takes the place of the whole grant.
    #[must_use]
    pub fn model_grant(&self, plugin: &str) -> Option<&ModelGrant> {
        let tools = &self.plugins.tools;
        let over = tools.overrides.get(plugin).and_then(|over| over.grants.models.as_ref());
        over.or_else(|| tools.plugins.get(plugin).and_then(|entry| entry.grants.models.as_ref()))
    }

    /// The plugins that have a socket for completions: those with a grant, if there is an agent that serves it.
    fn plugins_with_models(&self) -> BTreeSet<String> {
        if !self.runs_agent() {
            return BTreeSet::new();
        }
        let tools = &self.plugins.tools;
        let named = tools.plugins.keys().chain(tools.overrides.keys());
        named.filter(|name| self.model_grant(name).is_some()).cloned().collect()
    }

    /// What is passed on of a plugin's media. Overrides have precedence.
    fn media(&self, plugin: &str) -> MediaPolicy {
        let tools = &self.plugins.tools;
        let entry = tools.plugins.get(plugin).and_then(|entry| entry.grants.media.as_ref());
        let over = tools.overrides.get(plugin).and_then(|over| over.grants.media.as_ref());
        let kind = |media: &Media| match media {
            Media::Image => MediaKind::Image,
            Media::Audio => MediaKind::Audio,
            Media::Resource => MediaKind::Resource,
            Media::Link => MediaKind::Link,
        };
        MediaPolicy {
            granted: over.or(entry).into_iter().flatten().map(kind).collect(),
            max_items: self.guard.max_media_items,
            max_bytes: self.guard.max_media_bytes.as_usize(),
        }
    }

    /// What a plugin may tell of events, if anything. Overrides have precedence.
    #[must_use]
    pub fn event_limits(&self, plugin: &str) -> Option<EventLimits> {
        let tools = &self.plugins.tools;
        let entry = tools.plugins.get(plugin).and_then(|entry| entry.grants.events);
        let over = tools.overrides.get(plugin).and_then(|over| over.grants.events);
        over.or(entry).map(|grant| EventLimits { per_minute: grant.per_minute })
    }

    /// What the operator grants to a plugin. Overrides have precedence; credentials of both places are
    /// merged.
    fn grants(&self, plugin: &str) -> ContextGrants {
        let tools = &self.plugins.tools;
        let entry = tools.plugins.get(plugin).map(|entry| &entry.grants);
        let over = tools.overrides.get(plugin).map(|over| &over.grants);
        let mut grants = ContextGrants::default();
        for said in entry.into_iter().chain(over) {
            if let Some(context) = &said.context {
                grants.context = context.iter().cloned().collect::<BTreeSet<_>>();
            }
            for (name, credential) in &said.credentials {
                let header = talon_proto::plugin::CredentialHeader {
                    header: credential.header.clone(),
                    value: credential.value.expose().to_owned(),
                };
                grants.credentials.insert(name.clone(), header);
            }
        }
        grants
    }

    /// The settings that all plugins share.
    #[must_use]
    pub fn talon_plugin_settings(&self) -> Settings {
        let tools = &self.plugins.tools;
        let log = &self.log;
        Settings {
            runtime_dir: self.runtime_dir.clone(),
            log_dir: log.dir.clone(),
            data_dir: self.state.data_dir.clone(),
            uid_range: Environment::assigns_uids().then(|| self.sandbox.uid_range.range()),
            start_concurrency: tools.start_concurrency.unwrap_or_else(default_start_concurrency),
            env_allow_list: tools.env_allow_list.clone(),
            frames: tools.frames.into(),
            log_limits: LogLimits {
                ring_lines: log.ring_lines,
                line_bytes: log.line_bytes.as_usize(),
                lines_per_second: log.lines_per_second,
                burst_lines: log.burst_lines,
                file_bytes: log.file_bytes.get(),
                rotated_files: log.rotated_files,
            },
            state: None,
            models: None,
        }
    }
}

#[cfg(test)]
#[path = "specs_tests.rs"]
mod tests;
