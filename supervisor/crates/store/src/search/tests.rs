use proptest::prelude::*;

use super::tokenizer::{script_runs, tokenize};
use super::{Features, Query, fold, stems};

fn terms(text: &str) -> Vec<Vec<String>> {
    Query::parse(text).expect("it has words").terms.into_iter().map(|term| term.words).collect()
}

/// What both engines do: whole words that follow each other, the last by its beginning.
fn finds(text: &str, query: &str) -> bool {
    let indexed = tokenize(text);
    terms(query).iter().all(|term| {
        let (last, first) = term.split_last().expect("a term has words");
        indexed.windows(term.len()).any(|at| at[..first.len()] == *first && at[first.len()].starts_with(last))
    })
}

#[test]
fn accents_capitals_and_widths_do_not_count() {
    for (text, folded) in [
        ("Crème BRÛLÉE", "creme brulee"),
        ("Straße", "strasse"),
        ("ŁÓDŹ", "lodz"),
        ("Ærøskøbing", "aeroskobing"),
        ("Ｆｕｌｌ　Ｗｉｄｔｈ", "full width"),
        ("İstanbul ısı", "istanbul isi"),
        ("Ἀθῆναι ΛΌΓΟΣ", "αθηναι λογοσ"),
        ("Ёлка", "елка"),
        ("ガ が", "ガ が"),
        ("한국어", "한국어"),
    ] {
        assert_eq!(fold(text), folded, "{text}");
    }
}

#[test]
fn words_end_at_punctuation_and_where_a_script_without_spaces_begins() {
    assert_eq!(tokenize("git push --force, v1.2"), ["git", "push", "force", "v1", "2"]);
    assert_eq!(tokenize("東京都 と iPhoneの"), ["東京", "京都", "都", "と", "iphone", "の"]);
    assert_eq!(tokenize("हिन्दी भाषा"), ["हिन्दी", "भाषा"]);
    assert!(script_runs("東").iter().all(super::tokenizer::ScriptRun::is_dense));
    assert!(tokenize("— … 🎉").is_empty());
}

#[test]
fn a_query_finds_beginnings_of_words_and_any_part_of_dense_scripts() {
    for (text, query, found) in [
        ("the deployment failed", "deploy", true),
        ("the deployment failed", "failed deploy", true),
        ("the deployment failed", "ployment", false),
        ("東京都庁", "東京", true),
        ("東京都庁", "京都", true),
        ("東京都庁", "都", true),
        ("東京都庁", "庁", true),
        ("東京都庁", "京都庁", true),
        ("東京都庁", "東都", false),
        ("ทดสอบภาษาไทย", "ภาษา", true),
        ("한국어를 공부한다", "국어", true),
        ("new iPhoneの画面", "iphoneの", true),
        ("new iPhoneの画面", "iPhone", true),
        ("run git-push now", "git-push", true),
        ("run git and push", "git-push", false),
        ("café", "cafe", true),
        ("cafe", "CAFÉ", true),
    ] {
        assert_eq!(finds(text, query), found, "{query} in {text}");
    }
}

#[test]
fn a_query_needs_words() {
    for text in ["", "  ", "***", "🎉"] {
        assert!(Query::parse(text).is_err(), "{text}");
    }
    assert!(Query::parse(&"a".repeat(10_000)).is_err());
}

#[test]
fn similar_requests_are_more_similar_than_others() {
    let trigger = Features::of("analyze code, create issue, create PR");
    let same = Features::of("Please analyse the code in GitLab, create an issue and a PR");
    let other = Features::of("What is the weather in Łódź tomorrow?");
    assert!(trigger.similarity(&same) > 0.3 && trigger.similarity(&other) < 0.1);
    assert!((trigger.similarity(&trigger) - 1.0).abs() < f64::EPSILON);
    assert_eq!(
        stems("post the posted posts to 東京"),
        ["post", "the", "東京", "京"]
            .map(str::to_owned)
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    );
}

proptest! {
    #[test]
    fn folding_twice_is_folding_once(text in "\\PC{0,40}") {
        let once = fold(&text);
        prop_assert_eq!(fold(&once), once);
    }

    #[test]
    fn a_text_is_found_by_any_part_of_its_dense_runs(text in "[\u{4e00}-\u{4eff}ぁ-ん]{1,12}", from in 0usize..12, len in 1usize..6) {
        let part: String = text.chars().skip(from).take(len).collect();
        prop_assume!(!part.is_empty());
        prop_assert!(finds(&text, &part));
    }

    #[test]
    fn a_text_is_found_by_each_of_its_words(text in "\\PC{0,60}") {
        for word in text.split_whitespace().filter(|word| Query::parse(word).is_ok()) {
            prop_assert!(finds(&text, word), "{}", word);
        }
    }
}
