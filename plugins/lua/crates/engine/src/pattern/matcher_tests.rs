use std::cell::Cell;

use super::Matcher;
use crate::pattern::{Meter, PatternError, find_plain};

/// How much each of these has to do at least, in any of its parts.
const LENGTH: usize = 200_000;

/// Patterns and subjects, of which each takes many steps in another part of the matcher.
fn long() -> Vec<(String, String)> {
    let a = "a".repeat(LENGTH);
    let pair = |pattern: &str, subject: &str| (pattern.to_owned(), subject.to_owned());
    vec![
        pair("[a]*", &a),
        pair("a*", &a),
        pair("%a+", &a),
        pair("a-b", &a),
        pair("a?a?b", &a),
        pair(".*b", &a),
        pair(".b", &a),
        pair("$", &a),
        pair("()b", &a),
        pair("()()$", &a),
        pair("%bab", &a),
        pair("%f[b]", &a),
        pair(&a, &a),
        pair(&format!("[{a}]b"), &a),
        pair(&format!("x?%f[b{a}]"), &a),
        pair("(a+)%1b", &a),
        pair("b", &a),
        pair("(b)", &a),
    ]
}

// Promises: LUA-86
#[test]
fn every_part_of_a_match_asks_whether_it_has_to_end() {
    for (pattern, subject) in long() {
        let asked = Cell::new(0);
        let is_over = || {
            asked.set(asked.get() + 1);
            true
        };
        let mut matcher = Matcher::new(subject.as_bytes(), pattern.as_bytes(), Meter::new(&is_over));
        let shown = &pattern[..pattern.len().min(20)];
        // What skips to the first byte goes over several bytes in a step.
        if ["b", "(b)"].contains(&pattern.as_str()) {
            assert_eq!(matcher.search(0), Ok(None), "{shown}");
        } else {
            assert_eq!(matcher.search(0), Err(PatternError::Stopped), "{shown}");
            assert_eq!(asked.get(), 1, "{shown}");
        }
    }
}

// Promises: LUA-86
#[test]
fn a_plain_search_asks_whether_it_has_to_end() {
    let is_over = || true;
    let subject = vec![b'a'; 10 << 20];
    assert_eq!(find_plain(&subject, b"b", 0, &mut Meter::new(&is_over)), Err(PatternError::Stopped));
    let long = [vec![b'a'; 5 << 20], vec![b'b']].concat();
    assert_eq!(find_plain(&subject, &long, 0, &mut Meter::new(&is_over)), Err(PatternError::Stopped));
}

#[test]
fn a_plain_search_finds_what_lies_over_the_end_of_a_part() {
    let is_over = || false;
    for length in [1, 2, 100, (1 << 20) + 5] {
        let text = [vec![b'a'; length], vec![b'b']].concat();
        for begin in [(1_usize << 20).saturating_sub(length), (1 << 20) - 1, 1 << 20, (2 << 20) + 3] {
            let subject = [vec![b'a'; begin], text.clone(), text.clone()].concat();
            let found = find_plain(&subject, &text, 0, &mut Meter::new(&is_over));
            assert_eq!(found, Ok(Some(begin..begin + text.len())), "{length} at {begin}");
        }
        let subject = vec![b'a'; 3 << 20];
        assert_eq!(find_plain(&subject, &text, 1 << 20, &mut Meter::new(&is_over)), Ok(None));
    }
}
