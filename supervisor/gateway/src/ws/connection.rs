//! One connection: reads, writes, pings, and ends.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use futures_util::stream::SplitStream;
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tungstenite::Error as SocketError;

use super::dispatch::Dispatch;
use super::event_subscription::EventSubscription;
use super::outbox::{Outbox, OutboxReader, outbox};
use crate::access::require_chat;
use crate::app::App;
use crate::config_updates;
use crate::events::client_message::{Resume, parse};
use crate::events::session_envelopes::envelopes;
use crate::ghosts::GhostFeed;
use crate::identity::{Caller, Scope};
use crate::problem::{Problem, ProblemKind};
use crate::session_events::{SessionEvents, too_many_sessions};
use crate::task_updates;

/// How often a client is asked whether it is there: below the minute after which proxies forget an idle connection.
const PING_EVERY: Duration = Duration::from_secs(25);
/// After what silence, pongs included, a client is taken to be gone: three pings.
const MAX_SILENCE: Duration = Duration::from_secs(80);
/// Cursors that wait to be taken: the next message is read after that.
const MAX_RESUMES: usize = 4;
/// How long the last frame may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The program restarts: connect again (RFC 6455's registry; axum names it so).
const SERVICE_RESTART: u16 = close_code::RESTART;

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It broke.
    Gone,
    /// The client closed it.
    Closed,
    /// The gateway ends.
    Restart,
    /// The client's credential holds no more.
    Revoked,
    /// Nothing was heard for too long.
    Silent,
    /// The client reads too slowly.
    Slow,
    /// A message is too large.
    TooLarge,
    /// What was sent is no WebSocket.
    Protocol,
    /// A text is no UTF-8.
    InvalidText,
    /// The agent gives no events.
    Broken,
}

impl End {
    /// What the client is told; `None` if nobody is there, or if it has said itself that it goes.
    fn frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Gone | Self::Closed => return None,
            Self::Restart => (SERVICE_RESTART, "the gateway restarts: connect again"),
            Self::Revoked => (close_code::POLICY, "the credential was revoked: get another"),
            Self::Silent => (close_code::POLICY, "nothing was heard for 80 s: answer pings"),
            Self::Slow => (close_code::AGAIN, "this client reads too slowly: connect again"),
            Self::TooLarge => (close_code::SIZE, "a message is larger than gateway.limits.body allows"),
            Self::Broken => (close_code::ERROR, "the agent gives no events: the gateway's log has more"),
            Self::Protocol => (close_code::PROTOCOL, "what was sent is no WebSocket"),
            Self::InvalidText => (close_code::INVALID, "a text is no UTF-8"),
        };
        Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) })
    }
}

/// Serves a connection to its end.
pub(super) async fn serve(app: App, caller: Caller, socket: WebSocket) {
    let (mut sink, stream) = socket.split();
    let (outbox, waiting) = outbox();
    let ending = app.ending();
    let credential = app.revocations.watch(&caller);
    let ended = CancellationToken::new();
    let (resumes, cursors) = mpsc::channel(MAX_RESUMES);
    let events = SessionEvents::of_caller(app.clone(), caller.clone());
    let following = EventSubscription::new(resumes, events.progress());
    let dispatch = Dispatch::new(app.clone(), caller.clone(), outbox.clone(), ended.clone(), following);
    let _ended = ended.drop_guard();
    let end = tokio::select! {
        end = read(&app, &caller, &dispatch, stream) => end,
        end = write(|| app.settings().limits.unread_timeout, &mut sink, waiting) => end,
        end = follow(&caller, outbox.clone(), events, cursors) => end,
        end = tell_config(&app, &caller, outbox.clone()) => end,
        end = tell_ghosts(&app, &caller, outbox.clone()) => end,
        end = tell_tasks(&app, &caller, outbox) => end,
        () = ending.cancelled() => End::Restart,
        () = credential.revoked() => End::Revoked,
    };
    if end == End::Slow {
        app.sockets.count_cut();
    }
    tracing::debug!(?end, "a WebSocket connection ended");
    // Whoever does not take the last frame in time goes without.
    let _told = timeout(CLOSE_TIMEOUT, async {
        match end.frame() {
            Some(frame) => sink.send(Message::Close(Some(frame))).await,
            // The library has the answer to the client's own close frame ready.
            None => sink.flush().await,
        }
    })
    .await;
}

