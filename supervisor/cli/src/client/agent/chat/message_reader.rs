//! Reads the messages of a chat from a line editor or from a pipe.
//!
//! Both block, so they run on a thread that is asked for one message at a time.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, stdin, stdout};
use std::sync::mpsc;

use rustyline::error::ReadlineError;
use tokio::sync::oneshot;

use super::continuation;
use super::editor::{self, LineEditor};

/// The longest message; the agent's own limit is the same.
pub(super) const MAX_MESSAGE_BYTES: usize = 256 << 10;

/// One message, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UserInput {
    Message(String),
    /// Longer than [`MAX_MESSAGE_BYTES`]; it was read to its end and discarded.
    TooLong,
    /// Ctrl-C: the typed text is discarded.
    Interrupted,
    End,
}

/// Where a message goes, and what it begins with.
type MessageRequest = (oneshot::Sender<io::Result<UserInput>>, String);

/// The source of messages.
pub(super) struct MessageReader {
    requests: mpsc::Sender<MessageRequest>,
    /// Whether a person types: there is an editor, and questions can be asked.
    pub(super) is_interactive: bool,
}

impl MessageReader {
    /// Starts an editor if stdin and stdout are terminals; otherwise reads lines from stdin.
    pub(super) fn begin(has_hints: bool) -> io::Result<Self> {
        let is_typed = stdin().is_terminal() && stdout().is_terminal();
        let (asks, asked) = mpsc::channel::<MessageRequest>();
        let thread = std::thread::Builder::new().name("lines".to_owned());
        if is_typed {
            let mut editing = editor::begin(has_hints).map_err(readline_error)?;
            thread.spawn(move || serve(&asked, |draft| read_typed(&mut editing, draft)))?;
        } else {
            thread.spawn(move || serve(&asked, |_| read_piped(&mut stdin().lock())))?;
        }
        Ok(Self { requests: asks, is_interactive: is_typed })
    }

    /// The next message; `draft` is what a person finds in the editor.
    pub(super) async fn next(&self, draft: String) -> io::Result<UserInput> {
        let (answer, line) = oneshot::channel();
        let gone = || io::Error::other("the thread that reads lines ended");
        self.requests.send((answer, draft)).map_err(|_| gone())?;
        line.await.map_err(|_| gone())?
    }
}

fn serve(asked: &mpsc::Receiver<MessageRequest>, mut next: impl FnMut(&str) -> io::Result<UserInput>) {
    while let Ok((answer, draft)) = asked.recv() {
        // The receiver may have been dropped.
        let _ = answer.send(next(&draft));
    }
}

fn read_typed(editing: &mut LineEditor, draft: &str) -> io::Result<UserInput> {
    match editing.readline(draft) {
        Ok(text) if text.len() > MAX_MESSAGE_BYTES => Ok(UserInput::TooLong),
        Ok(text) => {
            editing.add_history(&text);
            Ok(UserInput::Message(continuation::join_lines(&text)))
        }
        Err(ReadlineError::Interrupted) => Ok(UserInput::Interrupted),
        Err(ReadlineError::Eof) => Ok(UserInput::End),
        // rustyline's own signal handling: a resized window must not end the chat.
        Err(ReadlineError::Signal(_)) => Ok(UserInput::Interrupted),
        Err(error) => Err(readline_error(error)),
    }
}

fn readline_error(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        error => io::Error::other(error),
    }
}

/// Reads one message from a pipe: all lines up to one that does not continue.
fn read_piped(from: &mut impl io::BufRead) -> io::Result<UserInput> {
    let mut message: Option<String> = None;
    loop {
        let mut line = Vec::new();
        let most = MAX_MESSAGE_BYTES as u64 + 1;
        if from.take(most).read_until(b'\n', &mut line)? == 0 {
            // At the end of the input an open continuation counts as complete.
            return Ok(
                message.map_or(UserInput::End, |text| UserInput::Message(continuation::join_lines(&text)))
            );
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
            return Ok(UserInput::TooLong);
        }
        if !continuation::is_incomplete(&so_far) {
            return Ok(UserInput::Message(continuation::join_lines(&so_far)));
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
        let all: Vec<UserInput> = std::iter::from_fn(|| match read_piped(&mut from).unwrap() {
            UserInput::End => None,
            entry => Some(entry),
        })
        .collect();
        let said = |text: &str| UserInput::Message(text.to_owned());
        assert_eq!(
            all,
            [
                said("one"),
                said("two \nthree"),
                said("```\na\n\n```"),
                UserInput::TooLong,
                said("/cost"),
                said("last")
            ]
        );
    }
}
