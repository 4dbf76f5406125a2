//! Checks that no schema can express: whether values fit together, and whether the machine has what they
//! name. Settings of single plugins are checked by [`talon_plugin_config::entry`], as for manifests.

mod agent;
mod extensions;
mod gateway;
mod lua;
mod machine;
mod model_grants;
mod models;
mod plugin_storage;
mod shadow;
mod uids;

use talon_plugin_config::document::Findings;
use talon_plugin_config::document::origin::{KeyPath, Origins};
use talon_plugin_config::entry::{
    CallLimits, PluginSandbox, check_backoff, check_call_timeout, check_health, check_variable,
};
use talon_plugin_config::spec::LifecycleSettings;
use talon_plugin_config::units::ByteSize;

use super::environment::Environment;
use super::types::{Config, Engine, Events, Grants, Guard, Lifecycle, MAX_EVENTS_PER_MINUTE, State, Tools};

/// Checks a configuration whose values are each valid for their key.
pub(crate) fn check<'o>(config: &Config, around: &Environment, origins: &'o Origins) -> Findings<'o> {
    let mut check = Check { found: Findings::new(origins) };
    let top = KeyPath::top();
    check.guard(&config.guard, &top.key("guard"));
    check.tools(&config.plugins.tools, config, &KeyPath::of(&["plugins", "tools"]));
    check.host(&config.host, &top.key("host"));
    check.admin(&config.admin, &top.key("admin"));
    let sandbox = top.key("sandbox");
    // Settings for plugins with more network access may be set here without granting that access to all of
    // them.
    let words = PluginSandbox { network: None, ..config.sandbox.as_plugin_sandbox() };
    words.check(&sandbox, &mut check.found);
    check.profile_dir(config.sandbox.profile_dir.as_deref(), &sandbox.key("profile_dir"));
    config.sandbox.limits.check(&sandbox.key("limits"), &mut check.found);
    if around.assigns_uids {
        let range = config.sandbox.uid_range.range();
        check.uid_range(&range, &sandbox.key("uid_range"));
    }
    check.state(&config.state, &top.key("state"));
    check.plugin_storage(config, &KeyPath::of(&["state", "plugins"]));
    let log = top.key("log");
    check.log_level(&config.log.level, &log.key("level"));
    check.traces(&config.traces, &top.key("traces"));
    check.found.check_nonzero_size(config.log.line_bytes, &log.key("line_bytes"));
    check.found.check_nonzero_size(config.log.file_bytes, &log.key("file_bytes"));
    let audit = top.key("audit");
    check.found.check_nonzero_size(config.audit.file_bytes, &audit.key("file_bytes"));
    check_call_timeout(config.audit.wait, &audit.key("wait"), &mut check.found);
    check.events(&config.events, &top.key("events"));
    let catalog = check.models(&config.models, &top.key("models"));
    check.model_grants(config, catalog.as_ref());
    check.agent(config, catalog.as_ref(), &top.key("agent"));
    check.orchestrator(&config.orchestrator, &top.key("orchestrator"));
    check.shadow(config, catalog.as_ref(), &top.key("shadow"));
    check.gateway(config, &top.key("gateway"));
    check.extensions(config, &top.key("extensions"));
    check.lua(config, catalog.as_ref(), &KeyPath::of(&["plugins", "lua"]));
    check.found
}

/// The least that `events.max_bytes` may be: an eighth of it is a segment, which holds some of the largest events.
const MIN_EVENT_BYTES: ByteSize = ByteSize::mib(1);
/// The most that `events.max_bytes` may be: a start reads it, a segment at a time.
const MAX_EVENT_BYTES: ByteSize = ByteSize::mib(1024);

struct Check<'a> {
    found: Findings<'a>,
}

