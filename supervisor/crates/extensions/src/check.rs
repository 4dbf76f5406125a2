//! Whether the configuration makes sense: everything that can be known before a plugin runs.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use talon_agent_settings::is_pattern;
use talon_sanitize::nearest;

use crate::contract::{is_metadata_key, sample};
use crate::finding::{Finding, Severity};
use crate::limits::{MAX_METADATA_KEYS, MAX_SUBAGENTS};
use crate::{
    Effect, Extensions, HookEntry, MAX_DEADLINE, MAX_ENTRIES, MAX_NAME_CHARS, Role, schedule, template,
};

/// What the rest of the configuration knows.
#[derive(Debug, Clone, Copy)]
pub struct Environment<'c> {
    /// The plugins' names.
    pub plugins: &'c [&'c str],
    /// Whether a plugin directory may have others.
    pub has_plugin_dir: bool,
    /// The sub-agents' names.
    pub subagents: &'c [&'c str],
}

/// Checks the configuration.
#[must_use]
pub fn check(extensions: &Extensions, around: Environment<'_>) -> Vec<Finding> {
    let mut check = Check { around, found: Vec::new() };
    for role in Role::ALL {
        check.hooks(role, extensions.hooks(role));
    }
    check.found.extend(schedule::findings(&extensions.schedule));
    check.found
}

struct Check<'c> {
    around: Environment<'c>,
    found: Vec<Finding>,
}

impl Check<'_> {
    fn hooks(&mut self, role: Role, hooks: &[HookEntry]) {
        let list = role.list();
        if hooks.len() > MAX_ENTRIES {
            self.found.push(Finding {
                severity: Severity::Problem,
                list,
                index: None,
                key: None,
                message: format!("has {} entries, and {MAX_ENTRIES} are the most", hooks.len()),
                help: "remove some: each delays every message".to_owned(),
            });
        }
        let mut names = BTreeSet::new();
        for (index, hook) in hooks.iter().enumerate() {
            let mut problem = |key: Option<&'static str>, message: String, help: &str| {
                let (severity, index) = (Severity::Problem, Some(index));
                self.found.push(Finding { severity, list, index, key, message, help: help.to_owned() });
            };
            check_name(hook, &mut names, &mut problem);
            check_effects(role, hook, &mut problem);
            check_limits(hook, &mut problem);
            if let Some(args) = &hook.args
                && let Err(error) = template::render(args, &sample_variables(role, hook))
            {
                let help = "use the values of docs/extensions/templates.md";
                problem(Some("args"), error.to_string(), help);
            }
            self.target(list, index, hook);
            self.subagents(list, index, hook);
        }
    }

    fn target(&mut self, list: &'static str, index: usize, hook: &HookEntry) {
        let mut finding = |severity, message: String, help: String| {
            let (index, key) = (Some(index), Some("action"));
            self.found.push(Finding { severity, list, index, key, message, help });
        };
        let named = is_pattern(&hook.action) && !hook.action.ends_with(".*");
        let Some((plugin, _)) = hook.action.split_once('.').filter(|_| named) else {
            let shown: String = hook.action.chars().take(MAX_NAME_CHARS).collect();
            return finding(
                Severity::Problem,
                format!("{shown:?} is no action"),
                "write plugin.action".to_owned(),
            );
        };
        if self.around.plugins.contains(&plugin) {
            return;
        }
        let near = nearest(plugin, self.around.plugins.iter().copied());
        let help = match near.first() {
            Some(near) => format!("did you mean {near}?"),
            None => "add it under plugins.tools.plugins".to_owned(),
        };
        let severity = if self.around.has_plugin_dir { Severity::Warning } else { Severity::Problem };
        finding(severity, format!("no plugin of this configuration is called {plugin}"), help);
    }

    fn subagents(&mut self, list: &'static str, index: usize, hook: &HookEntry) {
        let known = self.around.subagents;
        for name in hook.subagents.iter().filter(|name| !known.contains(&name.as_str())) {
            let help = match nearest(name, known.iter().copied()).first() {
                Some(near) => format!("did you mean {near}?"),
                None => format!("there are: {}", known.join(", ")),
            };
            let shown: String = name.chars().take(MAX_NAME_CHARS).collect();
            self.found.push(Finding {
                severity: Severity::Problem,
                list,
                index: Some(index),
                key: Some("subagents"),
                message: format!("there is no sub-agent {shown}"),
                help,
            });
        }
    }
}

type Report<'r> = dyn FnMut(Option<&'static str>, String, &str) + 'r;

fn check_name<'h>(hook: &'h HookEntry, names: &mut BTreeSet<&'h str>, problem: &mut Report<'_>) {
    if let Some(name) = &hook.name {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(plain) {
            let message = "is no name of an entry".to_owned();
            problem(Some("name"), message, "use 1 to 129 characters of a-z, A-Z, 0-9, '_', '-' and '.'");
        }
    }
    if !names.insert(hook.name()) {
        let shown: String = hook.name().chars().take(MAX_NAME_CHARS).collect();
        let message = format!("another entry of this list is called {shown}");
        problem(Some("name"), message, "give one of them a name of its own");
    }
}

