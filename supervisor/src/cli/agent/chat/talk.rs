//! The conversation: one message after the other.

use std::io::{IsTerminal as _, stderr};

use talon_client::Turn;
use talon_proto::agent::{
    Approval, AskRequest, CreateSessionRequest, GetSessionRequest, GetStatusRequest, ListApprovalsRequest,
    Session, ToolList, UpdateSessionRequest,
};
use talon_sanitize::inert;
use tokio::signal::unix::{SignalKind, signal};

use super::super::super::failure::Failure;
use super::super::super::output::Out;
use super::super::approval::find;
use super::super::ask::{Wishes, unanswered};
use super::super::reach::Reach;
use super::super::turn::{End, How, Stop, Told, Wanted, follow, footer};
use super::super::words::{counted, one};
use super::command::Command;
use super::greeting;
use super::lines::{Entry, Lines, MAX_MESSAGE_BYTES};
use super::seen::Seen;
use crate::exit;

/// A conversation.
pub(super) struct Talk<'a> {
    pub(super) reach: &'a Reach,
    pub(super) out: &'a mut Out,
    pub(super) lines: Lines,
    /// `None` before the first message of a new session.
    pub(super) session_id: Option<String>,
    /// The overrides that a new session starts with.
    pub(super) wishes: Wishes,
    pub(super) thoughts: bool,
    /// The calls that were shown in this chat.
    pub(super) seen: Seen,
    /// The exit code of the last turn, and of a chat without a terminal.
    code: u8,
}

impl<'a> Talk<'a> {
    pub(super) fn new(reach: &'a Reach, lines: Lines, wishes: Wishes, out: &'a mut Out) -> Self {
        let thoughts = stderr().is_terminal();
        Self { reach, out, lines, session_id: None, wishes, thoughts, seen: Seen::default(), code: exit::OK }
    }

    /// Runs until the input ends. On a terminal the exit code is then 0; a script gets that of its last turn.
    pub(super) async fn run(&mut self, session: Option<String>) -> Result<u8, Failure> {
        let mut interrupts = signal(SignalKind::interrupt())
            .map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")))?;
        self.greet().await?;
        if let Some(id) = session {
            if self.wants_something() {
                self.tells(&id).await?;
            }
            self.goes_on_with(id).await?;
        }
        loop {
            // Show all output before the prompt.
            self.out.flush();
            let entry = tokio::select! {
                entry = self.lines.next() => {
                    entry.map_err(|error| Failure::failed(format!("cannot read what is said: {error}")))?
                }
                _ = interrupts.recv() => return Ok(exit::INTERRUPTED),
            };
            match entry {
                Entry::End => break,
                Entry::Interrupted => self.out.say("Ctrl-D or /exit leaves"),
                Entry::TooLong => {
                    self.code = exit::USAGE;
                    let limit = MAX_MESSAGE_BYTES >> 10;
                    self.out.say(inert!(
                        "a message has at most {} KiB: put it into a file that a tool can read, and name that",
                        limit
                    ));
                }
                Entry::Message(text) => match Command::of(&text) {
                    Command::Exit => break,
                    Command::Say(text) => self.says(text).await?,
                    command => {
                        // A failed command is reported; the chat continues.
                        if let Err(failure) = self.performs(command).await {
                            self.code = failure.print(self.out);
                        }
                    }
                },
            }
            // Discard Ctrl-C signals that were meant for the turn.
            while futures_util::FutureExt::now_or_never(interrupts.recv()).flatten().is_some() {}
            if self.out.is_closed() {
                break;
            }
        }
        if let Some(id) = self.session_id.as_ref().filter(|_| self.lines.is_typed) {
            self.out.say(inert!("session {}: go on with `talon chat --session {}`", one(id), one(id)));
        }
        Ok(if self.lines.is_typed { exit::OK } else { self.code })
    }

    async fn greet(&mut self) -> Result<(), Failure> {
        let status =
            self.reach.ask(|mut agent| async move { agent.get_status(GetStatusRequest {}).await }).await?;
        for line in greeting::lines(&status, self.lines.is_typed) {
            self.out.say(line);
        }
        Ok(())
    }

    /// Resumes a session and follows its current turn.
    pub(super) async fn goes_on_with(&mut self, id: String) -> Result<(), Failure> {
        let session = self.session(&id).await?;
        let title = if session.title.is_empty() { "without a message".into() } else { one(&session.title) };
        let messages = counted(session.messages, "message");
        self.out.say(inert!("session {}: {} ({}, turn: {})", one(&id), title, messages, one(&session.turn)));
        self.session_id = Some(id.clone());
        match session.turn.as_str() {
            "running" | "waiting" | "interrupted" => self.attaches(id).await,
            _ => Ok(()),
        }
    }

