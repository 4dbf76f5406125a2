//! `agent.confirm`.

use std::path::PathBuf;

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
    /// A file with more of them, in YAML, each with examples that are checked when the file is read:
    /// `patterns: [{ name: drop table, pattern: '(?i)\bdrop\s+table\b', match: [DROP TABLE t], no_match: [SELECT 1] }]`.
    /// [agent.md](agent.md#for-who-runs-it) has its keys.
    #[schemars(extend("format" = "path"), example = &"/etc/talon/confirm.yaml")]
    pub pattern_file: Option<PathBuf>,
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
            pattern_file: None,
            expires_after: TimeSpan::from_secs(24 * 60 * 60),
        }
    }
}
