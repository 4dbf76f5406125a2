//! A long session with planted facts: what fits the window is never lost, and what was summarized is found
//! again. The scripted model knows only what a request shows it. `make long` runs the one of 300 turns; the
//! one of 100 has a window of a third of its size, so that the same share of it is summarized.

use std::fmt::Write as _;

use serde_json::Value;
use talon_tests::Builder;
use talon_tests::ask::ask;
use talon_tests::provider::{Provider, ScriptedReply};

/// Every tenth turn plants a fact.
const PLANTED_EVERY: usize = 10;
/// The window for each turn: half of what is said in all turns fits it.
const WINDOW_FOR_EACH_TURN: usize = 160;
/// No session here has more turns.
const MOST_TURNS: usize = 300;
const SUMMARIZES: &str = "You write the running summary";

/// The code of a locker: a word that nothing else has.
fn code(turn: usize) -> String {
    format!("K{:05}", turn * 7919 % 100_000)
}

fn fact(turn: usize) -> String {
    format!("locker {turn} has code {}", code(turn))
}

fn said(turn: usize) -> String {
    let planted = if turn.is_multiple_of(PLANTED_EVERY) {
        format!("Note that {}. ", fact(turn))
    } else {
        String::new()
    };
    let small_talk =
        "We went on to talk about the garden, its plants, and when they want to be watered. ".repeat(8);
    format!("Turn {turn}. {planted}{small_talk}")
}

/// All texts of a request.
fn texts(question: &Value) -> String {
    let messages = question["messages"].as_array().expect("a request has messages");
    messages.iter().filter_map(|it| it["content"].as_str()).collect::<Vec<_>>().join("\n")
}

/// The facts in a text, each once, in their order.
fn facts(text: &str) -> Vec<String> {
    (0..MOST_TURNS)
        .filter(|turn| turn.is_multiple_of(PLANTED_EVERY))
        .map(fact)
        .filter(|fact| text.contains(fact.as_str()))
        .collect()
}

/// A summary keeps the facts that it was shown, and an answer is what the request has about it.
fn reply(question: &Value) -> ScriptedReply {
    let text = texts(question);
    if text.contains(SUMMARIZES) {
        return ScriptedReply::Text(format!("They talked about a garden. {}.", facts(&text).join(", ")));
    }
    let messages = question["messages"].as_array().expect("a request has messages");
    let asked = messages.iter().rev().find(|it| it["role"] == "user").and_then(|it| it["content"].as_str());
    let locker = asked.and_then(|asked| asked.strip_prefix("Which code has locker ")?.strip_suffix('?'));
    let answer = match locker {
        Some(locker) => text
            .split_once(&format!("locker {locker} has code "))
            .and_then(|(_, rest)| rest.split(|c: char| !c.is_alphanumeric()).next())
            .unwrap_or("I do not know"),
        None => "Yes.",
    };
    ScriptedReply::Text(answer.to_owned())
}

// Promises: AGENT-100
#[tokio::test]
async fn planted_facts_are_found_again_after_100_turns() {
    planted_facts_are_found_again(100).await;
}

// Promises: AGENT-100
#[tokio::test]
#[ignore = "takes up to 2 minutes: `make long` runs it"]
async fn planted_facts_are_found_again_after_300_turns() {
    planted_facts_are_found_again(MOST_TURNS).await;
}

async fn planted_facts_are_found_again(turns: usize) {
    let window = turns * WINDOW_FOR_EACH_TURN;
    let provider = Provider::responding(reply).await;
    let url = provider.url();
    let builder = Builder::new().config(&format!(
        "agent: {{ enabled: true }}\nmodels:\n  providers:\n    local: {{ kind: openai, base_url: \"{url}\" }}\n  catalog:\n    \
         local/test: {{ tier: mid, context_window: {window}, tools: true, free: true }}\n"
    ));
    let supervisor = builder.start().await;
    let mut session = String::new();
    let (mut summaries, mut seen) = (0, 0);
    for turn in 0..turns {
        let more: Vec<&str> =
            if session.is_empty() { Vec::new() } else { vec!["--session", session.as_str()] };
        let asked = ask(&supervisor, &said(turn), &more).await;
        assert_eq!((asked.code, asked.text("text")), (Some(0), "Yes."), "turn {turn}: {asked:?}");
        asked.text("session_id").clone_into(&mut session);
        let bodies = provider.bodies();
        for body in &bodies[seen..] {
            summaries += usize::from(body.contains(SUMMARIZES));
        }
        seen = bodies.len();
        let question: Value = serde_json::from_str(&bodies[seen - 1]).expect("a request is JSON");
        let shown = texts(&question);
        // What was planted so far is before the model, in the words of the person or in the summary.
        let mut missing = String::new();
        for planted in (0..=turn).filter(|turn| turn.is_multiple_of(PLANTED_EVERY)) {
            if !shown.contains(&fact(planted)) {
                write!(missing, " {planted}").expect("a text takes all");
            }
        }
        assert_eq!(missing, "", "facts that turn {turn} does not see, after {summaries} summaries");
        if summaries == 0 {
            let lost: Vec<usize> = (0..turn).filter(|turn| !shown.contains(&said(*turn))).collect();
            assert_eq!(lost, [0; 0], "turns that fit and that turn {turn} does not see");
        }
    }
    assert!(summaries > 0, "{turns} turns do not fit a window of {window}, so there are summaries");
    for turn in (0..turns).step_by((turns / 6).next_multiple_of(PLANTED_EVERY)) {
        let asked =
            ask(&supervisor, &format!("Which code has locker {turn}?"), &["--session", &session]).await;
        assert_eq!((asked.code, asked.text("text")), (Some(0), code(turn).as_str()), "{asked:?}");
    }
    assert!(supervisor.stop().await.processes.is_empty());
}
