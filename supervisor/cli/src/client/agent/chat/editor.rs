//! The line editor of a chat, with a history file.

use std::borrow::Cow;
use std::io::stdout;
use std::path::PathBuf;

use rustix::termios::tcgetwinsize;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use talon_sanitize::Raw;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::command::{COMMANDS, is_word, words_after};
use super::continuation;
use crate::history_file::{self, MAX_ENTRIES, MAX_ENTRY_BYTES};
use crate::line::paint;

/// The file with what was typed.
const HISTORY: &str = "chat-history";
/// Entries of a directory that a completion looks at, which bounds its time; a name beyond can be typed.
const MAX_DIR_ENTRIES: usize = 10_000;
const HINT: anstyle::Style = anstyle::Style::new().dimmed();
/// The prompt.
const PROMPT: &str = "> ";

/// A line editor with a history.
pub(super) struct LineEditor {
    editor: Editor<EditorHelper, DefaultHistory>,
    /// The history file, if one can be used.
    file: Option<PathBuf>,
}

/// Prepares the line editor; the terminal is in raw mode only while a line is read.
///
/// `has_hints`: whether to show what a command takes and does while it is typed. Hints are dimmed, so they need colours, and a
/// screen reader would take them for what was typed.
pub(super) fn begin(has_hints: bool) -> Result<LineEditor, ReadlineError> {
    let config = Config::builder()
        .max_history_size(MAX_ENTRIES)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        // What is ambiguous is listed, as in shells.
        .completion_type(CompletionType::List)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(EditorHelper { has_hints }));
    let file = history_file::prepare(HISTORY);
    if let Some(file) = &file {
        // Missing or unreadable: start with an empty history.
        let _ = editor.load_history(file);
    }
    Ok(LineEditor { editor, file })
}

impl LineEditor {
    /// Reads a message; `draft` is what it begins with.
    pub(super) fn readline(&mut self, draft: &str) -> Result<String, ReadlineError> {
        // A draft was a message, and may hold what acts on a terminal.
        let draft = Raw::from(draft).terminal_text();
        self.editor.readline_with_initial(PROMPT, (&draft, ""))
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

/// Tells the editor when a message is complete and which commands to offer as completions.
struct EditorHelper {
    has_hints: bool,
}

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
        let typed = &line[..at];
        Ok(match (file_being_typed(typed), argument_being_typed(typed)) {
            (Some(begun), _) => (typed.len() - begun.len(), file_names(begun)),
            (None, Some((name, begun))) => (typed.len() - begun.len(), arguments(name, begun)),
            (None, None) => (0, completions(typed)),
        })
    }
}

/// The commands that start with what was typed.
fn completions(line: &str) -> Vec<String> {
    let Some(begun) = line.strip_prefix('/') else { return Vec::new() };
    let names = COMMANDS.iter().map(|(name, ..)| *name);
    names.filter(|name| name.starts_with(begun) && is_word(name)).map(|name| format!("/{name} ")).collect()
}

/// A command, and what is typed of the first word after it.
fn argument_being_typed(line: &str) -> Option<(&str, &str)> {
    let (name, begun) = line.strip_prefix('/')?.split_once(' ')?;
    (!begun.contains(char::is_whitespace)).then_some((name, begun))
}

/// The words after a command that start with what was typed.
fn arguments(name: &str, begun: &str) -> Vec<String> {
    words_after(name).iter().filter(|word| word.starts_with(begun)).map(|word| format!("{word} ")).collect()
}

/// What is typed of the name in `@NAME`, if the cursor is in one.
fn file_being_typed(line: &str) -> Option<&str> {
    let word = line.rsplit(char::is_whitespace).next().unwrap_or(line);
    word.strip_prefix('@')
}

/// The files and directories whose names begin so, in order; a directory ends in a slash. Names that would not be
/// one word of a message are left out.
fn file_names(begun: &str) -> Vec<String> {
    let (dir, name) = begun.rsplit_once('/').map_or(("", begun), |(dir, name)| (&begun[..=dir.len()], name));
    let Ok(entries) = std::fs::read_dir(if dir.is_empty() { "." } else { dir }) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .take(MAX_DIR_ENTRIES)
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let found = entry.file_name().into_string().ok()?;
            let is_hidden = found.starts_with('.') && !name.starts_with('.');
            let is_word = found.chars().all(|letter| !letter.is_whitespace() && !letter.is_control());
            let end = if entry.path().is_dir() { "/" } else { "" };
            (found.starts_with(name) && !is_hidden && is_word).then(|| format!("{dir}{found}{end}"))
        })
        .collect();
    names.sort_unstable();
    names
}

