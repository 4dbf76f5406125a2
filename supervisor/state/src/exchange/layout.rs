//! Which file is what: the paths of the founding layout, and nothing beside them.

use talon_proto::state::Layers;
use talon_store::{PluginId, SessionId};

use super::limits::MAX_PATH_BYTES;

/// The file of all memories.
pub(super) const MEMORIES: &str = "memory/memories.yaml";

/// What a path stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A conversation, with the name that the file gives it.
    Session(String),
    /// The memories.
    Memories,
    /// What a plugin keeps.
    Plugin(PluginId),
}

impl Place {
    /// Reads a path. Nothing is opened by it: it only says what the bytes are.
    pub(super) fn of(path: &str) -> Result<Self, String> {
        if path.len() > MAX_PATH_BYTES {
            return Err(format!("the path has more than {MAX_PATH_BYTES} bytes"));
        }
        let parts: Vec<&str> = path.split('/').collect();
        let odd = |part: &&str| matches!(*part, "" | "." | "..") || part.chars().any(char::is_control);
        if parts.iter().any(odd) {
            return Err("the path does not stay inside of the directory, or holds control characters".into());
        }
        match parts[..] {
            ["memory", "memories.yaml"] => Ok(Self::Memories),
            ["sessions", file] if file.len() > ".yaml".len() && file.ends_with(".yaml") => {
                Ok(Self::Session(file[..file.len() - ".yaml".len()].to_owned()))
            }
            ["plugins", id, "state.yaml"] => {
                PluginId::new(id).map(Self::Plugin).map_err(|error| error.to_string())
            }
            _ => Err("is not part of the layout: sessions/<id>.yaml, memory/memories.yaml, \
                      plugins/<id>/state.yaml"
                .into()),
        }
    }

    /// Which side keeps it.
    pub(super) fn layers(&self) -> Layers {
        match self {
            Self::Plugin(_) => Layers::KeyValues,
            Self::Session(_) | Self::Memories => Layers::Conversations,
        }
    }
}

/// The file of a session.
pub(super) fn session(id: SessionId) -> String {
    format!("sessions/{id}.yaml")
}

/// The file of a plugin.
pub(super) fn plugin(id: &PluginId) -> String {
    format!("plugins/{id}/state.yaml")
}
