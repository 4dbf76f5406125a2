//! What `talon-state` is told to open.

use std::path::Path;

use talon_proto::state::{Layers, Open, Postgres, Sqlite, open};

use crate::config::{Engine, Secret, State};

/// Where the plugins' key-values lie, below the data directory.
pub const STATE_DIR: &str = "state";
/// Their database.
pub const STATE_FILE: &str = "state.db";
/// Where sessions and memory lie, below the data directory.
pub const AGENT_DIR: &str = "agent";
/// Their database.
pub const AGENT_FILE: &str = "agent.db";

/// The plugins' key-values, which one process has alone. `None` when the configuration wants no state.
#[must_use]
pub fn plugins(state: &State) -> Option<Open> {
    let file = state.data_dir.join(STATE_DIR).join(STATE_FILE);
    let max_bytes = state.max_bytes.map_or(0, |size| size.get());
    Some(Open {
        engine: Some(engine(state.engine, &file, max_bytes, state.url.as_ref())?),
        layers: Layers::KeyValues.into(),
        exclusive: true,
        for_restore: false,
    })
}

/// The agent's sessions and memory, which others may open beside it.
#[must_use]
pub fn agents(state: &State) -> Option<Open> {
    let file = state.data_dir.join(AGENT_DIR).join(AGENT_FILE);
    let url = state.agent_url.as_ref().or(state.url.as_ref());
    Some(Open {
        engine: Some(engine(state.engine, &file, 0, url)?),
        layers: Layers::Conversations.into(),
        exclusive: false,
        for_restore: false,
    })
}

fn engine(engine: Engine, file: &Path, max_bytes: u64, url: Option<&Secret>) -> Option<open::Engine> {
    match engine {
        Engine::Sqlite => {
            // A path that is no text would have to come from the environment, and is then refused by its own name.
            let path = file.to_string_lossy().into_owned();
            Some(open::Engine::Sqlite(Sqlite { path, max_bytes }))
        }
        // The configuration was checked: with this engine there is a url.
        Engine::Postgres => url.map(|url| open::Engine::Postgres(Postgres { url: url.expose().to_owned() })),
        Engine::Off => None,
    }
}
