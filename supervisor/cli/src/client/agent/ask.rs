//! `talon ask`: one turn.

use std::io::{IsTerminal as _, stderr, stdout};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use talon_proto::agent::{AskRequest, Done};
use talon_sanitize::{FamilyCounts, Raw, Sanitizer, sanitized};

use super::connection::AgentConnection;
use super::formatting::{exit_code, single_line};
use super::json;
use super::session_overrides::SessionOverrides;
use super::turn::{DisplayFilter, FollowOptions, StopReason, TurnEnd, TurnOutcome, follow, footer};
use super::turn_error::print_error;
use crate::arguments::timeout;
use crate::confirm;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::input::{InputError, InputSource};
use crate::output::Output;

/// The longest text of a turn; the agent's own limit is the same.
const MAX_TEXT_BYTES: u64 = 256 << 10;
/// The longest JSON Schema: a larger one fits no model's prompt.
const MAX_SCHEMA_BYTES: u64 = 256 << 10;

/// Ask the agent one thing and print its answer.
///
/// The answer goes to stdout, streamed on a terminal; tools, thoughts and notes go to stderr. A call that
/// needs an approval is shown exactly as it will run; on a terminal you are asked to decide, otherwise use
/// `talon approval` in another shell. Ctrl-C cancels the turn. The conversation stays in its session, whose
/// id is printed at the end.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon ask 'What changed in the last release?'
  git diff | talon ask - --no-tools
  talon ask --session 01K0 'And the one before?'
  talon ask --tools 'git.*' 'Who wrote this?' --output json | jq -r .text
  talon ask --schema answer.json 'Which ports are open?' --timeout 2m")]
pub(crate) struct AskArgs {
    /// The question; `-` reads stdin.
    #[arg(value_name = "TEXT")]
    text: String,
    /// Continue this session; otherwise a new one starts.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    #[command(flatten)]
    overrides: SessionOverrides,
    /// The answer has to fit the JSON Schema in this file; `-` reads stdin.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Offer no tools to the model.
    #[arg(long, conflicts_with = "tools")]
    no_tools: bool,
    /// Cancel the turn after this long, such as 90s or 5m; the agent's own limits apply as well.
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,
    /// Exit when a call waits for an approval; the turn continues once it is approved.
    #[arg(long)]
    no_wait: bool,
    /// Print only the answer, approvals and notes.
    #[arg(long)]
    quiet: bool,
    /// With --output json: print each chunk of the turn as one line when it arrives, and the result as the
    /// last line.
    #[arg(long)]
    stream: bool,
}

