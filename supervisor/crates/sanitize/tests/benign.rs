//! Legitimate look-alikes stay as they are, unless they do hold control syntax or invisible characters.

use serde::Deserialize;
use talon_sanitize::{Sanitizer, Tally};

#[derive(Deserialize)]
struct Benign {
    text: String,
    source: String,
}

#[test]
fn look_alikes_stay() {
    let sanitizer = Sanitizer::default();
    let mut changed = Vec::new();
    for line in include_str!("data/benign_tricky.jsonl").lines() {
        let benign: Benign = serde_json::from_str(line).expect("a record");
        let mut tally = Tally::default();
        let out = sanitizer.text(&benign.text, &mut tally);
        if out != benign.text {
            let name = benign.source.rsplit('/').next().unwrap_or_default().to_owned();
            println!("{name} {:?}\n   {out:?}", tally.families().collect::<Vec<_>>());
            changed.push(name);
        }
    }
    assert_eq!(changed, ["ant_xml", "llm_docs", "soft_hyphen", "progress_cr", "sql"]);
}
