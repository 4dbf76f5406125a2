//! Checks of `agent` and `orchestrator`: patterns, expressions, sub-agents, and whether approvals can be
//! given.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use talon_agent_settings::catalog::Catalog;
use talon_agent_settings::{
    AgentKeys, AgentMode, AllowKeys, BUILT_IN_SUBAGENTS, ConfirmKeys, ContextKeys, ContextShares,
    OrchestratorKeys, SubAgentEntry, ToolPattern, confirm_pattern, identity_problems, is_pattern,
};
use talon_plugin_config::document::origin::KeyPath;
use talon_plugin_config::name::PluginName;
use talon_sanitize::nearest;

use super::Check;
use crate::config::confirm_patterns::read_confirm_patterns;
use crate::config::peers::name_of;
use crate::config::types::{Config, Engine, Tools};

/// Maximum length of a sub-agent's name, which becomes the name of a tool.
const MAX_SUBAGENT_NAME_BYTES: usize = 48;
/// Maximum size of the schema of a sub-agent's answer. 64 KiB: it is sent to the model with each task, and
/// usual ones have some hundred bytes.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// How long a check of a directory may take: one on an unreachable server never answers, and a reload must
/// not block.
const DIRECTORY_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of threads that hang in such checks; beyond it, a directory counts as not answering.
const MAX_HANGING: usize = 4;

/// The result of the work, if it comes in time.
fn run_with_timeout<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    static HANGING: AtomicUsize = AtomicUsize::new(0);
    if HANGING.fetch_add(1, Ordering::Relaxed) >= MAX_HANGING {
        HANGING.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    let (tell, told) = mpsc::sync_channel(1);
    let looks = thread::Builder::new().name("config-files".to_owned()).spawn(move || {
        // An error means that the caller has stopped waiting.
        let _ = tell.send(work());
        HANGING.fetch_sub(1, Ordering::Relaxed);
    });
    if looks.is_err() {
        HANGING.fetch_sub(1, Ordering::Relaxed);
    }
    told.recv_timeout(DIRECTORY_TIMEOUT).ok()
}