impl AskArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        if self.stream && !out.is_json() {
            return Err(Failure::usage("--stream is for programs: add --output json"));
        }
        let request = self.request()?;
        let reach = AgentConnection::connect(socket).await?;
        let json = out.is_json();
        let how = FollowOptions {
            filter: DisplayFilter {
                text: !json && !self.fits_schema() && stdout().is_terminal(),
                thoughts: !json && !self.quiet && stderr().is_terminal(),
                lines: !json && !self.quiet,
                notices: !json,
            },
            chunks: self.stream,
            prompts_approvals: !json && confirm::is_interactive(),
            waits_for_approvals: !self.no_wait,
            timeout: self.timeout,
        };
        let told = follow(reach.agent.turn(request), Vec::new(), &reach, how, out).await?;
        if json {
            let value = json::result(&told, self.fits_schema());
            if self.stream { out.json_line(&value) } else { out.json(&value) }
        }
        Ok(self.print_end(told, how, out))
    }

    fn fits_schema(&self) -> bool {
        self.schema.is_some()
    }

    fn request(&self) -> Result<AskRequest, Failure> {
        let from_stdin = self.text == "-";
        if from_stdin && self.schema.as_deref() == Some(Path::new("-")) {
            return Err(Failure::usage("stdin can be the text or the schema, and not both"));
        }
        let text = match from_stdin {
            true => {
                let bytes = InputSource::Stdin.read(MAX_TEXT_BYTES);
                utf8(&InputSource::Stdin, bytes.map_err(|error| unread(&error, MAX_TEXT_BYTES, "text"))?)?
            }
            false => self.text.clone(),
        };
        if text.trim().is_empty() {
            return Err(Failure::usage(
                "there is nothing to ask: write it as the argument, or pipe it in with `-`",
            ));
        }
        Ok(AskRequest {
            session_id: self.session.clone().unwrap_or_default(),
            text,
            model: self.overrides.model.clone().unwrap_or_default(),
            thinking: self.overrides.thinking.clone().unwrap_or_default(),
            schema: self.schema.as_deref().map(read_schema).transpose()?.unwrap_or_default(),
            tools: self.overrides.tools.clone(),
            no_tools: self.no_tools,
            channel: String::new(),
            local_only: self.overrides.local_only,
        })
    }

    /// Prints the end of the turn for people and returns the exit code.
    fn print_end(&self, told: TurnOutcome, how: FollowOptions, out: &mut Output) -> u8 {
        let json = out.is_json();
        let session_id = told.record.session_id;
        let code = match told.end {
            TurnEnd::Done(done) => {
                if !json {
                    self.print_answer(&done, &session_id, how, out);
                }
                exit::OK
            }
            TurnEnd::Error(error) => {
                if json {
                    exit_code(&error.reason)
                } else {
                    if !how.filter.text && !error.partial.is_empty() {
                        out.text(&Raw::from(&error.partial).text());
                    }
                    let code = print_error(&error, out);
                    if !session_id.is_empty() {
                        let id = single_line(&session_id);
                        out.err_line(sanitized!(
                            "  what was done is in session {}: go on with --session {}",
                            id,
                            id
                        ));
                    }
                    code
                }
            }
            TurnEnd::Failed(failure) => out.failure(&failure),
            TurnEnd::Stopped => exit::HOST_FAULT,
            TurnEnd::Parked(_) => {
                if !json {
                    let id = single_line(&session_id);
                    out.err_line(sanitized!(
                        "the turn waits; then follow it with `talon chat --session {}`",
                        id
                    ));
                }
                exit::REFUSED
            }
        };
        match told.stop {
            Some(StopReason::Interrupted) => exit::INTERRUPTED,
            Some(StopReason::TimedOut) => out.failure(&Failure::new(
                exit::HOST_FAULT,
                "the turn was cancelled: it took longer than --timeout; give it more time, or ask for less at once",
            )),
            None => code,
        }
    }

    fn print_answer(&self, done: &Done, session_id: &str, how: FollowOptions, out: &mut Output) {
        if !how.filter.text {
            // An answer that fits a schema stays JSON.
            let fits = self.fits_schema().then(|| {
                Sanitizer::default().sanitize_json(done.text.as_str(), &mut FamilyCounts::default())
            });
            out.text(&fits.flatten().unwrap_or_else(|| Raw::from(&done.text).text()));
        }
        if !self.quiet || done.scripted {
            out.err_line(footer(done, session_id));
        }
    }
}

fn read_schema(file: &Path) -> Result<String, Failure> {
    let source = InputSource::of(file);
    let bytes = source.read(MAX_SCHEMA_BYTES).map_err(|error| match error {
        InputError::Open { .. } => Failure::usage(format!("{error}; name a file that holds a JSON Schema")),
        _ => unread(&error, MAX_SCHEMA_BYTES, "schema"),
    })?;
    let text = utf8(&source, bytes)?;
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(serde_json::Value::Object(_) | serde_json::Value::Bool(_)) => Ok(text),
        Ok(_) => Err(Failure::usage(format!("{} is no JSON Schema: that is a JSON object", file.display()))),
        Err(error) => Err(Failure::usage(format!("{} is no JSON Schema: {error}", file.display()))),
    }
}

/// Why a text or schema was not read.
fn unread(error: &InputError, max_bytes: u64, what: &str) -> Failure {
    Failure::usage(match error {
        InputError::TooLarge { name } => format!(
            "{name} holds more than {max_bytes} bytes, which is the longest {what}: put it into a file that a tool can read, \
             and name that"
        ),
        _ => error.to_string(),
    })
}

fn utf8(source: &InputSource<'_>, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!("{} is not UTF-8 (byte {at}): send text", source.name()))
    })
}
