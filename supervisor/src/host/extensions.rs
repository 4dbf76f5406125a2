//! The entries of `extensions`, and the storage backend of `state.plugins`, as clients see them: whether each action fits, by what its plugin declares now.

use talon_extensions::Entry;
use talon_extensions::declaration::{DeclaredAction, DeclaredParameter, check};
use talon_plugin::Plugin;
use talon_proto::host;
use talon_proto::plugin::Action;
use talon_sanitize::Raw;

use super::context::HostContext;
use crate::peer::Visibility;
use crate::to_wire::wire;

impl HostContext {
    /// The entries whose plugins a peer sees; only those of one plugin, if one is named.
    pub(super) fn extensions(&self, seen: Visibility<'_>, of: Option<&str>) -> Vec<host::Extension> {
        let config = self.dispatcher.config();
        let shown = |entry: &Entry<'_>| {
            let (plugin, action) = entry.target();
            seen.can_see_plugin(plugin)
                && seen.can_see_action(plugin, action)
                && of.is_none_or(|of| of == plugin)
        };
        let backend = config.state.storage_backend();
        let entries = backend.into_iter().chain(config.extensions.entries());
        entries.filter(shown).map(|entry| self.extension(&entry)).collect()
    }

    fn extension(&self, entry: &Entry<'_>) -> host::Extension {
        let (plugin, action) = entry.target();
        let (state, reason, declared) = match self.registry.get(plugin) {
            None => ("failing", format!("there is no plugin {plugin}: see `talon plugin list`"), false),
            Some(plugin) => match plugin.reviewed_capability() {
                None => ("waiting", waiting(&plugin), false),
                Some(offered) if offered.withheld.contains(action) => {
                    let name = plugin.name();
                    let why = format!(
                        "what the plugin declares of the action changed since it was approved: see `talon plugin show {name}`, \
                         then `talon plugin approve {name}`"
                    );
                    ("failing", why, false)
                }
                Some(offered) => {
                    let known = offered.capability.actions.get(action);
                    let declares =
                        |action: &Action| action.roles.iter().any(|role| role == entry.role.as_str());
                    let others = offered.capability.actions.keys().map(String::as_str);
                    match check(entry, known.map(declaration).as_ref(), others) {
                        Ok(()) => ("ready", String::new(), known.is_some_and(declares)),
                        Err(error) => ("failing", error.to_string(), known.is_some_and(declares)),
                    }
                }
            },
        };
        host::Extension {
            role: entry.role.as_str().to_owned(),
            name: entry.name.to_owned(),
            action: entry.action.to_owned(),
            state: state.to_owned(),
            // It names what a plugin declared.
            reason: wire(Raw::from(reason).line()),
            declared,
        }
    }
}

fn waiting(plugin: &Plugin) -> String {
    let name = plugin.name();
    format!(
        "its plugin is {} and has not said what it offers: see `talon plugin show {name}`",
        plugin.snapshot().state
    )
}

fn declaration(action: &Action) -> DeclaredAction {
    let parameters = action.parameters.iter().map(|parameter| DeclaredParameter {
        name: parameter.name.clone(),
        kind: parameter.r#type.clone(),
        required: parameter.required,
    });
    DeclaredAction {
        roles: action.roles.clone(),
        parameters: parameters.collect(),
        takes_further_arguments: action.takes_further_arguments,
    }
}
