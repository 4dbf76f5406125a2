//! `repl`: a session, as lines of JSON from stdin and to stdout. `talon lua repl` is what people type into.

use std::io::{BufRead as _, Read as _, Write as _, stdin, stdout};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use talon_lua_engine::{Evaluation, Point, Session};

use super::files::{name, read};
use super::script_options::ScriptOptions;

/// The longest question: 64 KiB of text, of which JSON may make six times as much.
const MAX_QUESTION_BYTES: u64 = 512 << 10;

#[derive(Debug, Args)]
pub(super) struct ReplArgs {
    /// A script that is loaded first.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The message of the sample ctx.
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    message: String,
    #[command(flatten)]
    options: ScriptOptions,
}

/// A line of stdin.
#[derive(Debug, Deserialize)]
struct Question {
    /// What was typed.
    text: String,
}

/// A line of stdout: the first is `Ready`, and each further one answers a question.
#[derive(Debug, Serialize)]
#[serde(tag = "status", content = "text", rename_all = "snake_case")]
enum Reply {
    /// The functions of the script.
    Ready(String),
    /// What the line returned.
    Value(String),
    /// The line goes on: ask again together with the next.
    Incomplete,
    /// Why it failed.
    Error(String),
}

/// Answers until stdin ends.
pub(super) fn run(args: &ReplArgs) -> Result<bool, String> {
    let script =
        args.file.as_deref().map(|file| read(file).map(|source| (name(file), source))).transpose()?;
    let script = script.as_ref().map(|(name, source)| (name.as_str(), source.as_slice()));
    let file = args.file.as_deref().unwrap_or(Path::new(""));
    let (limits, libraries) = (args.options.limits(file), args.options.libraries(file));
    let mut session =
        Session::begin(script, &args.message, &limits, &libraries).map_err(|error| error.to_string())?;
    let points: Vec<&str> = session.points().into_iter().map(Point::as_str).collect();
    write(&Reply::Ready(points.join(", ")))?;
    let mut from = stdin().lock();
    loop {
        let mut line = Vec::new();
        let read = from.by_ref().take(MAX_QUESTION_BYTES).read_until(b'\n', &mut line);
        if read.map_err(|error| error.to_string())? == 0 {
            return Ok(true);
        }
        let question: Question = serde_json::from_slice(&line).map_err(|error| {
            format!("a question is a JSON object with a text, on a line of at most {MAX_QUESTION_BYTES} bytes: {error}")
        })?;
        write(&match session.evaluate(&question.text) {
            Ok(Evaluation::Text(text)) => Reply::Value(text),
            Ok(Evaluation::Incomplete) => Reply::Incomplete,
            Err(error) => Reply::Error(error.to_string()),
        })?;
    }
}

fn write(reply: &Reply) -> Result<(), String> {
    let mut line = serde_json::to_vec(reply).map_err(|error| error.to_string())?;
    line.push(b'\n');
    let mut to = stdout().lock();
    to.write_all(&line).and_then(|()| to.flush()).map_err(|error| error.to_string())
}