/// The next message, a pong as any other; or how the connection ends.
async fn next_message(
    stream: &mut (impl Stream<Item = Result<Message, axum::Error>> + Unpin),
) -> Result<Message, End> {
    match timeout(MAX_SILENCE, stream.next()).await {
        Err(_) => Err(End::Silent),
        Ok(None) => Err(End::Gone),
        Ok(Some(Err(error))) => Err(broken(error)),
        Ok(Some(Ok(message))) => Ok(message),
    }
}

async fn read(app: &App, caller: &Caller, dispatch: &Dispatch, mut stream: SplitStream<WebSocket>) -> End {
    loop {
        let message = match next_message(&mut stream).await {
            Ok(message) => message,
            Err(end) => return end,
        };
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(_) => {
                let problem = Problem::new(ProblemKind::BadRequest, "messages are text: send JSON as text");
                if dispatch.fail(None, &problem).await.is_err() {
                    return End::Gone;
                }
                continue;
            }
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => return End::Closed,
        };
        app.sockets.count_message();
        let key = caller.via.credential_id().unwrap_or_else(|| caller.subject.as_str());
        let taken = app.rates.take_credential(key, app.settings().limits.requests_per_minute);
        let told = match taken.map(|()| parse(&text)) {
            Err(wait) => {
                let detail =
                    "this credential sends too many messages (gateway.limits.requests_per_minute): wait";
                let problem = Problem::new(ProblemKind::TooManyRequests, detail).with_retry_after(wait);
                let told = dispatch.fail(None, &problem).await;
                // A flood is held back where it comes from: nothing is read meanwhile.
                tokio::time::sleep(wait).await;
                told
            }
            Ok(Ok((id, message))) => dispatch.message(id, message).await,
            Ok(Err(error)) => dispatch.refuse(error).await,
        };
        if told.is_err() {
            return End::Gone;
        }
    }
}

fn broken(error: axum::Error) -> End {
    match error.into_inner().downcast::<SocketError>().as_deref() {
        Ok(SocketError::Capacity(_)) => End::TooLarge,
        Ok(SocketError::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake)) => {
            End::Gone
        }
        Ok(SocketError::Protocol(_)) => End::Protocol,
        Ok(SocketError::Utf8(_)) => End::InvalidText,
        _ => End::Gone,
    }
}

/// Passes on the events of the caller's sessions. Those of a channel's senders come turn by turn instead.
async fn follow(
    caller: &Caller,
    outbox: Outbox,
    mut events: SessionEvents,
    mut resumes: mpsc::Receiver<(String, Resume)>,
) -> End {
    if caller.scopes.contain(Scope::Channel) || require_chat(caller).is_err() {
        return pending().await;
    }
    loop {
        if let Some(error) = events.take_error()
            && outbox.push(&error).await.is_err()
        {
            return End::Gone;
        }
        let event = tokio::select! {
            event = events.next() => event,
            Some((id, resume)) = resumes.recv() => {
                let cursors = resume.cursors.iter().map(|cursor| (cursor.session_id.as_str(), cursor.after));
                let unplaced = events.resume(cursors, resume.since);
                if unplaced > 0 && outbox.push(&too_many_sessions(unplaced, Some(id))).await.is_err() {
                    return End::Gone;
                }
                continue;
            }
        };
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(%error, "the events of a connection's sessions are not to be had");
                return End::Broken;
            }
        };
        for envelope in envelopes(event) {
            if outbox.push(&envelope).await.is_err() {
                return End::Gone;
            }
        }
    }
}

