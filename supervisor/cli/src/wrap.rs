//! Wraps long texts next to narrow columns.

use unicode_width::UnicodeWidthStr;

/// The page width: fits next to another window, and in a README.
const PAGE_COLUMNS: usize = 100;
/// The narrowest text column, whatever precedes it, on a page that has twice as much; on others half of it.
const TEXT_COLUMNS: usize = 30;

/// Breaks a text at spaces into lines that fit a page of which `used` columns are taken. A longer word, such
/// as a path, is not broken, so that it can be copied. There is at least one line.
pub(crate) fn wrapped(text: &str, used: usize) -> Vec<String> {
    wrapped_on(PAGE_COLUMNS, text, used)
}

/// The same for a page of a given width.
pub(crate) fn wrapped_on(page_columns: usize, text: &str, used: usize) -> Vec<String> {
    let width = page_columns.saturating_sub(used).max(TEXT_COLUMNS.min(page_columns / 2));
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        // Keep the indentation: it has a meaning.
        let (indent, rest) = paragraph.split_at(paragraph.len() - paragraph.trim_start().len());
        let mut line = indent.to_owned();
        let mut empty = true;
        for word in rest.split_ascii_whitespace() {
            if !empty && line.width() + 1 + word.width() > width {
                lines.push(std::mem::replace(&mut line, indent.to_owned()));
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        lines.push(line);
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_never_cut_and_lines_fit() {
        let lines = wrapped(&"word ".repeat(40), 40);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.width() <= 60), "{lines:?}");
        assert_eq!(lines.join(" ").split(' ').count(), 40);
        let path = "/x".repeat(60);
        assert_eq!(wrapped(&format!("see {path} there"), 40), ["see", path.as_str(), "there"]);
    }

    #[test]
    fn line_breaks_and_indentation_stay() {
        assert_eq!(wrapped("two problems:\n  one\n  two", 0), ["two problems:", "  one", "  two"]);
        assert_eq!(wrapped("", 0), [""]);
    }
}
