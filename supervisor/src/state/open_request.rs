//! The requests that tell `talon-state` which database to open.

use std::path::Path;

use talon_proto::state::{Layers, Open, PluginEngine, Postgres, Sqlite, open};

use crate::config::{Engine, Secret, State};

/// The directory of the plugins' key-values, below the data directory.
pub const STATE_DIR: &str = "state";
/// Their database.
pub const STATE_FILE: &str = "state.db";
/// The directory of sessions and memory, below the data directory.
pub const AGENT_DIR: &str = "agent";
/// Their database.
pub const AGENT_FILE: &str = "agent.db";

/// The database of the plugins' key-values, which a single process opens. `None` if the configuration turns
/// state off.
#[must_use]
pub fn plugins(state: &State) -> Option<Open> {
    let Some(database) = state.plugins_database() else {
        return Some(Open {
            engine: Some(open::Engine::Plugin(plugin_engine(state)?)),
            layers: Layers::KeyValues.into(),
            exclusive: true,
            ..Open::default()
        });
    };
    let file = state.data_dir.join(STATE_DIR).join(STATE_FILE);
    let max_bytes = state.max_bytes.map_or(0, |size| size.get());
    Some(Open {
        engine: Some(engine(database, &file, max_bytes, state.url.as_ref())?),
        layers: Layers::KeyValues.into(),
        exclusive: true,
        for_restore: false,
        examined: false,
    })
}

/// The database of the agent's sessions and memory, which other processes may open as well.
#[must_use]
pub fn agents(state: &State) -> Option<Open> {
    let file = state.data_dir.join(AGENT_DIR).join(AGENT_FILE);
    let url = state.agent_url.as_ref().or(state.url.as_ref());
    Some(Open {
        engine: Some(engine(state.engine, &file, 0, url)?),
        layers: Layers::Conversations.into(),
        exclusive: false,
        for_restore: false,
        examined: false,
    })
}

fn plugin_engine(state: &State) -> Option<PluginEngine> {
    let entry = state.storage_backend()?;
    let (plugin, action) = entry.target();
    let extension = entry.name.to_owned();
    Some(PluginEngine { plugin: plugin.to_owned(), action: action.to_owned(), extension })
}

fn engine(engine: Engine, file: &Path, max_bytes: u64, url: Option<&Secret>) -> Option<open::Engine> {
    match engine {
        Engine::Sqlite => {
            // A path that is not UTF-8 would have to come from the environment; opening it fails with its
            // (lossy) name.
            let path = file.to_string_lossy().into_owned();
            Some(open::Engine::Sqlite(Sqlite { path, max_bytes }))
        }
        // The configuration was checked: with this engine there is a url.
        Engine::Postgres => url.map(|url| open::Engine::Postgres(Postgres { url: url.expose().to_owned() })),
        Engine::Off => None,
    }
}
