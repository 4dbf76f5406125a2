//! The conversation: one message after the other.

use std::collections::BTreeSet;
use std::io::{IsTerminal as _, stderr};

use talon_client::Turn;
use talon_proto::agent::{
    Approval, AskRequest, ContextStats, GetSessionRequest, GetStatusRequest, ListApprovalsRequest, Session,
};
use talon_sanitize::{Raw, sanitized};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::command::Command;
use super::continuation;
use super::greeting;
use super::message_reader::{MAX_MESSAGE_BYTES, MessageReader, UserInput};
use super::shown_approvals::ShownApprovals;
use crate::client::agent::approval::find;
use crate::client::agent::attachment::with_mentioned_files;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{count_of, single_line};
use crate::client::agent::session_overrides::SessionOverrides;
use crate::client::agent::turn::{
    DisplayFilter, FollowOptions, StopReason, TurnEnd, TurnOutcome, TypedAhead, follow, footer,
};
use crate::client::agent::turn_error::print_error;
use crate::exit;
use crate::failure::Failure;
use crate::line::Line;
use crate::output::Output;
use crate::terminal_style::{is_plain, uses_words};

/// Which session a conversation begins with.
#[derive(Debug)]
pub(super) enum SessionStart {
    /// A new one, with the first message.
    New,
    Resumed(String),
    /// One that the person picks from a list.
    Picked,
}

