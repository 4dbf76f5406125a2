//! Legitimate look-alikes stay as they are, unless they do hold control syntax or invisible characters.

use serde::Deserialize;
use talon_sanitize::{FamilyCounts, Sanitizer};

#[derive(Deserialize)]
struct Benign {
    text: String,
    #[serde(alias = "source")]
    name: String,
}

fn changed(set: &str) -> Vec<String> {
    let sanitizer = Sanitizer::default();
    let mut changed = Vec::new();
    for line in set.lines() {
        let benign: Benign = serde_json::from_str(line).expect("a record");
        let mut tally = FamilyCounts::default();
        let out = sanitizer.text(&benign.text, &mut tally);
        // Colours are removed from every text that has some.
        let marked = tally.kinds().any(|(_, kind, _)| kind != "colour");
        assert!(marked || tally.total() > 0 || out == benign.text);
        if marked {
            let name = benign.name.rsplit('/').next().unwrap_or_default().to_owned();
            println!("{name} {:?}\n   {out:?}", tally.families().collect::<Vec<_>>());
            changed.push(name);
        }
    }
    changed
}

// Promises: GUARD-18
#[test]
fn look_alikes_stay() {
    // `<invoke name=` of Ant is a call's own opener; the documentation of token formats writes them; a soft
    // hyphen, and a lone carriage return are what they are, and one SQL text selects `'[INST]'`.
    let wanted = ["ant_xml", "llm_docs", "soft_hyphen", "progress_cr", "sql"];
    assert_eq!(changed(include_str!("data/benign_tricky.jsonl")), wanted);
}

#[test]
fn more_look_alikes_stay() {
    let set = include_str!("data/benign_more.jsonl");
    // `<SYSTEM>` opens a prompt, also in a usage text;
    // a text that ends in `[` may go on with anything; `</s>` ends a turn and an old word; `[user]` with a
    // closer is a turn, and a name in a forum.
    let wanted = ["clap_help", "scp", "maths", "html_form", "bbcode"];
    assert_eq!(changed(set), wanted);
    assert!(wanted.len() * 10 <= set.lines().count());
}

// Promises: GUARD-78
#[test]
fn hard_look_alikes_stay() {
    let set = include_str!("data/benign_hard.jsonl");
    // Four hold control syntax: a schema's example of a call, tables of real tokens, conversations in the old
    // format of Claude, and calls in the format of OpenAI. `<parameter name=` opens an argument wherever it
    // stands, and `<action>` with its closer is what agents without native calls write.
    let wanted = [
        "openapi_example",
        "token_table2",
        "token_table4",
        "jsonl_ft_ha",
        "jsonl_tools",
        "hibernate",
        "jira_xml",
    ];
    assert_eq!(changed(set), wanted);
}
