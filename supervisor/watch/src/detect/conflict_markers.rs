//! Markers of a merge that somebody saved, or forgot, in a file.

/// The first conflict in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The line of its first marker, from 1.
    pub(crate) line: usize,
    /// How many conflicts there are.
    pub(crate) count: usize,
}

/// A whole conflict: a line `<<<<<<< …`, then one `=======`, then one `>>>>>>> …`. A lone row of `=` is a
/// heading in many texts.
pub(crate) fn find(text: &str) -> Option<Conflict> {
    let mut open = None;
    let mut divided = false;
    let (mut first, mut count) = (None, 0);
    for (index, line) in text.lines().enumerate() {
        if is_marker(line, '<') {
            (open, divided) = (Some(index + 1), false);
        } else if open.is_some() && line.trim_end() == "=======" {
            divided = true;
        } else if divided && is_marker(line, '>') {
            first = first.or(open);
            count += 1;
            (open, divided) = (None, false);
        }
    }
    first.map(|line| Conflict { line, count })
}

/// Seven of the character, and then nothing or a space.
fn is_marker(line: &str, of: char) -> bool {
    let rest = line.trim_start_matches(of);
    line.len() - rest.len() == 7 && (rest.trim_end().is_empty() || rest.starts_with(' '))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CONFLICT: &str = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> topic";

    // Promises: SHADOW-55
    #[test]
    fn a_whole_conflict_is_found_with_its_line() {
        let text = format!("a\n{CONFLICT}\nb\n{CONFLICT}\n");
        assert_eq!(find(&text), Some(Conflict { line: 2, count: 2 }));
        let diff3 = "<<<<<<< ours\na\n||||||| base\nb\n=======\nc\n>>>>>>> theirs\n";
        assert_eq!(find(diff3), Some(Conflict { line: 1, count: 1 }));
        assert_eq!(find(&CONFLICT.replace('\n', "\r\n")), Some(Conflict { line: 1, count: 1 }));
    }

    // Promises: SHADOW-55
    #[test]
    fn headings_quotations_and_halves_are_none() {
        for text in [
            "Title\n=======\ntext",
            "<<<<<<< HEAD\nours",
            "=======\n>>>>>>> topic",
            "> <<<<<<< HEAD\n> =======\n> >>>>>>> topic",
            "<<<<<<<< eight\n=======\n>>>>>>>> eight",
            "",
        ] {
            assert_eq!(find(text), None, "{text:?}");
        }
    }

    proptest! {
        // Promises: SHADOW-55
        #[test]
        fn a_conflict_is_found_wherever_it_is(before in "([a-z ]{0,9}\n){0,9}", after in "([a-z ]{0,9}\n){0,9}") {
            let line = before.lines().count() + 1;
            prop_assert_eq!(find(&format!("{before}{CONFLICT}\n{after}")), Some(Conflict { line, count: 1 }));
            prop_assert_eq!(find(&before), None);
        }

        #[test]
        fn any_text_is_taken(text in "[<>=| \na]{0,200}") {
            if let Some(conflict) = find(&text) {
                prop_assert!(conflict.line <= text.lines().count() && conflict.count > 0);
            }
        }
    }
}
