//! `agent.confirm`.

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{TimeSpan, ToolPattern};

/// Which calls wait for a person's approval. A call of an action that declares `read_only` waits only if a
/// rule that names the action says `always`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConfirmKeys {
    /// The mode of actions that no rule names.
    pub default: ConfirmMode,
    /// The modes of the actions that they name. If several rules name an action, the first applies.
    pub rules: Vec<ConfirmRule>,
    /// Regular expressions for the text of an argument, in addition to the built-in ones (`rm -rf` and the
    /// like). A call that one of them matches counts as destructive, whatever its action declares.
    #[schemars(example = pattern_example())]
    pub patterns: Vec<String>,
    /// How long a call waits. After that it counts as denied.
    ///
    /// 24h: somebody looks at least once a day.
    pub expires_after: TimeSpan,
}

fn pattern_example() -> [&'static str; 1] {
    [r"(?i)\bdrop\s+table\b"]
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmRule {
    /// The actions: `plugin.action` or `plugin.*`.
    #[schemars(example = &"shell.*")]
    pub tool: ToolPattern,
    /// When they need approval.
    pub ask: ConfirmMode,
}

/// The largest compiled expression. 1 MiB: the built-in ones take a tenth of it, and usual expressions take
/// some KiB; a larger one has nested counted repetitions, and is rejected.
const MAX_PROGRAM_BYTES: usize = 1 << 20;

/// A text is no expression, or too large a one; in one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ConfirmPatternError {
    problem: String,
}

/// Compiles an expression of [`ConfirmKeys::patterns`].
///
/// # Errors
/// [`ConfirmPatternError`]
pub fn confirm_pattern(expression: &str) -> Result<Regex, ConfirmPatternError> {
    let limited =
        RegexBuilder::new(expression).size_limit(MAX_PROGRAM_BYTES).dfa_size_limit(MAX_PROGRAM_BYTES).build();
    limited.map_err(|error| {
        let message = error.to_string();
        // The library prints the expression first and the problem last.
        let problem = message.lines().last().unwrap_or_default().trim_start_matches("error: ").trim();
        ConfirmPatternError { problem: problem.to_owned() }
    })
}

/// When a call needs approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmMode {
    /// Always. As the default mode: unless the action declares `read_only`.
    Always,
    /// If it may destroy something: its action declares so or declares nothing, or a pattern matches the
    /// call.
    #[default]
    Destructive,
    /// Never.
    Never,
}

impl Default for ConfirmKeys {
    fn default() -> Self {
        Self {
            default: ConfirmMode::default(),
            rules: Vec::new(),
            patterns: Vec::new(),
            expires_after: TimeSpan::from_secs(24 * 60 * 60),
        }
    }
}
