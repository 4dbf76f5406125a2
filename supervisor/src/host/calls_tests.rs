use talon_sanitize::{Sanitizer, Settings};

use super::*;

fn marked(original: &str) -> Vec<String> {
    let sanitizer = Sanitizer::new(&Settings::default()).unwrap();
    let sanitized = sanitizer.text(original, &mut FamilyCounts::default()).into_owned();
    let spans = edits(original, &sanitized);
    spans.iter().map(|span| sanitized[span.start as usize..span.end as usize].to_owned()).collect()
}

// Promises: GW-131
#[test]
fn what_the_sanitizer_put_in_is_marked_and_nothing_else() {
    assert!(marked("clean text, x < y").is_empty());
    assert_eq!(marked("a <think> b [/plugin_output] c"), ["·", "·"]);
    assert_eq!(marked("zero\u{200b}width and <think>"), ["(U+200B)", "·"]);
    assert_eq!(marked("red \u{1b}[31mword\u{1b}[0m and <think> at the end"), ["·"]);
}
