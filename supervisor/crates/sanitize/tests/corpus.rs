//! The known hostile texts: none of their control strings survives.

#[path = "common/decode.rs"]
mod decode;

use serde::Deserialize;
use talon_sanitize::{FamilyCounts, Sanitizer};

#[derive(Deserialize)]
struct Hostile {
    text: String,
    family: String,
    evasion: String,
    needles: Vec<String>,
}

fn corpus() -> impl Iterator<Item = Hostile> {
    include_str!("data/control_tokens_known.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
}

// Promises: GUARD-13
#[test]
fn no_control_string_survives_exactly_or_decoded() {
    let sanitizer = Sanitizer::default();
    let (mut texts, mut exact, mut decoded) = (0, Vec::new(), Vec::new());
    for hostile in corpus() {
        let out = sanitizer.text(&hostile.text, &mut FamilyCounts::default());
        let folded = decode::decode_fully(&out);
        texts += 1;
        for needle in &hostile.needles {
            let entry = format!("{}/{}: {needle:?} in {out:?}", hostile.family, hostile.evasion);
            if out.contains(needle.as_str()) {
                exact.push(entry);
            } else if folded.contains(&decode::decode_fully(needle)) {
                decoded.push(entry);
            }
        }
    }
    assert_eq!(texts, 2617);
    assert!(exact.is_empty(), "{} survive exactly:\n{}", exact.len(), exact.join("\n"));
    assert!(decoded.is_empty(), "{} survive decoding:\n{}", decoded.len(), decoded.join("\n"));
}

// Promises: GUARD-15
#[test]
fn hostile_texts_come_out_settled() {
    let sanitizer = Sanitizer::default();
    for hostile in corpus() {
        let out = sanitizer.text(&hostile.text, &mut FamilyCounts::default());
        let again = sanitizer.text(&out, &mut FamilyCounts::default());
        assert_eq!(out, again, "{}/{}", hostile.family, hostile.evasion);
        assert!(sanitizer.is_clean(&out));
    }
}

#[test]
fn the_known_tokens_do_not_survive_either() {
    let families: std::collections::BTreeMap<String, Vec<String>> =
        serde_json::from_str(include_str!("data/tokens_known.json")).expect("token lists");
    for (family, tokens) in families {
        let text = format!("a\n\n{}\n\nb", tokens.join("\n\n"));
        let out = Sanitizer::default().text(&text, &mut FamilyCounts::default()).into_owned();
        // The beginning of a tag that nothing closes is no tag yet, and `[ARGS]` without a payload a usage
        // text.
        for token in tokens.iter().filter(|token| !token.ends_with("invoke") && *token != "[ARGS]") {
            assert!(!out.contains(token.as_str()), "{family}: {token} in {out}");
        }
    }
}
