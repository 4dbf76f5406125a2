//! The line editor of a chat, with a history file.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};

use super::command::COMMANDS;
use super::continuation;

/// Messages in the history; the oldest are dropped first.
const MAX_HISTORY: usize = 1000;
/// Longer messages are not stored, which bounds the file to 8 MiB.
const MAX_ENTRY_BYTES: usize = 8 << 10;
/// A larger history file was not written by this program and is left alone.
const MAX_FILE_BYTES: u64 = (MAX_HISTORY * MAX_ENTRY_BYTES * 2) as u64;
/// Only the owner may read the conversation.
const PRIVATE_DIR: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;

/// A line editor with a history.
pub(super) struct LineEditor {
    editor: Editor<EditorHelper, DefaultHistory>,
    /// The history file, if one can be used.
    file: Option<PathBuf>,
}

/// Prepares the line editor; the terminal is in raw mode only while a line is read.
pub(super) fn begin() -> Result<LineEditor, ReadlineError> {
    let config = Config::builder()
        .max_history_size(MAX_HISTORY)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(EditorHelper));
    let state = std::env::var_os("XDG_STATE_HOME");
    let file = history_path(state.as_deref().map(Path::new), std::env::home_dir().as_deref())
        .filter(|file| prepare_history_file(file));
    if let Some(file) = &file {
        // Missing or unreadable: start with an empty history.
        let _ = editor.load_history(file);
    }
    Ok(LineEditor { editor, file })
}

impl LineEditor {
    pub(super) fn readline(&mut self, prompt: &str) -> Result<String, ReadlineError> {
        self.editor.readline(prompt)
    }

    /// Adds a message to the history. A failed write is ignored: it must not end the chat.
    pub(super) fn add_history(&mut self, text: &str) {
        if text.len() > MAX_ENTRY_BYTES {
            return;
        }
        let _ = self.editor.add_history_entry(text);
        if let Some(file) = &self.file {
            let _ = self.editor.append_history(file);
        }
    }
}

/// The history file: `$XDG_STATE_HOME/talon/chat-history`, or below `~/.local/state`.
fn history_path(state: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let state = state.filter(|path| path.is_absolute()).map(Path::to_owned);
    let state = state.or_else(|| Some(home?.join(".local/state")))?;
    Some(state.join("talon/chat-history"))
}

/// Creates the directory and restricts the file to its owner. `false`: no history file can be used.
fn prepare_history_file(file: &Path) -> bool {
    let Some(dir) = file.parent() else { return false };
    if DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(dir).is_err() {
        return false;
    }
    match file.symlink_metadata() {
        Ok(about) => {
            let private = std::fs::set_permissions(file, Permissions::from_mode(PRIVATE_FILE));
            about.is_file() && about.len() <= MAX_FILE_BYTES && private.is_ok()
        }
        Err(_) => true,
    }
}

/// Tells the editor when a message is complete and which commands to offer as completions.
struct EditorHelper;

impl Validator for EditorHelper {
    fn validate(&self, typed: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match continuation::is_incomplete(typed.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for EditorHelper {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok((0, completions(&line[..at])))
    }
}

/// The commands that start with what was typed.
fn completions(line: &str) -> Vec<String> {
    let Some(begun) = line.strip_prefix('/') else { return Vec::new() };
    let names = COMMANDS.iter().map(|(name, ..)| *name);
    names
        .filter(|name| name.starts_with(begun) && !name.starts_with('/'))
        .map(|name| format!("/{name} "))
        .collect()
}

impl Hinter for EditorHelper {
    type Hint = String;
}
impl Highlighter for EditorHelper {}
impl Helper for EditorHelper {}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CLI-44
    #[test]
    fn the_history_is_where_state_belongs_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let home = Some(Path::new("/home/a"));
        assert_eq!(history_path(None, home).unwrap(), Path::new("/home/a/.local/state/talon/chat-history"));
        assert_eq!(history_path(Some(Path::new("relative")), None), None);
        let file = history_path(Some(dir.path()), home).unwrap();
        assert!(prepare_history_file(&file));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(file.parent().unwrap()), PRIVATE_DIR);
        std::fs::write(&file, "#V2\nhello\n").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert!(prepare_history_file(&file));
        assert_eq!(mode(&file), PRIVATE_FILE);
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(!prepare_history_file(&file), "no file");
    }

    #[test]
    fn commands_are_completed_and_messages_are_not() {
        assert_eq!(completions("/co"), ["/cost ", "/context ", "/compact "]);
        assert!(completions("co").is_empty());
        assert!(completions("/nothing").is_empty());
    }
}
