//! The differences of two configurations, and which of them apply without a restart.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use talon_agent_settings::{AgentKeys, LimitKeys};
use talon_plugin_config::document::origin::KeyPath;

use super::types::{Config, Gateway, GatewayLimits, Grants, Host, Log, Plugins, Sandbox, Tools};

impl Config {
    /// This configuration as far as a supervisor that runs with `running` can apply it: keys that are fixed
    /// at the start keep their running values. The remaining differences from this configuration need a
    /// restart.
    #[must_use]
    pub fn applicable_to(&self, running: &Self) -> Self {
        let runs_agent = self.runs_agent();
        // Exhaustive, so that a new key forces a decision here.
        let Self {
            runtime_dir: _,
            guard,
            sandbox,
            plugins,
            state: _,
            host,
            log,
            admin: _,
            audit: _,
            events: _,
            traces: _,
            reload,
            user: _,
            agent,
            models,
            orchestrator,
            shadow,
            gateway,
            extensions,
        } = self.clone();
        let tools = &running.plugins.tools;
        Self {
            guard,
            host: Host { frames: running.host.frames, limits: running.host.limits, ..host },
            reload,
            sandbox: Sandbox { uid_range: running.sandbox.uid_range, ..sandbox },
            plugins: Plugins {
                tools: Tools {
                    start_concurrency: tools.start_concurrency,
                    frames: tools.frames,
                    env_allow_list: tools.env_allow_list.clone(),
                    ..plugins.tools
                },
                // It is written out as a plugin, and as entries of `extensions`.
                lua: plugins.lua,
            },
            log: Log { level: log.level, ..running.log.clone() },
            // The agent process and its sandbox are fixed at its start. It receives all other settings again,
            // and running turns finish with the old ones.
            agent: AgentKeys {
                enabled: if runs_agent == running.runs_agent() {
                    agent.enabled
                } else {
                    (!runs_agent).into()
                },
                program: running.agent.program.clone(),
                workspace: running.agent.workspace.clone(),
                limits: LimitKeys {
                    connections: running.agent.limits.connections,
                    connections_per_user: running.agent.limits.connections_per_user,
                    nofile: running.agent.limits.nofile,
                    ..agent.limits
                },
                ..agent
            },
            models,
            orchestrator,
            shadow,
            // It is told the rest again; connections to come meet other limits, and get another certificate.
            gateway: Gateway {
                enabled: running.gateway.enabled,
                address: running.gateway.address,
                max_role: running.gateway.max_role,
                program: running.gateway.program.clone(),
                limits: GatewayLimits {
                    // Its descriptors are fixed at its start.
                    connections: running.gateway.limits.connections,
                    credentials: running.gateway.limits.credentials,
                    ..gateway.limits
                },
                ..gateway
            },
            // Host and agent take another list at once; a turn keeps the one that it began with.
            extensions,
            // Locations, and everything that is opened once.
            runtime_dir: running.runtime_dir.clone(),
            state: running.state.clone(),
            admin: running.admin.clone(),
            audit: running.audit.clone(),
            events: running.events.clone(),
            traces: running.traces.clone(),
            user: running.user.clone(),
        }
    }

    /// The keys whose values differ in another configuration. For lists, and for entries that only one of the
    /// two has, the key as a whole.
    #[must_use]
    pub fn differences(&self, other: &Self) -> BTreeSet<KeyPath> {
        let values = |config: &Self| {
            let mut values = serde_json::to_value(config).unwrap_or_default();
            // Whether it runs, whichever key decides that.
            values["agent"]["enabled"] = config.runs_agent().into();
            values
        };
        let mut found = BTreeSet::new();
        walk(&values(self), &values(other), &KeyPath::top(), &mut found);
        let (ours, theirs) = (self.secrets(), other.secrets());
        let differ = |key: &&KeyPath| ours.get(*key) != theirs.get(*key);
        let secrets: Vec<KeyPath> = ours.keys().chain(theirs.keys()).filter(differ).cloned().collect();
        // Keys of an added or removed entry are covered by the entry.
        let said = |key: &KeyPath| {
            std::iter::successors(Some(key.clone()), KeyPath::parent).any(|key| found.contains(&key))
        };
        let unsaid: Vec<KeyPath> = secrets.into_iter().filter(|key| !said(key)).collect();
        found.extend(unsaid);
        found
    }

    /// The secret values by key: they are always displayed alike, so comparing displayed values would miss a
    /// change.
    fn secrets(&self) -> BTreeMap<KeyPath, &str> {
        let state = KeyPath::of(&["state"]);
        let mut secrets = BTreeMap::new();
        for (name, url) in [("url", &self.state.url), ("agent_url", &self.state.agent_url)] {
            secrets.extend(url.as_ref().map(|url| (state.key(name), url.expose())));
        }
        let providers = KeyPath::of(&["models", "providers"]);
        for (name, entry) in &self.models.providers.0 {
            let provider = providers.key(name);
            secrets.extend(entry.proxy.as_ref().map(|proxy| (provider.key("proxy"), proxy.reveal())));
            let headers = provider.key("headers");
            secrets.extend(entry.headers.iter().map(|(name, value)| (headers.key(name), value.reveal())));
        }
        let tools = KeyPath::of(&["plugins", "tools"]);
        let plugins = self.plugins.tools.plugins.iter();
        let plugins = plugins.map(|(name, entry)| (tools.key("plugins").key(name), &entry.grants));
        let overrides = self.plugins.tools.overrides.iter();
        let overrides = overrides.map(|(name, over)| (tools.key("overrides").key(name), &over.grants));
        for (key, Grants { credentials, .. }) in plugins.chain(overrides) {
            for (name, credential) in credentials {
                secrets.insert(key.key("credentials").key(name).key("value"), credential.value.expose());
            }
        }
        secrets
    }
}

fn walk(ours: &Value, theirs: &Value, path: &KeyPath, found: &mut BTreeSet<KeyPath>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
            for key in keys {
                let path = path.key(key);
                match (ours.get(key), theirs.get(key)) {
                    (Some(ours), Some(theirs)) => walk(ours, theirs, &path, found),
                    (ours, theirs) if ours == theirs => {}
                    _ => drop(found.insert(path)),
                }
            }
        }
        (ours, theirs) if ours == theirs => {}
        _ => drop(found.insert(path.clone())),
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
