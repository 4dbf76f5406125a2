//! Whether the configuration makes sense: everything that can be known before a plugin runs.

mod auth;
mod channels;
mod findings;
mod hooks;
mod notifications;
mod routes;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use talon_agent_settings::is_pattern;
use talon_sanitize::nearest;

pub use auth::OWN_ISSUERS;
pub use findings::Environment;
use findings::{EntryFindings, Findings, shown};

use crate::contract::{add_named_fields, sample_variables};
use crate::finding::{Finding, Severity};
use crate::{Entry, Extensions, MAX_NAME_CHARS, NotificationEntry, Role, schedule, template};

/// Checks the configuration.
#[must_use]
pub fn check(extensions: &Extensions, around: Environment<'_>) -> Vec<Finding> {
    let mut found = Findings::default();
    for role in Role::ALL.into_iter().filter(|role| role.is_hook()) {
        hooks::check(&mut found, role, extensions.hooks(role), around);
    }
    notifications::check(&mut found, extensions);
    auth::check(&mut found, &extensions.auth);
    routes::check(&mut found, &extensions.routes);
    channels::check(&mut found, &extensions.channels, &extensions.auth);
    found.found.extend(schedule::findings(extensions));
    check_entries(&mut found, extensions, around);
    let role = Role::AuthProvider;
    if extensions.entries().any(|entry| entry.role == role) {
        found.found.push(Finding {
            severity: Severity::Warning,
            list: role.list(),
            index: None,
            key: None,
            message: format!("nothing calls them in this version: {} will", role.caller()),
            help: "try them with `talon extension test`".to_owned(),
        });
    }
    found.found
}

/// What all entries have: a name, an action, and perhaps a template.
fn check_entries(found: &mut Findings, extensions: &Extensions, around: Environment<'_>) {
    let mut names = BTreeSet::new();
    for entry in extensions.entries() {
        let mut of = found.of(entry.role, entry.index);
        // The names of jobs are those of their history, with a rule of their own.
        if entry.role != Role::ScheduledTask {
            check_name(&mut of, &entry, names.insert((entry.role, entry.name)));
        }
        check_target(&mut of, entry.action, around);
        if let Some(args) = entry.args
            && let Err(error) = template::render(args, &variables(extensions, &entry, args))
        {
            of.problem("args", error.to_string(), "use the values of docs/extensions/templates.md");
        }
    }
}

fn check_name(of: &mut EntryFindings<'_>, entry: &Entry<'_>, is_first: bool) {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    // A name that is the action's is judged with the action.
    let own = entry.name != entry.action;
    if own && (entry.name.is_empty() || entry.name.len() > MAX_NAME_CHARS || !entry.name.chars().all(plain)) {
        of.problem(
            "name",
            "is no name of an entry",
            "use 1 to 129 characters of a-z, A-Z, 0-9, '_', '-' and '.'",
        );
    }
    if !is_first {
        let message = format!("another entry of this list is called {}", shown(entry.name));
        of.problem("name", message, "give one of them a name of its own");
    }
}

fn check_target(of: &mut EntryFindings<'_>, action: &str, around: Environment<'_>) {
    let named = is_pattern(action) && !action.ends_with(".*");
    let Some((plugin, _)) = action.split_once('.').filter(|_| named) else {
        return of.problem("action", format!("{:?} is no action", shown(action)), "write plugin.action");
    };
    if around.plugins.contains(&plugin) {
        return;
    }
    let help = match nearest(plugin, around.plugins.iter().copied()).first() {
        Some(near) => format!("did you mean {near}?"),
        None => "add it under plugins.tools.plugins".to_owned(),
    };
    let severity = if around.has_plugin_dir { Severity::Warning } else { Severity::Problem };
    of.report(severity, "action", format!("no plugin of this configuration is called {plugin}"), help);
}

/// What placeholders of an entry may find, each with some value.
fn variables(extensions: &Extensions, entry: &Entry<'_>, args: &serde_json::Map<String, Value>) -> Value {
    let mut variables = sample_variables(entry.role);
    match entry.role {
        Role::Filter | Role::RequestHook | Role::ResponseHook => {
            let hook = extensions.hooks(entry.role).get(entry.index);
            for key in hook.into_iter().flat_map(|hook| &hook.metadata) {
                variables["metadata"][key] = json!("text");
            }
        }
        Role::ApiRoute => {
            let route = extensions.routes.get(entry.index);
            variables["headers"] = json!({});
            for name in route.into_iter().flat_map(|route| &route.headers) {
                variables["headers"][name.to_ascii_lowercase()] = json!("text");
            }
            // A request decides which parameters there are.
            for name in template::names(args).iter().filter_map(|name| name.strip_prefix("query.")) {
                let first = name.split('.').next().unwrap_or(name);
                variables["query"][first] = json!(["text"]);
            }
        }
        Role::NotificationSink => {
            let entry = extensions.notifications.get(entry.index);
            if entry.is_some_and(NotificationEntry::takes_source_events) {
                add_named_fields(&mut variables, args);
            }
        }
        Role::ScheduledTask | Role::AuthProvider | Role::StorageBackend | Role::Channel => {}
    }
    variables
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
