//! `agent`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentMode, AllowKeys, ConfirmKeys, ContextKeys, GroupKeys, LimitKeys, MediaKeys, MemoryKeys, SessionKeys,
    SubAgentKeys, TurnKeys,
};

/// The agent, which lets a model use the plugins' actions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentKeys {
    /// Whether the agent runs. This key, `program` and `workspace` need a restart of the supervisor; the
    /// other keys take effect at a reload.
    ///
    /// Hooks, schedules and notifications need no model: without one, the agent runs for them, and a question
    /// is answered with `no_provider`.
    pub enabled: AgentMode,
    /// The agent's program.
    ///
    /// By default `talon-agent` is searched for beside `talon` itself, then in `../libexec/talon` and
    /// `../lib/talon` from there.
    #[schemars(extend("format" = "path"), example = &"/usr/libexec/talon/talon-agent")]
    pub program: Option<PathBuf>,
    /// The directory with `SOUL.md`, `USER.md`, `IDENTITY.md` and `memory/YYYY-MM-DD.md`. The agent reads it
    /// and never writes to it.
    ///
    /// A built-in text replaces a file that is missing or empty.
    #[schemars(extend("format" = "path"), example = &"/etc/talon/workspace")]
    pub workspace: Option<PathBuf>,
    /// The limits of one turn. A turn is everything between a person's message and its answer. At a limit it
    /// ends with a message and with the partial answer, if there is one.
    pub turn: TurnKeys,
    /// How much of a session a model sees.
    ///
    /// A profile says how a model's window is divided; each other key overrides one number of it. The safety
    /// rules belong to no section and are never cut. [agent-loop.md](agent-loop.md) has the numbers of each
    /// profile.
    pub context: ContextKeys,
    /// Which calls wait for a person's approval. A call of an action that declares `read_only` waits only if
    /// a rule that names the action says `always`.
    pub confirm: ConfirmKeys,
    /// Which actions a sender, a channel or a sub-agent may call: `plugin.action`, or `plugin.*` for all
    /// actions of a plugin. The supervisor refuses all other calls with `not_granted`, whatever the agent
    /// requests. Without a list, everything is allowed that the agent may call. If several lists apply to a
    /// call, it needs the permission of each.
    pub allow: AllowKeys,
    /// Helpers to which the model can delegate a task, each with its own prompt, a small context, a cheap
    /// model and a small budget. A sub-agent cannot start another one.
    pub subagents: SubAgentKeys,
    /// What is remembered beyond a session.
    pub memory: MemoryKeys,
    /// How long sessions are active, and how long they are stored.
    pub sessions: SessionKeys,
    /// Images in questions and in results of tools.
    ///
    /// A limit that is passed refuses a question, and leaves an image of a tool out with a text that says so.
    pub media: MediaKeys,
    /// Who is the same person on several channels: a sender's name, and the other senders that are the same one. They share
    /// sessions, memories and costs; nobody gets another role by it.
    #[schemars(example = identities_example())]
    pub identities: BTreeMap<String, Vec<String>>,
    /// Groups on channels, as `gw:CHANNEL/group:ID`: who decides there what waits for approval.
    #[schemars(example = groups_example())]
    pub groups: BTreeMap<String, GroupKeys>,
    /// How much the agent does at once. What is beyond a limit is refused, with its key, and may be tried again.
    pub limits: LimitKeys,
    /// Plugins whose `system_prompt_addition` is shown to the model, as quoted data. That of any other plugin
    /// is not shown.
    pub trusted_plugins: Vec<String>,
}

fn groups_example() -> BTreeMap<&'static str, GroupKeys> {
    BTreeMap::from([(
        "gw:telegram/group:-100123",
        GroupKeys { approvers: vec!["gw:telegram/12345".to_owned()] },
    )])
}

fn identities_example() -> BTreeMap<&'static str, [&'static str; 2]> {
    BTreeMap::from([("alice", ["gw:telegram/12345", "gw:web/alice"])])
}
