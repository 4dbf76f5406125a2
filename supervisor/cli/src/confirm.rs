//! Asks for confirmation before verbs that cannot be undone.

use std::io::{BufRead, IsTerminal, Read};

use talon_sanitize::{Sanitized, sanitized};

use crate::failure::Failure;
use crate::output::Output;

/// More than any answer to a yes-or-no question.
const MAX_ANSWER_BYTES: u64 = 80;

/// Whether a person can see and answer the question: stdin and stderr are terminals.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks the question. Anything but an explicit yes means no.
pub(crate) fn is_confirmed(question: Sanitized, out: &mut Output) -> Result<bool, Failure> {
    out.err_line(sanitized!("{} [y/N]", question));
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .take(MAX_ANSWER_BYTES)
        .read_line(&mut answer)
        .map_err(|error| Failure::failed(format!("cannot read the answer: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
