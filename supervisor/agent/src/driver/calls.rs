//! Runs the calls of one answer, each after its approval and after the calls for which it waits.

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
use super::interrupted_calls::{InterruptedCalls, ResumePoint};
use super::{
    BatchProgress, BuiltinCall, BuiltinTools, CallToConfirm, Confirmation, FinishedCall, GuardTrace,
    Listener, attachments, read_more, search,
};
use crate::journal::{JournalEntry, UNKNOWN};
use crate::loop_context::Failure;
use crate::machine::Fact;
use crate::tool_result::{CallOutcome, Provenance, ToolResult};
use crate::tools::{self, Batch, CallPlan, CheckedCall, Tool};
use crate::traces::OpenSpan;

/// The result of calls that were running when their turn ended.
const ENDED: &str = "the turn was ended during this call, and it is not known what the call did";
/// The result of calls that had not begun when their turn ended.
const NOT_RUN: &str = "not run: the turn was ended before this call began";

/// The result of a call that is not allowed.
const NOT_GRANTED: &str = "error: not_granted: this may not be called in this session; do without it";

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
        if self.turn.context().iterations_left() == 0 {
            return Ok(self.not_run(calls));
        }
        let finish = self.turn.context().answer().map_or(Finish::default(), |answer| answer.finish);
        let restored = self.with_originals(calls).await;
        let calls = &*restored;
        let offer = Arc::clone(&self.offer);
        let CallPlan { mut run, mut batch } = tools::plan(calls, finish, &offer, &self.spec.budgets);
        for (place, _) in run.extract_if(.., |(_, checked)| checked.tool.is_client) {
            put_result(&mut batch, place, super::client::handed_over());
        }
        self.notify_calls(calls, &batch);
        let costs = Arc::new(CostTrackingListener::new(Arc::clone(&self.spec.listener)));
        let tools: Vec<(usize, &Tool)> = run.iter().map(|(place, checked)| (*place, checked.tool)).collect();
        let progress = BatchProgress::new(tools::earlier_calls(&tools, self.spec.parallel));
        self.model_use.set_before(self.account.pico_usd);
        let made = self.make_calls(calls, run, interrupted, &costs, &progress, &mut batch).await;
        self.account.record_model_use(self.model_use.settle().await);
        self.account.record_cost(costs.pico_usd());
        self.account.models.extend(costs.models());
        self.account.models.append(&mut self.embedding_models.lock());
        let left = |place| if progress.has_begun(place) { ENDED } else { NOT_RUN };
        let Err(failure) = made else {
            let results = batch.into_results().unwrap_or_else(|batch| batch.give_up(left));
            return Ok(self.executed(calls, results));
        };
        for place in batch.missing() {
            let given_up = tools::denied(left(place));
            self.observe_unmade(&calls[place], given_up.outcome);
            self.notify_result(&calls[place], &given_up, Duration::ZERO, false);
        }
        let results = batch.give_up(left);
        self.remember(calls, &results);
        if let Err(error) = self.write(JournalEntry::CallsFinished(results)).await {
            tracing::warn!(target: "agent", session = %self.spec.caller.session, %error, "results were not stored");
        }
        Err(failure)
    }

    /// The results of calls that the last question's answer makes although it offered none: the model cannot
    /// be asked about what they bring.
    fn not_run(&mut self, calls: &[ToolCall]) -> Fact {
        let text = "not run: no tool was on offer with the last question of the turn";
        let result = ToolResult {
            outcome: CallOutcome::OverTheLimit,
            block: text.to_owned(),
            output: text.to_owned(),
            provenance: Provenance::default(),
        };
        for call in calls {
            let tool = self.offer.get(&call.name);
            self.spec.listener.on_chunk(Kind::ToolCall(wire_tool_call(call, tool)));
            self.notify_result(call, &result, Duration::ZERO, false);
        }
        self.executed(calls, vec![result; calls.len()])
    }

    /// Notifies clients of all calls, and of the results of those that are not made.
    fn notify_calls(&self, calls: &[ToolCall], batch: &Batch) {
        for (place, call) in calls.iter().enumerate() {
            let tool = self.offer.get(&call.name);
            let on_wire = wire_tool_call(call, tool);
            self.observe.on_tool_request(&self.spec.caller, &on_wire);
            self.spec.listener.on_chunk(Kind::ToolCall(on_wire));
            if let Some(refused) = batch.get(place) {
                self.observe_unmade(call, refused.outcome);
                self.notify_result(call, refused, Duration::ZERO, false);
            }
        }
    }

    /// Reports a call that was not made, or whose end is not known.
    fn observe_unmade(&self, call: &ToolCall, outcome: CallOutcome) {
        let tool = self.offer.get(&call.name);
        let finished = FinishedCall {
            call_id: &call.id,
            tool: &call.name,
            plugin: tool.map_or("", |tool| &tool.plugin),
            action: tool.map_or("", |tool| &tool.action),
            outcome,
            latency: Duration::ZERO,
            truncated: false,
            guard: &GuardTrace::default(),
        };
        self.observe.on_tool_call(&self.spec.caller, &finished);
    }

    /// Makes the planned calls, and puts their results into the batch. A call that an interrupted turn had
    /// started is not made again.
    ///
    /// # Errors
    /// Why the turn ends; calls that still ran have no result then.
    async fn make_calls(
        &self,
        calls: &[ToolCall],
        planned: Vec<(usize, CheckedCall<'_>)>,
        mut interrupted: InterruptedCalls,
        costs: &Arc<CostTrackingListener>,
        progress: &BatchProgress,
        batch: &mut Batch,
    ) -> Result<(), Failure> {
        let mut running = FuturesUnordered::new();
        for (place, checked) in planned {
            let started = interrupted.started.contains(&place);
            let earlier = match interrupted.results.remove(&place) {
                None if started && !self.resumes(checked.tool) => Some(tools::denied(UNKNOWN)),
                result => result,
            };
            match earlier {
                Some(result) => {
                    self.notify_result(&calls[place], &result, Duration::ZERO, false);
                    put_result(batch, place, result);
                    progress.finish(place);
                }
                None => {
                    let resume = interrupted.resume_point(place);
                    running.push(self.call(place, &calls[place], checked, resume, costs, progress));
                }
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
            progress.finish(place);
        }
    }

    fn executed(&mut self, calls: &[ToolCall], results: Vec<ToolResult>) -> Fact {
        self.originals.add(results.iter().flat_map(|result| &result.provenance.originals));
        self.batch = (calls.to_vec(), results.clone());
        Fact::Executed(results)
    }

    /// Whether the agent's own tool goes on with a call that was begun before a kill.
    fn resumes(&self, tool: &Tool) -> bool {
        let mut own = self.environment.builtin_tools.iter();
        own.any(|own| is_builtin_of(&**own, self, tool) && own.resumes(&tool.action))
    }

    /// Makes one call: approval, journal entry, execution. One that is resumed was approved before.
    async fn call(
        &self,
        place: usize,
        call: &ToolCall,
        checked: CheckedCall<'_>,
        resume: ResumePoint,
        costs: &Arc<CostTrackingListener>,
        progress: &BatchProgress,
    ) -> CallReport {
        let (tool, json) = (checked.tool, checked.to_wire());
        let args = json.texts();
        let listener: Arc<dyn Listener> = Arc::clone(costs) as _;
        let span = self.begin_tool_span(call, tool);
        let position = span.as_ref().map(OpenSpan::context);
        let mut guard = GuardTrace::default();
        let (result, truncated, latency) = 'made: {
            if search::searches(self, &call.name) {
                break 'made (self.search_tools(call, &args).await, false, Duration::ZERO);
            }
            // It reads what the session has already.
            if read_more::reads_own_cut(&tool.plugin, &tool.action, &args) {
                break 'made (self.read_more(call, &args), false, Duration::ZERO);
            }
            if attachments::reads_attachment(tool) {
                break 'made (self.read_attachment(call, &args).await, false, Duration::ZERO);
            }
            if self.is_turn_action(tool) {
                progress.position(place).wait_for_earlier().await;
                progress.begin(place);
                break 'made (self.run_turn_action(place, call, tool).await, false, Duration::ZERO);
            }
            // Tools that may not be called are not offered. This check protects the built-in tools, which
            // have no other.
            if !self.may_call(&tool.plugin, &tool.action) {
                break 'made (tools::denied(NOT_GRANTED), false, Duration::ZERO);
            }
            if let Some(words) = self.refused_before_plan(tool) {
                break 'made (tools::denied(words), false, Duration::ZERO);
            }
            let order = progress.position(place);
            if matches!(resume, ResumePoint::Approval) {
                let _waiting = self.clock.wait();
                let call = CallToConfirm {
                    caller: &self.spec.caller,
                    call_id: &call.id,
                    plugin: &tool.plugin,
                    action: &tool.action,
                    args: &args,
                    json: &json,
                    read_only: tool.read_only,
                    destructive: tool.destructive,
                    position: order,
                };
                let confirmed = self.environment.approver.confirm(call, &listener).await;
                if let Confirmation::No(words) = confirmed {
                    break 'made (tools::denied(&Raw::from(words).text()), false, Duration::ZERO);
                }
            }
            order.wait_for_earlier().await;
            progress.begin(place);
            let passed = match self.passed_attachment(tool, &args).await {
                Ok(passed) => passed,
                Err(why) => break 'made (attachments::not_passed(&why), false, Duration::ZERO),
            };
            let parked = resume.into_question();
            if parked.is_none()
                && let Err(error) = self.journal_began(place).await
            {
                break 'made (tools::denied(&format!("error: not made: {error}")), false, Duration::ZERO);
            }
            let since = Instant::now();
            let own = self.environment.builtin_tools.iter().find(|own| is_builtin_of(&***own, self, tool));
            let (result, truncated) = match own {
                Some(own) => {
                    let _working = self.clock.work();
                    let call = BuiltinCall {
                        caller: self.spec.caller.clone(),
                        call_id: call.id.clone(),
                        plugin: tool.plugin.clone(),
                        action: tool.action.clone(),
                        iteration: self.turn.context().iteration(),
                        place,
                        args,
                        listener,
                        within: self.spec.within.clone(),
                        allowed: self.spec.allowed.clone(),
                        pins: self.spec.pins.clone(),
                        clock: self.clock.clone(),
                        trace: position,
                    };
                    (own.call(call).await, false)
                }
                None => {
                    let mut host_call = self.host_call(tool, args, &json, position);
                    let passed = passed.map(|file| (attachments::CONTEXT_NAME.to_owned(), file));
                    host_call.context.extend(passed);
                    let (mut result, truncated, trace) =
                        self.call_host(place, call, tool, host_call, parked, &listener).await;
                    guard = trace;
                    result.provenance.arguments = self.sent_otherwise(place, &json).unwrap_or_default();
                    (result, truncated)
                }
            };
            let latency = since.elapsed();
            let mut result = super::persistence::bound_result(result, &self.environment.sanitizer);
            result.provenance.duration_ms = milliseconds(latency);
            result.provenance.truncated = truncated;
            (result, truncated, latency)
        };
        let (plugin, action) = (&tool.plugin, &tool.action);
        tracing::debug!(target: "agent", %plugin, %action, ran = ?result.outcome, ?latency, truncated, "a call ended");
        let finished = FinishedCall {
            call_id: &call.id,
            tool: &call.name,
            plugin,
            action,
            outcome: result.outcome,
            latency,
            truncated,
            guard: &guard,
        };
        self.observe.on_tool_call(&self.spec.caller, &finished);
        self.end_tool_span(span, &result);
        self.notify_result(call, &result, latency, truncated);
        CallReport { place, result }
    }

    pub(super) fn notify_result(
        &self,
        call: &ToolCall,
        result: &ToolResult,
        latency: Duration,
        truncated: bool,
    ) {
        self.spec.listener.on_chunk(Kind::ToolResult(agent::ToolResult {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            success: result.outcome == CallOutcome::Succeeded,
            output: result.block.clone(),
            duration_ms: milliseconds(latency),
            truncated,
            ..agent::ToolResult::default()
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
