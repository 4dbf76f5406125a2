//! Runs the calls of one answer concurrently, each after its approval.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use talon_agent_settings::milliseconds;
use talon_guard::Raw;
use talon_llm::model::{Arguments, Finish, ToolCall};
use talon_proto::agent;
use talon_proto::agent::chunk::Kind;
use tokio::time::Instant;

use super::cost_tracking_listener::CostTrackingListener;
use super::drive::TurnRun;
use super::{
    BuiltinCall, BuiltinTools, Confirmation, HostCall, HostError, Listener, Progress, read_more, search,
};
use crate::journal::{JournalEntry, UNKNOWN};
use crate::loop_context::Failure;
use crate::machine::Fact;
use crate::tool_result::{CallOutcome, ToolResult};
use crate::tools::{self, Batch, CallPlan, CheckedCall, Tool};

/// The result of calls that were running when their turn ended.
const ENDED: &str = "the turn was ended during this call, and it is not known what the call did";

/// The result of a call that is not allowed.
const NOT_GRANTED: &str = "error: not_granted: this may not be called in this session; do without it";

/// What an interrupted turn left of the calls of its last answer.
#[derive(Default)]
struct InterruptedCalls {
    /// The calls that were started.
    started: BTreeSet<usize>,
    /// The results of those that finished.
    results: BTreeMap<usize, ToolResult>,
}

/// The outcome of one call.
struct CallReport {
    place: usize,
    result: ToolResult,
}

