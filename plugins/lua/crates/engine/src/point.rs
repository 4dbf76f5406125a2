//! The names of functions that a script may define.

use serde::{Deserialize, Serialize};

/// Where a function of a script is called. Its name says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// `filter(ctx)`: lets a message pass or drops it.
    Filter,
    /// `pre_hook(ctx)`: before the model sees a message.
    PreHook,
    /// `post_hook(ctx)`: before a person sees an answer.
    PostHook,
    /// `hook(ctx)`: both; `ctx.phase` says which.
    Hook,
    /// `on_event(ctx)`: something happened.
    OnEvent,
    /// `task(ctx)`, beside a table `schedule`: at planned times.
    Task,
}

/// On which side of the model a hook runs: `ctx.phase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before it.
    Pre,
    /// After it.
    Post,
}

impl Phase {
    /// The word in `ctx.phase`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pre => "pre",
            Self::Post => "post",
        }
    }
}

impl Point {
    /// All points.
    pub const ALL: [Self; 6] =
        [Self::Filter, Self::PreHook, Self::PostHook, Self::Hook, Self::OnEvent, Self::Task];

    /// The function's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::PreHook => "pre_hook",
            Self::PostHook => "post_hook",
            Self::Hook => "hook",
            Self::OnEvent => "on_event",
            Self::Task => "task",
        }
    }

    /// The point of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.as_str() == name)
    }
}
