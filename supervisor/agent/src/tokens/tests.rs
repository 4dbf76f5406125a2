use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn shares_give_what_is_not_needed_to_the_others() {
    assert_eq!(shares(&[10, 400, 400], 500), [10, 245, 245]);
    assert_eq!(shares(&[100, 100], 500), [100, 100]);
    assert_eq!(shares(&[], 500), [0usize; 0]);
}

#[test]
fn models_are_counted_by_their_own_tokenizer_where_there_is_one() {
    for (model, counter) in [
        ("gpt-4o-mini", &OpenAiTokenizer::O200k),
        ("openai/gpt-5", &OpenAiTokenizer::O200k),
        ("gpt-4-turbo", &OpenAiTokenizer::Cl100k),
    ] {
        assert_eq!(format!("{:?}", counter_for(model)), format!("{counter:?}"));
    }
    for model in ["claude-sonnet-4", "llama3.2", "deepseek-chat", "qwen3:8b", ""] {
        assert_eq!(counter_for(model).accuracy(), Accuracy::Estimate, "{model}");
    }
    // Numbers that tiktoken gives.
    assert_eq!(OpenAiTokenizer::O200k.count("hello world"), 2);
    assert_eq!(OpenAiTokenizer::Cl100k.count("tiktoken is great!"), 6);
}

#[test]
fn what_a_tool_writes_against_the_tokenizer_is_counted_all_the_same() {
    for (text, most) in [
        (" ".repeat(1_500_000) + "x", 40_000),
        ("\n ".repeat(300_000), 650_000),
        ("a".repeat(300_000), 60_000),
        ("\u{3000}".repeat(300_000) + "x", 400_000),
    ] {
        let count = OpenAiTokenizer::O200k.count(&text);
        assert!((1..most).contains(&count), "{count}");
    }
    let lines = "a line of some words\n".repeat(10_000);
    assert_eq!(
        OpenAiTokenizer::O200k.count(&lines),
        10_000 * OpenAiTokenizer::O200k.count("a line of some words\n")
    );
}

#[test]
fn the_estimate_is_near_the_real_number_and_rather_above_it() {
    let mut texts: Vec<(&str, String)> =
        crate::prompt::LANGUAGES.iter().map(|(language, text)| (*language, (*text).to_owned())).collect();
    texts.push(("rust", include_str!("../budget.rs").to_owned()));
    texts.push((
        "json",
        json!({ "type": "object", "properties": { "path": { "type": "string" } }, "n": [1, 22, 333] })
            .to_string(),
    ));
    for (what, text) in texts {
        let (real, estimate) = (OpenAiTokenizer::O200k.count(&text), Estimate.count(&text));
        let ratio = estimate as f64 / real as f64;
        assert!((0.95..2.0).contains(&ratio), "{what}: {estimate} for {real} is {ratio:.2}");
    }
}

proptest! {
    #[test]
    fn a_beginning_fits_and_ends_between_characters(text in "\\PC{0,300}", tokens in 0..100usize) {
        for counter in [&Estimate as &dyn TokenCounter, &OpenAiTokenizer::O200k] {
            let end = fit(counter, &text, tokens);
            prop_assert!(text.is_char_boundary(end));
            prop_assert!(counter.count(&text[..end]) <= tokens);
        }
    }

    #[test]
    fn shares_keep_to_the_budget_and_to_the_need(sizes in prop::collection::vec(0..1000usize, 0..12), budget in 0..3000usize) {
        let shares = shares(&sizes, budget);
        prop_assert!(shares.iter().sum::<usize>() <= budget);
        prop_assert!(shares.iter().zip(&sizes).all(|(share, size)| share <= size));
        if sizes.iter().sum::<usize>() <= budget {
            prop_assert_eq!(shares, sizes);
        }
    }
}
