//! The messages of one sender or group, answered one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt as _;
use talon_proto::agent::Error as TurnError;
use talon_proto::agent::chunk::Kind;
use talon_store::Session;
use tonic::{Code, Status};

use super::files::{MessageFiles, StoredFiles};
use super::lane::Lane;
use super::outbound::{Delivery, OutboundText};
use super::pending::PendingMessage;
use super::prompts::PENDING;
use super::service::Channels;
use super::verbose::{CallTexts, call_text, read_and_show, result_text};
use crate::agent::{EarlierTurn, TurnRequest, VERBOSE};
use crate::driver::MessageOrigin;
use crate::turns::{RunningTurn, Subscription};

/// What a model is asked with files that came without a text.
const NO_TEXT: &str = "(No text came with this.)";

/// How work on a message ended.
enum Progress {
    /// There is nothing more to do.
    Done,
    /// The agent ends; the row stays.
    Interrupted,
}

impl Channels {
    /// Has a message, which has a row, worked on after the others of its sender or group.
    pub(super) fn work_on(self: &Arc<Self>, message: PendingMessage) {
        let owner = message.owner.clone();
        let mut lanes = self.lanes.lock();
        let is_new = !lanes.contains_key(&owner);
        lanes.entry(owner.clone()).or_default().push(message);
        drop(lanes);
        if is_new {
            self.tasks.spawn(Arc::clone(self).work(owner));
        }
    }

    async fn work(self: Arc<Self>, owner: String) {
        loop {
            let first = {
                let mut lanes = self.lanes.lock();
                let first = lanes.get(&owner).and_then(Lane::first);
                if first.is_none() {
                    lanes.remove(&owner);
                }
                first
            };
            let Some(message) = first else { return };
            let id = message.id.clone();
            match self.answer(message).await {
                Progress::Interrupted => return,
                Progress::Done => {
                    while let Err(error) = self.store.remove(&id).await {
                        let error = talon_error_chain::error_chain(&error);
                        tracing::warn!(
                            message = id,
                            error,
                            "that a message of a channel is answered cannot be stored"
                        );
                        if !self.pause().await {
                            return;
                        }
                    }
                    if let Some(lane) = self.lanes.lock().get_mut(&owner) {
                        lane.pop();
                    }
                    self.room.notify_one();
                }
            }
        }
    }

    /// Asks, waits for the turn's end, and sends the answer.
    async fn answer(self: &Arc<Self>, mut message: PendingMessage) -> Progress {
        // Fetched once, however often it is asked.
        let mut files = MessageFiles::default();
        loop {
            let answered = tokio::select! {
                () = self.ending.cancelled() => return Progress::Interrupted,
                answered = self.ask(&mut message, &mut files) => answered,
            };
            let text = match answered {
                Ok(Some(text)) => text,
                Ok(None) => return Progress::Done,
                Err(_) if self.ending.is_cancelled() || self.agent.turns.is_ending() => {
                    return Progress::Interrupted;
                }
                Err(status) if is_lasting(&status) => format!("⚠️ {}", status.message()),
                Err(status) => {
                    let (channel, id) = (&message.channel, &message.id);
                    tracing::warn!(
                        channel,
                        id,
                        error = status.message(),
                        "a message of a channel is tried again"
                    );
                    if !self.pause().await {
                        return Progress::Interrupted;
                    }
                    continue;
                }
            };
            let id = message.id.clone();
            let (channel, conversation) = (message.channel.clone(), message.conversation.clone());
            let outbound = OutboundText {
                channel: &channel,
                conversation: &conversation,
                id: &id,
                text: &text,
                buttons: &[],
            };
            return match self.deliver(outbound, Some(&mut message)).await {
                Delivery::Sent | Delivery::GivenUp => Progress::Done,
                Delivery::Interrupted => Progress::Interrupted,
            };
        }
    }

    /// The answer of a message's turn, which is begun if it was not. `None` if it was forgotten meanwhile.
    async fn ask(
        self: &Arc<Self>,
        message: &mut PendingMessage,
        files: &mut MessageFiles,
    ) -> Result<Option<String>, Status> {
        let stored = |error: &talon_store::Error| Status::unavailable(talon_error_chain::error_chain(error));
        if !self.store.has(message).await.map_err(|error| stored(&error))? {
            return Ok(None);
        }
        let session = self.agent.main_session(&message.owner, &message.channel).await?;
        loop {
            match self.agent.earlier_turn(&session, &message.client_id()).await? {
                Some(EarlierTurn::Ended(_, end)) => return Ok(Some(text_of(*end))),
                Some(EarlierTurn::Running(running)) => {
                    let following = running.hub.follow(|_| Vec::new())?;
                    self.follow_turn(message, &session, &running, following).await?;
                    continue;
                }
                // Its session was deleted.
                None if message.asked => return Ok(None),
                None => {}
            }
            if let Some(other) = self.agent.turns.get(session.id) {
                // Somebody asked over another interface.
                other.hub.wait_ended().await;
                // A turn that has ended leaves its place a moment later.
                tokio::task::yield_now().await;
                continue;
            }
            let Some(stored) = self.files_of(message, session.id, files).await? else { return Ok(None) };
            let notice = stored.notice();
            match self.agent.ask(&session, self.request(message, &session, stored)).await {
                Ok((running, following)) => {
                    message.asked = true;
                    self.keep(message).await;
                    if let Some(notice) = notice {
                        let id = format!("files:{}", message.id);
                        self.say(&message.channel, &message.conversation, id, notice);
                    }
                    self.follow_turn(message, &session, &running, following).await?;
                }
                // It was asked, or another one was faster.
                Err(status) if matches!(status.code(), Code::AlreadyExists | Code::FailedPrecondition) => {
                    tokio::task::yield_now().await;
                }
                Err(status) => return Err(status),
            }
        }
    }

