//! The paths of the founding layout, and which kind of file each one is.

use talon_proto::state::Layers;
use talon_store::{PluginId, SessionId};

use super::limits::MAX_PATH_BYTES;

/// The file of all memories.
pub(super) const MEMORIES: &str = "memory/memories.yaml";

/// The kind of a file, by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileKind {
    /// A conversation, with the name that the file gives it.
    Session(String),
    /// The memories.
    Memories,
    /// The entries of a plugin.
    Plugin(PluginId),
}

impl FileKind {
    /// Parses a path. It opens no file.
    pub(super) fn parse(path: &str) -> Result<Self, String> {
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

    /// The layer that stores this kind.
    pub(super) fn layers(&self) -> Layers {
        match self {
            Self::Plugin(_) => Layers::KeyValues,
            Self::Session(_) | Self::Memories => Layers::Conversations,
        }
    }
}

/// The path of a session's file.
pub(super) fn session_path(id: SessionId) -> String {
    format!("sessions/{id}.yaml")
}

/// The path of a plugin's file.
pub(super) fn plugin_path(id: &PluginId) -> String {
    format!("plugins/{id}/state.yaml")
}
