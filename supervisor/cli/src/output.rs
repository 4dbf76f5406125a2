//! Writes results to stdout, coloured if requested, and without a panic if the reader closes the pipe.
//!
//! The supervisor's messages may quote a plugin, and another program could be listening on the given socket.
//! So plain strings are never written: the methods take [`Line`]s and [`Sanitized`] texts, or sanitize their
//! input (tables, JSON, failures). Three things are written unchanged: the guarded block of an answer, which
//! has a type that proves it, output that this program generates for other programs ([`GeneratedText`]), and
//! a plugin's raw message that an administrator writes to a file. What a model says is shown as it is, but for
//! what acts on a terminal ([`TerminalText`]).

use std::ffi::OsString;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};

use anstyle::Style;
use serde_json::Value;
use talon_guard::Wrapped;
use talon_sanitize::{Raw, Sanitized, TerminalText, sanitized_json};

use crate::failure::Failure;
use crate::generated::GeneratedText;
use crate::global::{Color, Format, Global};
use crate::line::{Line, paint};
use crate::table::Table;
use crate::terminal_style;

/// Turns off bracketed paste, which a line editor turned on.
const BRACKETED_PASTE_OFF: &str = "\u{1b}[?2004l";
/// A link of a terminal (OSC 8): the URL stands between the two, and an empty one ends it. Terminals without links
/// ignore it.
const LINK_BEGIN: &str = "\u{1b}]8;;";
const LINK_TEXT: &str = "\u{1b}\\";
/// Fits every terminal.
const PAGE_COLUMNS: usize = 80;

/// The output of a verb.
///
/// If the reader closes the pipe, further output is dropped silently: the verb continues, and its exit code
/// is not affected. Any other write error is stored and reported by [`Output::finish`].
pub(crate) struct Output {
    writer: BufWriter<Stdout>,
    format: Format,
    color: bool,
    color_errors: bool,
    /// Whether stdout is a terminal that takes links.
    links: bool,
    closed: bool,
    error: Option<io::Error>,
}