/// Tells of changes of the configuration, if the caller may read it.
async fn tell_config(app: &App, caller: &Caller, outbox: Outbox) -> End {
    let mut updates = pin!(config_updates::events(app.config_updates.subscribe(caller)));
    while let Some(envelope) = updates.next().await {
        if outbox.push(&envelope).await.is_err() {
            return End::Gone;
        }
    }
    pending().await
}

/// Tells of runs of jobs, if the caller operates.
async fn tell_tasks(app: &App, caller: &Caller, outbox: Outbox) -> End {
    let mut tasks = pin!(task_updates::events(app.task_updates.subscribe(caller)));
    while let Some(envelope) = tasks.next().await {
        if outbox.push(&envelope).await.is_err() {
            return End::Gone;
        }
    }
    pending().await
}

/// Tells of what the shadow loop sees and proposes, if the caller is a person.
async fn tell_ghosts(app: &App, caller: &Caller, outbox: Outbox) -> End {
    let mut feed = GhostFeed::of_caller(app.clone(), caller.clone());
    while let Some(feed) = &mut feed {
        let Some(envelope) = feed.next().await else { break };
        if outbox.push(&envelope).await.is_err() {
            return End::Gone;
        }
    }
    pending().await
}

/// Writes what waits, and a ping each [`PING_EVERY`].
async fn write(
    unread_timeout: impl Fn() -> Duration,
    sink: &mut (impl Sink<Message> + Unpin),
    mut waiting: OutboxReader,
) -> End {
    let mut pings = interval(PING_EVERY);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (message, _room) = tokio::select! {
            outgoing = waiting.next() => match outgoing {
                Some(mut outgoing) => (Message::Text(std::mem::take(&mut outgoing.text).into()), Some(outgoing)),
                None => return End::Gone,
            },
            _ = pings.tick() => (Message::Ping(bytes::Bytes::new()), None),
        };
        // Who takes nothing of a message for so long is cut off.
        match timeout(unread_timeout(), sink.send(message)).await {
            Err(_) => return End::Slow,
            Ok(Err(_)) => return End::Gone,
            Ok(Ok(())) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{sink, stream};
    use tokio::time::Instant;

    use super::*;

    // Promises: GW-254
    #[tokio::test(start_paused = true)]
    async fn who_answers_no_ping_is_taken_to_be_gone_and_who_does_stays() {
        let began = Instant::now();
        // Half open: the peer is gone, and nothing says so.
        let mut half_open = stream::pending();
        assert_eq!(next_message(&mut half_open).await.unwrap_err(), End::Silent);
        assert_eq!(began.elapsed(), MAX_SILENCE);
        assert!(MAX_SILENCE > PING_EVERY * 3, "three pings are lost before");
        // Each ping is answered, and there is nothing else to hear.
        let (_outbox, waiting) = outbox();
        let (client, pongs) = mpsc::unbounded_channel::<Result<Message, axum::Error>>();
        let mut sink = Box::pin(sink::unfold(client, |client, message: Message| async move {
            let Message::Ping(payload) = message else { panic!("there is nothing to say: {message:?}") };
            assert!(client.send(Ok(Message::Pong(payload))).is_ok(), "somebody reads");
            Ok::<_, Infallible>(client)
        }));
        let mut pongs = Box::pin(stream::unfold(pongs, |mut pongs| async move {
            pongs.recv().await.map(|message| (message, pongs))
        }));
        let began = Instant::now();
        let answers = async {
            for _ in 0..10 {
                assert!(matches!(next_message(&mut pongs).await, Ok(Message::Pong(_))));
            }
        };
        tokio::select! {
            end = write(|| MAX_SILENCE, &mut sink, waiting) => panic!("{end:?}"),
            () = answers => {}
        }
        assert_eq!(began.elapsed().as_secs(), PING_EVERY.as_secs() * 9);
    }
}
