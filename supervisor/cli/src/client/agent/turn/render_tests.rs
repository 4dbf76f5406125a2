use talon_proto::agent::{Approval, Attempt, Started, SubagentStart, Text, Thinking, Usage};

use super::*;

const ALL: DisplayFilter =
    DisplayFilter { text: true, thoughts: true, lines: true, notices: true, words: false };

fn text(text: &str) -> chunk::Kind {
    chunk::Kind::Text(Text { text: text.into(), ..Text::default() })
}

fn thought(text: &str) -> chunk::Kind {
    chunk::Kind::Thinking(Thinking { text: text.into() })
}

/// All that a turn shows, with what goes to stderr in brackets.
fn shown(wanted: DisplayFilter, kinds: &[chunk::Kind]) -> String {
    let mut renderer = Renderer::new(wanted);
    let mut all: Vec<DisplayItem> =
        kinds.iter().flat_map(|kind| renderer.chunk(kind, SystemTime::UNIX_EPOCH)).collect();
    all.extend(renderer.finish());
    all.into_iter()
        .map(|shown| match shown {
            DisplayItem::Answer(text) => text.into_string(),
            DisplayItem::Thought(text) => format!("({text})"),
            DisplayItem::Break(TextStream::Answer) => "\n".to_owned(),
            DisplayItem::Break(TextStream::Thought) => "(\n)".to_owned(),
            DisplayItem::Line(line) => format!("[{}]\n", line.render(false)),
            DisplayItem::Phase(text) => format!("<{text}>\n"),
        })
        .collect()
}

#[test]
fn a_turn_reads_from_top_to_bottom() {
    let kinds = [
        chunk::Kind::Started(Started::default()),
        chunk::Kind::Loop(LoopState {
            phase: "planning".into(),
            iteration: 1,
            max_iterations: 10,
            ..LoopState::default()
        }),
        thought("The user wants "),
        thought("a file."),
        text("I will look"),
        chunk::Kind::ToolCall(ToolCall {
            call_id: "1".into(),
            plugin: "files".into(),
            action: "read".into(),
            tool: "files__read".into(),
            arguments: "{\"path\": \"a\u{1b}[2J\"}".into(),
        }),
        chunk::Kind::ToolProgress(ToolProgress {
            progress: 1.0,
            total: Some(4.0),
            message: "reading".into(),
            ..ToolProgress::default()
        }),
        chunk::Kind::ToolStream(talon_proto::agent::ToolStream {
            call_id: "1".into(),
            lines: (1..=25).map(|line| format!("  line {line}\u{1b}")).collect(),
            left_out_lines: 3,
            left_out_bytes: 30,
        }),
        chunk::Kind::ToolResult(ToolResult {
            call_id: "1".into(),
            tool: "files__read".into(),
            success: true,
            output: "[plugin_output nonce=1]\nfirst line\nsecond\n[/plugin_output]".into(),
            duration_ms: 12,
            truncated: true,
            ..ToolResult::default()
        }),
        chunk::Kind::SubagentStart(SubagentStart {
            agent: "CriticAgent".into(),
            task: "judge\nit".into(),
            ..SubagentStart::default()
        }),
        chunk::Kind::SubagentResult(SubagentResult {
            agent: "CriticAgent".into(),
            error: "it took too long".into(),
            tokens: 1234,
            cost_pico_usd: 1_000_000_000,
            duration_ms: 2500,
            ..SubagentResult::default()
        }),
        chunk::Kind::Notice(Notice {
            level: "warn".into(),
            text: "openai answered 500; anthropic is asked".into(),
            discard_text: true,
        }),
        text("It holds "),
        text("two lines.\n"),
    ];
    insta::assert_snapshot!("turn", shown(ALL, &kinds));
    let quiet = DisplayFilter { text: false, thoughts: false, lines: false, notices: true, words: false };
    insta::assert_snapshot!("turn-quiet", shown(quiet, &kinds));
}

#[test]
fn an_approval_is_shown_whatever_is_wanted() {
    let approval = |state: &str| {
        chunk::Kind::Approval(Approval {
            id: "01A".into(),
            plugin: "shell".into(),
            action: "run".into(),
            args: [("command".to_owned(), "ls".to_owned())].into(),
            why: "always".into(),
            state: state.into(),
            ..Approval::default()
        })
    };
    let quiet = DisplayFilter { text: false, thoughts: false, lines: false, notices: false, words: false };
    assert_eq!(
        shown(quiet, &[approval("pending"), approval("denied")]),
        "[approval 01A shell.run: always]\n[  command = ls]\n[approval 01A: denied]\n"
    );
}

#[test]
fn an_answer_that_was_not_heard_in_pieces_is_shown_whole() {
    let mut renderer = Renderer::new(ALL);
    let all = renderer.answer("It is <tool_call>");
    assert!(
        matches!(
            &all[..],
            [DisplayItem::Answer(text), DisplayItem::Break(TextStream::Answer)] if &**text == "It is <tool_call>"
        ),
        "{all:?}"
    );
}

#[test]
fn the_last_line_says_who_answered_and_what_it_took() {
    let mut done = Done {
        usage: Some(Usage { input_tokens: 1200, output_tokens: 34, ..Usage::default() }),
        provider: "ollama".into(),
        model: "qwen3:8b".into(),
        cost_pico_usd: 1_200_000_000,
        duration_ms: 3200,
        attempts: vec![Attempt::default()],
        tool_calls: 2,
        ..Done::default()
    };
    assert_eq!(
        footer(&done, "01S", false).render(false),
        "ollama/qwen3:8b · 2 tool calls · 1,234 tokens · $0.0012 · 3.2 s · session 01S"
    );
    done.scripted = true;
    assert!(footer(&done, "01S", false).render(false).starts_with("scripted: no model answered · "));
}

#[test]
fn words_stand_for_symbols_where_a_screen_reader_speaks() {
    let words = DisplayFilter { words: true, ..ALL };
    let call =
        ToolCall { call_id: "1".into(), plugin: "git".into(), action: "log".into(), ..ToolCall::default() };
    let result = |success| ToolResult { tool: "git__log".into(), success, ..ToolResult::default() };
    let kinds = [
        chunk::Kind::ToolCall(call),
        chunk::Kind::ToolResult(result(true)),
        chunk::Kind::ToolResult(result(false)),
    ];
    let all = shown(words, &kinds);
    assert!(all.is_ascii(), "{all}");
    assert!(
        all.contains("calls git.log") && all.contains("done: git.log") && all.contains("failed: git.log")
    );
    assert!(footer(&Done::default(), "01S", true).render(false).is_ascii());
}
