//! Where results go: stdout, with colour only where it is wanted, and without a panic when the reader goes away.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};

use anstyle::Style;
use talon_sanitize::{Sanitizer, Settings, Tally};

use super::failure::Failure;
use super::table::Table;
use super::{Color, Format, Global};

/// Stdout as the verbs see it.
///
/// A closed pipe ends the output quietly: the verb goes on, and its exit code stays its own. Every other write
/// error is kept and reported by [`Out::finish`].
pub(super) struct Out {
    to: BufWriter<Stdout>,
    format: Format,
    color: bool,
    color_errors: bool,
    sanitizer: Sanitizer,
    closed: bool,
    error: Option<io::Error>,
}

impl Out {
    pub(super) fn new(global: &Global) -> Self {
        Self {
            to: BufWriter::new(io::stdout()),
            format: global.output,
            color: global.colors(&io::stdout()),
            color_errors: global.colors(&io::stderr()),
            sanitizer: Sanitizer::new(&Settings::default()).expect("the built-in patterns are valid"),
            closed: false,
            error: None,
        }
    }

    /// Whether results are for programs.
    pub(super) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether nobody reads any more: a verb that follows something ends then.
    pub(super) fn is_closed(&self) -> bool {
        self.closed || self.error.is_some()
    }

    /// Text as it is; for text that the guard has already been through.
    pub(super) fn text(&mut self, text: &str) {
        self.write(text.as_bytes());
    }

    /// One line as it is.
    pub(super) fn line(&mut self, text: impl Display) {
        self.write(format!("{text}\n").as_bytes());
    }

    /// Text as it is, ending in a line break.
    pub(super) fn block(&mut self, text: &str) {
        self.text(text);
        if !text.is_empty() && !text.ends_with('\n') {
            self.text("\n");
        }
    }

    /// One JSON value: indented when it is the whole result.
    pub(super) fn json(&mut self, value: &serde_json::Value) {
        self.line(format_args!("{value:#}"));
    }

    /// One JSON value on one line, where more come.
    pub(super) fn json_line(&mut self, value: &serde_json::Value) {
        self.line(value);
        self.flush();
    }

    pub(super) fn table(&mut self, table: &Table) {
        let text = table.render(self.color, &|cell| self.clean(cell));
        self.text(&text);
    }

    /// Makes text that somebody else wrote safe to print on one line of a terminal.
    pub(super) fn clean(&self, text: &str) -> String {
        self.sanitizer.line(text, &mut Tally::default()).into_owned()
    }

    /// Colours a text for stdout.
    pub(super) fn paint(&self, style: Style, text: &str) -> String {
        paint(self.color, style, text)
    }

    /// Colours a text for stderr.
    pub(super) fn paint_error(&self, style: Style, text: &str) -> String {
        paint(self.color_errors, style, text)
    }

    /// Makes what was written visible now; verbs that follow something call it after each piece.
    pub(super) fn flush(&mut self) {
        if !self.is_closed() {
            let result = self.to.flush();
            self.note(result);
        }
    }

    /// Writes what is left and says whether all could be written.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.flush();
        let error = self.error.take();
        // What could not be written must not be tried once more by the buffer's own drop.
        let _ = self.to.into_parts();
        match error {
            Some(error) => Err(Failure::failed(format!("cannot write the output: {error}"))),
            None => Ok(()),
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if !self.is_closed() {
            let result = self.to.write_all(bytes);
            self.note(result);
        }
    }

    fn note(&mut self, result: io::Result<()>) {
        match result {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => self.error = Some(error),
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Out::write(self, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Out::flush(self);
        Ok(())
    }
}

pub(super) fn paint(color: bool, style: Style, text: &str) -> String {
    if color { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

impl Global {
    /// Whether what is written there is coloured.
    pub(super) fn colors(&self, to: &impl IsTerminal) -> bool {
        wants_color(self.color, to.is_terminal(), |name| std::env::var_os(name))
    }
}

fn wants_color(choice: Color, is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    match choice {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let forbidden = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
            is_terminal && !forbidden && variable("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_for_terminals_that_nobody_forbade() {
        let colors = |choice, is_terminal, set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            wants_color(choice, is_terminal, value)
        };
        assert!(colors(Color::Auto, true, &[("TERM", "xterm"), ("NO_COLOR", "")]));
        assert!(colors(Color::Auto, true, &[]));
        assert!(!colors(Color::Auto, false, &[]));
        assert!(!colors(Color::Auto, true, &[("NO_COLOR", "1")]));
        assert!(!colors(Color::Auto, true, &[("TERM", "dumb")]));
        assert!(colors(Color::Always, false, &[("NO_COLOR", "1")]), "a flag is nearer than the environment");
        assert!(!colors(Color::Never, true, &[]));
    }
}
