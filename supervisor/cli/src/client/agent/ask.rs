//! `talon ask`: one turn.

use std::io::{IsTerminal as _, stderr, stdout};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use talon_proto::agent::{AskRequest, Done};
use talon_sanitize::{Raw, sanitized};

use super::attachment::{self, Question, is_stdin_piped, read_stdin, unread, utf8};
use super::connection::AgentConnection;
use super::formatting::{exit_code, single_line};
use super::json;
use super::session_overrides::SessionOverrides;
use super::turn::{
    DisplayFilter, FollowOptions, StopReason, TurnEnd, TurnOutcome, TypedAhead, follow, footer,
};
use super::turn_error::print_error;
use crate::arguments::timeout;
use crate::confirm;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::input::{InputError, InputSource};
use crate::output::Output;
use crate::terminal_style::uses_words;
use crate::user_supervisor::start_if_absent;

/// The variable by which OpenTelemetry's tools pass a trace on to a program
/// (<https://opentelemetry.io/docs/specs/otel/context/env-carriers/>).
const TRACE_PARENT_VARIABLE: &str = "TRACEPARENT";
/// The longest JSON Schema: a larger one fits no model's prompt.
const MAX_SCHEMA_BYTES: u64 = 256 << 10;

/// Ask the agent one thing and print its answer.
///
/// The answer goes to stdout, streamed on a terminal; tools, thoughts and notes go to stderr. A call that
/// needs an approval is shown exactly as it will run; on a terminal you are asked to decide, otherwise use
/// `talon approval` in another shell. Ctrl-C cancels the turn. The conversation stays in its session, whose
/// id is printed at the end.
///
/// Where no supervisor runs, one is started for you if stdin is a terminal or with --start; a line says so, and how to
/// stop it.
///
/// What is piped in goes with the question, and so does each @FILE after it: at most 256 KiB in all, as text, whole
/// or not at all. An @ inside of the question is text, so that a script can pass on what others wrote.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon ask 'What changed in the last release?'
  git diff | talon ask 'Explain this change' --no-tools
  talon ask 'Which of them is right?' @old.rs @new.rs
  talon ask 'What is wrong here?' @screen.png
  talon ask --session 01K0 'And the one before?'
  talon ask --tools 'git.*' 'Who wrote this?' --output json | jq -r .text
  talon ask --plan 'Rename the module net to network'
  talon ask --schema answer.json 'Which ports are open?' --timeout 2m")]
