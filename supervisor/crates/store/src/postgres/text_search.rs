//! Texts and queries in PostgreSQL's text search syntax. Words contain only letters and digits, so nothing
//! needs to be escaped within the quotes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::search::{Query, tokenize};

/// A text as a `tsvector`: each word with its positions.
pub(super) fn to_tsvector(text: &str) -> String {
    let words = tokenize(text);
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (word, place) in words.iter().zip(1..) {
        places.entry(word).or_default().push(i32::to_string(&place));
    }
    let mut vector = String::new();
    for (word, places) in places {
        write!(vector, "'{word}':{} ", places.join(",")).expect("writing to a string succeeds");
    }
    vector
}

/// All terms of a query, as a `tsquery`.
pub(super) fn match_all(query: &Query) -> String {
    let term = |words: &[String]| {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        format!("({}:*)", quoted.join(" <-> "))
    };
    query.terms.iter().map(|one| term(&one.words)).collect::<Vec<_>>().join(" & ")
}

/// Any of the word prefixes, as a `tsquery`.
pub(super) fn match_any(stems: &[String]) -> String {
    stems.iter().map(|stem| format!("'{stem}':*")).collect::<Vec<_>>().join(" | ")
}
