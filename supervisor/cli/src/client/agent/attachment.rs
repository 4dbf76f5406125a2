//! Files and piped data that go with a question.
//!
//! A text is a named block below the question, between fences that it cannot close, and is sent whole. An image is
//! sent as it is, and so is a file that is no text, or more than a question may have: text in it is read in pages.

use std::fs::File;
use std::io::{self, stdin};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use talon_proto::agent::Media;

use super::formatting::single_line;
use super::media_file::{FileContent, media, read_regular};
use crate::failure::Failure;
use crate::input::{InputError, InputSource};
use crate::output::Output;

/// The longest text of a turn with everything in it; the agent's own limit (`serve/limits.rs`) is the same.
pub(super) const MAX_TEXT_BYTES: u64 = 256 << 10;
/// How long to read stdin before a note says what is waited for: longer than most programs take to begin, and
/// short enough for a person who wonders.
const STDIN_NOTE_AFTER: Duration = Duration::from_secs(3);
/// The shortest fence of Markdown.
const MIN_FENCE: usize = 3;
/// What begins the name of a file in a message.
const MARK: char = '@';
/// Characters that end a sentence, and seldom a file's name.
const PUNCTUATION: &[char] = &['.', ',', ';', ':', '?', '!', ')', '"', '\''];

/// Whether stdin is a pipe, a file or a socket. A terminal and `/dev/null` are not.
pub(super) fn is_stdin_piped() -> bool {
    let Ok(copy) = stdin().as_fd().try_clone_to_owned() else { return false };
    File::from(copy).metadata().is_ok_and(|about| {
        let kind = about.file_type();
        kind.is_file() || kind.is_fifo() || kind.is_socket()
    })
}

/// Reads stdin to its end. A writer that leaves it open is waited for, and a note says so.
pub(super) fn read_stdin(out: &mut Output) -> Result<String, Failure> {
    let (sender, received) = mpsc::channel();
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            // The receiver waits for this.
            let _ = sender.send(InputSource::Stdin.read(MAX_TEXT_BYTES));
        })
        .map_err(|error| Failure::failed(format!("cannot read stdin: {error}; try again")))?;
    let gone = || Failure::failed("cannot read stdin: its thread ended; try again");
    let bytes = match received.recv_timeout(STDIN_NOTE_AFTER) {
        Err(RecvTimeoutError::Timeout) => {
            out.err_line(
                "note: waiting for the end of stdin, which goes with the question; `< /dev/null` leaves it out",
            );
            received.recv().map_err(|_| gone())?
        }
        read => read.map_err(|_| gone())?,
    };
    text_of(&InputSource::Stdin, bytes)
}

/// Reads a file; `-` is stdin.
pub(super) fn read_file(path: &Path, out: &mut Output) -> Result<String, Failure> {
    match InputSource::of(path) {
        InputSource::Stdin => read_stdin(out),
        source @ InputSource::File(_) => text_of(&source, source.read(MAX_TEXT_BYTES)),
    }
}

fn text_of(source: &InputSource<'_>, bytes: Result<Vec<u8>, InputError>) -> Result<String, Failure> {
    let bytes = bytes.map_err(|error| unread(&error, MAX_TEXT_BYTES, "text"))?;
    let text = utf8(source, bytes)?;
    match text.find('\0') {
        Some(at) => Err(Failure::usage(format!(
            "{} is not text (a zero byte at {at}): send text, or name the file in the question for a tool that reads it",
            source.name()
        ))),
        None => Ok(text),
    }
}

/// Why a text or schema was not read.
pub(super) fn unread(error: &InputError, max_bytes: u64, what: &str) -> Failure {
    Failure::usage(match error {
        InputError::TooLarge { name } => format!(
            "{name} holds more than {max_bytes} bytes, which is the longest {what}: put it into a file that a tool can \
             read, and name that"
        ),
        InputError::Open { .. } | InputError::Read { .. } => {
            format!("{error}; nothing was asked: name a file that you can read")
        }
    })
}

/// The bytes as text.
pub(super) fn utf8(source: &InputSource<'_>, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!("{} is not UTF-8 (byte {at}): send text", source.name()))
    })
}

/// A question with what goes with it.
#[derive(Debug)]
pub(super) struct Question {
    text: String,
    media: Vec<Media>,
}

impl Question {
    pub(super) fn new(text: String) -> Self {
        Self { text, media: Vec::new() }
    }

    /// Adds a block. Errors name the attachment that no longer fits.
    pub(super) fn attach(&mut self, name: &str, content: &str) -> Result<(), Failure> {
        let block = block(name, content);
        let bytes = self.text.len() + block.len();
        if bytes as u64 > MAX_TEXT_BYTES {
            return Err(Failure::usage(format!(
                "with {name} the question has {bytes} bytes, and at most {MAX_TEXT_BYTES} can be asked at once; nothing was \
                 asked: leave something out, or name the file for a tool that reads it"
            )));
        }
        self.text.push_str(&block);
        Ok(())
    }