    fn request(&self, message: &PendingMessage, session: &Session, files: StoredFiles) -> TurnRequest {
        let channel =
            if message.channel == session.channel { String::new() } else { message.channel.clone() };
        let text = if message.text.trim().is_empty() { NO_TEXT } else { &message.text };
        TurnRequest {
            text: format!("{text}{}", files.note()),
            images: files.images,
            attachments: files.attachments,
            origin: MessageOrigin {
                client_id: message.client_id(),
                channel,
                sender_name: message.sender_name.clone(),
                member: message.member.clone().unwrap_or_default(),
                ..MessageOrigin::default()
            },
            detached: true,
            can_answer: true,
            ..TurnRequest::default()
        }
    }

    /// Follows a turn to its end, and shows that it runs, what waits for a person, and its calls if the session is verbose.
    async fn follow_turn(
        self: &Arc<Self>,
        message: &mut PendingMessage,
        session: &Session,
        running: &RunningTurn,
        following: Subscription,
    ) -> Result<(), Status> {
        let (channel, conversation) = (message.channel.clone(), message.conversation.clone());
        let id = self.next_id();
        let waits = AtomicBool::new(false);
        let (texts, to_show) = CallTexts::new();
        let texts = session.metadata.contains_key(VERBOSE).then_some(texts);
        let followed = async {
            let reading = self.read_turn(message, following, texts, &waits);
            let showing = self.show_calls(&channel, &conversation, &id, to_show);
            let (read, is_shown) = read_and_show(reading, showing).await;
            if !is_shown {
                tracing::warn!(
                    channel,
                    "the last calls of a verbose session are not shown: its channel is too slow"
                );
            }
            read
        };
        tokio::select! {
            followed = followed => followed?,
            never = self.show_typing(&channel, &conversation, &waits) => match never {},
        }
        running.hub.wait_ended().await;
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn read_turn(
        self: &Arc<Self>,
        message: &mut PendingMessage,
        mut following: Subscription,
        texts: Option<CallTexts>,
        waits: &AtomicBool,
    ) -> Result<(), Status> {
        let mut read = Ok(());
        while let Some(chunk) = following.next().await {
            let kind = match chunk.map(|chunk| chunk.kind) {
                Ok(Some(kind)) => kind,
                Ok(None) => continue,
                // It is told to who is too slow, and the turn goes on.
                Err(status) if status.code() == Code::ResourceExhausted => break,
                Err(status) => {
                    read = Err(status);
                    break;
                }
            };
            waits.store(
                matches!(&kind, Kind::Approval(approval) if approval.state == PENDING),
                Ordering::Relaxed,
            );
            match (&kind, &texts) {
                (Kind::Approval(approval), _) => self.show(message, approval).await,
                (Kind::ToolCall(call), Some(texts)) => texts.push(call_text(call)),
                (Kind::ToolResult(result), Some(texts)) => texts.push(result_text(result)),
                _ => {}
            }
        }
        read
    }

    /// Stores how far a message is, unless it was forgotten. If that fails, a part of it may come twice after a restart.
    pub(super) async fn keep(&self, message: &PendingMessage) {
        if let Err(error) = self.store.replace(message).await {
            let error = talon_error_chain::error_chain(&error);
            tracing::warn!(message = message.id, error, "how far a message of a channel is cannot be stored");
        }
    }
}

/// Whether asking again cannot help, so that who asked has to be told.
fn is_lasting(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::InvalidArgument
            | Code::PermissionDenied
            | Code::NotFound
            | Code::OutOfRange
            | Code::Unimplemented
    )
}

/// What a person is told of the end of a turn.
fn text_of(end: Kind) -> String {
    match end {
        Kind::Done(done) => done.text,
        Kind::Error(TurnError { message, partial, reason, .. }) => {
            let message = if message.is_empty() { reason } else { message };
            let partial = if partial.is_empty() { String::new() } else { format!("{partial}\n\n") };
            format!("{partial}⚠️ {message}")
        }
        // The journal has no other ends.
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_without_an_answer_says_why() {
        let failed = |partial: &str| {
            text_of(Kind::Error(TurnError {
                message: "No model answers.".to_owned(),
                partial: partial.to_owned(),
                ..TurnError::default()
            }))
        };
        assert_eq!(failed(""), "⚠️ No model answers.");
        assert_eq!(failed("So far"), "So far\n\n⚠️ No model answers.");
        assert!(is_lasting(&Status::invalid_argument("no")) && !is_lasting(&Status::unavailable("later")));
    }
}
