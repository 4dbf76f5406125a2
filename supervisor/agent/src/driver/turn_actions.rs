//! The agent's own small actions: `talon.wait`, `talon.ask_user` and `talon.plan`.

use std::time::Duration;

use talon_agent_settings::TimeSpan;
use talon_guard::Raw;
use talon_llm::model::{ToolCall, ToolSpec};

use super::Reply;
use super::drive::TurnRun;
use crate::journal::JournalEntry;
use crate::loop_context::Failure;
use crate::machine::Fact;
use crate::question::Question;
use crate::tool_result::{CallOutcome, Provenance, ToolResult};
use crate::tools::{self, ASK_ACTION, MAX_WAIT, PLAN_ACTION, TURN_PLUGIN, Tool, WAIT_ACTION};

impl TurnRun<'_> {
    /// Whether a tool is one of these actions. A plugin of that name has none of them.
    pub(super) fn is_turn_action(&self, tool: &Tool) -> bool {
        tool.plugin == TURN_PLUGIN && [WAIT_ACTION, ASK_ACTION, PLAN_ACTION].contains(&tool.action.as_str())
    }

    /// Makes a call of one of these actions.
    pub(super) async fn run_turn_action(&self, place: usize, call: &ToolCall, tool: &Tool) -> ToolResult {
        if tool.action == PLAN_ACTION {
            return self.write_plan(place, call).await;
        }
        if tool.action == ASK_ACTION {
            // A question that may be asked is no call to the driver, but a state of the machine.
            return tools::denied(
                "error: not asked: ask alone, with no other call, and only as often as needed; decide by yourself or finish with the question",
            );
        }
        let wanted = Duration::from_secs(tools::wait_seconds(call).unwrap_or_default());
        if wanted.is_zero() || wanted > MAX_WAIT {
            return tools::denied(&format!("error: not waited: seconds is 1 to {}", MAX_WAIT.as_secs()));
        }
        let left = self.time_left();
        if wanted >= left {
            return tools::denied(&format!(
                "error: not waited: the turn has {} s left; answer with what you have",
                left.as_secs()
            ));
        }
        let _working = self.clock.work();
        tokio::time::sleep(wanted).await;
        succeeded(format!("waited {} s", wanted.as_secs()))
    }

    /// What a question to a model offers beside the plugins' tools: to wait, where results repeat.
    pub(super) fn wait_spec(&self) -> Option<ToolSpec> {
        let shown = self.turn.context().repeats() && !self.is_last_question();
        let tool = self.offer.hidden().find(|tool| self.is_turn_action(tool) && tool.action == WAIT_ACTION);
        tool.filter(|_| shown).map(|tool| tool.spec.clone())
    }

    /// Whether the next question to the model is the last one of the turn: its calls could not be answered.
    pub(super) fn is_last_question(&self) -> bool {
        self.turn.context().iterations_left() <= 1
    }

    /// Asks the person, while the turn's clock stands still. The result of the call is the fact.
    pub(super) async fn ask_person(&mut self, call: &ToolCall) -> Result<Fact, Failure> {
        if let Some(JournalEntry::CallsFinished(results)) = self.replay.front() {
            let result = results.first().cloned();
            self.replay.pop_front();
            self.rebuilt = true;
            let result = result.unwrap_or_else(|| tools::denied(crate::journal::UNKNOWN));
            return Ok(self.clarified(call, result));
        }
        self.finish_replay();
        let (text, choices) = tools::question_of(call)
            .ok_or_else(|| Failure::Internal("a question to the person has no text".to_owned()))?;
        let clean = |text: &str| Raw::from(text).text().into_string();
        let choices = choices.into_iter().map(clean).collect();
        let question = Question { text: clean(text), choices, ..Question::default() };
        let reply = {
            let _waiting = self.clock.wait();
            let approver = &self.environment.approver;
            let asked = approver.ask_person(&self.spec.caller, &call.id, &question, &self.spec.listener);
            self.unless_stopped(asked).await?
        };
        let result = match reply {
            Reply::Answered(answer) => succeeded(format!("The user answers:\n{answer}")),
            Reply::Declined(reason) if reason.is_empty() => succeeded(
                "The user does not answer this: decide by yourself, and say what you assumed.".to_owned(),
            ),
            Reply::Declined(reason) => {
                succeeded(format!("The user does not answer this, and says:\n{reason}"))
            }
            Reply::NotAsked(why) => tools::denied(&format!("error: not asked: {why}")),
            Reply::Expired(waited) => {
                return Err(Failure::Unanswered(TimeSpan::from_secs(waited.as_secs()).to_string()));
            }
        };
        self.notify_result(call, &result, Duration::ZERO, false);
        Ok(self.clarified(call, result))
    }

    fn clarified(&mut self, call: &ToolCall, result: ToolResult) -> Fact {
        self.batch = (vec![call.clone()], vec![result.clone()]);
        Fact::Clarified(result)
    }
}

pub(super) fn succeeded(text: String) -> ToolResult {
    ToolResult {
        outcome: CallOutcome::Succeeded,
        block: text.clone(),
        output: text,
        provenance: Provenance::default(),
    }
}
