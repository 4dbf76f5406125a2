//! `agent.confirm`.

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{TimeSpan, ToolPattern};

/// Which calls wait for a person's word. Actions that declare `read_only` do only where a rule that names them says `always`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConfirmKeys {
    /// What holds for actions that no rule names.
    pub default: ConfirmMode,
    /// What holds for those that one names; of several that do, the first.
    pub rules: Vec<ConfirmRule>,
    /// Regular expressions over an argument's text, beside the built-in ones (`rm -rf` and the like): a call that one of them finds is
    /// destructive, whatever its action declares.
    #[schemars(example = pattern_example())]
    pub patterns: Vec<String>,
    /// How long a call waits. After that it is as if it had been denied.
    ///
    /// 24h: the next day somebody has looked.
    pub expires_after: TimeSpan,
}

fn pattern_example() -> [&'static str; 1] {
    [r"(?i)\bdrop\s+table\b"]
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmRule {
    /// Which actions: `plugin.action` or `plugin.*`.
    #[schemars(example = &"shell.*")]
    pub tool: ToolPattern,
    /// When they ask.
    pub ask: ConfirmMode,
}

/// The largest program that an expression may become. 1 MiB: what anybody writes has some KiB; a larger one is one with counted
/// repetitions that multiply, and is refused.
const MAX_PROGRAM_BYTES: usize = 1 << 20;

/// An expression of [`ConfirmKeys::patterns`], compiled.
///
/// # Errors
/// What is wrong with it, in one line.
pub fn confirm_pattern(expression: &str) -> Result<Regex, String> {
    let limited =
        RegexBuilder::new(expression).size_limit(MAX_PROGRAM_BYTES).dfa_size_limit(MAX_PROGRAM_BYTES).build();
    limited.map_err(|error| {
        let message = error.to_string();
        // The library draws the expression first, and says what is wrong last.
        message.lines().last().unwrap_or_default().trim_start_matches("error: ").trim().to_owned()
    })
}

/// When a call asks first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmMode {
    /// Always; as the default, unless the action declares `read_only`.
    Always,
    /// When it may destroy something: its action declares so or declares nothing, or a pattern finds it.
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
