use std::sync::Arc;

use proptest::prelude::*;
use talon_llm::Provider;
use talon_llm::config::Timeouts;
use talon_llm::route::catalog::{Catalog, CatalogKeys};
use talon_llm::route::cost::{Budget, Ledgers};
use talon_llm::route::fallback::ChainSettings;
use talon_llm::scripted::Scripted;

use super::*;

fn chain(script: &str) -> Chain {
    let scripted = Scripted::parse("scripted", "a test", script, Timeouts::default()).expect("a script");
    let keys: CatalogKeys = serde_saphyr::from_str(
        "scripted/one: { tier: cheap, context_window: 128000, cost: { input: 1, output: 1 } }",
    )
    .expect("keys");
    let catalog = Catalog::new(&keys, &["scripted".to_owned()].into()).expect("a catalog");
    let providers: [Arc<dyn Provider>; 1] = [Arc::new(scripted)];
    let settings = ChainSettings::default();
    Chain::new(Arc::new(catalog), providers, Ledgers::new(Budget::default()), settings, Arc::new(()))
}

fn scope(pins: &Pins) -> SummaryScope<'_> {
    SummaryScope { session: "s", pins, deadline: None }
}

fn past(turns: u64, words: usize) -> Vec<HistoryMessage> {
    let said = |turn: u64| {
        let text = format!("{turn} {}", "word ".repeat(words));
        [Message::User { text: text.clone() }, Message::Assistant { text, calls: vec![], thoughts: None }]
            .map(|message| HistoryMessage { turn, message })
    };
    (1..=turns).flat_map(said).collect()
}

#[tokio::test(start_paused = true)]
async fn a_question_takes_whole_turns_and_goes_on_with_the_summary_before() {
    let chain = chain("answers: [{ when: { user: 'it began' }, say: went on }, { say: it began }]");
    let past = past(40, 300);
    let first =
        extend_summary(&chain, scope(&Pins::default()), &Summary::default(), &past, &Sections::default())
            .await
            .expect("a summary");
    assert!(first.taken > 2 && first.taken < past.len() && first.taken % 2 == 0, "{}", first.taken);
    assert_eq!((first.summary.text.as_str(), first.summary.messages), ("it began", first.taken as u64));
    assert!(first.pico_usd > 0 && first.usage.input_tokens > 0);
    let rest = &past[first.taken..];
    let second = extend_summary(&chain, scope(&Pins::default()), &first.summary, rest, &Sections::default())
        .await
        .expect("a summary");
    assert_eq!(second.summary.text, "went on");
    assert_eq!(second.summary.messages, (first.taken + second.taken) as u64);
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_is_none_is_an_error_and_a_long_one_is_cut() {
    let chain = chain(
        "answers: [{ when: { user: 'long' }, say: '{{user}}' }, { fault: { class: request, message: no } }]",
    );
    let mut messages = past(1, 3);
    let error =
        extend_summary(&chain, scope(&Pins::default()), &Summary::default(), &messages, &Sections::default())
            .await
            .expect_err("none");
    assert!(error.to_string().contains("no"), "{error}");
    messages[0].message = Message::User { text: "long ".repeat(300) };
    let sections = Sections { summary: 50, ..Sections::default() };
    let written = extend_summary(&chain, scope(&Pins::default()), &Summary::default(), &messages, &sections)
        .await
        .expect("a summary");
    assert!(written.summary.text.contains("[truncated") && Estimate.count(&written.summary.text) <= 100);
}

proptest! {
    #[test]
    fn one_message_is_taken_at_least_and_no_call_loses_its_results(
        kinds in proptest::collection::vec((0_u8..3, 0_usize..40, any::<bool>()), 1..30),
        room in 0_usize..2000,
    ) {
        let mut turn = 1;
        let past: Vec<HistoryMessage> = kinds.into_iter().map(|(kind, words, next)| {
            let text = "word ".repeat(words);
            let message = match kind {
                0 => Message::User { text },
                1 => Message::Assistant { text, calls: vec![], thoughts: None },
                _ => Message::Tool { call_id: "c".to_owned(), content: text, is_error: false },
            };
            turn += u64::from(next && kind == 0);
            HistoryMessage { turn, message }
        }).collect();
        let taken = prefix_len(&past, room, &Estimate);
        prop_assert!((1..=past.len()).contains(&taken));
        let is_result = past.get(taken).is_some_and(|past| matches!(past.message, Message::Tool { .. }));
        prop_assert!(!is_result);
    }
}
