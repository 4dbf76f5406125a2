//! The table of roles.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_sanitize::nearest;

/// A role that an action can play.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Looks at a message before everything else, and lets it pass or drops it.
    Filter,
    /// Looks at a message before the agent works on it, and may refine it.
    RequestHook,
    /// Looks at an answer before the person gets it, and may refine it.
    ResponseHook,
    /// Delivers an event to people: by mail, in a chat, to another system.
    NotificationSink,
    /// Does what a job of the schedule is for.
    ScheduledTask,
    /// Says whose credential it is.
    AuthProvider,
    /// Answers HTTP requests to a path.
    ApiRoute,
    /// Keeps the plugins' key-values.
    StorageBackend,
    /// Brings people's messages to the agent, and its answers to them.
    Channel,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 9] = [
        Self::Filter,
        Self::RequestHook,
        Self::ResponseHook,
        Self::NotificationSink,
        Self::ScheduledTask,
        Self::AuthProvider,
        Self::ApiRoute,
        Self::StorageBackend,
        Self::Channel,
    ];

    /// The name on the wire and in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::RequestHook => "request_hook",
            Self::ResponseHook => "response_hook",
            Self::NotificationSink => "notification_sink",
            Self::ScheduledTask => "scheduled_task",
            Self::AuthProvider => "auth_provider",
            Self::ApiRoute => "api_route",
            Self::StorageBackend => "storage_backend",
            Self::Channel => "channel",
        }
    }

    /// The key below `extensions` that lists its entries. A storage backend has none: it is `state.plugins`.
    #[must_use]
    pub const fn list(self) -> &'static str {
        match self {
            Self::Filter => "filters",
            Self::RequestHook => "request_hooks",
            Self::ResponseHook => "response_hooks",
            Self::NotificationSink => "notifications",
            Self::ScheduledTask => "schedule",
            Self::AuthProvider => "auth",
            Self::ApiRoute => "routes",
            Self::StorageBackend => "state.plugins",
            Self::Channel => "channels",
        }
    }

    /// Which service calls it.
    #[must_use]
    pub const fn caller(self) -> &'static str {
        match self {
            Self::Filter
            | Self::RequestHook
            | Self::ResponseHook
            | Self::NotificationSink
            | Self::ScheduledTask
            | Self::Channel => "talon-agent",
            Self::AuthProvider | Self::ApiRoute => "talon-gateway",
            Self::StorageBackend => "talon-state",
        }
    }

    /// Whether it is a filter or a hook: one that gives a verdict on a message.
    #[must_use]
    pub const fn is_hook(self) -> bool {
        matches!(self, Self::Filter | Self::RequestHook | Self::ResponseHook)
    }

    /// When it is called, in a sentence.
    #[must_use]
    pub const fn when(self) -> &'static str {
        match self {
            Self::Filter => "Before a message becomes a turn, ahead of the request hooks.",
            Self::RequestHook => {
                "Before a message becomes a turn, after the filters and before any model, memory or journal has it."
            }
            Self::ResponseHook => "After the model's final answer, before the person gets it.",
            Self::NotificationSink => {
                "When an event happens that its entry takes, until it says that it has delivered it."
            }
            Self::ScheduledTask => {
                "At the planned times of its job, and again if it failed and the job says so."
            }
            Self::AuthProvider => "When a request brings a credential of its scheme.",
            Self::ApiRoute => "When a request to its path was authenticated and has its scope.",
            Self::StorageBackend => "When a plugin reads or writes its state.",
            Self::Channel => "To open the channel, and when somebody on it gets an answer or a question.",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that names no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no role {word:?}; {help}")]
pub struct UnknownRoleError {
    word: String,
    help: String,
}

impl FromStr for Role {
    type Err = UnknownRoleError;

    fn from_str(word: &str) -> Result<Self, UnknownRoleError> {
        let names = Self::ALL.map(Self::as_str);
        Self::ALL.into_iter().find(|role| role.as_str() == word).ok_or_else(|| UnknownRoleError {
            word: word.chars().take(crate::MAX_NAME_CHARS).collect(),
            help: match nearest(word, names.into_iter()).first() {
                Some(near) => format!("did you mean {near}?"),
                None => format!("there are: {}", names.join(", ")),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_near_ones_are_proposed() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
            assert_eq!(serde_json::to_value(role).expect("a word"), role.as_str());
        }
        let error = "request_hok".parse::<Role>().expect_err("no role").to_string();
        assert!(error.ends_with("did you mean request_hook?"), "{error}");
        let error = "x".repeat(1000).parse::<Role>().expect_err("no role").to_string();
        assert!(error.len() < 350 && error.contains("filter, request_hook"), "{error}");
    }
}