pub(crate) struct AskArgs {
    /// The question; `-` reads it from stdin.
    #[arg(value_name = "TEXT")]
    text: String,
    /// Files that go with the question: texts, or images for a model with vision.
    #[arg(value_name = "@FILE", value_parser = attachment::mention)]
    mentioned: Vec<PathBuf>,
    /// A text or an image that goes with the question, like @FILE; `-` is stdin. May be repeated.
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
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
    /// Have the model write a plan first. Until you have approved it, or changed and approved it, only calls that read
    /// are made.
    #[arg(long, conflicts_with = "no_tools")]
    plan: bool,
    /// Cancel the turn after this long, such as 90s or 5m; the agent's own limits apply as well.
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,
    /// Exit when a call waits for an approval; the turn continues once it is approved.
    #[arg(long)]
    no_wait: bool,
    /// Start a supervisor for you if none runs, as is done without this option where stdin is a terminal.
    #[arg(long)]
    start: bool,
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
        let prompts_approvals = !out.is_json() && confirm::is_interactive();
        let request = AskRequest { can_answer: prompts_approvals, ..self.request(out)? };
        start_if_absent(socket, self.start, out).await?;
        let reach = AgentConnection::connect(socket).await?;
        let request = self.with_metadata(request, &reach).await?;
        let json = out.is_json();
        let how = FollowOptions {
            filter: DisplayFilter {
                text: !json && !self.fits_schema() && stdout().is_terminal(),
                thoughts: !json && !self.quiet && stderr().is_terminal(),
                lines: !json && !self.quiet,
                notices: !json,
                words: uses_words(),
            },
            chunks: self.stream,
            prompts_approvals,
            waits_for_approvals: !self.no_wait,
            timeout: self.timeout,
            types_ahead: false,
        };
        let mut turn = reach.agent.turn(request);
        if let Ok(parent) = std::env::var(TRACE_PARENT_VARIABLE) {
            turn = turn.traced(&parent);
        }
        let told = follow(turn, Vec::new(), &reach, how, TypedAhead::default(), out).await?;
        if json {
            let value = json::result(&told, self.fits_schema());
            if self.stream { out.exact_json_line(&value) } else { out.exact_json(&value) }
        }
        Ok(self.print_end(told, how, out))
    }

    /// Sets what is of the session and not of the turn, at a session that is created for it if there is none.
    async fn with_metadata(
        &self,
        request: AskRequest,
        connection: &AgentConnection,
    ) -> Result<AskRequest, Failure> {
        let SessionOverrides { metadata, verbose, .. } = self.overrides.clone();
        let overrides = SessionOverrides { metadata, verbose, ..SessionOverrides::default() };
        if overrides.is_empty() {
            return Ok(request);
        }
        let session = if request.session_id.is_empty() {
            let creation = overrides.creation();
            connection.send_once(async move |mut agent| agent.create_session(creation).await).await?
        } else {
            let change = overrides.change(&request.session_id, None);
            connection.send_once(async move |mut agent| agent.update_session(change).await).await?
        };
        Ok(AskRequest { session_id: session.id, ..request })
    }

    fn fits_schema(&self) -> bool {
        self.schema.is_some()
    }

    fn request(&self, out: &mut Output) -> Result<AskRequest, Failure> {
        let (text, media) = self.question(out)?.into_parts();
        if text.trim().is_empty() {
            return Err(Failure::usage("there is nothing to ask: write it as the argument, or pipe it in"));
        }
        Ok(AskRequest {
            session_id: self.session.clone().unwrap_or_default(),
            text,
            plan: self.plan,
            verbosity: self.overrides.verbosity.clone().unwrap_or_default(),
            model: self.overrides.model.clone().unwrap_or_default(),
            thinking: self.overrides.thinking.clone().unwrap_or_default(),
            schema: self.schema.as_deref().map(read_schema).transpose()?.unwrap_or_default(),
            tools: self.overrides.tools.clone(),
            no_tools: self.no_tools,
            channel: String::new(),
            local_only: self.overrides.local_only,
            can_answer: false,
            sampling: self.overrides.sampling(),
            media,
            ..AskRequest::default()
        })
    }

    /// The question with all that goes with it.
    fn question(&self, out: &mut Output) -> Result<Question, Failure> {
        let is_stdin = |path: &Path| path == Path::new("-");
        let files = self.mentioned.iter().chain(&self.files);
        let text_reads = self.text == "-";
        let named_reads = files.clone().chain(&self.schema).filter(|path| is_stdin(path)).count();
        if usize::from(text_reads) + named_reads > 1 {
            return Err(Failure::usage("stdin can be the text, a file or the schema, and only one of them"));
        }
        let text = if text_reads { read_stdin(out)? } else { self.text.clone() };
        if text.trim().is_empty() {
            return Ok(Question::new(text));
        }
        if !text_reads && attachment::mention(&text).is_ok_and(|file| file.is_file()) {
            return Err(Failure::usage(format!(
                "{text} is a file, and there is no question before it: write talon ask 'QUESTION' {text}"
            )));
        }
        let mut question = Question::new(text);
        for file in files {
            question.attach_file(file, out)?;
        }
        if !text_reads && named_reads == 0 && is_stdin_piped() {
            match read_stdin(out)?.as_str() {
                "" => out.err_line("note: stdin was empty, so only the question is asked"),
                piped => question.attach("stdin", piped)?,
            }
        }
        Ok(question)
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
                        out.terminal_text(&Raw::from(&error.partial).terminal_text());
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
            // An answer that fits a schema stays the JSON that it is.
            match self.fits_schema() {
                true => out.json_text(&done.text),
                false => out.terminal_text(&Raw::from(&done.text).terminal_text()),
            }
        }
        if !self.quiet || done.scripted {
            out.err_line(footer(done, session_id, how.filter.words));
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
