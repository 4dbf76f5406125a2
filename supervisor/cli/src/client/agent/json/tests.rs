//! What programs read of the agent's messages: the bytes of each message.

use insta::assert_snapshot;
use serde_json::Value;
use talon_proto::agent::*;

use super::*;
use crate::client::agent::turn::{ToolCallRecord, TurnEnd, TurnOutcome, TurnRecord, TypedAhead};
use crate::json::fields;

fn text(text: &str) -> String {
    text.to_owned()
}

fn printed(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value:#}")).collect::<Vec<_>>().join("\n")
}

/// Every field of every message is named, so that the compiler asks for a new one, and the snapshot shows it.
#[test]
fn every_record_has_the_keys_that_it_always_had() {
    let all = [
        session(&session_of_all()),
        message(&message_of_all()),
        fields(&approval_of_all()),
        fields(&memory_of_all()),
        fields(&model_of_all()),
        fields(&provider_state()),
        compacted("session", &compact_session_response()),
        fields(&Memory::default()),
    ];
    assert_snapshot!("records", printed(&all));
}

#[test]
fn every_chunk_has_the_keys_that_it_always_had() {
    let all = [
        chunk::Kind::Started(started()),
        chunk::Kind::Loop(loop_state()),
        chunk::Kind::Thinking(Thinking { text: text("text") }),
        chunk::Kind::Text(Text { text: text("text"), whole: true }),
        chunk::Kind::ToolCall(tool_call()),
        chunk::Kind::ToolCall(ToolCall { arguments: text("{\"a\": [1]}"), ..tool_call() }),
        chunk::Kind::ToolProgress(tool_progress()),
        chunk::Kind::ToolStream(tool_stream()),
        chunk::Kind::ToolResult(tool_result()),
        chunk::Kind::Approval(approval_of_all()),
        chunk::Kind::SubagentStart(subagent_start()),
        chunk::Kind::SubagentResult(subagent_result()),
        chunk::Kind::Notice(notice()),
        chunk::Kind::Plan(plan_of_all()),
        chunk::Kind::Done(done()),
        chunk::Kind::Done(Done::default()),
        chunk::Kind::Error(error()),
        chunk::Kind::Error(Error::default()),
    ];
    assert_snapshot!("chunks", printed(&all.each_ref().map(super::chunk)));
}

#[test]
fn a_turn_has_the_keys_that_it_always_had() {
    let outcome = |end| TurnOutcome {
        record: TurnRecord {
            session_id: text("session_id"),
            turn: 7,
            correlation_id: text("correlation_id"),
            calls: vec![
                ToolCallRecord { call: tool_call(), result: Some(tool_result()) },
                ToolCallRecord { call: tool_call(), result: None },
            ],
            subagents: vec![subagent_result()],
            notices: vec![text("notice")],
            approvals: vec![approval_of_all()],
            plan: Some(plan_of_all()),
            streamed: text("streamed"),
        },
        stop: None,
        end,
        typed: TypedAhead::default(),
    };
    let done = outcome(TurnEnd::Done(Box::new(Done { text: text("{\"a\": 1}"), ..done() })));
    let all = [
        result(&done, false),
        result(&done, true),
        result(&outcome(TurnEnd::Error(Box::new(error()))), false),
        result(&outcome(TurnEnd::Stopped), false),
        result(&outcome(TurnEnd::Parked(Box::new(approval_of_all()))), false),
    ];
    assert_snapshot!("turns", printed(&all));
}

fn session_of_all() -> Session {
    Session {
        id: text("id"),
        sender: text("sender"),
        channel: text("channel"),
        state: text("state"),
        model: text("model"),
        thinking: text("thinking"),
        tools: vec![text("tools")],
        created_unix_ms: 1,
        updated_unix_ms: 2,
        messages: 3,
        turn: text("turn"),
        cost_pico_usd: 4,
        title: text("title"),
        local_only: true,
        sampling: Some(Sampling { temperature: Some(0.2), top_p: Some(0.9), max_tokens: Some(40) }),
        active_model: text("active_model"),
        verbosity: text("verbosity"),
        metadata: [(text("a"), text("metadata"))].into(),
        plan: Some(plan_of_all()),
        verbose: true,
        main: true,
        delete_unix_ms: 21,
    }
}