    pub(super) async fn session(&self, id: &str) -> Result<Session, Failure> {
        let request =
            GetSessionRequest { session_id: id.to_owned(), page_size: 1, ..GetSessionRequest::default() };
        let answer = self
            .reach
            .ask(|mut agent| {
                let request = request.clone();
                async move { agent.get_session(request).await }
            })
            .await?;
        Ok(answer.session.unwrap_or_default())
    }

    /// The session's calls that wait for an approval.
    pub(super) async fn waiting(&self, id: &str) -> Result<Vec<Approval>, Failure> {
        let request = ListApprovalsRequest { session_id: id.to_owned(), ..ListApprovalsRequest::default() };
        find::all(self.reach, request).await
    }

    /// Follows the session's current turn.
    pub(super) async fn attaches(&mut self, id: String) -> Result<(), Failure> {
        let waiting = self.waiting(&id).await?;
        let turn = self.reach.agent.attach(id);
        self.follows(turn, waiting).await
    }

    async fn says(&mut self, text: String) -> Result<(), Failure> {
        let wants =
            self.wishes.model.is_some() || self.wishes.thinking.is_some() || !self.wishes.tools.is_empty();
        if self.session_id.is_none() && wants {
            match self.begun().await {
                Ok(id) => self.session_id = Some(id),
                Err(failure) => {
                    self.code = failure.print(self.out);
                    return Ok(());
                }
            }
        }
        let session_id = self.session_id.clone().unwrap_or_default();
        let turn = self.reach.agent.turn(AskRequest { session_id, text, ..AskRequest::default() });
        self.follows(turn, Vec::new()).await
    }

    fn wants_something(&self) -> bool {
        self.wishes.model.is_some() || self.wishes.thinking.is_some() || !self.wishes.tools.is_empty()
    }

    /// Applies the command line's overrides to an existing session; everything else stays as it is.
    async fn tells(&self, id: &str) -> Result<(), Failure> {
        let Wishes { model, thinking, tools } = self.wishes.clone();
        let tools = (!tools.is_empty()).then_some(ToolList { tools });
        let request = UpdateSessionRequest { session_id: id.to_owned(), model, thinking, tools };
        self.reach.once(async move |mut agent| agent.update_session(request).await).await?;
        Ok(())
    }

    /// Creates a session with the overrides.
    async fn begun(&mut self) -> Result<String, Failure> {
        let wishes = self.wishes.clone();
        let request = CreateSessionRequest {
            channel: String::new(),
            model: wishes.model.unwrap_or_default(),
            thinking: wishes.thinking.unwrap_or_default(),
            tools: wishes.tools,
        };
        Ok(self.reach.once(async move |mut agent| agent.create_session(request).await).await?.id)
    }

    async fn follows(&mut self, turn: Turn, waiting: Vec<Approval>) -> Result<(), Failure> {
        let how = How {
            wanted: Wanted { text: true, thoughts: self.thoughts, lines: true, notices: true },
            chunks: false,
            asks: self.lines.is_typed && stderr().is_terminal(),
            // A person who postpones a decision wants to keep talking; a script has nothing else to do.
            waits: !self.lines.is_typed,
            timeout: None,
        };
        let told = follow(turn, waiting, self.reach, how, self.out).await?;
        self.ended(told);
        Ok(())
    }

    fn ended(&mut self, told: Told) {
        self.seen.saw(&told.heard.approvals);
        let id = told.heard.session_id;
        if !id.is_empty() {
            self.session_id = Some(id.clone());
        }
        self.code = match told.end {
            End::Done(done) => {
                // On a terminal the session id is printed at the end of the chat.
                self.out.say(footer(&done, if self.lines.is_typed { "" } else { &id }));
                exit::OK
            }
            End::Error(error) => unanswered(&error, self.out),
            End::Failed(failure) => failure.print(self.out),
            End::Stopped => {
                self.out.say("the turn was cancelled");
                exit::TOOL_ERROR
            }
            End::Parked(_) => {
                self.out.say("the turn waits for an approval: /approve or /deny it");
                exit::OK
            }
        };
        if told.stop == Some(Stop::Interrupted) && !self.lines.is_typed {
            self.code = exit::INTERRUPTED;
        }
    }
}
