//! A note to oneself that went into a commit.

use std::sync::LazyLock;

use regex::Regex;

use crate::event::Added;

/// The words, in capitals and alone, behind what begins a comment in most languages.
static NOTE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|\s)(?://+!?|#+|--+|/\*+|\*|<!--|;+|%+|\x22\x22\x22)\s*(?:@)?(TODO|FIXME|XXX|HACK)\b")
        .expect("the tests compile it")
});

/// A note in a line that a commit added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) path: String,
    /// The line in the new file, from 1.
    pub(crate) line: usize,
    /// TODO, FIXME, XXX or HACK.
    pub(crate) word: &'static str,
    pub(crate) text: String,
}

/// All notes among these lines, in their order.
pub(crate) fn find(added: &[Added]) -> Vec<Note> {
    let in_file = |file: &Added| {
        let path = file.path.clone();
        let notes = file.lines.iter().filter_map(move |(line, text)| {
            let word = word(text)?;
            Some(Note { path: path.clone(), line: *line, word, text: text.trim().to_owned() })
        });
        notes.collect::<Vec<_>>()
    };
    added.iter().flat_map(in_file).collect()
}

fn word(text: &str) -> Option<&'static str> {
    let found = NOTE.captures(text)?.get(1)?.as_str();
    ["TODO", "FIXME", "XXX", "HACK"].into_iter().find(|word| *word == found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Promises: SHADOW-57
    #[test]
    fn notes_are_told_in_the_comments_of_many_languages() {
        for text in [
            "// TODO: handle it",
            "    # FIXME",
            "x = 1 // XXX later",
            "-- TODO(me): index",
            "/* HACK */",
            " * TODO",
            "<!-- TODO -->",
            "//! TODO",
        ] {
            assert!(word(text).is_some(), "{text}");
        }
        for text in ["let todo = TODO;", "the TODO list", "// todo", "// TODOS", "\"#TODO\"", ""] {
            assert_eq!(word(text), None, "{text}");
        }
    }

    proptest! {
        // Promises: SHADOW-57
        #[test]
        fn every_note_is_found_with_its_line(lines in prop::collection::vec(("[a-z ]{0,20}", any::<bool>()), 0..20)) {
            let text = |(words, note): &(String, bool)| {
                if *note { format!("{words} // TODO {words}") } else { words.clone() }
            };
            let added = lines.iter().enumerate().map(|(index, line)| (index + 1, text(line))).collect();
            let found = find(&[Added { path: "a".into(), lines: added }]);
            let expected: Vec<usize> =
                lines.iter().enumerate().filter(|(_, (_, note))| *note).map(|(index, _)| index + 1).collect();
            prop_assert_eq!(found.iter().map(|note| note.line).collect::<Vec<_>>(), expected);
        }
    }
}