fn plan_of_all() -> Plan {
    let steps = vec![PlanStep { text: text("text"), state: text("state") }];
    Plan { steps, revision: 20, approved: true, changed_by: text("changed_by") }
}

fn message_of_all() -> Message {
    Message {
        sequence: 5,
        role: text("role"),
        content: text("content"),
        tool_calls: vec![ToolCall {
            call_id: text("call_id"),
            plugin: text("plugin"),
            action: text("action"),
            tool: text("tool"),
            arguments: text("arguments"),
        }],
        tool_results: vec![ToolResult {
            call_id: text("call_id"),
            tool: text("tool"),
            success: true,
            output: text("output"),
            duration_ms: 6,
            truncated: true,
            receipt: vec![0xab],
            arguments: text("{}"),
            confirmation: text("confirmation"),
        }],
        unix_ms: 7,
        summary: true,
        media: vec![MediaInfo {
            media_type: text("media_type"),
            name: text("name"),
            bytes: 77,
            width: 78,
            height: 79,
            digest: text("digest"),
        }],
        channel: text("channel"),
        sender_name: text("sender_name"),
        client_id: text("client_id"),
        hooked: Some(text("hooked")),
        metadata: [(text("key"), text("value"))].into(),
    }
}

fn approval_of_all() -> Approval {
    Approval {
        id: text("id"),
        session_id: text("session_id"),
        sender: text("sender"),
        plugin: text("plugin"),
        action: text("action"),
        args: [(text("b"), text("args")), (text("a"), text("args"))].into(),
        why: text("why"),
        state: text("state"),
        asked_unix_ms: 8,
        expires_unix_ms: 9,
        decided_by: text("decided_by"),
        decided_unix_ms: 10,
        subagent: text("subagent"),
        digest: text("digest"),
        question: text("question"),
        choices: vec![text("choices")],
        answer: text("answer"),
        rule_id: text("rule_id"),
        form: text("form"),
        plan: Some(plan_of_all()),
        call_id: text("call_id"),
    }
}

fn memory_of_all() -> Memory {
    Memory {
        id: text("id"),
        content: text("content"),
        tags: vec![text("tags")],
        source: text("source"),
        created_unix_ms: 11,
        last_used_unix_ms: 12,
        count: 13,
        workflow: Some(Workflow {
            trigger: text("trigger"),
            steps: vec![WorkflowStep { plugin: text("plugin"), action: text("action"), order: 14 }],
            outcome: text("outcome"),
        }),
    }
}

fn model_of_all() -> Model {
    Model {
        id: text("id"),
        alias: text("alias"),
        tier: text("tier"),
        context_window: 15,
        tools: true,
        vision: true,
        input_price: text("input_price"),
        output_price: text("output_price"),
        cached_input_price: text("cached_input_price"),
        free: true,
        weight: 16,
        estimate: text("estimate"),
        state: text("state"),
        why: text("why"),
        priority: 76,
        local: true,
        sampling: Some(Sampling { temperature: None, top_p: None, max_tokens: Some(41) }),
        thinking: text("thinking"),
    }
}

fn provider_state() -> ProviderState {
    ProviderState {
        name: text("name"),
        kind: text("kind"),
        state: text("state"),
        why: text("why"),
        scripted: true,
    }
}

fn started() -> Started {
    Started {
        session_id: text("session_id"),
        turn: 17,
        correlation_id: text("correlation_id"),
        repeated: true,
    }
}

fn loop_state() -> LoopState {
    LoopState {
        phase: text("phase"),
        iteration: 18,
        max_iterations: 19,
        goal: text("goal"),
        pending: vec![text("pending")],
        completed: vec![text("completed")],
        total_tokens: 20,
        total_cost_pico_usd: 21,
        state: text("state"),
        event: text("event"),
        budgets: Some(BudgetsLeft {
            iterations: 22,
            retries: 23,
            wall_time_ms: 24,
            cost_micro_usd: Some(25),
        }),
        session_id: text("session_id"),
    }
}

