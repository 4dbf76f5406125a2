//! Which plugins there are: those of the plugin directory and those of the configuration.

use std::sync::Arc;

use talon_plugin::discover::{self, Discovered, Refused};
use talon_plugin::spec::PluginSpec;
use talon_plugin::{EventKind, Events, NewEvent, Registry};

use talon_sanitize::{Raw, inert};

use crate::config::Config;

/// Registers everything that passes its checks, which starts it. Gives what was refused, each with its reason: one
/// bad plugin never stops the others.
pub(super) async fn register_all(config: &Arc<Config>, registry: &Registry, events: &Events) -> Vec<Refused> {
    let looking = Arc::clone(config);
    // Reads whole files where there are digests to compare.
    let found = tokio::task::spawn_blocking(move || find(&looking)).await;
    let Discovered { plugins, mut refused } = match found {
        Ok(found) => found,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    for spec in plugins {
        let (name, path) = (spec.name.to_string(), place(&spec));
        if let Err(error) = registry.register(spec) {
            refused.push(Refused { name, path, reason: error.to_string() });
        }
    }
    for refused in &refused {
        // Names of files are what whoever put them there made them, and reasons quote them.
        let (name, reason) = (Raw::from(&refused.name).line(), Raw::from(&refused.reason).line());
        let path = Raw::of(refused.path.display()).line();
        tracing::warn!(plugin = ?name, %path, "refused: {reason}");
        events.emit(NewEvent::new(EventKind::Refused, inert!("{}: {}", name, reason)).field("path", path));
    }
    refused
}

/// The configuration's own come first: of two with one name, the one that was named wins over the one that was found.
/// Blocking.
pub(crate) fn find(config: &Config) -> Discovered {
    let (plugins, refused) = config.configured_plugins();
    let mut all = Discovered { plugins, refused };
    if let Some(dir) = &config.plugins.tools.plugin_dir {
        let mut found = discover::scan(dir, &config.spec_defaults());
        all.plugins.append(&mut found.plugins);
        all.refused.append(&mut found.refused);
    }
    all
}

fn place(spec: &PluginSpec) -> std::path::PathBuf {
    spec.directory.clone().unwrap_or_else(|| spec.program.clone())
}