/// A conversation.
pub(super) struct Conversation<'a> {
    pub(super) connection: &'a AgentConnection,
    pub(super) out: &'a mut Output,
    pub(super) messages: MessageReader,
    /// `None` before the first message of a new session.
    pub(super) session_id: Option<String>,
    /// The overrides that a new session starts with.
    pub(super) overrides: SessionOverrides,
    pub(super) thoughts: bool,
    /// The calls that were shown in this chat.
    pub(super) shown_approvals: ShownApprovals,
    /// The ghosts that were shown in this chat.
    pub(super) shown_ghosts: BTreeSet<String>,
    /// What the model saw with the last question.
    pub(super) context: Option<ContextStats>,
    /// Messages that wait, and what the next one begins with, for a person to change.
    pub(super) typed: TypedAhead,
    /// The exit code of the last turn, and of a chat without a terminal.
    code: u8,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(
        connection: &'a AgentConnection,
        messages: MessageReader,
        overrides: SessionOverrides,
        out: &'a mut Output,
    ) -> Self {
        let thoughts = stderr().is_terminal();
        Self {
            connection,
            out,
            messages,
            session_id: None,
            overrides,
            thoughts,
            shown_approvals: ShownApprovals::default(),
            shown_ghosts: BTreeSet::new(),
            context: None,
            typed: TypedAhead::default(),
            code: exit::OK,
        }
    }

    /// Runs until the input ends. On a terminal the exit code is then 0; a script gets that of its last turn.
    pub(super) async fn run(&mut self, start: SessionStart) -> Result<u8, Failure> {
        let mut interrupts = signal(SignalKind::interrupt())
            .map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")))?;
        self.greet().await?;
        let session = match start {
            SessionStart::New => None,
            SessionStart::Resumed(id) => Some(id),
            SessionStart::Picked => self.pick_session().await?,
        };
        if let Some(id) = session {
            if !self.overrides.is_empty() {
                self.apply_overrides(&id).await?;
            }
            self.resume(id).await?;
        }
        loop {
            self.show_ghosts().await;
            // Show all output before the prompt.
            self.out.flush();
            let Some(entry) = self.next_message(&mut interrupts).await? else { return Ok(exit::INTERRUPTED) };
            match entry {
                UserInput::End => break,
                UserInput::Interrupted => self.out.err_line("Ctrl-D or /exit leaves"),
                UserInput::TooLong => {
                    self.code = exit::USAGE;
                    let limit = MAX_MESSAGE_BYTES >> 10;
                    self.out.err_line(sanitized!(
                        "a message has at most {} KiB: put it into a file that a tool can read, and name that",
                        limit
                    ));
                }
                UserInput::Message(text) => match Command::parse(&text) {
                    Command::Exit => break,
                    Command::Say(text) => {
                        self.send_message(AskRequest { text, ..AskRequest::default() }).await?;
                    }
                    command => {
                        // A failed command is reported; the chat continues.
                        if let Err(failure) = self.execute(command).await {
                            self.code = self.out.failure(&failure);
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
        if let Some(id) = self.session_id.as_ref().filter(|_| self.messages.is_interactive) {
            self.out.err_line(sanitized!(
                "session {}: go on with `talon chat --session {}`",
                single_line(id),
                single_line(id)
            ));
        }
        Ok(if self.messages.is_interactive { exit::OK } else { self.code })
    }

    /// The next message: one that was typed during the last turn, else one that is awaited. `None`: Ctrl-C.
    async fn next_message(&mut self, interrupts: &mut Signal) -> Result<Option<UserInput>, Failure> {
        if let Some(message) = self.typed.queued.pop_front() {
            self.out.err_line(Line::from("> ").and_text(Raw::from(&message).terminal_line()));
            return Ok(Some(UserInput::Message(continuation::join_lines(&message))));
        }
        let draft = std::mem::take(&mut self.typed.draft);
        tokio::select! {
            entry = self.messages.next(draft) => {
                entry.map(Some).map_err(|error| Failure::failed(format!("cannot read what is said: {error}")))
            }
            _ = interrupts.recv() => Ok(None),
        }
    }

    async fn greet(&mut self) -> Result<(), Failure> {
        let status = self
            .connection
            .query(|mut agent| async move { agent.get_status(GetStatusRequest {}).await })
            .await?;
        for line in greeting::lines(&status, self.messages.is_interactive) {
            self.out.err_line(line);
        }
        Ok(())
    }

    /// Resumes a session and follows its current turn.
    pub(super) async fn resume(&mut self, id: String) -> Result<(), Failure> {
        let session = self.session(&id).await?;
        let title =
            if session.title.is_empty() { "without a message".into() } else { single_line(&session.title) };
        let messages = count_of(session.messages, "message");
        self.out.err_line(sanitized!(
            "session {}: {} ({}, turn: {})",
            single_line(&id),
            title,
            messages,
            single_line(&session.turn)
        ));
        self.session_id = Some(id.clone());
        match session.turn.as_str() {
            "running" | "waiting" | "interrupted" => self.attach(id).await,
            _ => Ok(()),
        }
    }

    pub(super) async fn session(&self, id: &str) -> Result<Session, Failure> {
        let request =
            GetSessionRequest { session_id: id.to_owned(), page_size: 1, ..GetSessionRequest::default() };
        let answer = self
            .connection
            .query(|mut agent| {
                let request = request.clone();
                async move { agent.get_session(request).await }
            })
            .await?;
        Ok(answer.session.unwrap_or_default())
    }

    /// The session's calls that wait for an approval.
    pub(super) async fn pending_approvals(&self, id: &str) -> Result<Vec<Approval>, Failure> {
        let request = ListApprovalsRequest { session_id: id.to_owned(), ..ListApprovalsRequest::default() };
        find::fetch_all(self.connection, request).await
    }

    /// Follows the session's current turn.
    pub(super) async fn attach(&mut self, id: String) -> Result<(), Failure> {
        let waiting = self.pending_approvals(&id).await?;
        let turn = self.connection.agent.attach(id);
        self.follow_turn(turn, waiting).await
    }

    /// Sends a message, of which text and options are given, and follows its turn.
    pub(super) async fn send_message(&mut self, message: AskRequest) -> Result<(), Failure> {
        let text = message.text;
        // A script passes on what others wrote, so only a person's message names files.
        let (text, media) = match self.messages.is_interactive {
            true => match with_mentioned_files(text, self.out) {
                Ok(question) => question.into_parts(),
                Err(failure) => {
                    self.code = self.out.failure(&failure);
                    return Ok(());
                }
            },
            false => (text, Vec::new()),
        };
        if self.session_id.is_none() && !self.overrides.is_empty() {
            match self.create_session().await {
                Ok(id) => self.session_id = Some(id),
                Err(failure) => {
                    self.code = self.out.failure(&failure);
                    return Ok(());
                }
            }
        }
        let session_id = self.session_id.clone().unwrap_or_default();
        let can_answer = self.prompts();
        let request =
            AskRequest { session_id, text, media, can_answer, plan: message.plan, ..AskRequest::default() };
        let turn = self.connection.agent.turn(request);
        self.follow_turn(turn, Vec::new()).await
    }

    /// Whether a person is there to be asked.
    fn prompts(&self) -> bool {
        self.messages.is_interactive && stderr().is_terminal()
    }

    /// Applies the command line's overrides to an existing session; everything else stays as it is.
    async fn apply_overrides(&self, id: &str) -> Result<(), Failure> {
        let sampling = self.session(id).await?.sampling;
        let request = self.overrides.change(id, sampling);
        self.connection.send_once(async move |mut agent| agent.update_session(request).await).await?;
        Ok(())
    }

    /// Creates a session with the overrides.
    pub(super) async fn create_session(&mut self) -> Result<String, Failure> {
        let request = self.overrides.creation();
        Ok(self.connection.send_once(async move |mut agent| agent.create_session(request).await).await?.id)
    }

    async fn follow_turn(&mut self, turn: Turn, waiting: Vec<Approval>) -> Result<(), Failure> {
        let how = FollowOptions {
            filter: DisplayFilter {
                text: true,
                thoughts: self.thoughts,
                lines: true,
                notices: true,
                words: uses_words(),
            },
            chunks: false,
            prompts_approvals: self.prompts(),
            // A person who postpones a decision wants to keep talking; a script has nothing else to do.
            waits_for_approvals: !self.messages.is_interactive,
            timeout: None,
            types_ahead: self.prompts() && !is_plain(),
        };
        let typed = std::mem::take(&mut self.typed);
        let mut told = follow(turn, waiting, self.connection, how, typed, self.out).await?;
        self.typed = std::mem::take(&mut told.typed);
        if told.stop.is_some() {
            self.typed.unqueue();
        }
        self.print_end(told);
        Ok(())
    }

    fn print_end(&mut self, told: TurnOutcome) {
        self.shown_approvals.record(&told.record.approvals);
        let id = told.record.session_id;
        if !id.is_empty() {
            self.session_id = Some(id.clone());
        }
        self.code = match told.end {
            TurnEnd::Done(done) => {
                self.context.clone_from(&done.context);
                // On a terminal the session id is printed at the end of the chat.
                let shown_id = if self.messages.is_interactive { "" } else { &id };
                self.out.err_line(footer(&done, shown_id, uses_words()));
                exit::OK
            }
            TurnEnd::Error(error) => {
                self.context.clone_from(&error.context);
                print_error(&error, self.out)
            }
            TurnEnd::Failed(failure) => self.out.failure(&failure),
            TurnEnd::Stopped => {
                self.out.err_line("the turn was cancelled");
                exit::TOOL_ERROR
            }
            TurnEnd::Parked(_) => {
                self.out.err_line("the turn waits for an approval: /approve or /deny it");
                exit::OK
            }
        };
        if told.stop == Some(StopReason::Interrupted) && !self.messages.is_interactive {
            self.code = exit::INTERRUPTED;
        }
    }
}
