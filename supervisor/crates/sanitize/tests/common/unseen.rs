//! Control syntax that the known set does not hold: families, texts and the strings that must not survive.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::decode::decode_fully;
use super::evade::{CARRIERS, EVASIONS, INLINE, disguise};

/// What may be left of a string once everything is decoded, and why no parser takes it: the beginning of the
/// name of a text, the reason.
pub(crate) const SURVIVORS: [(&str, &str); 10] = [
    ("mistral_new 1 / lower", "An index of source code; the token is written in capitals."),
    ("mistral_new 5 / lower", "An index of source code; the token is written in capitals."),
    ("skywork 0 / lower", "An index of source code; the token is written in capitals."),
    ("falcon 1 / lower", "A shift of source code; the token is written in capitals."),
    (
        "koala 0 / lower",
        "People speak about a gpt in lower case; the name of the speaker is written in capitals.",
    ),
    ("falcon 1 / \\u twice", "Read once, quoted backslashes stand between the angles; the token has none."),
    ("falcon 1 / space before", "The angles stand apart; the token has no space in it."),
    (
        "firefunction 0 /",
        "Something stands between the word and the bracket; the runtime looks for them together.",
    ),
    ("gemini 6 / space", "Three backticks that stand apart open no fence."),
    (
        "minimax 1 / \\u twice",
        "Read once, a quoted backslash stands between the brackets; the token has none.",
    ),
];

#[derive(Deserialize)]
struct File {
    families: BTreeMap<String, Vec<Example>>,
}

#[derive(Deserialize)]
struct Example {
    text: String,
    needles: Vec<String>,
}

/// One hostile text.
pub(crate) struct Hostile {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) needles: Vec<String>,
}

/// Every text under every disguise and in every place, or, if not `all`, every text under every disguise in
/// one place and in every place undisguised.
pub(crate) fn hostile(all: bool) -> Vec<Hostile> {
    let file: File = serde_json::from_str(include_str!("../data/unseen_tokens.json")).expect("token lists");
    let mut out = Vec::new();
    for (family, examples) in file.families {
        for (number, example) in examples.into_iter().enumerate() {
            let inline = !example.needles.iter().any(|needle| is_anchored(needle));
            let carriers = CARRIERS.iter().chain(if inline { INLINE } else { &[] });
            for (place, (carrier, carry)) in carriers.enumerate() {
                for (evasion, evade) in EVASIONS {
                    if all || place == 0 || *evasion == "plain" {
                        out.push(Hostile {
                            name: format!("{family} {number} / {evasion} / {carrier}"),
                            text: carry(&disguise(&example.text, &example.needles, *evade)),
                            needles: example.needles.clone(),
                        });
                    }
                }
            }
        }
    }
    out
}

/// Whether the string means something at the beginning of a line only.
fn is_anchored(needle: &str) -> bool {
    needle.starts_with(['\n', '#', '>'])
        || needle.starts_with("```")
        || needle.ends_with(':')
        || needle.starts_with("[Round")
}

/// Those of the needles that are in the text as they are, and those that are in it once it is decoded.
pub(crate) fn surviving<'n>(out: &str, needles: &'n [String]) -> (Vec<&'n str>, Vec<&'n str>) {
    let folded = [decode_fully(out), decode_fully(&without_comments(out))];
    let exact = needles.iter().filter(|needle| out.contains(needle.as_str()));
    let decoded = needles.iter().filter(|needle| {
        let needle = decode_fully(needle);
        folded.iter().any(|text| text.contains(&needle))
    });
    (exact.map(String::as_str).collect(), decoded.map(String::as_str).collect())
}

/// The text without the comments that a page's reader does not show, which joins what they separate.
fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("<!--") {
        out.push_str(before);
        let Some((_, after)) = behind.split_once("-->") else { return out + "<!--" + behind };
        rest = after;
    }
    out + rest
}
