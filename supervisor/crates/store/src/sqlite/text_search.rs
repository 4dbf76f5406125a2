//! Texts and queries in FTS5 syntax.

use std::fmt::Write as _;

use crate::search::{Query, tokenize};

/// A text as its indexed words.
pub(super) fn to_fts5(text: &str) -> String {
    tokenize(text).join(" ")
}

/// All terms of a query. Words contain only letters and digits, so nothing needs to be escaped.
pub(super) fn match_all(query: &Query) -> String {
    let mut text = String::new();
    for term in &query.terms {
        let and = if text.is_empty() { "" } else { " AND " };
        write!(text, "{and}\"{}\" *", term.words.join(" ")).expect("writing to a string succeeds");
    }
    text
}

/// Any of the word prefixes.
pub(super) fn match_any(stems: &[String]) -> String {
    stems.iter().map(|stem| format!("\"{stem}\" *")).collect::<Vec<_>>().join(" OR ")
}
