//! A plugin's question to the person in the middle of a call. It ends the call, and the answer is another call:
//! <https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation> for servers of MCP.
//!
//! ```text
//! begun ─► execute ─► question: journal, approvals ─► answer ─► begun ─► execute ─► result
//! ```
//!
//! The question is in the journal before a person sees it, so that a restart asks it again. From the second
//! *begun* on it is unknown what the call did.

use std::sync::Arc;

use talon_arguments::form::Form;
use talon_guard::Raw;
use talon_llm::model::ToolCall;
use talon_proto::host::ExecuteResponse;
use talon_proto::plugin::InputResponse;

use super::drive::TurnRun;
use super::{Listener, Reply};
use crate::loop_context::Failure;
use crate::question::{PluginForm, Question};
use crate::tools::Tool;

/// How often a plugin may ask in one call, as in `talon call` and `talon mcp`. Then the call is given up, and the
/// model gets that as its result. Not configurable.
pub(super) const MAX_QUESTIONS: usize = 20;

impl TurnRun<'_> {
    /// Whether plugins may ask in this turn: only where a person follows it and can answer.
    pub(super) fn takes_plugin_questions(&self) -> bool {
        self.spec.can_answer && self.spec.caller.subagent.is_empty()
    }

    /// Asks the person a plugin's question, while the turn's clock stands still. What is not answered is declined
    /// or cancelled at the plugin; the text is for the model, if the person said why.
    ///
    /// # Errors
    /// The journal cannot be written: the call has not continued.
    pub(super) async fn ask_for_plugin(
        &self,
        place: usize,
        call: &ToolCall,
        question: &Question,
        listener: &Arc<dyn Listener>,
    ) -> Result<(InputResponse, Option<String>), Failure> {
        let form = question
            .form
            .as_ref()
            .ok_or_else(|| Failure::Internal("a plugin's question has no form".to_owned()))?;
        self.journal_parked(place, question).await?;
        let reply = {
            let _waiting = self.clock.wait();
            let approver = &self.environment.approver;
            approver.ask_person(&self.spec.caller, &call.id, question, listener).await
        };
        self.journal_began(place).await?;
        let PluginForm { plugin, action, id, .. } = form;
        let (word, content_json, why) = match reply {
            Reply::Answered(answer) => ("accept", answer, None),
            Reply::Declined(reason) => ("decline", String::new(), Some(reason)),
            Reply::Expired(waited) => {
                self.notice(
                    "warn",
                    format!(
                        "{plugin}.{action} asked something, and had no answer for {} s: its question is cancelled. Ask for it again.",
                        waited.as_secs()
                    ),
                );
                ("cancel", String::new(), Some("there was no answer in time".to_owned()))
            }
            Reply::NotAsked(why) => {
                self.notice("warn", format!("{plugin}.{action} asked something that was not shown: {why}."));
                ("cancel", String::new(), Some(why))
            }
        };
        let response = InputResponse { id: id.clone(), action: word.to_owned(), content_json };
        Ok((response, why.filter(|why| !why.is_empty())))
    }
}

/// The question of an answer, if it is one that a person can be asked.
pub(super) fn question_of(response: &ExecuteResponse, tool: &Tool) -> Option<Question> {
    let request = response.input_request.as_ref()?;
    // The guard has checked it; but the agent cannot know what else is behind the socket.
    Form::parse(&request.schema).ok()?;
    let form = PluginForm {
        plugin: tool.plugin.clone(),
        action: tool.action.clone(),
        id: request.id.clone(),
        schema: request.schema.clone(),
    };
    let text = Raw::from(&*response.content).text().into_string();
    Some(Question { text, form: Some(form), ..Question::default() })
}

/// What the model gets beside a result, if the person said why they do not answer.
pub(super) fn note(why: &str) -> String {
    format!("\n[The plugin asked the user something, who does not answer it: {}]", Raw::from(why).line())
}
