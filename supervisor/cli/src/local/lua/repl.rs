//! `talon lua repl`.

use std::io::{BufRead as _, IsTerminal as _, Read as _, stdin, stdout};
use std::path::PathBuf;

use anstyle::AnsiColor;
use clap::Args;
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};
use talon_sanitize::Raw;

use super::library::Libraries;
use super::session::{MAX_TEXT_BYTES, Reply, Session};
use super::tool::Tool;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::history_file;
use crate::output::Output;

/// What a person sees before a line, and before one that continues it.
const PROMPT: &str = "lua> ";
const CONTINUED: &str = "...> ";
/// The file with what was typed.
const HISTORY: &str = "lua-history";

/// Evaluate lines of Lua one after the other, with a sample ctx.
///
/// An expression is shown, a statement is run; what does not end yet goes on with the next line. `ctx` is a sample that keeps what
/// was done with it in `ctx.logs`, `ctx.kv` and `ctx.prompts`; `context { … }` makes others, as in tests. What is typed is kept in
/// $XDG_STATE_HOME/talon/lua-history. Ctrl-D ends it. Without a terminal it reads lines from stdin, and exits with 1 if one fails.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon lua repl
  talon lua repl filter.lua --message 'buy spam'
  echo 'filter(ctx).reason' | talon lua repl filter.lua --message 'buy spam'")]
pub(crate) struct ReplArgs {
    /// A script whose functions are there.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The message of the sample ctx.
    #[arg(long, value_name = "TEXT", default_value = "Hello", allow_hyphen_values = true)]
    message: String,
    #[command(flatten)]
    libraries: Libraries,
}

impl ReplArgs {
    pub(super) fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let mut tool = Tool::new("repl")?;
        self.libraries.add_to(&mut tool);
        tool.option("message", &self.message);
        if let Some(file) = self.file {
            tool.scripts(&[file], global)?;
        }
        let (mut session, functions) = Session::begin(tool)?;
        let mut lines = Lines::open()?;
        if lines.is_typed() && !functions.is_empty() {
            out.terminal_text(&Raw::from(format!("functions: {functions}")).terminal_text());
            out.flush();
        }
        let mut code = exit::OK;
        let mut text = String::new();
        while let Some(line) = lines.next(!text.is_empty())? {
            match line {
                Line::Discarded => text.clear(),
                Line::Text(line) => {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&line);
                    if text.len() > MAX_TEXT_BYTES {
                        return Err(too_long());
                    }
                    match session.evaluate(&text)? {
                        Reply::Incomplete => continue,
                        Reply::Value(value) | Reply::Ready(value) => {
                            if !value.is_empty() {
                                out.terminal_text(&Raw::from(value).terminal_text());
                            }
                        }
                        Reply::Error(why) => {
                            let why = Raw::from(format!("{why}\n")).terminal_text();
                            out.err_piece(AnsiColor::Red.on_default(), &why);
                            if !lines.is_typed() {
                                code = exit::TOOL_ERROR;
                            }
                        }
                    }
                    lines.keep(&text);
                    text.clear();
                    out.flush();
                }
            }
        }
        session.end();
        if !text.is_empty() {
            return Err(Failure::new(
                exit::TOOL_ERROR,
                "the input ends in the middle of a statement: end it",
            ));
        }
        Ok(code)
    }
}

fn too_long() -> Failure {
    Failure::usage(format!("a statement has at most {MAX_TEXT_BYTES} bytes: write a script, and name it"))
}

/// What was typed.
enum Line {
    Text(String),
    /// Ctrl-C: what was typed so far does not count.
    Discarded,
}

/// Where lines come from.
enum Lines {
    Typed { editor: Box<DefaultEditor>, history: Option<PathBuf> },
    Piped,
}

impl Lines {
    /// An editor on a terminal; otherwise stdin.
    fn open() -> Result<Self, Failure> {
        if !stdin().is_terminal() || !stdout().is_terminal() {
            return Ok(Self::Piped);
        }
        let config = Config::builder().max_history_size(history_file::MAX_ENTRIES);
        let mut editor = config
            .and_then(|config| DefaultEditor::with_config(config.build()))
            .map_err(|error| unreadable(&error))?;
        let history = history_file::prepare(HISTORY);
        if let Some(file) = &history {
            // Missing or unreadable: it begins with an empty history.
            let _ = editor.load_history(file);
        }
        Ok(Self::Typed { editor: Box::new(editor), history })
    }

    fn is_typed(&self) -> bool {
        matches!(self, Self::Typed { .. })
    }

    /// The next line; `None` at the end.
    fn next(&mut self, is_continued: bool) -> Result<Option<Line>, Failure> {
        match self {
            Self::Typed { editor, .. } => {
                match editor.readline(if is_continued { CONTINUED } else { PROMPT }) {
                    Ok(line) => Ok(Some(Line::Text(line))),
                    Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Ok(Some(Line::Discarded)),
                    Err(ReadlineError::Eof) => Ok(None),
                    Err(error) => Err(unreadable(&error)),
                }
            }
            Self::Piped => {
                let mut line = Vec::new();
                let most = MAX_TEXT_BYTES as u64 + 1;
                let read = stdin().lock().take(most).read_until(b'\n', &mut line);
                if read.map_err(|error| unreadable(&error))? == 0 {
                    return Ok(None);
                }
                let line = String::from_utf8_lossy(&line);
                Ok(Some(Line::Text(line.trim_end_matches(['\r', '\n']).to_owned())))
            }
        }
    }

    /// Keeps a statement in the history. A failed write is ignored: it must not end the session.
    fn keep(&mut self, text: &str) {
        if let Self::Typed { editor, history } = self
            && text.len() <= history_file::MAX_ENTRY_BYTES
            && editor.add_history_entry(text).unwrap_or_default()
            && let Some(file) = history
        {
            let _ = editor.append_history(file);
        }
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> Failure {
    Failure::failed(format!("cannot read what is typed: {error}"))
}