/// The rest of a command, with what it takes and does; the right arrow takes over the rest.
#[derive(Debug, PartialEq, Eq)]
struct CommandHint {
    shown: String,
    rest: String,
}

impl Hint for CommandHint {
    fn display(&self) -> &str {
        &self.shown
    }

    fn completion(&self) -> Option<&str> {
        (!self.rest.is_empty()).then_some(&*self.rest)
    }
}

/// The hint for the first command that begins so, cut to this many columns: a list of completions would be written over
/// a second line of it.
fn command_hint(line: &str, columns: usize) -> Option<CommandHint> {
    let begun = line.strip_prefix('/').filter(|begun| !begun.is_empty())?;
    let (name, takes, does) = COMMANDS.iter().find(|(name, ..)| name.starts_with(begun) && is_word(name))?;
    let rest = &name[begun.len()..];
    let space = if takes.is_empty() { "" } else { " " };
    let shown = format!("{rest}{space}{takes}  {does}");
    let mut width = 0;
    let fits = |letter: &char| {
        width += letter.width().unwrap_or_default();
        width <= columns
    };
    Some(CommandHint { shown: shown.chars().take_while(fits).collect(), rest: rest.to_owned() })
}

/// The columns that are free behind a line.
fn free_columns(line: &str) -> usize {
    let columns = tcgetwinsize(stdout()).map_or(0, |size| usize::from(size.ws_col));
    // The last one stays free, where terminals wrap.
    columns.saturating_sub(PROMPT.len() + line.width() + 1)
}

impl Hinter for EditorHelper {
    type Hint = CommandHint;

    fn hint(&self, line: &str, at: usize, _: &Context<'_>) -> Option<CommandHint> {
        if self.has_hints && at == line.len() { command_hint(line, free_columns(line)) } else { None }
    }
}

impl Highlighter for EditorHelper {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(paint(Some(HINT), hint))
    }
}
impl Helper for EditorHelper {}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CLI-65
    #[test]
    fn names_of_files_are_completed() {
        assert_eq!(file_being_typed("see @src/ma"), Some("src/ma"));
        assert_eq!(file_being_typed("see @a and"), None);
        let dir = tempfile::tempdir().unwrap();
        for name in ["main.rs", "make it.rs", ".hidden"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        std::fs::create_dir(dir.path().join("mad")).unwrap();
        let at = format!("{}/", dir.path().display());
        assert_eq!(file_names(&format!("{at}ma")), [format!("{at}mad/"), format!("{at}main.rs")]);
        assert_eq!(file_names(&format!("{at}.h")), [format!("{at}.hidden")]);
        assert!(file_names("no/such/directory").is_empty());
    }

    // Promises: CLI-70
    #[test]
    fn a_command_is_hinted_at_while_it_is_typed() {
        let hint = command_hint("/mod", 40).unwrap();
        assert!(hint.display().starts_with("el [NAME|default]  the models"), "{hint:?}");
        assert_eq!(hint.completion(), Some("el"));
        assert_eq!(command_hint("/mod", 5).unwrap().display(), "el [N");
        assert_eq!(command_hint("/exit", 40).unwrap().completion(), None);
        for line in ["/", "mod", "/model x", "/nothing", ""] {
            assert_eq!(command_hint(line, 40), None, "{line}");
        }
    }

    #[test]
    fn commands_are_completed_and_messages_are_not() {
        assert_eq!(completions("/co"), ["/cost ", "/context ", "/compact "]);
        assert!(completions("co").is_empty());
        assert!(completions("/nothing").is_empty());
        assert_eq!(argument_being_typed("/thinking h"), Some(("thinking", "h")));
        assert_eq!(arguments("thinking", "h"), ["high ", "hide "]);
        assert_eq!(argument_being_typed("/plan add a "), None);
        assert_eq!(argument_being_typed("say /plan a"), None);
    }
}
