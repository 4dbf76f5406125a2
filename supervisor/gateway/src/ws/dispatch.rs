//! What a message of the client brings about.

use std::sync::Arc;

use futures_util::StreamExt as _;
use talon_extensions::mentions;
use talon_proto::agent::{AskRequest, CancelRequest};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::event_subscription::EventSubscription;
use super::outbox::{ConnectionEndedError, Outbox};
use super::sender_claim::{Claim, claimed_caller};
use crate::access::{of_session, require_chat, session};
use crate::api::approvals::{Decision, decide_as};
use crate::api::sessions::send::media;
use crate::app::App;
use crate::clock::unix_ms;
use crate::events::agent::ErrorEvent;
use crate::events::client_message::{
    ChannelMessage, ClarificationAnswer, ClientMessage, ConfirmationAnswer, Resume, SessionUpdate, TurnCancel,
};
use crate::events::ids::session_id;
use crate::events::session::SessionCreated;
use crate::events::{ClientMessageError, Envelope, ServerEvent};
use crate::identity::{Caller, Scope};
use crate::problem::{Problem, ProblemKind};
use crate::turn::Turn;

/// What the messages of one connection share. Cheap to clone.
#[derive(Clone)]
pub(super) struct Dispatch {
    app: App,
    caller: Caller,
    outbox: Outbox,
    /// A channel's token: its senders' events come turn by turn.
    speaks_for_others: bool,
    following: EventSubscription,
    /// Places of messages that wait for their turn, or are in it.
    places: Arc<Semaphore>,
    /// How many there are, of the settings with which the connection began.
    most_places: usize,
    ended: CancellationToken,
}

impl Dispatch {
    /// Turns end when `ended` is cancelled; what comes of its messages is told by what it follows.
    pub(super) fn new(
        app: App,
        caller: Caller,
        outbox: Outbox,
        ended: CancellationToken,
        following: EventSubscription,
    ) -> Self {
        let most_places = app.settings().limits.messages_per_websocket.min(Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(most_places));
        let speaks_for_others = caller.scopes.contain(Scope::Channel);
        Self { app, caller, outbox, speaks_for_others, following, places, most_places, ended }
    }

    /// Does what a message says. What comes of it goes to the outbox, also that it failed.
    pub(super) async fn message(
        &self,
        id: String,
        message: ClientMessage,
    ) -> Result<(), ConnectionEndedError> {
        let done = match message {
            ClientMessage::ChannelMessage(message) => return self.begin(id, message).await,
            ClientMessage::ConfirmationAnswer(answer) => self.confirm(answer).await,
            ClientMessage::ClarificationAnswer(answer) => self.clarify(answer).await,
            ClientMessage::TurnCancel(cancel) => self.cancel(cancel).await,
            ClientMessage::Resume(resume) => self.resume(&id, resume).await,
            ClientMessage::SessionUpdate(update) => self.update(update).await,
        };
        match done {
            Ok(()) => Ok(()),
            Err(problem) => self.fail(Some(id), &problem).await,
        }
    }

    /// Says that something of the client's failed. The connection stays.
    pub(super) async fn fail(
        &self,
        reply_to: Option<String>,
        problem: &Problem,
    ) -> Result<(), ConnectionEndedError> {
        let retry_after =
            problem.retry_after().map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let reason = problem.kind().name().replace('-', "_");
        self.send_error(ErrorEvent { reply_to, retry_after, ..error(&reason, problem.detail()) }).await
    }

    /// Says that a message is not understood. The connection stays.
    pub(super) async fn refuse(&self, refused: ClientMessageError) -> Result<(), ConnectionEndedError> {
        let ClientMessageError { reply_to, reason, message } = refused;
        self.send_error(ErrorEvent { reply_to, ..error(reason, &message) }).await
    }

    async fn send_error(&self, event: ErrorEvent) -> Result<(), ConnectionEndedError> {
        self.outbox.push(&Envelope::now(ServerEvent::Error(event), unix_ms())).await
    }