fn tool_progress() -> ToolProgress {
    ToolProgress { call_id: text("call_id"), progress: 26.5, total: Some(27.5), message: text("message") }
}

fn tool_stream() -> ToolStream {
    ToolStream {
        call_id: text("call_id"),
        lines: vec![text("line")],
        left_out_lines: 101,
        left_out_bytes: 102,
    }
}

fn subagent_start() -> SubagentStart {
    SubagentStart { agent: text("agent"), task: text("task"), call_id: text("call_id") }
}

fn subagent_result() -> SubagentResult {
    SubagentResult {
        agent: text("agent"),
        call_id: text("call_id"),
        result: text("result"),
        error: text("error"),
        tokens: 28,
        cost_pico_usd: 29,
        duration_ms: 30,
        models: vec![text("models")],
    }
}

fn notice() -> Notice {
    Notice { level: text("level"), text: text("text"), discard_text: true }
}

fn done() -> Done {
    Done {
        text: text("text"),
        usage: Some(Usage {
            input_tokens: 31,
            output_tokens: 32,
            cached_input_tokens: 33,
            thinking_tokens: 34,
            cache_written_tokens: 70,
        }),
        provider: text("provider"),
        model: text("model"),
        iteration: 35,
        cost_pico_usd: 36,
        duration_ms: 37,
        attempts: vec![Attempt {
            provider: text("provider"),
            model: text("model"),
            success: true,
            error_class: text("error_class"),
            error: text("error"),
            latency_ms: 38,
            cost_pico_usd: 39,
        }],
        tool_calls: 40,
        scripted: true,
        context: Some(ContextStats {
            window_tokens: 41,
            total_tokens: 42,
            system_tokens: 43,
            summary_tokens: 44,
            recent_tokens: 45,
            tool_result_tokens: 46,
            tools_tokens: 47,
            exact: true,
            compression_ratio: Some(48.5),
            tools_offered: 49,
            tools_left_out: 50,
            results_cut: 51,
            result_tokens_cut: 72,
            profile: text("profile"),
            turns: 73,
            messages_left_out: 74,
            images_left_out: 76,
        }),
        finish: text("finish"),
        models: vec![text("models")],
        saved_pico_usd: 75,
        // Of `Complete` alone, which no verb asks.
        client_calls: Vec::new(),
    }
}

fn error() -> Error {
    Error {
        reason: text("reason"),
        message: text("message"),
        partial: text("partial"),
        attempts: vec![Attempt {
            provider: text("provider"),
            model: text("model"),
            success: true,
            error_class: text("error_class"),
            error: text("error"),
            latency_ms: 52,
            cost_pico_usd: 53,
        }],
        usage: Some(Usage {
            input_tokens: 54,
            output_tokens: 55,
            cached_input_tokens: 56,
            thinking_tokens: 57,
            cache_written_tokens: 71,
        }),
        cost_pico_usd: 58,
        iteration: 59,
        duration_ms: 60,
        context: None,
        finish: text("finish"),
        models: vec![text("models")],
    }
}

fn compact_session_response() -> CompactSessionResponse {
    CompactSessionResponse { messages: 61, tokens_before: 62, tokens_after: 63, summary: text("summary") }
}

fn tool_call() -> ToolCall {
    ToolCall {
        call_id: text("call_id"),
        plugin: text("plugin"),
        action: text("action"),
        tool: text("tool"),
        arguments: text("arguments"),
    }
}

fn tool_result() -> ToolResult {
    ToolResult {
        call_id: text("call_id"),
        tool: text("tool"),
        success: true,
        output: text("output"),
        duration_ms: 64,
        truncated: true,
        receipt: Vec::new(),
        arguments: String::new(),
        confirmation: text("confirmation"),
    }
}
