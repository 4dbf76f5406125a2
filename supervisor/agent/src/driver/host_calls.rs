//! Calls of plugins through the supervisor.

use std::collections::BTreeMap;
use std::sync::Arc;

use talon_guard::Raw;
use talon_llm::model::ToolCall;
use talon_proto::agent;
use talon_proto::agent::chunk::Kind;
use talon_proto::host::{CallOutput, ExecuteResponse};

use super::conversation::{CONVERSATION, TASK, conversation};
use super::drive::TurnRun;
use super::{CallUpdate, GuardTrace, HostCall, HostError, Listener, Progress, plugin_question};
use crate::question::Question;
use crate::tool_result::ToolResult;
use crate::tools::{self, Tool};
use crate::traces::SpanContext;

/// What stands before a key of metadata in `inject_context_args`: `metadata.category`.
const METADATA_PREFIX: &str = "metadata.";

impl TurnRun<'_> {
    pub(super) fn host_call(
        &self,
        tool: &Tool,
        args: BTreeMap<String, String>,
        json: &talon_arguments::Arguments,
        trace: Option<SpanContext>,
    ) -> HostCall {
        HostCall {
            plugin: tool.plugin.clone(),
            action: tool.action.clone(),
            args,
            arguments_json: json.to_json(),
            context: self.host_context(tool),
            within: self.spec.within.clone(),
            trace,
            takes_input_requests: self.takes_plugin_questions(),
            input_response: None,
            call_id: String::new(),
            measured: self.observe.wants_layer_times(),
        }
    }

    /// Calls a plugin, and again with the person's answer for each question of it.
    pub(super) async fn call_host(
        &self,
        place: usize,
        call: &ToolCall,
        tool: &Tool,
        mut host_call: HostCall,
        mut parked: Option<Question>,
        listener: &Arc<dyn Listener>,
    ) -> (ToolResult, bool, GuardTrace) {
        let mut said_why = None;
        for _ in 0..=plugin_question::MAX_QUESTIONS {
            if let Some(question) = parked.take() {
                match self.ask_for_plugin(place, call, &question, listener).await {
                    Ok((response, why)) => (host_call.input_response, said_why) = (Some(response), why),
                    Err(error) => {
                        let result = tools::denied(&format!("error: not continued: {error}"));
                        return (result, false, GuardTrace::default());
                    }
                }
            }
            let in_flight =
                self.environment.plugin_calls.begin(&tool.plugin, &self.model_use, host_call.trace);
            in_flight.id().clone_into(&mut host_call.call_id);
            let (response, mut result, truncated) = self.call_host_once(call, tool, &host_call).await;
            drop(in_flight);
            let trace = response.as_ref().map(GuardTrace::of).unwrap_or_default();
            parked = response.and_then(|response| plugin_question::question_of(&response, tool));
            if parked.is_none() {
                if let Some(why) = said_why {
                    result.block.push_str(&plugin_question::note(&why));
                }
                return (result, truncated, trace);
            }
        }
        let most = plugin_question::MAX_QUESTIONS;
        (
            tools::denied(&format!(
                "error: the plugin asked the user {most} times in one call: it is given up"
            )),
            false,
            GuardTrace::default(),
        )
    }

    /// Calls a plugin once. The response is missing where there is none.
    async fn call_host_once(
        &self,
        call: &ToolCall,
        tool: &Tool,
        host_call: &HostCall,
    ) -> (Option<ExecuteResponse>, ToolResult, bool) {
        let _working = self.clock.work();
        let mut watch = |update: CallUpdate| {
            let call_id = call.id.clone();
            self.spec.listener.on_chunk(match update {
                CallUpdate::Progress(Progress { progress, total, message }) => {
                    Kind::ToolProgress(agent::ToolProgress { call_id, progress, total, message })
                }
                CallUpdate::Output(CallOutput { lines, left_out_lines, left_out_bytes }) => {
                    Kind::ToolStream(agent::ToolStream { call_id, lines, left_out_lines, left_out_bytes })
                }
            });
        };
        match self.environment.host.execute(host_call, &mut watch).await {
            Ok(mut response) => {
                let truncated = response.report.as_ref().is_some_and(|report| report.truncated);
                let media = std::mem::take(&mut response.media);
                let mut result = tools::from_host(&response, &self.environment.sanitizer);
                result.provenance.images = self.plugin_images(tool, media).await;
                (Some(response), result, truncated)
            }
            Err(error) => {
                let words = match error {
                    HostError::NotMade { .. } => format!("error: {error}"),
                    HostError::Unknown { .. } => {
                        format!("error: {error}; it is not known whether the call took effect")
                    }
                };
                (None, tools::denied(&Raw::from(words).text()), false)
            }
        }
    }

    /// The call's context. Unknown (empty) values are left out, and what was said goes along only where the action
    /// asks for it.
    fn host_context(&self, tool: &Tool) -> BTreeMap<String, String> {
        let caller = &self.spec.caller;
        let asks = |name: &str| tool.injected.iter().any(|asked| asked == name);
        let said = |name: &str, text: &dyn Fn() -> String| if asks(name) { text() } else { String::new() };
        let task = said(TASK, &|| self.spec.request.clone());
        let before = said(CONVERSATION, &|| conversation(self.transcript.messages(), caller.turn));
        let known = [
            (TASK, &task),
            (CONVERSATION, &before),
            ("session_id", &caller.session),
            ("conversation_id", &caller.session),
            ("sender", &caller.sender),
            ("member", &caller.member),
            ("channel", &caller.channel),
            ("subagent", &caller.subagent),
            ("correlation_id", &caller.correlation_id),
        ];
        let known = known.into_iter().filter(|(_, value)| !value.is_empty());
        let known = known.map(|(key, value)| (key.to_owned(), value.clone()));
        // What hooks noted, under the names by which actions ask for it; the operator grants each.
        let noted = tool.injected.iter().filter_map(|name| {
            let value = self.metadata.get(name.strip_prefix(METADATA_PREFIX)?)?;
            Some((name.clone(), value.clone()))
        });
        known.chain(noted).collect()
    }
}
