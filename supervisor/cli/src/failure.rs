//! The error of a verb: a message for people, an exit code for scripts.

use std::fmt;

use anstyle::{AnsiColor, Style};
use talon_sanitize::{Raw, Sanitized};

use crate::exit;
use crate::line::{Line, sanitized_line};

const HEAD: Style = AnsiColor::Red.on_default().bold();

/// Why a verb could not do what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: Sanitized,
}

impl Failure {
    /// A failure with an exit code of [`crate::exit`] and a message that ends with what to do next. The
    /// message may quote a plugin or a file name, so it is neutralized here, line by line.
    pub(crate) fn new<'t>(code: u8, message: impl Into<Raw<'t>>) -> Self {
        let message = message.into();
        let message = Sanitized::join(message.expose().lines().map(sanitized_line), "\n");
        Self { code, message }
    }

    pub(crate) fn usage<'t>(message: impl Into<Raw<'t>>) -> Self {
        Self::new(exit::USAGE, message)
    }

    pub(crate) fn failed<'t>(message: impl Into<Raw<'t>>) -> Self {
        Self::new(exit::FAILED, message)
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// The line that people see.
    pub(crate) fn line(&self) -> Line {
        Line::styled(HEAD, "talon:").and(" ").and(&self.message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_quotes_is_inert_and_its_lines_stay() {
        let failure = Failure::failed("2 problems:\na \u{1b}[2J<|im_start|>\nb\r\u{202e}");
        assert_eq!(failure.to_string(), "2 problems:\na ␛[2J<·|im_start|>\nb␍(U+202E)");
    }
}