fn check_effects(role: Role, hook: &HookEntry, problem: &mut Report<'_>) {
    if role == Role::Filter && hook.may(Effect::Replace) {
        let message = "a filter replaces nothing".to_owned();
        problem(Some("may"), message, "move the entry to request_hooks, or remove replace");
    }
    if role != Role::ResponseHook && hook.stream.is_some() {
        let message = "only the text of answers is streamed".to_owned();
        problem(Some("stream"), message, "remove it, or move the entry to response_hooks");
    }
}

fn check_limits(hook: &HookEntry, problem: &mut Report<'_>) {
    if hook.deadline() > MAX_DEADLINE {
        let message = format!("{} is more than {} s", hook.deadline, MAX_DEADLINE.as_secs());
        problem(Some("deadline"), message, "shorten it: everybody waits for it");
    }
    if hook.metadata.len() > MAX_METADATA_KEYS {
        let message = format!("lists {} keys, and {MAX_METADATA_KEYS} are the most", hook.metadata.len());
        problem(Some("metadata"), message, "remove some");
    }
    if hook.metadata.iter().any(|key| !is_metadata_key(key)) {
        let message = "lists what is no key".to_owned();
        problem(Some("metadata"), message, "use 1 to 64 characters of a-z, A-Z, 0-9, '_', '-' and '.'");
    }
    if hook.subagents.len() > MAX_SUBAGENTS {
        let message = format!("lists {} sub-agents, and {MAX_SUBAGENTS} are the most", hook.subagents.len());
        problem(Some("subagents"), message, "remove some");
    }
}

/// The sample with the metadata that the entry is given.
fn sample_variables(role: Role, hook: &HookEntry) -> Value {
    let mut variables = sample(role);
    for key in &hook.metadata {
        variables["metadata"][key] = json!("text");
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(yaml: &str) -> Vec<String> {
        found_with(yaml, false)
    }

    fn found_with(yaml: &str, has_plugin_dir: bool) -> Vec<String> {
        let extensions: Extensions = serde_saphyr::from_str(yaml).expect("extensions");
        let around =
            Environment { plugins: &["pii", "words"], has_plugin_dir, subagents: &["explore", "plan"] };
        let line = |finding: Finding| {
            let Finding { severity, list, index, key, message, help } = finding;
            let index = index.map(|index| format!("[{index}]")).unwrap_or_default();
            let key = key.map(|key| format!(".{key}")).unwrap_or_default();
            format!("{severity:?} {list}{index}{key}: {message} ({help})")
        };
        check(&extensions, around).into_iter().map(line).collect()
    }

    #[test]
    fn what_makes_sense_is_left_alone() {
        let yaml = "
filters: [{ action: pii.scan, may: [drop] }]
request_hooks:
  - { action: pii.scan, may: [annotate, replace], metadata: [lang], args: { text: '{{ message }} in {{ metadata.lang }}' } }
  - { action: pii.scan, name: twice, subagents: [explore] }
response_hooks: [{ action: words.polish, stream: through, deadline: 30s }]";
        assert_eq!(found(yaml), Vec::<String>::new());
    }

    // Promises: EXT-3
    #[test]
    fn each_mistake_is_named_with_the_nearest_right_one() {
        for (yaml, says) in [
            (
                "request_hooks: [{ action: pi.scan }]",
                "Problem request_hooks[0].action: no plugin of this configuration is called pi (did you mean pii?)",
            ),
            ("request_hooks: [{ action: scan }]", "\"scan\" is no action (write plugin.action)"),
            ("request_hooks: [{ action: 'pii.*' }]", "is no action"),
            ("request_hooks: [{ action: pii.a }, { action: pii.a }]", "request_hooks[1].name: another entry"),
            ("filters: [{ action: pii.a, may: [replace] }]", "filters[0].may: a filter replaces nothing"),
            ("request_hooks: [{ action: pii.a, stream: hold }]", "stream: only the text of answers"),
            ("request_hooks: [{ action: pii.a, deadline: 6m }]", "deadline: 6m is more than 300 s"),
            ("request_hooks: [{ action: pii.a, name: 'a b' }]", "name: is no name of an entry"),
            ("request_hooks: [{ action: pii.a, metadata: ['a b'] }]", "metadata: lists what is no key"),
            (
                "request_hooks: [{ action: pii.a, subagents: [explor] }]",
                "there is no sub-agent explor (did you mean explore?)",
            ),
            ("request_hooks: [{ action: pii.a, args: { t: '{{ mesage }}' } }]", "args: t:"),
            ("request_hooks: [{ action: pii.a, args: { t: '{{ metadata.lang }}' } }]", "args: t:"),
        ] {
            let found = found(yaml);
            assert!(found.iter().any(|line| line.contains(says)), "{yaml}: {found:?}");
        }
        let many = "{ action: pii.a, name: n }, ".repeat(17);
        assert!(found(&format!("filters: [{many}]"))[0].contains("has 17 entries, and 16 are the most"));
        assert!(found_with("filters: [{ action: other.a, may: [drop] }]", true)[0].starts_with("Warning"));
    }
}
