//! Where results go: stdout, with colour only where it is wanted, and without a panic when the reader goes away.
//!
//! What the supervisor sends may quote a plugin, also when another program listens on the socket that we were given. So
//! nothing is written here that is a plain string: a sink takes [`Line`]s and [`Sanitized`] texts, or makes inert itself
//! whatever it is given (tables, JSON, failures). Three things are written as they are: the guarded block of an answer,
//! which says so by its own type, what this program generates for other programs ([`Generated`]), and a plugin's message
//! that an administrator wants in a file.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};

use anstyle::Style;
use serde_json::Value;
use talon_guard::Wrapped;
use talon_sanitize::{Raw, Sanitized, inert_json};

use super::failure::Failure;
use super::generated::Generated;
use super::line::{Line, paint};
use super::table::Table;
use super::{Color, Format, Global};

/// Pastes come as if they were typed.
const BRACKETED_PASTE_OFF: &str = "\u{1b}[?2004l";
/// What fits every terminal.
const PAGE_COLUMNS: usize = 80;

/// One line of what anybody may have written: a field of an answer, an error, a path.
pub(super) fn shown(text: impl Display) -> Sanitized {
    Raw::of(text).line()
}

/// Stdout as the verbs see it.
///
/// A closed pipe ends the output quietly: the verb goes on, and its exit code stays its own. Every other write
/// error is kept and reported by [`Out::finish`].
pub(super) struct Out {
    to: BufWriter<Stdout>,
    format: Format,
    color: bool,
    color_errors: bool,
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
            closed: false,
            error: None,
        }
    }

    /// Whether results are for programs.
    pub(super) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// How wide a page is: the terminal's, and [`PAGE_COLUMNS`] where there is none, so that what scripts read does not depend on
    /// a window.
    pub(super) fn columns(&self) -> usize {
        let stdout = io::stdout();
        let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout)).and_then(Result::ok);
        size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(PAGE_COLUMNS)
    }

    /// Whether nobody reads any more: a verb that follows something ends then.
    pub(super) fn is_closed(&self) -> bool {
        self.closed || self.error.is_some()
    }

    /// One line.
    pub(super) fn line(&mut self, line: impl Into<Line>) {
        let mut text = line.into().render(self.color);
        text.push('\n');
        self.write(&text);
    }

    /// One line on stderr, behind all that was written so far.
    pub(super) fn say(&mut self, line: impl Into<Line>) {
        self.flush();
        write_stderr(line, self.color_errors);
    }

    /// A text of several lines, which ends in a line break.
    pub(super) fn text(&mut self, text: &Sanitized) {
        self.whole(text);
    }

    /// A text to its last byte, for a program that reads it from a pipe.
    pub(super) fn exact(&mut self, text: &Sanitized) {
        self.write(text);
    }

    /// A piece of a line, to be seen at once: more of it comes.
    pub(super) fn piece(&mut self, text: &Sanitized) {
        self.write(text);
        self.flush();
    }

    /// A piece of a line on stderr, in colour where there is colour.
    pub(super) fn say_piece(&mut self, style: Style, text: &Sanitized) {
        self.flush();
        write_all_stderr(&paint(Some(style).filter(|_| self.color_errors), text));
    }

    /// Tells a terminal that a line editor was at that nobody waits for pastes any more.
    pub(super) fn no_more_pastes(&mut self) {
        self.write(BRACKETED_PASTE_OFF);
        self.flush();
    }

    /// Bytes of somebody else's, for a file: a terminal does not get them.
    pub(super) fn bytes_for_a_file(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if io::stdout().is_terminal() {
            return Err(Failure::usage("this is not fit for a terminal: send it to a file with > FILE"));
        }
        self.write_bytes(bytes);
        Ok(())
    }

    /// The guarded block of an answer, as it came.
    pub(super) fn block(&mut self, block: &Wrapped) {
        self.whole(block.as_str());
    }

    /// What this program itself made for another one, as it is.
    pub(super) fn generated(&mut self, what: &Generated<'_>) -> Result<(), Failure> {
        self.whole(&what.text()?);
        Ok(())
    }

    /// One JSON value: indented when it is the whole result. Its strings are made inert; those that are so already,
    /// as all that the supervisor sends, stay as they are.
    pub(super) fn json(&mut self, value: &Value) {
        let text = format!("{:#}", inert_json::value(value));
        self.whole(&text);
    }

    /// An answer as JSON, with its guarded block as it came under a key of its own.
    pub(super) fn json_with_block(&mut self, value: &Value, key: &str, block: &Wrapped) {
        let mut value = inert_json::value(value);
        value[key] = block.as_str().into();
        self.whole(&format!("{value:#}"));
    }

    /// One JSON value on one line, where more come.
    pub(super) fn json_line(&mut self, value: &Value) {
        let text = inert_json::value(value).to_string();
        self.whole(&text);
        self.flush();
    }

    pub(super) fn table(&mut self, table: &Table) {
        self.write(&table.render(self.color));
    }

    /// A table on stderr.
    pub(super) fn say_table(&mut self, table: &Table) {
        self.flush();
        write_all_stderr(&table.render(self.color_errors));
    }

    /// One JSON value on a line of stderr.
    pub(super) fn say_json(&mut self, value: &Value) {
        self.flush();
        write_all_stderr(&format!("{}\n", inert_json::value(value)));
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

    fn whole(&mut self, text: &str) {
        self.write(text);
        if !text.is_empty() && !text.ends_with('\n') {
            self.write("\n");
        }
    }

    fn write(&mut self, text: &str) {
        self.write_bytes(text.as_bytes());
    }

    /// The one place where bytes leave for stdout; nothing but the sinks above may call it.
    fn write_bytes(&mut self, bytes: &[u8]) {
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

/// Writes to stderr; if nobody can hear it, there is nobody to tell.
fn write_all_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// A line on stderr, also without an [`Out`].
pub(super) fn write_stderr(line: impl Into<Line>, color: bool) {
    let mut text = line.into().render(color);
    text.push('\n');
    write_all_stderr(&text);
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
