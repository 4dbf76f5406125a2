//! Specs, registries and calls for tests of drivers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::{Cookie, Dialect, LifecycleSettings, PluginSpec, SandboxSettings};
use talon_proto::plugin::ToolCallRequest;
use tokio::time::Instant;

use super::FakeLauncher;
use crate::execute::ExecuteRequest;
use crate::registry::Registry;
use crate::settings::{LogLimits, Settings};

/// A spec whose program is never used.
pub(crate) fn spec(name: &str) -> PluginSpec {
    PluginSpec {
        name: PluginName::new(name).unwrap(),
        source: format!("test {name}"),
        program: PathBuf::from("/nowhere"),
        directory: None,
        args: Vec::new(),
        env: Default::default(),
        dialect: Dialect::Auto,
        service: talon_plugin_config::spec::DEFAULT_SERVICE.to_owned(),
        foreign_service: None,
        tls: talon_plugin_config::spec::Tls::Off,
        url: None,
        bridges: talon_plugin_config::spec::Bridges::default(),
        changed_tools: talon_plugin_config::spec::ChangedTools::Report,
        watch: false,
        config: serde_json::Map::new(),
        sha256: None,
        cookie: Cookie::default(),
        app_versions: vec![1],
        allow_tcp: false,
        instances: 1,
        lifecycle: LifecycleSettings::default(),
        sandbox: SandboxSettings::default(),
        max_message_bytes: 8 << 20,
        connections: 1,
        enabled: true,
        calls: Default::default(),
        models: false,
    }
}

/// A registry with this launcher.
pub(crate) fn registry(script: &Arc<FakeLauncher>) -> Registry {
    let settings = Settings {
        runtime_dir: PathBuf::from("/nowhere"),
        log_dir: None,
        data_dir: PathBuf::from("/nowhere"),
        uid_range: None,
        start_concurrency: 1,
        frames: Default::default(),
        env_allow_list: Vec::new(),
        log_limits: LogLimits::default(),
        state: None,
        models: None,
    };
    Registry::with_launcher(Arc::new(settings), script.clone(), crate::Events::new())
}

pub(crate) fn call(action: &str, timeout: Option<Duration>) -> ExecuteRequest {
    let message = ToolCallRequest { action: action.to_owned(), ..ToolCallRequest::default() };
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    ExecuteRequest { message, deadline, configured_timeout: timeout, ..Default::default() }
}
