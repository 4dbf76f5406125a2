//! The paths of the founding layout, and which kind of file each one is.

use talon_proto::state::Layers;
use talon_store::{InvalidError, PluginId, SessionId};

use super::limits::MAX_PATH_BYTES;

/// The file of all memories.
pub(super) const MEMORIES: &str = "memory/memories.yaml";

/// The file of the rules by which calls run without asking.
pub(super) const APPROVAL_RULES: &str = "approvals/rules.yaml";

/// The file of what jobs did.
pub(super) const OCCURRENCES: &str = "schedule/occurrences.yaml";

/// The file of the operator's decisions about jobs that plugins propose.
pub(super) const PROPOSALS: &str = "schedule/proposals.yaml";

/// The file of what people are told.
pub(super) const NOTIFICATIONS: &str = "notifications/notifications.yaml";

/// The file of what the shadow loop keeps.
pub(super) const SHADOW: &str = "shadow/state.yaml";

/// The kind of a file, by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileKind {
    /// A conversation, with the name that the file gives it.
    Session(String),
    /// The memories.
    Memories,
    /// The approval rules.
    ApprovalRules,
    /// The images and files of a session.
    Media(SessionId),
    /// The finished occurrences of jobs.
    Occurrences,
    /// Proposed jobs that are accepted or rejected.
    Proposals,
    /// Notifications.
    Notifications,
    /// What the shadow loop keeps.
    Shadow,
    /// The entries of a plugin.
    Plugin(PluginId),
}

/// A path names no file of the layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnknownPathError {
    #[error("the path has more than {MAX_PATH_BYTES} bytes")]
    TooLong,
    #[error("the path does not stay inside of the directory, or holds control characters")]
    Odd,
    #[error(transparent)]
    Plugin(InvalidError),
    #[error("its name is that of no session: media/<session>.yaml, with the session's id as talon writes it")]
    NoSession,
    #[error(
        "is not part of the layout: sessions/<id>.yaml, memory/memories.yaml, approvals/rules.yaml, media/<id>.yaml, schedule/occurrences.yaml, \
         schedule/proposals.yaml,          notifications/notifications.yaml, shadow/state.yaml, plugins/<id>/state.yaml"
    )]
    NotInLayout,
}

impl FileKind {
    /// Parses a path. It opens no file.
    ///
    /// # Errors
    /// [`UnknownPathError`]
    pub(super) fn parse(path: &str) -> Result<Self, UnknownPathError> {
        if path.len() > MAX_PATH_BYTES {
            return Err(UnknownPathError::TooLong);
        }
        let parts: Vec<&str> = path.split('/').collect();
        let odd = |part: &&str| matches!(*part, "" | "." | "..") || part.chars().any(char::is_control);
        if parts.iter().any(odd) {
            return Err(UnknownPathError::Odd);
        }
        match parts[..] {
            ["memory", "memories.yaml"] => Ok(Self::Memories),
            ["approvals", "rules.yaml"] => Ok(Self::ApprovalRules),
            ["schedule", "occurrences.yaml"] => Ok(Self::Occurrences),
            ["schedule", "proposals.yaml"] => Ok(Self::Proposals),
            ["notifications", "notifications.yaml"] => Ok(Self::Notifications),
            ["shadow", "state.yaml"] => Ok(Self::Shadow),
            ["sessions", file] if file.len() > ".yaml".len() && file.ends_with(".yaml") => {
                Ok(Self::Session(file[..file.len() - ".yaml".len()].to_owned()))
            }
            ["media", file] if file.ends_with(".yaml") => {
                let id = &file[..file.len() - ".yaml".len()];
                let session = id.parse().ok().filter(|session: &SessionId| session.to_string() == id);
                session.map(Self::Media).ok_or(UnknownPathError::NoSession)
            }
            ["plugins", id, "state.yaml"] => {
                plugin_id(id).map(Self::Plugin).map_err(UnknownPathError::Plugin)
            }
            _ => Err(UnknownPathError::NotInLayout),
        }
    }

    /// The layer that stores this kind.
    pub(super) fn layers(&self) -> Layers {
        match self {
            Self::Plugin(_) => Layers::KeyValues,
            Self::Session(_)
            | Self::Memories
            | Self::ApprovalRules
            | Self::Media(_)
            | Self::Occurrences
            | Self::Proposals
            | Self::Notifications
            | Self::Shadow => Layers::Conversations,
        }
    }
}

/// A plugin's id. Founding ids may have underscores, which no id has here: a plugin `my_tool` is configured as
/// `my-tool`.
fn plugin_id(id: &str) -> Result<PluginId, InvalidError> {
    PluginId::new(id).or_else(|error| PluginId::new(&id.replace('_', "-")).map_err(|_| error))
}

/// The path of a plugin's file.
pub(super) fn plugin_path(id: &PluginId) -> String {
    format!("plugins/{id}/state.yaml")
}
