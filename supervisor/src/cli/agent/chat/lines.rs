//! Reads the messages of a chat from a line editor or from a pipe.
//!
//! Both block, so they run on a thread that is asked for one message at a time.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, stdin, stdout};
use std::sync::mpsc;

use rustyline::error::ReadlineError;
use tokio::sync::oneshot;

use super::editor::{self, Editing};
use super::entry;

/// The longest message; the agent's own limit is the same.
pub(super) const MAX_MESSAGE_BYTES: usize = 256 << 10;
/// The editor's prompt.
const PROMPT: &str = "> ";

/// One message, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Message(String),
    /// Longer than [`MAX_MESSAGE_BYTES`]; it was read to its end and discarded.
    TooLong,
    /// Ctrl-C: the typed text is discarded.
    Interrupted,
    End,
}

type Answer = oneshot::Sender<io::Result<Entry>>;

/// The source of messages.
pub(super) struct Lines {
    asks: mpsc::Sender<Answer>,
    /// Whether a person types: there is an editor, and questions can be asked.
    pub(super) is_typed: bool,
}

impl Lines {
    /// Starts an editor if stdin and stdout are terminals; otherwise reads lines from stdin.
    pub(super) fn begin() -> io::Result<Self> {
        let is_typed = stdin().is_terminal() && stdout().is_terminal();
        let (asks, asked) = mpsc::channel::<Answer>();
        let thread = std::thread::Builder::new().name("lines".to_owned());
        if is_typed {
            let mut editing = editor::begin().map_err(other)?;
            thread.spawn(move || serve(&asked, || typed(&mut editing)))?;
        } else {
            thread.spawn(move || serve(&asked, || piped(&mut stdin().lock())))?;
        }
        Ok(Self { asks, is_typed })
    }

    /// The next message.
    pub(super) async fn next(&self) -> io::Result<Entry> {
        let (answer, line) = oneshot::channel();
        let gone = || io::Error::other("the thread that reads lines ended");
        self.asks.send(answer).map_err(|_| gone())?;
        line.await.map_err(|_| gone())?
    }
}

fn serve(asked: &mpsc::Receiver<Answer>, mut next: impl FnMut() -> io::Result<Entry>) {
    while let Ok(answer) = asked.recv() {
        // The receiver may have been dropped.
        let _ = answer.send(next());
    }
}

fn typed(editing: &mut Editing) -> io::Result<Entry> {
    match editing.readline(PROMPT) {
        Ok(text) if text.len() > MAX_MESSAGE_BYTES => Ok(Entry::TooLong),
        Ok(text) => {
            editing.remember(&text);
            Ok(Entry::Message(entry::joined(&text)))
        }
        Err(ReadlineError::Interrupted) => Ok(Entry::Interrupted),
        Err(ReadlineError::Eof) => Ok(Entry::End),
        // rustyline's own signal handling: a resized window must not end the chat.
        Err(ReadlineError::Signal(_)) => Ok(Entry::Interrupted),
        Err(error) => Err(other(error)),
    }
}

fn other(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        error => io::Error::other(error),
    }
}

/// Reads one message from a pipe: all lines up to one that does not continue.
fn piped(from: &mut impl io::BufRead) -> io::Result<Entry> {
    let mut message: Option<String> = None;
    loop {
        let mut line = Vec::new();
        let most = MAX_MESSAGE_BYTES as u64 + 1;
        if from.take(most).read_until(b'\n', &mut line)? == 0 {
            // At the end of the input an open continuation counts as complete.
            return Ok(message.map_or(Entry::End, |text| Entry::Message(entry::joined(&text))));
        }
        let whole = line.last() == Some(&b'\n');
        let text = String::from_utf8_lossy(&line);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let so_far = match message.take() {
            Some(before) => before + "\n" + text,
            None => text.to_owned(),
        };
        if so_far.len() > MAX_MESSAGE_BYTES {
            if !whole {
                from.skip_until(b'\n')?;
            }
            return Ok(Entry::TooLong);
        }
        if !entry::is_open(&so_far) {
            return Ok(Entry::Message(entry::joined(&so_far)));
        }
        message = Some(so_far);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_holds_messages_of_one_or_more_lines() {
        let long = "x".repeat(MAX_MESSAGE_BYTES + 10);
        let text = format!("one\ntwo \\\nthree\n```\na\n\n```\n{long}\n/cost\nlast");
        let mut from = text.as_bytes();
        let all: Vec<Entry> = std::iter::from_fn(|| match piped(&mut from).unwrap() {
            Entry::End => None,
            entry => Some(entry),
        })
        .collect();
        let said = |text: &str| Entry::Message(text.to_owned());
        assert_eq!(
            all,
            [
                said("one"),
                said("two \nthree"),
                said("```\na\n\n```"),
                Entry::TooLong,
                said("/cost"),
                said("last")
            ]
        );
    }
}
