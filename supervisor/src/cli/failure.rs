//! How a verb fails: one sentence for people, one exit code for scripts.

use std::fmt;
use std::io::Write;

use anstyle::AnsiColor;

use super::output::Out;
use crate::exit;

/// Why a verb could not do what was asked.
#[derive(Debug)]
pub(super) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// A failure with an exit code of [`crate::exit`] and a text that ends with what to do next.
    pub(super) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(exit::USAGE, message)
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new(exit::FAILED, message)
    }

    #[cfg(test)]
    pub(super) fn code(&self) -> u8 {
        self.code
    }

    /// Says it on stderr and gives the exit code. Texts of a supervisor may quote a plugin, so control characters
    /// are made harmless line by line.
    pub(super) fn print(&self, out: &mut Out) -> u8 {
        let mut text = String::new();
        for line in self.message.lines() {
            text.push_str(&out.clean(line));
            text.push('\n');
        }
        let head = out.paint_error(AnsiColor::Red.on_default().bold(), "talon:");
        write_stderr(format_args!("{head} {text}"));
        self.code
    }

    /// The same without an [`Out`], once that is gone.
    pub(super) fn print_plain(&self) -> u8 {
        write_stderr(format_args!("talon: {}\n", self.message));
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Writes to stderr; if nobody can hear it, there is nobody to tell.
pub(super) fn write_stderr(text: fmt::Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(text);
}
