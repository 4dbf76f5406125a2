//! Which roles plugins declare, and what of them the configuration grants.

use std::collections::BTreeMap;

use talon_extensions::Role;
use talon_proto::host::{Extension, PluginRole};

use super::context::HostContext;
use crate::peer::Visibility;

/// One row for each plugin and role of which one is declared or granted, as far as the peer sees it. `extensions` are the
/// entries that it sees.
pub(super) fn plugin_roles(
    context: &HostContext,
    seen: Visibility<'_>,
    extensions: &[Extension],
) -> Vec<PluginRole> {
    let mut declared = Vec::new();
    for plugin in context.registry.list() {
        let name = plugin.name().as_str();
        let Some(offered) = plugin.reviewed_capability().filter(|_| seen.can_see_plugin(name)) else {
            continue;
        };
        let is_shown = |action: &str| {
            seen.can_see_action(name, action) && (seen.is_operator || !offered.withheld.contains(action))
        };
        for (action, declaration) in offered.capability.actions.iter().filter(|(action, _)| is_shown(action))
        {
            // A word that is no role of this version cannot be granted.
            let roles = declaration.roles.iter().filter_map(|word| word.parse::<Role>().ok());
            declared.extend(roles.map(|role| (name.to_owned(), role, action.clone())));
        }
    }
    rows(&declared, extensions)
}

/// From the actions that declare roles, and the entries.
fn rows(declared: &[(String, Role, String)], extensions: &[Extension]) -> Vec<PluginRole> {
    let mut rows: BTreeMap<(String, &str), PluginRole> = BTreeMap::new();
    let mut actions: Vec<_> = declared.iter().collect();
    // An action may name a role twice.
    actions.sort();
    actions.dedup();
    for (plugin, role, _) in actions {
        rows.entry((plugin.clone(), role.as_str())).or_default().declared += 1;
    }
    for extension in extensions {
        let plugin = extension.action.split('.').next().unwrap_or_default();
        let row = rows.entry((plugin.to_owned(), extension.role.as_str())).or_default();
        row.granted += 1;
        match extension.state.as_str() {
            "ready" => row.ready += 1,
            "waiting" => row.waiting += 1,
            _ => row.failing += 1,
        }
    }
    let named = |((plugin, role), row): ((String, &str), PluginRole)| PluginRole {
        plugin,
        role: role.to_owned(),
        ..row
    };
    rows.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: EXT-168
    #[test]
    fn what_is_declared_and_what_is_granted_are_counted_by_plugin_and_role() {
        let declares = |plugin: &str, role, action: &str| (plugin.to_owned(), role, action.to_owned());
        let entry = |role: &str, action: &str, state: &str| Extension {
            role: role.to_owned(),
            name: action.to_owned(),
            action: action.to_owned(),
            state: state.to_owned(),
            ..Extension::default()
        };
        let rows = rows(
            &[
                declares("pii", Role::RequestHook, "scan"),
                declares("pii", Role::RequestHook, "scan"),
                declares("pii", Role::RequestHook, "mark"),
                declares("files", Role::ScheduledTask, "tidy"),
            ],
            &[
                entry("request_hook", "pii.scan", "ready"),
                entry("request_hook", "pii.gone", "failing"),
                entry("filter", "spam.check", "waiting"),
            ],
        );
        let shown: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.plugin.as_str(),
                    row.role.as_str(),
                    row.declared,
                    row.granted,
                    row.ready,
                    row.waiting,
                    row.failing,
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("files", "scheduled_task", 1, 0, 0, 0, 0),
                ("pii", "request_hook", 2, 2, 1, 0, 1),
                ("spam", "filter", 0, 1, 0, 1, 0)
            ]
        );
    }
}