    /// Begins a turn, in a task of its own: the connection goes on reading.
    async fn begin(&self, id: String, message: ChannelMessage) -> Result<(), ConnectionEndedError> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let most = self.most_places;
            let detail = format!(
                "{most} messages of this connection are not answered yet (gateway.limits.messages_per_websocket): wait for one"
            );
            return self.fail(Some(id), &Problem::new(ProblemKind::TooManyRequests, detail)).await;
        };
        let (this, asked) = (self.clone(), self.following.asked());
        tokio::spawn(async move {
            let ended = this.ended.clone();
            // Of a connection that has ended nobody wants to know more.
            ended.run_until_cancelled(this.answer(id, message, asked)).await;
            drop(place);
        });
        Ok(())
    }

    async fn answer(
        &self,
        id: String,
        message: ChannelMessage,
        asked: u64,
    ) -> Result<(), ConnectionEndedError> {
        match self.turn(&id, message, asked).await {
            Ok(ended) => ended,
            Err(problem) => self.fail(Some(id), &problem).await,
        }
    }

    /// One turn, and its events. It is asked for after as many cursors as were `asked` for before it.
    async fn turn(
        &self,
        id: &str,
        message: ChannelMessage,
        asked: u64,
    ) -> Result<Result<(), ConnectionEndedError>, Problem> {
        require_chat(&self.caller)?;
        let caller = claimed_caller(&self.caller, Claim::from(&message))?;
        let settings = self.app.settings();
        let is_addressed = settings.hears_all
            || message.mentioned.unwrap_or_default()
            || mentions(&message.text, &settings.names);
        if message.is_group && !is_addressed {
            let detail = "this message of a group is not for the agent: send `mentioned: true` with one that is, or name the agent \
                          (gateway.routing)";
            return Err(Problem::new(ProblemKind::Unprocessable, detail).with_fields(["mentioned"]));
        }
        let member = match message.sender_id.as_deref().filter(|_| message.is_group) {
            Some(sender) => claimed_caller(&self.caller, Claim { sender: Some(sender), ..Claim::default() })?
                .subject
                .to_string(),
            None if message.is_group => {
                return Err(Problem::new(
                    ProblemKind::Unprocessable,
                    "a message of a group says whose it is",
                )
                .with_fields(["senderId"]));
            }
            None => String::new(),
        };
        let limit = settings.limits.requests_per_minute;
        if let Err(wait) = self.app.rates.take_credential(caller.subject.as_str(), limit) {
            let detail = "this sender sends too many messages (gateway.limits.requests_per_minute): wait";
            return Err(Problem::new(ProblemKind::TooManyRequests, detail).with_retry_after(wait));
        }
        let named = message.session_id.as_deref().or(caller.session.as_deref());
        let request = AskRequest {
            session_id: named
                .map(|named| session(&caller, named))
                .transpose()?
                .unwrap_or_default()
                .to_owned(),
            // Without a session it is the sender's one main session, or the group's.
            main_session: named.is_none(),
            text: message.text,
            sender_name: message.sender_name.filter(|_| message.is_group).unwrap_or_default(),
            member,
            channel: caller.channel.to_string(),
            can_answer: true,
            media: media(message.media.unwrap_or_default())?,
            // The same message again is the same turn, also over another connection.
            client_id: id.to_owned(),
            detached: true,
            ..AskRequest::default()
        };
        if !self.speaks_for_others {
            // Its events come with those of all sessions of the caller.
            self.following.wait(asked).await?;
            Turn::begin(&self.app, &caller, request).await?;
            return Ok(Ok(()));
        }
        let turn = Turn::begin(&self.app, &caller, request).await?;
        if turn.started.turn == 1 && !turn.started.repeated {
            let event = ServerEvent::SessionCreated(SessionCreated {
                session_id: session_id(&turn.started.session_id),
                sender_id: caller.subject.to_string(),
                channel: caller.channel.to_string(),
                reply_to: Some(id.to_owned()),
            });
            if self.outbox.push(&Envelope::now(event, unix_ms())).await.is_err() {
                return Ok(Err(ConnectionEndedError));
            }
        }
        let mut events = std::pin::pin!(turn.events());
        while let Some(event) = events.next().await {
            if self.outbox.push(&event?).await.is_err() {
                return Ok(Err(ConnectionEndedError));
            }
        }
        Ok(Ok(()))
    }

    async fn resume(&self, id: &str, resume: Resume) -> Result<(), Problem> {
        if self.speaks_for_others {
            let detail = "a channel's token follows its senders turn by turn: send the message again, under the same id";
            return Err(Problem::new(ProblemKind::Unprocessable, detail));
        }
        self.following.resume(id, resume).await;
        Ok(())
    }

    /// As whom an answer counts.
    fn answerer(&self, sender: Option<&str>) -> Result<Caller, Problem> {
        claimed_caller(&self.caller, Claim { sender, ..Claim::default() })
    }

    async fn confirm(&self, answer: ConfirmationAnswer) -> Result<(), Problem> {
        let caller = self.answerer(answer.sender_id.as_deref())?;
        let decision = Decision {
            allow: answer.allow,
            digest: answer.digest,
            reason: answer.reason,
            ..Decision::default()
        };
        decide_as(&self.app, &caller, answer.id, decision).await.map(drop)
    }

    async fn clarify(&self, answer: ClarificationAnswer) -> Result<(), Problem> {
        let caller = self.answerer(answer.sender_id.as_deref())?;
        let allow = answer.answer.is_some();
        let decision = Decision { allow, answer: answer.answer.unwrap_or_default(), ..Decision::default() };
        decide_as(&self.app, &caller, answer.id, decision).await.map(drop)
    }

    async fn cancel(&self, cancel: TurnCancel) -> Result<(), Problem> {
        let caller = self.answerer(cancel.sender_id.as_deref())?;
        let session_id = session(&caller, &cancel.session_id)?.to_owned();
        self.app.backends.agent(&caller).cancel(CancelRequest { session_id }).await.map_err(of_session)?;
        Ok(())
    }

    async fn update(&self, update: SessionUpdate) -> Result<(), Problem> {
        let caller = self.answerer(update.sender_id.as_deref())?;
        let request = update.change.of(session(&caller, &update.session_id)?);
        self.app.backends.agent(&caller).update_session(request).await.map_err(of_session)?;
        Ok(())
    }
}

fn error(reason: &str, message: &str) -> ErrorEvent {
    ErrorEvent {
        session_id: None,
        reply_to: None,
        reason: reason.to_owned(),
        message: message.to_owned(),
        partial: None,
        retry_after: None,
    }
}
