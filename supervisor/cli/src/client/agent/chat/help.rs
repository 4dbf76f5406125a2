//! The help of a chat: its commands.

use unicode_width::UnicodeWidthStr as _;

use super::command::COMMANDS;
use crate::client::agent::formatting::single_line;
use crate::output::Output;
use crate::wrap::wrapped_on;

/// The space between a command of the help and what it does.
const HELP_GAP: usize = 2;
/// The room beside the commands from which on what they do stands there: four or five words.
const MIN_HELP_COLUMNS: usize = 30;

/// Shows the commands.
pub(super) fn print_help(out: &mut Output) {
    for line in help_lines(out.columns()) {
        out.line(single_line(&line));
    }
}

/// The commands, with what they do beside them; or below them, where that leaves no room for words.
fn help_lines(columns: usize) -> Vec<String> {
    let shown = |name: &str, takes: &str| match name.starts_with('…') {
        true => name.to_owned(),
        false => format!("/{name} {takes}").trim_end().to_owned(),
    };
    let width = COMMANDS.iter().map(|(name, takes, _)| shown(name, takes).width()).max().unwrap_or_default();
    let is_beside = columns >= width + MIN_HELP_COLUMNS;
    let used = if is_beside { width + HELP_GAP } else { HELP_GAP };
    let mut lines = Vec::new();
    for (name, takes, does) in COMMANDS {
        let mut head = shown(name, takes);
        if !is_beside {
            lines.push(std::mem::take(&mut head));
        }
        for text in wrapped_on(columns, does, used) {
            let space = used - head.width();
            lines.push(format!("{}{:space$}{text}", std::mem::take(&mut head), ""));
        }
    }
    let more =
        "A line that ends in \\ continues on the next line, and so does text between two lines of ```.";
    lines.extend(wrapped_on(columns, more, 0));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CLI-70
    #[test]
    fn the_help_breaks_lines_between_words_at_every_width() {
        let words = |lines: &[String]| {
            lines.iter().flat_map(|line| line.split_whitespace()).map(str::to_owned).collect::<Vec<_>>()
        };
        let all = words(&help_lines(1000));
        for columns in [200, 80, 40, 30] {
            let lines = help_lines(columns);
            assert_eq!(words(&lines), all, "{columns}");
            // Only the words of a command are longer.
            let long = lines.iter().filter(|line| line.width() > columns && !line.starts_with('/'));
            assert_eq!(long.collect::<Vec<_>>(), Vec::<&String>::new(), "{columns}");
        }
        assert!(help_lines(80)[0].contains("  this help") && help_lines(40)[1] == "  this help");
    }
}
