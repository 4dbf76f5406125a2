//! A turn: who, what, within what; and everything that it stands on.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use talon_guard::Sanitizer;
use talon_llm::model::{Thinking, Usage};
use talon_llm::route::Task;
use talon_llm::route::fallback::{Attempt, Chain};
use talon_llm::route::router::Pins;
use tokio_util::sync::CancellationToken;

use super::{Allowed, Clock, Host, Journal, Listener, OwnTools, Recall};
use crate::answer::Schema;
use crate::budget::Budgets;
use crate::context::{Sections, Stats};
use crate::journal::Unfinished;
use crate::prompt::Prompt;

/// Whose turn it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The session.
    pub session: String,
    /// Its number in the session.
    pub turn: u64,
    /// Who talks.
    pub sender: String,
    /// Where.
    pub channel: String,
    /// The sub-agent that acts; empty for the agent itself.
    pub subagent: String,
    /// In every line of the log that belongs to the turn.
    pub correlation_id: String,
}

/// What a turn stands on. The same for all turns until the configuration changes; a turn keeps the one it began with.
#[derive(Clone)]
pub struct World {
    /// The models.
    pub chain: Arc<Chain>,
    /// The plugins.
    pub host: Arc<dyn Host>,
    /// The agent's own tools.
    pub own: Vec<Arc<dyn OwnTools>>,
    /// What is remembered.
    pub recall: Arc<dyn Recall>,
    /// Who lets calls be made.
    pub confirm: Arc<dyn Confirm>,
    /// What makes text inert.
    pub sanitizer: Arc<Sanitizer>,
}

/// One turn.
#[derive(Clone)]
pub struct TurnSpec {
    /// Whose.
    pub caller: Caller,
    /// What is asked for.
    pub request: String,
    /// What it may use.
    pub budgets: Budgets,
    /// What a model gets to see of all.
    pub sections: Sections,
    /// What it is told beforehand; what is recalled is added to it.
    pub prompt: Prompt,
    /// By which kind of task its questions are routed.
    pub task: Task,
    /// Models that somebody wants.
    pub pins: Pins,
    /// How long they think.
    pub thinking: Thinking,
    /// What its answer has to fit.
    pub schema: Option<Arc<Schema>>,
    /// Narrows what may be called: "plugin.action" or "plugin.*"; empty for everything.
    pub within: Vec<String>,
    /// What the operator lets whoever talks call: beside `within`, which somebody asked for.
    pub allowed: Allowed,
    /// Nothing may be called.
    pub no_tools: bool,
    /// Where it is kept; a sub-agent's is kept nowhere.
    pub journal: Option<Arc<dyn Journal>>,
    /// Who hears of it.
    pub listener: Arc<dyn Listener>,
    /// Ends it.
    pub cancel: CancellationToken,
    /// It goes on where it was interrupted ([`crate::journal::unfinished`]): with the request and with what was said of it alone
    /// as the journal has them. What `within` and `no_tools` say here narrows it further.
    pub resumes: Option<Unfinished>,
    /// The clock of the turn within which it runs: a sub-agent's ([`super::OwnCall::clock`]).
    pub outer: Option<Clock>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    /// The answer, or what ended the turn without one: a word for programs, and a sentence.
    pub outcome: Result<String, (String, String)>,
    /// What there is of an answer, if there is none.
    pub partial: Option<String>,
    /// Tokens of all questions.
    pub usage: Usage,
    /// In picodollars, of everything.
    pub cost_pico_usd: u64,
    /// Milliseconds.
    pub duration_ms: u64,
    /// Questions to the model.
    pub iterations: u32,
    /// Calls that were made.
    pub tool_calls: u32,
    /// Tries of all questions since the turn began, or was gone on with: the latest 64.
    pub attempts: Vec<Attempt>,
    /// Who answered last, as provider/name.
    pub model: Option<String>,
    /// What the last question was put together of.
    pub stats: Option<Stats>,
}

/// Runs turns.
#[async_trait]
pub trait RunTurns: Send + Sync {
    /// One, to its end. It does not fail: what goes wrong is how it ends. Its last chunk is the `done` or `error`; `started` is for
    /// who calls this, who also knows who follows.
    ///
    /// A future that is dropped leaves the turn as an interrupted one, to be gone on with later ([`TurnSpec::resumes`]).
    async fn run(&self, world: &World, spec: TurnSpec) -> TurnEnd;
}

/// What came of asking whether a call may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmed {
    /// It may.
    Yes,
    /// It may not, in the words that the model gets: `denied by user`, and why.
    No(String),
}

/// Lets calls be made, or asks a person first.
#[async_trait]
pub trait Confirm: Send + Sync {
    /// Whether this call may be made; waits for a person's word where policy wants it, and tells the listener of it.
    /// `destructive` and `read_only` are what the action declares.
    #[expect(
        clippy::too_many_arguments,
        reason = "a call and all that policy looks at; it is made in one place"
    )]
    async fn may(
        &self,
        caller: &Caller,
        call_id: &str,
        plugin: &str,
        action: &str,
        args: &BTreeMap<String, String>,
        read_only: bool,
        destructive: Option<bool>,
        listener: &Arc<dyn Listener>,
    ) -> Confirmed;

    /// The turn is over, however it ended: what of it still waits is cancelled, for nobody would make the call any more. Not called
    /// when the agent itself ends: then what waits is there after the restart.
    async fn ended(&self, _caller: &Caller) {}
}
