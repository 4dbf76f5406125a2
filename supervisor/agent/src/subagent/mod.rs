//! Helpers with a focused task: the built-in ones, the operator's, and how they run.
//!
//! To the model they are one action of the pseudo plugin `subagent`:
//! `subagent__run {agent, task, context?, output_schema?}`. Several calls in one answer run at once, as all
//! calls do, at most [`MAX_AT_ONCE`] in the whole agent.
//!
//! | | |
//! |---|---|
//! | sees | the safety rules, the operator's rules, its role, its task, and some 500 tokens of context as quoted data: never the conversation |
//! | model | the cheapest that can do it, or the one that the operator names |
//! | budgets | its own: `agent.subagents` |
//! | may call | what the session may and `agent.allow.subagents` grants it, through the same host, guard and approvals; `memory.search`; no sub-agent |
//! | keeps | nothing: its journal ends with the turn that it works for, and it learns nothing |
//! | answers | JSON that was checked against its schema: `{agent, result, tokens_used, cost, duration_ms}`, in the guard's envelope |
//!
//! Its costs count for the session. With an interrupted turn its sub-agents go on, too, each where its own journal
//! says that it was (`task_journal`).

mod agents;
mod built_in;
mod definition;
mod error;
mod filtered_listener;
mod limits;
mod offer;
mod outcome;
mod run;
mod task_journal;

pub use agents::{EnvironmentSource, MAX_AT_ONCE, SubAgentContext, SubAgents};

pub(crate) use task_journal::{delete_tasks, has_tasks, is_task_sender};

/// The name under which the agent offers them.
pub const SUBAGENT: &str = "subagent";
/// The action that gives a task to one of them.
pub const RUN: &str = "run";

#[cfg(test)]
mod tests;
