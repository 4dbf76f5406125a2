//! A session with `talon-lua repl` in its jail: one question at a time, as lines of JSON over its stdin and stdout.

use std::fs::File;
use std::io::{self, PipeWriter, Read as _, Write as _, stderr};
use std::os::fd::AsFd as _;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use serde::{Deserialize, Serialize};
use talon_jail::{JailedProgram, Monitor};

use super::tool::Tool;
use crate::exit;
use crate::failure::Failure;
use crate::local::jail::exit::JAIL_FAILED;
use crate::local::jail::relay;

/// The longest text of a question. `talon-lua` takes it however JSON writes it.
pub(super) const MAX_TEXT_BYTES: usize = 64 << 10;
/// The longest reply: 16 KiB of text, of which JSON may make six times as much.
const MAX_REPLY_BYTES: usize = 256 << 10;
/// How many times the limit of a call a reply may take, and how much longer: a line has the limit, and so has the machine of a script
/// that is built again. Longer works only what no time limit reaches, and then the session is over.
const CALLS_OF_A_LINE: u32 = 2;
const REPLY_GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, Serialize)]
struct Question<'t> {
    text: &'t str,
}

/// What `talon-lua` replies.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "status", content = "text", rename_all = "snake_case")]
pub(super) enum Reply {
    /// It began. The functions of the script.
    Ready(String),
    /// What the line returned.
    Value(String),
    /// The line goes on: ask again together with the next.
    Incomplete,
    /// Why it failed.
    Error(String),
}

/// A session that has begun.
pub(super) struct Session {
    monitor: Monitor,
    questions: PipeWriter,
    replies: File,
    /// What was read beyond the last reply.
    pending: Vec<u8>,
    errors: JoinHandle<()>,
    reply_timeout: Duration,
}

impl Session {
    /// Starts the program; the functions of its script.
    pub(super) fn begin(tool: Tool) -> Result<(Self, String), Failure> {
        let failed = |error: io::Error| Failure::new(JAIL_FAILED, error.to_string());
        let reply_timeout = tool.execution().saturating_mul(CALLS_OF_A_LINE).saturating_add(REPLY_GRACE);
        let (theirs, questions) = io::pipe().map_err(failed)?;
        let JailedProgram { stdout, stderr: errors, monitor, .. } = tool.start(Some(theirs.as_fd()))?;
        let errors = relay::copy_text(errors, stderr()).map_err(failed)?;
        let mut session = Self {
            monitor,
            questions,
            replies: File::from(stdout),
            pending: Vec::new(),
            errors,
            reply_timeout,
        };
        match session.reply()? {
            Some(Reply::Ready(functions)) => Ok((session, functions)),
            Some(_) => {
                Err(Failure::failed("talon-lua does not begin as it should: install both of one version"))
            }
            None => Err(session.ended()),
        }
    }

    /// Evaluates a text.
    pub(super) fn evaluate(&mut self, text: &str) -> Result<Reply, Failure> {
        let question = serde_json::to_string(&Question { text }).expect("a text is JSON");
        let asked = self.questions.write_all(format!("{question}\n").as_bytes());
        let reply = match asked {
            Ok(()) => self.reply()?,
            Err(_) => None,
        };
        match reply {
            Some(reply) => Ok(reply),
            None => {
                Err(Failure::new(exit::TOOL_ERROR, "talon-lua ended, and with it the session: begin another"))
            }
        }
    }

    /// Ends it: `talon-lua` sees the end of its input.
    pub(super) fn end(self) {
        let Self { monitor, questions, errors, .. } = self;
        drop(questions);
        drop(monitor);
        // A thread that panicked has printed why.
        let _ = errors.join();
    }

    /// Why there is no session. `talon-lua` has written it to stderr.
    fn ended(self) -> Failure {
        self.end();
        Failure::new(exit::TOOL_ERROR, "there is no session with this script: mend it, and begin again")
    }

    /// The next reply; `None` if the program has ended.
    fn reply(&mut self) -> Result<Option<Reply>, Failure> {
        let deadline = Instant::now() + self.reply_timeout;
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                let reply = serde_json::from_slice(&line);
                return reply.map(Some).map_err(|error| {
                    Failure::failed(format!("talon-lua replies {error}: install both of one version"))
                });
            }
            if self.pending.len() > MAX_REPLY_BYTES {
                return Err(Failure::failed(format!(
                    "talon-lua replies more than {MAX_REPLY_BYTES} bytes: install both of one version"
                )));
            }
            if !self.wait(deadline)? {
                return Err(Failure::new(
                    exit::TOOL_ERROR,
                    format!(
                        "the line ran for more than {} s in one long operation, which ends the session: let it do less, and begin again",
                        self.reply_timeout.as_secs()
                    ),
                ));
            }
            let mut piece = [0; 4096];
            match self.replies.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(read) => self.pending.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::failed(format!("cannot read from talon-lua: {error}"))),
            }
        }
    }

    /// Whether there is something to read before the deadline.
    fn wait(&self, deadline: Instant) -> Result<bool, Failure> {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let mut polled = [PollFd::new(&self.replies, PollFlags::IN)];
        let ready = retry_on_intr(|| poll(&mut polled, Some(&left)))
            .map_err(|error| Failure::failed(format!("cannot wait for talon-lua: {error}")))?;
        Ok(ready > 0)
    }
}