/// The width of the terminal at stdout, if it is one.
fn terminal_columns() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout)).and_then(Result::ok);
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        Self {
            writer: BufWriter::new(io::stdout()),
            format: global.output,
            color: global.colors(&io::stdout()),
            color_errors: global.colors(&io::stderr()),
            links: io::stdout().is_terminal() && !terminal_style::is_plain(),
            closed: false,
            error: None,
        }
    }

    /// Whether the output is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// The page width: the terminal's, or [`PAGE_COLUMNS`] without one, so that a script's input does not
    /// depend on a window.
    pub(crate) fn columns(&self) -> usize {
        terminal_columns().unwrap_or(PAGE_COLUMNS)
    }

    /// Whether the reader has closed the pipe: verbs that follow something exit then.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed || self.error.is_some()
    }

    /// Writes one line.
    pub(crate) fn line(&mut self, line: impl Into<Line>) {
        let mut text = line.into().render(self.color);
        text.push('\n');
        self.write(&text);
    }

    /// Writes one line to stderr, after flushing stdout.
    pub(crate) fn err_line(&mut self, line: impl Into<Line>) {
        self.flush();
        write_stderr(line, self.color_errors);
    }

    /// Writes why the verb failed to stderr, and returns the exit code.
    pub(crate) fn failure(&mut self, failure: &Failure) -> u8 {
        self.err_line(failure.line());
        failure.code()
    }

    /// Writes a text of several lines, followed by a line break.
    pub(crate) fn text(&mut self, text: &Sanitized) {
        self.whole(text);
    }

    /// Writes a text without adding a line break.
    pub(crate) fn exact(&mut self, text: &Sanitized) {
        self.write(text);
    }

    /// Writes what a model said, followed by a line break.
    pub(crate) fn terminal_text(&mut self, text: &TerminalText) {
        self.whole(text);
    }

    /// Writes a JSON text unchanged, except that on a terminal what acts on it is escaped.
    pub(crate) fn json_text(&mut self, text: &str) {
        if io::stdout().is_terminal() {
            self.whole(&Raw::from(text).terminal_json());
        } else {
            self.whole(text);
        }
    }

    /// Writes one JSON value, indented, with exactly its strings: what a model said, for programs. What acts on
    /// a terminal is escaped, which changes no string.
    pub(crate) fn exact_json(&mut self, value: &Value) {
        self.whole(&Raw::from(format!("{value:#}")).terminal_json());
    }

    /// The same on one line, for streams of values.
    pub(crate) fn exact_json_line(&mut self, value: &Value) {
        self.whole(&Raw::from(value.to_string()).terminal_json());
        self.flush();
    }

    /// Writes part of a line immediately.
    pub(crate) fn piece(&mut self, text: &TerminalText) {
        self.write(text);
        self.flush();
    }

    /// Whether text on stdout is coloured.
    pub(crate) fn has_colors(&self) -> bool {
        self.color
    }

    /// Whether text on stdout may have styles or links.
    pub(crate) fn has_styles(&self) -> bool {
        self.color || self.links
    }

    /// Writes part of a line immediately, with a style if colours are on. A URL links to itself where the terminal
    /// takes links.
    pub(crate) fn styled_piece(&mut self, style: Option<Style>, text: &TerminalText, is_url: bool) {
        let painted = paint(style.filter(|_| self.color), text);
        if is_url && self.links && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            self.write(&format!("{LINK_BEGIN}{}{LINK_TEXT}{painted}{LINK_BEGIN}{LINK_TEXT}", &**text));
        } else {
            self.write(&painted);
        }
    }

    /// Writes part of a line to stderr, coloured if colours are on.
    pub(crate) fn err_piece(&mut self, style: Style, text: &TerminalText) {
        self.flush();
        write_all_stderr(&paint(Some(style).filter(|_| self.color_errors), text));
    }

    /// Turns off the terminal's bracketed paste mode, which a line editor may have left on.
    pub(crate) fn disable_bracketed_paste(&mut self) {
        self.write(BRACKETED_PASTE_OFF);
        self.flush();
    }

    /// Writes untrusted bytes, but never to a terminal.
    pub(crate) fn raw_bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if io::stdout().is_terminal() {
            return Err(Failure::usage("this is not fit for a terminal: send it to a file with > FILE"));
        }
        self.write_bytes(bytes);
        Ok(())
    }

    /// Writes the guarded block of an answer unchanged.
    pub(crate) fn block(&mut self, block: &Wrapped) {
        self.whole(block.as_str());
    }

    /// Writes output generated for another program, unchanged.
    pub(crate) fn generated(&mut self, what: &GeneratedText<'_>) -> Result<(), Failure> {
        self.whole(&what.text()?);
        Ok(())
    }

    /// Writes one JSON value, indented. Its strings are sanitized; strings that are sanitized already, as all
    /// of the supervisor's are, do not change.
    pub(crate) fn json(&mut self, value: &Value) {
        let text = format!("{:#}", sanitized_json::value(value));
        self.whole(&text);
    }

    /// Writes an answer as JSON, with its unchanged guarded block under the given key.
    pub(crate) fn json_with_block(&mut self, value: &Value, key: &str, block: &Wrapped) {
        let mut value = sanitized_json::value(value);
        value[key] = block.as_str().into();
        self.whole(&format!("{value:#}"));
    }

    /// Writes one JSON value on one line, for streams of values.
    pub(crate) fn json_line(&mut self, value: &Value) {
        let text = sanitized_json::value(value).to_string();
        self.whole(&text);
        self.flush();
    }

    pub(crate) fn table(&mut self, table: &Table) {
        let text = match terminal_columns() {
            Some(columns) => table.with_wrapped_facts(columns).render(self.color),
            None => table.render(self.color),
        };
        self.write(&text);
    }

    /// Writes a table to stderr.
    pub(crate) fn err_table(&mut self, table: &Table) {
        self.flush();
        write_all_stderr(&table.render(self.color_errors));
    }

    /// Writes one JSON value on one line to stderr.
    pub(crate) fn err_json(&mut self, value: &Value) {
        self.flush();
        write_all_stderr(&format!("{}\n", sanitized_json::value(value)));
    }

    /// Flushes the output; verbs that follow something call it after each item.
    pub(crate) fn flush(&mut self) {
        if !self.is_closed() {
            let result = self.writer.flush();
            self.record_error(result);
        }
    }

    /// Flushes the rest and reports a write error.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.flush();
        let error = self.error.take();
        // Keep the buffer's drop from retrying the failed write.
        let _ = self.writer.into_parts();
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

    /// The only function that writes to stdout; only the methods above may call it.
    fn write_bytes(&mut self, bytes: &[u8]) {
        if !self.is_closed() {
            let result = self.writer.write_all(bytes);
            self.record_error(result);
        }
    }

    fn record_error(&mut self, result: io::Result<()>) {
        match result {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => self.error = Some(error),
        }
    }
}

/// Writes to stderr; ignores errors, as there is nowhere to report them.
fn write_all_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes a line to stderr, also without an [`Output`].
pub(crate) fn write_stderr(line: impl Into<Line>, color: bool) {
    let mut text = line.into().render(color);
    text.push('\n');
    write_all_stderr(&text);
}

impl Global {
    /// Whether output to this stream is coloured.
    pub(crate) fn colors(&self, to: &impl IsTerminal) -> bool {
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