impl Check<'_> {
    pub(super) fn agent(&mut self, config: &Config, catalog: Option<&Catalog>, path: &KeyPath) {
        let AgentKeys {
            enabled: _,
            program,
            workspace,
            // Its schema checks the values.
            turn: _,
            context,
            confirm,
            allow,
            subagents,
            memory: _,
            sessions: _,
            media: _,
            identities,
            groups,
            limits: _,
            trusted_plugins,
        } = &config.agent;
        for problem in identity_problems(identities) {
            let path = path.key("identities").key(&problem.name);
            self.found.problem(&path, problem.why, "leave it out in one place");
        }
        for group in groups.keys().filter(|group| !group.starts_with("gw:") || !group.contains("/group:")) {
            let path = path.key("groups").key(group);
            let message = format!("{group:?} is no group");
            self.found.problem(
                &path,
                message,
                "write it as gw:CHANNEL/group:ID, as `talon session list --all` shows it",
            );
        }
        if config.runs_agent() {
            self.check_approver(config, path);
            if config.state.engine == Engine::Off {
                let message =
                    "with state.engine: off it has nowhere to keep its sessions, and is not started";
                self.found.warning(
                    &path.key("enabled"),
                    message,
                    "set state.engine: sqlite, or agent.enabled: false",
                );
            }
        }
        if let Some(program) = program.as_ref().filter(|program| !program.is_file()) {
            let message = format!("{} is no file", program.display());
            self.problem(&path.key("program"), message, "correct the path, or remove it");
        }
        if let Some(dir) = workspace {
            let (what, help) = match run_with_timeout({
                let dir = dir.clone();
                move || dir.is_dir()
            }) {
                Some(true) => ("", ""),
                Some(false) => (
                    "is no directory",
                    "create it, or correct the path; built-in texts stand for what is missing",
                ),
                None => ("does not answer", "see whether its file system does; built-in texts stand for it"),
            };
            if !what.is_empty() {
                let message = format!("{} {what}", dir.display());
                self.found.warning(&path.key("workspace"), message, help);
            }
        }
        self.context(context, &path.key("context"));
        self.confirm(confirm, &path.key("confirm"));
        self.allow(allow, &config.agent, &path.key("allow"));
        for (index, name) in trusted_plugins.iter().enumerate() {
            if let Err(error) = PluginName::new(name) {
                self.problem(
                    &path.key("trusted_plugins").index(index),
                    error.to_string(),
                    "write a plugin's name",
                );
            }
        }
        self.check_plugin_names(trusted_plugins, &config.plugins.tools, &path.key("trusted_plugins"));
        if let Some(model) = &subagents.model {
            self.model(model, catalog, &path.key("subagents").key("model"));
        }
        for (name, entry) in &subagents.agents {
            self.subagent(name, entry, catalog, &path.key("subagents").key("agents").key(name));
        }
    }

    /// The numbers of `agent.context` that have to fit each other.
    fn context(&mut self, keys: &ContextKeys, path: &KeyPath) {
        /// What the sections may take together, in hundredths: the turns need the rest.
        const MOST: u32 = 90;
        let ContextShares { system, summary, tools } = keys.shares;
        let sum = system.saturating_add(summary).saturating_add(tools);
        if sum > MOST {
            let message =
                format!("the sections have {sum} hundredths together, which leaves too few for the turns");
            self.problem(&path.key("shares"), message, &format!("lower them to {MOST} together"));
        }
        if let (Some(turns), Some(kept)) = (keys.turns, keys.kept_turns)
            && kept > turns
        {
            let message = format!("{kept} turns are kept, and {turns} are shown at most");
            self.problem(&path.key("kept_turns"), message, "lower it, or raise turns");
        }
    }

    /// A name of a plugin that is not configured is probably a typo. With a plugin directory it may also be
    /// found there.
    fn check_plugin_names(&mut self, trusted: &[String], tools: &Tools, path: &KeyPath) {
        let named = || tools.plugins.keys().chain(tools.overrides.keys()).map(String::as_str);
        if tools.plugins.is_empty() {
            return;
        }
        let unknown = |name: &String| PluginName::new(name).is_ok() && named().all(|known| known != name);
        for (index, name) in trusted.iter().enumerate().filter(|(_, name)| unknown(name)) {
            let near = nearest(name, named()).into_iter().next().map(|near| format!("did you mean {near}?"));
            let help = near.unwrap_or_else(|| "correct it, unless it is found in plugin_dir".to_owned());
            let message = format!("no plugin of this configuration is called {name}");
            self.found.warning(&path.index(index), message, &help);
        }
    }

    /// Only a warning: the agent starts all the same, so that existing sessions can be read, and a reload can
    /// fix it.
    fn check_approver(&mut self, config: &Config, path: &KeyPath) {
        let key = path.key("enabled");
        if config.models.providers.0.is_empty() {
            if config.agent.enabled == AgentMode::Auto {
                // It runs for its extensions, which need no model.
                return;
            }
            let help = "add one under models.providers, such as ollama: { kind: ollama }, and its models under models.catalog";
            self.found.warning(&key, "there is no provider of models, so the agent can answer nothing", help);
        } else if config.models.catalog.0.is_empty() {
            let help = "list those that are to be used under models.catalog";
            self.found.warning(&key, "there is no model, so the agent can answer nothing", help);
        }
    }

    fn confirm(&mut self, confirm: &ConfirmKeys, path: &KeyPath) {
        let ConfirmKeys { default: _, rules, patterns, pattern_file, expires_after: _ } = confirm;
        for (index, rule) in rules.iter().enumerate() {
            self.pattern(&rule.tool, &path.key("rules").index(index).key("tool"));
        }
        for (index, expression) in patterns.iter().enumerate() {
            if let Err(error) = confirm_pattern(expression) {
                let help = "write an expression of Rust's regex: without look-around and references back";
                self.problem(&path.key("patterns").index(index), format!("is no expression: {error}"), help);
            }
        }
        if let Some(file) = pattern_file {
            self.pattern_file(file, &path.key("pattern_file"));
        }
    }

    /// Its examples are a part of the configuration: with a wrong one it would let through what it names.
    fn pattern_file(&mut self, file: &Path, path: &KeyPath) {
        let file = file.to_owned();
        let shown = file.display().to_string();
        match run_with_timeout(move || read_confirm_patterns(&file)) {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                self.problem(path, format!("{shown}: {error}"), "correct the pattern, or its example");
            }
            None => {
                let message = format!("{shown} does not answer");
                self.problem(path, message, "see whether its file system does");
            }
        }
    }

    fn allow(&mut self, allow: &AllowKeys, agent: &AgentKeys, path: &KeyPath) {
        let AllowKeys { senders, channels, subagents } = allow;
        for (name, lists) in [("senders", senders), ("channels", channels), ("subagents", subagents)] {
            for (who, patterns) in lists {
                for (index, pattern) in patterns.iter().enumerate() {
                    self.pattern(pattern, &path.key(name).key(who).index(index));
                }
            }
        }
        for sender in senders.keys() {
            let Some(uid) = sender.strip_prefix("uid:") else { continue };
            let path = path.key("senders").key(sender);
            match uid.parse::<u32>() {
                Err(_) => self.problem(&path, "is no uid", "write uid: and a number, or a user's name"),
                // Users with a name are known by that name, so a list under their uid would never apply. A
                // failed lookup is not a problem of the configuration: users of that uid are rejected then.
                Ok(uid) => {
                    if let Ok(Some(name)) = name_of(uid) {
                        self.problem(
                            &path,
                            format!("uid {uid} is {name} on this machine"),
                            "write the user's name",
                        );
                    }
                }
            }
        }
        let own = agent.subagents.agents.keys().map(String::as_str);
        let known: Vec<&str> = BUILT_IN_SUBAGENTS.into_iter().chain(own).collect();
        for name in subagents.keys().filter(|name| !known.contains(&name.as_str())) {
            let near = nearest(name, known.iter().copied());
            let help = near.first().map_or_else(
                || format!("there are: {}", known.join(", ")),
                |near| format!("did you mean {near}?"),
            );
            // A list that never applies would leave the intended sub-agent unrestricted.
            self.problem(&path.key("subagents").key(name), "there is no such sub-agent", &help);
        }
    }

    fn pattern(&mut self, pattern: &ToolPattern, path: &KeyPath) {
        if !is_pattern(pattern) {
            let message = format!("{:?} is no pattern", pattern.chars().take(80).collect::<String>());
            self.problem(path, message, "write plugin.action, or plugin.* for all actions of a plugin");
        }
    }

    fn subagent(&mut self, name: &str, entry: &SubAgentEntry, catalog: Option<&Catalog>, path: &KeyPath) {
        let SubAgentEntry { description, prompt, schema, model, tools: _ } = entry;
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !(1..=MAX_SUBAGENT_NAME_BYTES).contains(&name.len()) || !name.bytes().all(fits) {
            let message = "is no name of a sub-agent, which is a tool to the model";
            self.problem(path, message, "use 1 to 48 characters of a-z, A-Z, 0-9, '_' and '-'");
        }
        for (key, text) in [("description", description), ("prompt", prompt)] {
            if text.trim().is_empty() {
                self.problem(&path.key(key), "is empty", "say what the sub-agent is for");
            }
        }
        let key = path.key("schema");
        let is_object = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("object");
        if !is_object(schema) {
            let help = "write a JSON Schema with type: object and its properties";
            self.problem(&key, "is no schema of an object, which a sub-agent answers with", help);
        } else if schema.to_string().len() > MAX_SCHEMA_BYTES {
            let message = format!("has more than {MAX_SCHEMA_BYTES} bytes");
            self.problem(&key, message, "shorten it: it goes to the model with each task");
        }
        if let Some(model) = model {
            self.model(model, catalog, &path.key("model"));
        }
    }

    pub(super) fn orchestrator(&mut self, orchestrator: &OrchestratorKeys, path: &KeyPath) {
        for (index, rule) in orchestrator.rules.iter().enumerate() {
            if rule.trim().is_empty() {
                self.problem(&path.key("rules").index(index), "is empty", "say what holds, or remove it");
            }
        }
    }
}