impl Check<'_> {
    fn problem(&mut self, key: &KeyPath, message: impl Into<String>, help: &str) {
        self.found.problem(key, message, help);
    }

    fn events(&mut self, events: &Events, path: &KeyPath) {
        if events.max_bytes < MIN_EVENT_BYTES {
            let problem = format!("{} is less than {MIN_EVENT_BYTES}", events.max_bytes);
            self.problem(&path.key("max_bytes"), problem, "an eighth of it has to hold the largest event");
        }
        if events.max_bytes > MAX_EVENT_BYTES {
            let problem = format!("{} is more than {MAX_EVENT_BYTES}", events.max_bytes);
            self.problem(
                &path.key("max_bytes"),
                problem,
                "an eighth of it is read at once when talon starts",
            );
        }
    }

    fn guard(&mut self, guard: &Guard, path: &KeyPath) {
        let Guard {
            timeout,
            max_response_bytes,
            max_structured_bytes,
            max_argument_bytes,
            max_message_bytes,
            concurrency,
            queue,
            breaker,
            forbidden_patterns,
            pages,
            quarantine,
            // All their values are valid.
            max_media_items: _,
            max_media_bytes: _,
            envelope: _,
            oversize: _,
            keep_raw_bytes: _,
            taint: _,
        } = guard;
        let limits = CallLimits {
            timeout: Some(*timeout),
            max_response_bytes: Some(*max_response_bytes),
            max_structured_bytes: Some(*max_structured_bytes),
            max_argument_bytes: Some(*max_argument_bytes),
            max_message_bytes: Some(*max_message_bytes),
            concurrency: Some(*concurrency),
            queue: Some(*queue),
        };
        limits.check(path, &mut self.found);
        self.found.check_nonzero_duration(breaker.window, &path.key("breaker").key("window"));
        check_call_timeout(breaker.open_for, &path.key("breaker").key("open_for"), &mut self.found);
        self.patterns(forbidden_patterns, &path.key("forbidden_patterns"));
        self.found.check_nonzero_duration(pages.keep, &path.key("pages").key("keep"));
        self.found.check_nonzero_size(pages.max_bytes, &path.key("pages").key("max_bytes"));
        self.found.check_nonzero_size(pages.max_text_bytes, &path.key("pages").key("max_text_bytes"));
        if let Some(quarantine) = quarantine {
            self.found.check_nonzero_duration(quarantine.window, &path.key("quarantine").key("window"));
        }
    }

    fn tools(&mut self, tools: &Tools, config: &Config, path: &KeyPath) {
        if let Some(dir) = &tools.plugin_dir
            && !dir.is_dir()
        {
            let message = format!("{} is no directory", dir.display());
            self.found.warning(&path.key("plugin_dir"), message, "create it, or correct the path");
        }
        self.lifecycle(&tools.lifecycle, path);
        for (index, name) in tools.env_allow_list.iter().enumerate() {
            check_variable(name, &path.key("env_allow_list").index(index), &mut self.found);
        }
        tools.defaults.check(&path.key("defaults"), &mut self.found);
        self.response_fits(&[&tools.defaults], &config.guard, &path.key("defaults"));
        let wider = LifecycleSettings::from(&tools.lifecycle);
        for (name, over) in &tools.overrides {
            let path = path.key("overrides").key(name);
            over.settings.check(&wider, &path, &mut self.found);
            self.response_fits(&[&over.settings.calls, &tools.defaults], &config.guard, &path);
            self.grants(&over.grants, &path);
        }
        for (name, entry) in &tools.plugins {
            let path = path.key("plugins").key(name);
            entry.plugin.check(&wider, &path, &mut self.found);
            self.response_fits(&[&entry.plugin.settings.calls, &tools.defaults], &config.guard, &path);
            self.grants(&entry.grants, &path);
        }
    }

    /// The largest answer that is not cut must fit into one message.
    fn response_fits(&mut self, order: &[&CallLimits], guard: &Guard, path: &KeyPath) {
        let effective = |key: fn(&CallLimits) -> Option<ByteSize>, wider: ByteSize| {
            order.iter().find_map(|limits| key(limits)).unwrap_or(wider)
        };
        let message = effective(|limits| limits.max_message_bytes, guard.max_message_bytes);
        let response = effective(|limits| limits.max_response_bytes, guard.max_response_bytes);
        if response > message {
            let problem = format!("{response} is more than max_message_bytes ({message}) lets through");
            self.problem(&path.key("max_response_bytes"), problem, "raise max_message_bytes above it");
        }
    }

    fn lifecycle(&mut self, life: &Lifecycle, path: &KeyPath) {
        let times = [
            ("health_check_interval", life.health_check_interval),
            ("health_check_timeout", life.health_check_timeout),
            ("restart_window", life.restart_window),
            ("backoff_max", life.backoff_max),
            ("start_timeout", life.start_timeout),
        ];
        for (name, time) in times {
            self.found.check_nonzero_duration(time, &path.key(name));
        }
        check_health(life.health_check_timeout, life.health_check_interval, path, &mut self.found);
        check_backoff(life.backoff_initial, life.backoff_max, path, &mut self.found);
    }

    fn grants(&mut self, grants: &Grants, path: &KeyPath) {
        for (name, credential) in &grants.credentials {
            let path = path.key("credentials").key(name);
            self.header(&credential.header, credential.value.expose(), &path);
        }
        if let Some(quota) = &grants.state_quota {
            self.quota(quota.bytes, quota.keys, &path.key("state_quota"));
        }
        if let Some(events) = &grants.events {
            self.bounded(events.per_minute, MAX_EVENTS_PER_MINUTE, &path.key("events").key("per_minute"));
        }
    }

    fn state(&mut self, state: &State, path: &KeyPath) {
        let State { data_dir: _, engine, url, agent_url, plugins: _, max_bytes, quota, program } = state;
        self.quota(Some(quota.bytes), Some(quota.keys), &path.key("quota"));
        if let Some(max_bytes) = max_bytes {
            self.found.check_nonzero_size(*max_bytes, &path.key("max_bytes"));
        }
        let of_plugins = state.plugins_database().unwrap_or(Engine::Off);
        let engine = if of_plugins == Engine::Postgres { of_plugins } else { *engine };
        match (engine, url) {
            (Engine::Postgres, None) => {
                let help = "add postgresql://user:password@host/database, or set engine: sqlite";
                self.problem(&path.key("url"), "is missing, which engine: postgres needs", help);
            }
            (Engine::Sqlite | Engine::Off, Some(_)) => {
                let help = "set engine: postgres to use it, or remove it";
                self.found.warning(&path.key("url"), "is not used by this engine".to_owned(), help);
            }
            _ => {}
        }
        for (key, url) in [("url", url), ("agent_url", agent_url)] {
            let scheme = |url: &str| url.starts_with("postgresql://") || url.starts_with("postgres://");
            if url.as_ref().is_some_and(|url| !scheme(url.expose())) {
                let help = "write postgresql://user:password@host/database";
                self.problem(&path.key(key), "is no address of a PostgreSQL database", help);
            }
        }
        if let Some(program) = program.as_ref().filter(|program| !program.is_file()) {
            let message = format!("{} is no file", program.display());
            self.problem(&path.key("program"), message, "correct the path, or remove it");
        }
    }

    fn quota(&mut self, bytes: Option<ByteSize>, keys: Option<u64>, path: &KeyPath) {
        if let Some(bytes) = bytes {
            self.found.check_nonzero_size(bytes, &path.key("bytes"));
        }
        // The engines use signed numbers.
        if keys.is_some_and(|keys| keys == 0 || i64::try_from(keys).is_err()) {
            let help = "write a number from 1 to 9223372036854775807";
            self.problem(&path.key("keys"), "is no number of keys", help);
        }
    }

    fn header(&mut self, name: &str, value: &str, path: &KeyPath) {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(token) {
            self.problem(&path.key("header"), "is no name of a header", "write one like Authorization");
        }
        if value.chars().any(|c| c.is_control() && c != '\t') {
            let help = "a line break at the end often comes from the file it was read from";
            self.problem(&path.key("value"), "holds a control character or line break", help);
        }
        if value.is_empty() {
            self.found.warning(&path.key("value"), "is empty", "set the variable it comes from");
        }
    }
}