impl TurnRun<'_> {
    /// Makes all calls that can be made. The results, in the calls' order, are the fact.
    pub(super) async fn run_tools(&mut self, calls: &[ToolCall]) -> Result<Fact, Failure> {
        let interrupted = self.take_interrupted_calls();
        if let Some(JournalEntry::CallsFinished(results)) = self.replay.front() {
            let results = results.clone();
            self.replay.pop_front();
            self.rebuilt = true;
            return Ok(self.executed(calls, results));
        }
        self.finish_replay();
        let finish = self.turn.context().answer().map_or(Finish::default(), |answer| answer.finish);
        let offer = Arc::clone(&self.offer);
        let CallPlan { run, mut batch } = tools::plan(calls, finish, &offer, &self.spec.budgets);
        self.notify_calls(calls, &batch);
        let costs = Arc::new(CostTrackingListener::new(Arc::clone(&self.spec.listener)));
        let made = self.make_calls(calls, run, interrupted, &costs, &mut batch).await;
        self.account.record_cost(costs.pico_usd());
        self.account.models.extend(costs.models());
        let Err(failure) = made else {
            let results = batch.into_results().unwrap_or_else(|batch| batch.give_up(ENDED));
            return Ok(self.executed(calls, results));
        };
        for place in batch.missing() {
            let given_up = tools::denied(ENDED);
            self.notify_result(&calls[place], &given_up, Duration::ZERO, false);
        }
        let results = batch.give_up(ENDED);
        self.remember(calls, &results);
        if let Err(error) = self.write(JournalEntry::CallsFinished(results)).await {
            tracing::warn!(target: "agent", session = %self.spec.caller.session, %error, "results were not stored");
        }
        Err(failure)
    }

    /// Notifies clients of all calls, and of the results of those that are not made.
    fn notify_calls(&self, calls: &[ToolCall], batch: &Batch) {
        for (place, call) in calls.iter().enumerate() {
            let tool = self.offer.get(&call.name);
            self.spec.listener.on_chunk(Kind::ToolCall(wire_tool_call(call, tool)));
            if let Some(refused) = batch.get(place) {
                let (plugin, action) = tool.map_or(("", ""), |tool| (&tool.plugin, &tool.action));
                self.observe.on_tool_call(&self.spec.caller, plugin, action, refused.outcome, Duration::ZERO);
                self.notify_result(call, refused, Duration::ZERO, false);
            }
        }
    }

    /// Makes the planned calls concurrently, and puts their results into the batch. A call that an
    /// interrupted turn had started is not made again.
    ///
    /// # Errors
    /// Why the turn ends; calls that still ran have no result then.
    async fn make_calls(
        &self,
        calls: &[ToolCall],
        planned: Vec<(usize, CheckedCall<'_>)>,
        mut interrupted: InterruptedCalls,
        costs: &Arc<CostTrackingListener>,
        batch: &mut Batch,
    ) -> Result<(), Failure> {
        let mut running = FuturesUnordered::new();
        for (place, checked) in planned {
            let earlier = match interrupted.results.remove(&place) {
                None if interrupted.started.contains(&place) => Some(tools::denied(UNKNOWN)),
                result => result,
            };
            match earlier {
                Some(result) => {
                    self.notify_result(&calls[place], &result, Duration::ZERO, false);
                    put_result(batch, place, result);
                }
                None => running.push(self.call(place, &calls[place], checked, costs)),
            }
        }
        loop {
            let next = tokio::select! {
                biased;
                failure = self.wait_for_stop() => return Err(failure),
                next = running.next() => next,
            };
            let Some(CallReport { place, result }) = next else { return Ok(()) };
            let stored = if running.is_empty() {
                Ok(())
            } else {
                self.unless_stopped(self.journal_early_result(place, &result)).await
            };
            put_result(batch, place, result);
            stored?;
        }
    }

    fn executed(&mut self, calls: &[ToolCall], results: Vec<ToolResult>) -> Fact {
        self.batch = (calls.to_vec(), results.clone());
        Fact::Executed(results)
    }

    /// Takes what the journal of an interrupted turn has of these calls.
    fn take_interrupted_calls(&mut self) -> InterruptedCalls {
        let mut calls = InterruptedCalls::default();
        loop {
            match self.replay.front() {
                Some(JournalEntry::CallStarted { place }) => drop(calls.started.insert(*place)),
                Some(JournalEntry::CallFinished { place, result }) => {
                    drop(calls.results.insert(*place, result.clone()))
                }
                _ => return calls,
            }
            if let Some(entry) = self.replay.pop_front() {
                self.transcript.apply(self.spec.caller.turn, &entry);
            }
        }
    }

    /// Makes one call: approval, journal entry, execution.
    async fn call(
        &self,
        place: usize,
        call: &ToolCall,
        checked: CheckedCall<'_>,
        costs: &Arc<CostTrackingListener>,
    ) -> CallReport {
        let (tool, json) = (checked.tool, checked.to_wire());
        let args = json.texts();
        let listener: Arc<dyn Listener> = Arc::clone(costs) as _;
        let (result, truncated, latency) = 'made: {
            if search::searches(self, &call.name) {
                break 'made (self.search_tools(call, &args), false, Duration::ZERO);
            }
            // It reads what the session has already.
            if read_more::reads_own_cut(&tool.plugin, &tool.action, &args) {
                break 'made (self.read_more(call, &args), false, Duration::ZERO);
            }
            // Tools that may not be called are not offered. This check protects the built-in tools, which
            // have no other.
            if !self.may_call(&tool.plugin, &tool.action) {
                break 'made (tools::denied(NOT_GRANTED), false, Duration::ZERO);
            }
            let confirmed = {
                let _waiting = self.clock.wait();
                let (read_only, destructive) = (tool.read_only, tool.destructive);
                let (caller, confirm) = (&self.spec.caller, &self.environment.approver);
                confirm
                    .confirm(
                        caller,
                        &call.id,
                        &tool.plugin,
                        &tool.action,
                        &args,
                        &json,
                        read_only,
                        destructive,
                        &listener,
                    )
                    .await
            };
            if let Confirmation::No(words) = confirmed {
                break 'made (tools::denied(&Raw::from(words).text()), false, Duration::ZERO);
            }
            let _working = self.clock.work();
            if let Err(error) = self.journal_began(place).await {
                break 'made (tools::denied(&format!("error: not made: {error}")), false, Duration::ZERO);
            }
            let since = Instant::now();
            let own = self.environment.builtin_tools.iter().find(|own| is_builtin_of(&***own, self, tool));
            let (result, truncated) = match own {
                Some(own) => {
                    let call = BuiltinCall {
                        caller: self.spec.caller.clone(),
                        call_id: call.id.clone(),
                        plugin: tool.plugin.clone(),
                        action: tool.action.clone(),
                        args,
                        listener,
                        within: self.spec.within.clone(),
                        allowed: self.spec.allowed.clone(),
                        pins: self.spec.pins.clone(),
                        clock: self.clock.clone(),
                    };
                    (own.call(call).await, false)
                }
                None => self.call_host(call, tool, args, &json).await,
            };
            (
                super::persistence::bound_result(result, &self.environment.sanitizer),
                truncated,
                since.elapsed(),
            )
        };
        let (plugin, action) = (&tool.plugin, &tool.action);
        tracing::debug!(target: "agent", %plugin, %action, ran = ?result.outcome, ?latency, truncated, "a call ended");
        self.observe.on_tool_call(&self.spec.caller, plugin, action, result.outcome, latency);
        self.notify_result(call, &result, latency, truncated);
        CallReport { place, result }
    }

    async fn call_host(
        &self,
        call: &ToolCall,
        tool: &Tool,
        args: BTreeMap<String, String>,
        json: &talon_arguments::Arguments,
    ) -> (ToolResult, bool) {
        let host_call = HostCall {
            plugin: tool.plugin.clone(),
            action: tool.action.clone(),
            args,
            arguments_json: json.to_json(),
            context: self.host_context(),
            within: self.spec.within.clone(),
        };
        let mut progress = |Progress { progress, total, message }: Progress| {
            let call_id = call.id.clone();
            self.spec.listener.on_chunk(Kind::ToolProgress(agent::ToolProgress {
                call_id,
                progress,
                total,
                message,
            }));
        };
        match self.environment.host.execute(&host_call, &mut progress).await {
            Ok(response) => {
                let truncated = response.report.as_ref().is_some_and(|report| report.truncated);
                (tools::from_host(&response, &self.environment.sanitizer), truncated)
            }
            Err(error) => {
                let words = match error {
                    HostError::NotMade { .. } => format!("error: {error}"),
                    HostError::Unknown { .. } => {
                        format!("error: {error}; it is not known whether the call took effect")
                    }
                };
                (tools::denied(&Raw::from(words).text()), false)
            }
        }
    }

    /// The call's context. Unknown (empty) values are left out.
    fn host_context(&self) -> BTreeMap<String, String> {
        let caller = &self.spec.caller;
        let known = [
            ("session_id", &caller.session),
            ("conversation_id", &caller.session),
            ("sender", &caller.sender),
            ("channel", &caller.channel),
            ("subagent", &caller.subagent),
            ("correlation_id", &caller.correlation_id),
        ];
        let known = known.into_iter().filter(|(_, value)| !value.is_empty());
        known.map(|(key, value)| (key.to_owned(), value.clone())).collect()
    }

    fn notify_result(&self, call: &ToolCall, result: &ToolResult, latency: Duration, truncated: bool) {
        self.spec.listener.on_chunk(Kind::ToolResult(agent::ToolResult {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            success: result.outcome == CallOutcome::Succeeded,
            output: result.block.clone(),
            duration_ms: milliseconds(latency),
            truncated,
        }));
    }

    /// Records the calls for workflow memory and for the summary at the turn's end.
    pub(super) fn remember(&mut self, calls: &[ToolCall], results: &[ToolResult]) {
        for (call, result) in calls.iter().zip(results) {
            let tool = self.offer.get(&call.name);
            if let (Some(tool), CallOutcome::Succeeded | CallOutcome::Failed) = (tool, result.outcome) {
                let made =
                    (tool.plugin.clone(), tool.action.clone(), result.outcome == CallOutcome::Succeeded);
                self.account.calls.push(made);
            }
        }
    }
}

/// Each call runs once, so its place is free; if it were not, the first result would stay.
fn put_result(batch: &mut Batch, place: usize, result: ToolResult) {
    if let Err(error) = batch.put(place, result) {
        tracing::error!(target: "agent", %error, "a result came twice");
    }
}

fn is_builtin_of(own: &dyn BuiltinTools, running: &TurnRun<'_>, tool: &Tool) -> bool {
    own.capabilities(&running.spec.caller).is_some_and(|capabilities| capabilities.name == tool.plugin)
}

fn wire_tool_call(call: &ToolCall, tool: Option<&Tool>) -> agent::ToolCall {
    let arguments = match &call.arguments {
        Arguments::Object(arguments) => serde_json::to_string(arguments).unwrap_or_default(),
        Arguments::Unreadable(text) => text.clone(),
    };
    agent::ToolCall {
        call_id: call.id.clone(),
        plugin: tool.map(|tool| tool.plugin.clone()).unwrap_or_default(),
        action: tool.map(|tool| tool.action.clone()).unwrap_or_default(),
        tool: call.name.clone(),
        arguments,
    }
}
