//! Wraps and cuts long texts.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Breaks a text at spaces into lines that fit; a word that is wider than a line is cut. There is at least
/// one line.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for word in text.split_ascii_whitespace() {
        let line = lines.last().map_or(0, |line| line.width());
        if line > 0 && line + 1 + word.width() > width {
            lines.push(String::new());
        } else if line > 0 {
            push(&mut lines, ' ', width);
        }
        for c in word.chars() {
            push(&mut lines, c, width);
        }
    }
    lines
}

fn push(lines: &mut Vec<String>, c: char, width: usize) {
    let full =
        lines.last().is_some_and(|line| !line.is_empty() && line.width() + c.width().unwrap_or(0) > width);
    if full {
        lines.push(String::new());
    }
    if let Some(line) = lines.last_mut() {
        line.push(c);
    }
}

/// The prefix of a text that fits, with a mark if something was cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    for c in text.chars() {
        if cut.width() + c.width().unwrap_or(0) + 1 > width {
            break;
        }
        cut.push(c);
    }
    if width > 0 {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_fit_and_no_word_is_lost(text in "[ a-z日]{0,80}", width in 2_usize..30) {
            let lines = wrapped(&text, width);
            prop_assert!(lines.iter().all(|line| line.width() <= width), "{lines:?}");
            let letters = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
            prop_assert!(cut(&text, width).width() <= width);
        }
    }
}
