//! Texts within a chat service's limit for one message.

/// The next message of a text, and how many bytes of the text are done with it: blanks at its end are no message of their own. `units` says
/// what a character counts with the service, `max_units` how much a message may have.
pub fn next_message(text: &str, max_units: usize, units: impl Fn(char) -> usize) -> (&str, usize) {
    let end = piece(text, max_units, units);
    let done = if text[end..].trim().is_empty() { text.len() } else { end };
    (&text[..end], done)
}

/// How many bytes of a text go into one message of at most so many units: up to its end, else up to the end of a paragraph, a line or a
/// word in its second half, else as many characters as fit.
fn piece(text: &str, max_units: usize, units: impl Fn(char) -> usize) -> usize {
    let (mut sum, mut end) = (0, text.len());
    for (at, c) in text.char_indices() {
        sum += units(c);
        if sum > max_units {
            end = at;
            break;
        }
    }
    if end == text.len() {
        return end;
    }
    let whole = &text[..end];
    let in_second_half = |mark: &str| whole.rfind(mark).map(|at| at + mark.len()).filter(|at| *at > end / 2);
    ["\n\n", "\n", " "].into_iter().find_map(in_second_half).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(text: &str, max_units: usize) -> usize {
        piece(text, max_units, char::len_utf16)
    }

    // Promises: GW-211
    #[test]
    fn a_long_text_is_cut_where_it_reads_well() {
        assert_eq!(cut("short", 10), 5);
        assert_eq!(&"one two three"[..cut("one two three", 9)], "one two ");
        assert_eq!(&"one two\nthree four"[..cut("one two\nthree four", 13)], "one two\n");
        assert_eq!(cut("abcdefghij", 4), 4);
        // Outside of the basic plane a character has two units.
        assert_eq!(cut("😀😀😀", 4), 8);
    }

    // Promises: GW-211
    #[test]
    fn blanks_at_the_end_are_done_with_the_last_message() {
        let next = |text, max_units| next_message(text, max_units, char::len_utf16);
        assert_eq!(next("abcd \n ", 4), ("abcd", 7));
        assert_eq!(next("one two three", 9), ("one two ", 8));
        assert_eq!(next("short", 10), ("short", 5));
        assert_eq!(next("    x", 4), ("    ", 4));
    }

    proptest! {
        // Promises: GW-211
        #[test]
        fn pieces_are_the_text_and_none_is_too_long(text in "[a-z \n😀ä]{0,300}", max in 2_usize..50) {
            let (mut left, mut whole) = (text.as_str(), String::new());
            while !left.is_empty() {
                let end = cut(left, max);
                prop_assert!(end > 0 && left[..end].encode_utf16().count() <= max);
                whole.push_str(&left[..end]);
                left = &left[end..];
            }
            prop_assert_eq!(whole, text);
        }
    }
}
