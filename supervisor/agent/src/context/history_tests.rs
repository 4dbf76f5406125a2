use proptest::prelude::*;
use talon_guard::Sanitizer;
use talon_llm::model::Message;

use super::tests::{calls, history, is_well_formed, result, said, user};
use super::*;
use crate::tokens::{Estimate, TokenCounter as _};

fn show(turns: &[Vec<Message>]) -> history::HistoryView {
    history::select(&history(turns), &Sections::default(), &Estimate, &Sanitizer::default())
}

fn left_out(shown: &history::HistoryView) -> Vec<(usize, usize)> {
    shown.left_out.iter().map(|range| (range.start, range.end)).collect()
}

#[test]
fn the_last_turns_are_shown_and_more_than_ten_go_down_to_five() {
    let turn = |n: usize| vec![user(&format!("question {n}")), said(&format!("answer {n}"))];
    let turns: Vec<_> = (0..10).map(turn).collect();
    let shown = show(&turns);
    assert_eq!((shown.turns, shown.left_out.len(), shown.messages.len()), (10, 0, 20));
    let turns: Vec<_> = (0..11).map(turn).collect();
    let shown = show(&turns);
    assert_eq!((shown.turns, left_out(&shown)), (5, vec![(0, 12)]));
    assert_eq!(shown.messages[0], user("question 6"));
}

#[test]
fn long_turns_leave_fewer_and_the_current_question_always_stays() {
    let long = "word ".repeat(600);
    let turns: Vec<_> = (0..6).map(|n| vec![user(&format!("{n} {long}")), said("ok")]).collect();
    let shown = show(&turns);
    assert!(shown.turns < 5 && shown.recent_tokens <= 2_000, "{} {}", shown.turns, shown.recent_tokens);
    let endless = "word ".repeat(10_000);
    let shown = show(&[vec![user("before"), said("yes")], vec![user(&endless)]]);
    assert_eq!(shown.messages, [user(&endless)]);
    assert_eq!(left_out(&shown), [(0, 2)]);
    assert!(show(&[]).messages.is_empty());
}

#[test]
fn the_latest_results_have_a_budget_and_older_ones_less() {
    let long = "found it here\n".repeat(1_000);
    let turn = vec![
        user("look"),
        calls(&["1", "2"]),
        result("1", &long),
        result("2", "short"),
        calls(&["3"]),
        result("3", &long),
    ];
    let shown = show(&[turn]);
    is_well_formed(&shown.messages).expect("pairs stay together");
    assert_eq!(shown.cut, 2);
    assert!(shown.result_tokens <= 500 && shown.result_tokens > 400, "{}", shown.result_tokens);
    let Message::Tool { content, .. } = &shown.messages[2] else { panic!("{:?}", shown.messages[2]) };
    assert!(
        Estimate.count(content) <= Sections::default().min_result && content.contains("[truncated: "),
        "{content}"
    );
    assert_eq!(shown.messages[3], result("2", "short"));
}

#[test]
fn what_is_going_on_loses_its_oldest_exchanges_first_and_never_the_question() {
    let long = "found it here\n".repeat(1_000);
    let mut turn = vec![user("look")];
    for n in 0..20 {
        let id = n.to_string();
        turn.extend([calls(&[&id]), result(&id, &long)]);
    }
    let shown = show(&[vec![user("hi"), said("hello")], turn]);
    is_well_formed(&shown.messages).expect("pairs stay together");
    assert_eq!(shown.messages[0], user("look"));
    assert_eq!(shown.left_out[0], 0..2);
    assert_eq!(shown.left_out[1].start, 3);
    let Some(Message::Tool { call_id, .. }) = shown.messages.last() else { panic!("the latest result") };
    assert_eq!(call_id, "19");
    assert!(shown.recent_tokens <= 2_000, "{}", shown.recent_tokens);
}

// Promises: AGENT-9
#[test]
fn a_transcript_that_a_crash_left_is_made_whole() {
    let broken = vec![
        result("0", "nobody's"),
        user("go"),
        calls(&["1", "2"]),
        result("2", "two"),
        user("[Note] go on"),
        result("9", "nobody's"),
    ];
    let shown = show(&[broken]);
    is_well_formed(&shown.messages).expect("pairs stay together");
    assert!(
        matches!(&shown.messages[2], Message::Tool { call_id, content, is_error: true } if call_id == "1" && content.contains("interrupted"))
    );
    assert_eq!(shown.messages[3], result("2", "two"));
}

fn any_message() -> impl Strategy<Value = Message> {
    let id = || prop::sample::select(vec!["1", "2", "3"]);
    prop_oneof![
        "[a-z ]{0,40}".prop_map(|text| user(&text)),
        "[a-z ]{0,40}".prop_map(|text| said(&text)),
        prop::collection::vec(id(), 1..4).prop_map(|ids| calls(&ids)),
        (id(), 0..120usize).prop_map(|(id, lines)| result(id, &"some words\n".repeat(lines))),
    ]
}

proptest! {
    /// Whatever the history holds, crashed turns too: calls have their results, in order and right behind
    /// them, and what is said is either shown or left out to be summarized, never both or neither.
    // Promises: AGENT-9
    #[test]
    fn what_is_shown_is_well_formed(turns in prop::collection::vec(prop::collection::vec(any_message(), 1..12), 0..14)) {
        let mut past = history(&turns);
        // Each text once, to tell where it went.
        for (n, past) in past.iter_mut().enumerate() {
            match &mut past.message {
                Message::User { text } => *text = format!("{n} {text}"),
                Message::Assistant { text, calls, .. } if calls.is_empty() => *text = format!("{n} {text}"),
                _ => {}
            }
        }
        let sections = Sections { recent: 400, tool_results: 200, ..Sections::default() };
        let shown = history::select(&past, &sections, &Estimate, &Sanitizer::default());
        prop_assert_eq!(is_well_formed(&shown.messages), Ok(()));
        prop_assert!(shown.left_out.iter().all(|range| range.start < range.end && range.end <= past.len()));
        prop_assert!(shown.left_out.windows(2).all(|pair| pair[0].end <= pair[1].start));
        prop_assert_eq!(count_messages(&shown.messages, &Estimate), shown.recent_tokens + shown.result_tokens);
        for (n, past) in past.iter().enumerate() {
            let is_text = match &past.message {
                Message::User { .. } => true,
                Message::Assistant { calls, .. } => calls.is_empty(),
                Message::System { .. } | Message::Images { .. } | Message::Tool { .. } => false,
            };
            let is_left_out = shown.left_out.iter().any(|range| range.contains(&n));
            prop_assert!(!is_text || is_left_out != shown.messages.contains(&past.message), "{n}");
        }
        if shown.turns > 1 {
            prop_assert!(shown.recent_tokens <= sections.recent, "{}", shown.recent_tokens);
        }
        // What was asked last is there.
        let first_of_last = past.len() - turns.last().map_or(0, Vec::len);
        if let Some(HistoryMessage { message: message @ Message::User { .. }, .. }) = past.get(first_of_last) {
            prop_assert!(shown.messages.contains(message));
        }
    }
}
