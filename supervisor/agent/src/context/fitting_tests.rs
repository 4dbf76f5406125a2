use talon_guard::Sanitizer;
use talon_llm::model::Message;

use super::*;
use crate::context::tests::{calls, history, is_well_formed, result, said, user};
use crate::context::{ContextPlan, Window, handle, history as select};
use crate::tokens::{Estimate, TokenCounter as _};

fn show(turns: &[Vec<Message>], recent: usize) -> HistoryView {
    let plan = ContextPlan { recent: Some(recent), ..ContextPlan::default() };
    select::select(&history(turns), &plan.sections(Window(128_000), 700), &Estimate, &Sanitizer::default())
}

fn lines(n: usize) -> String {
    (0..n).map(|n| format!("line {n} of it\n")).collect()
}

fn content(message: &Message) -> &str {
    let Message::Tool { content, .. } = message else { panic!("{message:?}") };
    content
}

// Promises: AGENT-64
#[test]
fn everything_is_whole_while_it_fits() {
    let mut turn = vec![user("look")];
    for n in 0..20 {
        turn.extend([calls(&[&n.to_string()]), result(&n.to_string(), &lines(100))]);
    }
    let mut turns: Vec<_> =
        (0..100).map(|n| vec![user(&format!("question {n}")), said(&format!("answer {n}"))]).collect();
    turns.push(turn);
    let shown = show(&turns, 90_000);
    assert_eq!((shown.turns, shown.cut, shown.left_out.len()), (101, 0, 0));
    let whole: Vec<Message> = turns.concat();
    assert_eq!(shown.messages, whole);
}

// Promises: AGENT-64
#[test]
fn the_oldest_results_shrink_first_and_say_how_to_read_on() {
    let mut turn = vec![user("look")];
    for n in 0..10 {
        turn.extend([calls(&[&n.to_string()]), result(&n.to_string(), &lines(800))]);
    }
    let one = Estimate.count(content(&result("0", &lines(800))));
    let shown = show(std::slice::from_ref(&turn), one * 8);
    is_well_formed(&shown.messages).expect("pairs stay together");
    assert!(shown.left_out.is_empty() && shown.recent_tokens + shown.result_tokens <= one * 8);
    let results: Vec<&str> = shown
        .messages
        .iter()
        .filter(|message| matches!(message, Message::Tool { .. }))
        .map(content)
        .collect();
    let cut: Vec<bool> = results.iter().map(|content| content.contains("[truncated: ")).collect();
    let first_whole = cut.iter().position(|cut| !cut).expect("some are whole");
    assert!(first_whole >= 2 && cut[first_whole..].iter().all(|cut| !cut), "{cut:?}");
    assert_eq!(shown.cut, first_whole);
    let handle = handle(content(&turn[2]));
    assert!(results[0].contains(&format!("; talon.read_more handle={handle} offset=")), "{}", results[0]);
    // The text is the same for several questions in a row.
    turn.extend([calls(&["10"]), result("10", "short")]);
    let next = show(&[turn], one * 8);
    assert_eq!(next.messages[..shown.messages.len()], shown.messages);
}

// Promises: AGENT-64
#[test]
fn older_turns_are_summarized_down_to_the_target_and_the_current_one_stays() {
    let long = "word ".repeat(300);
    let turns: Vec<_> = (0..30).map(|n| vec![user(&format!("{n} {long}")), said("ok")]).collect();
    let shown = show(&turns, 6_000);
    assert!(shown.recent_tokens <= 3_000 && shown.recent_tokens > 2_000, "{}", shown.recent_tokens);
    assert_eq!((shown.left_out.len(), shown.left_out[0].start), (1, 0));
    assert_eq!(shown.messages.last(), Some(&said("ok")));
    // And one that cannot fit is shown whole: the window refuses it, and says so.
    let endless = vec![user(&"word ".repeat(10_000))];
    let shown = show(&[vec![user("before"), said("yes")], endless.clone()], 6_000);
    assert_eq!(shown.messages, endless);
}

// Promises: AGENT-64
#[test]
fn the_latest_results_are_cut_last_and_an_endless_turn_loses_its_oldest_exchanges() {
    let shown = show(&[vec![user("look"), calls(&["1"]), result("1", &lines(4_000))]], 6_000);
    let latest = content(&shown.messages[2]);
    assert!((5_000..6_000).contains(&Estimate.count(latest)), "{}", Estimate.count(latest));
    let mut turn = vec![user("look")];
    for n in 0..60 {
        turn.extend([calls(&[&n.to_string()]), result(&n.to_string(), &lines(100))]);
    }
    let shown = show(&[vec![user("hi"), said("hello")], turn], 6_000);
    is_well_formed(&shown.messages).expect("pairs stay together");
    assert_eq!(shown.messages[0], user("look"));
    assert_eq!(shown.left_out[0], 0..2);
    assert_eq!(shown.left_out[1].start, 3);
    assert_eq!(content(shown.messages.last().expect("the latest")), content(&result("59", &lines(100))));
    assert!(shown.recent_tokens + shown.result_tokens <= 6_000);
}
