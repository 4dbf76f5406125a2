//! `agent`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AllowKeys, ConfirmKeys, ContextKeys, MemoryKeys, SubAgentKeys, TurnKeys};

/// The agent, which lets a model use the plugins' actions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentKeys {
    /// Whether it runs. To start and to end it takes a restart of the supervisor; everything else of these keys but `program`
    /// and `workspace` holds after a reload.
    pub enabled: bool,
    /// Its program.
    ///
    /// Looked for beside `talon` itself, then in `../libexec/talon` and `../lib/talon` from there.
    #[schemars(extend("format" = "path"), example = &"/usr/libexec/talon/talon-agent")]
    pub program: Option<PathBuf>,
    /// The directory with `SOUL.md`, `USER.md`, `IDENTITY.md` and `memory/YYYY-MM-DD.md`. The agent reads it and never writes to it.
    ///
    /// Built-in texts stand for what is missing or empty.
    #[schemars(extend("format" = "path"), example = &"/etc/talon/workspace")]
    pub workspace: Option<PathBuf>,
    /// What one turn, which is all that follows on one message of a person, may use. At a limit it ends with a sentence and with what
    /// there is of an answer.
    pub turn: TurnKeys,
    /// What of a session a model gets to see, in tokens by section. The safety rules belong to none, and are never cut.
    pub context: ContextKeys,
    /// Which calls wait for a person's word. Actions that declare `read_only` never do.
    pub confirm: ConfirmKeys,
    /// Which actions may be called at all, by whom: `plugin.action`, or `plugin.*` for all of a plugin. The host refuses what is not among
    /// them (`not_granted`), whatever the agent asks for. Who is not named may call everything that the agent may; where several lists
    /// are about a call, all of them hold.
    pub allow: AllowKeys,
    /// Helpers that the model may give a task to: each with a prompt of its own, a small context, a cheap model and a small budget. A
    /// sub-agent starts no other.
    pub subagents: SubAgentKeys,
    /// What is remembered beyond a session.
    pub memory: MemoryKeys,
    /// Plugins whose `system_prompt_addition` is shown to the model, as quoted data. Nobody's is unless it is named here.
    pub trusted_plugins: Vec<String>,
}
