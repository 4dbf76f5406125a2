//! `agent.context`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much of a session a model sees.
///
/// A profile says how a model's window is divided; each other key overrides one number of it. The safety
/// rules belong to no section and are never cut. [agent-loop.md](agent-loop.md) has the numbers of each
/// profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContextKeys {
    /// How a model's window is used.
    pub profile: ContextProfile,
    /// The most tokens of a model's window that are used, with the room for the answer. Default: 200,000 with
    /// `balanced`, the whole window otherwise.
    ///
    /// Providers charge more for longer questions, and models find less in them.
    #[schemars(range(min = 1_000, max = 100_000_000))]
    pub window: Option<u32>,
    /// The sections of `balanced` and `full`, in hundredths of what a question may use of the window without
    /// a warning. What they do not need is left to the turns.
    pub shares: ContextShares,
    /// The operator's rules, the workspace's files, memories and hints, in tokens. Default: 500 with
    /// `frugal`, the share otherwise.
    #[schemars(range(min = 50, max = 1_000_000))]
    pub system: Option<u32>,
    /// The running summary of what is no longer shown, in tokens. Default: 800 with `frugal`, the share
    /// otherwise.
    #[schemars(range(min = 50, max = 1_000_000))]
    pub summary: Option<u32>,
    /// Turns that are shown verbatim, including the current one, in tokens. Default: 2,000 with `frugal`,
    /// what the other sections leave otherwise.
    #[schemars(range(min = 200, max = 1_000_000))]
    pub recent: Option<u32>,
    /// The latest results of tools, in tokens. Default: 500 with `frugal`; otherwise they have no limit of
    /// their own and are a part of the turns.
    #[schemars(range(min = 50, max = 1_000_000))]
    pub tool_results: Option<u32>,
    /// The declarations of the tools, in tokens. Default: 1,500 with `frugal`, the share otherwise.
    #[schemars(range(min = 50, max = 1_000_000))]
    pub tools: Option<u32>,
    /// What a shortened result of a tool keeps at least, in tokens. Default: 150 with `frugal`, 400
    /// otherwise.
    ///
    /// The envelope with its attributes and the notice take about 120 of them.
    #[schemars(range(min = 100, max = 100_000))]
    pub min_result: Option<u32>,
    /// The most turns that are shown verbatim, including the current one. Default: 10 with `frugal`, no limit
    /// otherwise.
    #[schemars(range(min = 1, max = 100_000))]
    pub turns: Option<u32>,
    /// The turns that stay verbatim when older ones go into the summary, if they fit. Default: 5.
    ///
    /// Fewer than `turns`, so that a summary is due every few turns and not with each.
    #[schemars(range(min = 1, max = 100_000))]
    pub kept_turns: Option<u32>,
}

/// How a model's window is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextProfile {
    /// About 6,000 tokens whatever the window: never a whole history, never whole results of tools. For small
    /// windows and small costs.
    Frugal,
    /// The window, up to 200,000 tokens of it. Nothing is shortened while it fits; once it does not, older
    /// turns are summarized down to half of their room, so that a summary is seldom due.
    #[default]
    Balanced,
    /// The whole window. Older turns are summarized only as far as necessary.
    Full,
}

impl ContextProfile {
    /// The word for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Frugal => "frugal",
            Self::Balanced => "balanced",
            Self::Full => "full",
        }
    }
}

/// Sections in hundredths of what a question may use of the window without a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContextShares {
    /// The operator's rules, the workspace's files, memories and hints.
    #[schemars(range(min = 1, max = 90))]
    pub system: u32,
    /// The running summary.
    #[schemars(range(min = 1, max = 90))]
    pub summary: u32,
    /// The declarations of the tools: a tenth of the window. While all of them fit, all are offered.
    #[schemars(range(min = 1, max = 90))]
    pub tools: u32,
}

impl Default for ContextShares {
    fn default() -> Self {
        Self { system: 10, summary: 5, tools: 10 }
    }
}