    pub(super) fn attach_file(&mut self, path: &Path, out: &mut Output) -> Result<(), Failure> {
        let source = InputSource::of(path);
        let content = match source {
            InputSource::File(path) => read_regular(path)?,
            InputSource::Stdin => None,
        };
        match content {
            None => {
                let content = read_file(path, out)?;
                self.attach(&source.name(), &content)
            }
            Some(FileContent::Text(text)) if self.fits(&source.name(), &text) => {
                self.attach(&source.name(), &text)
            }
            Some(FileContent::Text(text)) => {
                self.media.push(media(path, text.into_bytes()));
                Ok(())
            }
            Some(FileContent::Other(media)) => {
                self.media.push(media);
                Ok(())
            }
        }
    }

    fn fits(&self, name: &str, content: &str) -> bool {
        (self.text.len() + block(name, content).len()) as u64 <= MAX_TEXT_BYTES
    }

    /// The text, and the images and files beside it.
    pub(super) fn into_parts(self) -> (String, Vec<Media>) {
        (self.text, self.media)
    }
}

fn block(name: &str, content: &str) -> String {
    let longest = content.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(MIN_FENCE.max(longest + 1));
    let end = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
    format!("\n\n{}:\n{fence}\n{content}{end}{fence}", single_line(name).as_str())
}

/// The files that a typed message names, as `@src/main.rs`.
///
/// A word that names no file but looks like a path is an error, because the model would otherwise answer about a
/// file that it never saw. `\@` is an at sign.
pub(super) fn mentioned_files(
    text: &str,
    is_file: impl Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>, io::Error> {
    let mut files = Vec::new();
    for word in text.split_whitespace() {
        let Some(name) = word.strip_prefix(MARK).filter(|name| !name.is_empty()) else { continue };
        let trimmed = name.trim_end_matches(PUNCTUATION);
        let mut found = [name, trimmed].into_iter().filter(|name| !name.is_empty()).map(Path::new);
        match found.find(|path| is_file(path)) {
            Some(path) if files.iter().any(|known: &PathBuf| known == path) => {}
            Some(path) => files.push(path.to_owned()),
            None if trimmed.contains(['/', '.']) => {
                return Err(io::Error::new(io::ErrorKind::NotFound, trimmed.to_owned()));
            }
            None => {}
        }
    }
    Ok(files)
}

/// A typed message with the files that it names.
pub(super) fn with_mentioned_files(text: String, out: &mut Output) -> Result<Question, Failure> {
    let files = mentioned_files(&text, |path| path.metadata().is_ok_and(|about| !about.is_dir()));
    let files = files.map_err(|missing| {
        Failure::usage(format!(
            "there is no file {missing}; nothing was asked: correct its name, or write \\@{missing} where no file is meant"
        ))
    })?;
    let mut question = Question::new(text.replace("\\@", "@"));
    for file in files {
        question.attach_file(&file, out)?;
    }
    Ok(question)
}

/// Parses a file's argument: `@FILE`.
pub(super) fn mention(word: &str) -> Result<PathBuf, String> {
    match word.strip_prefix(MARK) {
        Some(name) if !name.is_empty() => Ok(PathBuf::from(name)),
        _ => Err("a question is one argument, so put quotes around it; a file after it is written @FILE"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_names_files() {
        let is_file =
            |path: &Path| ["a.rs", "src/b.rs", "Makefile"].iter().any(|name| path == Path::new(name));
        for (text, files) in [
            ("compare @a.rs with (it is) @src/b.rs, please", &["a.rs", "src/b.rs"] as &[&str]),
            ("is @a.rs? the same as @a.rs", &["a.rs"]),
            ("@Makefile", &["Makefile"]),
            ("ask @anna or mail a@b.example", &[]),
            ("\\@no/such is a path, @ is not", &[]),
        ] {
            let found = mentioned_files(text, is_file).unwrap();
            assert_eq!(found, files.iter().map(PathBuf::from).collect::<Vec<_>>(), "{text}");
        }
        let missing = mentioned_files("see @src/c.rs.", is_file).unwrap_err();
        assert_eq!(missing.to_string(), "src/c.rs");
    }

    #[test]
    fn an_argument_that_is_no_file_is_named() {
        assert_eq!(mention("@a b.txt"), Ok(PathBuf::from("a b.txt")));
        assert!(mention("twice").unwrap_err().contains("quotes"));
        assert!(mention("@").is_err());
    }

    #[test]
    fn what_is_too_long_together_is_refused_by_name() {
        let mut question = Question::new("why?".to_owned());
        let half = "x".repeat(usize::try_from(MAX_TEXT_BYTES / 2).unwrap());
        question.attach("one", &half).unwrap();
        let refused = question.attach("two", &half).unwrap_err();
        assert!(refused.to_string().contains("with two the question has 262"), "{refused}");
    }

    proptest! {
        // Promises: CLI-65
        #[test]
        fn a_text_is_whole_and_closes_no_fence(content in "[a`\n ]{0,40}") {
            let block = block("a\u{1b}[2J\nfile", &content);
            prop_assert!(block.chars().all(|letter| letter == '\n' || !letter.is_control()));
            let (head, rest) = block.strip_prefix("\n\n").unwrap().split_once(":\n").unwrap();
            prop_assert!(!head.contains('\n'));
            let (fence, rest) = rest.split_once('\n').unwrap();
            let inside = rest.strip_suffix(fence).unwrap();
            prop_assert!(!inside.contains(fence));
            prop_assert_eq!(inside.strip_suffix('\n').unwrap_or(inside), content.strip_suffix('\n').unwrap_or(&content));
        }
    }
}
