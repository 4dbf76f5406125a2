//! One connection's life: what comes on it is told to the host, and acknowledged once the host has it on its disk.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{FuturesOrdered, FuturesUnordered};
use parking_lot::Mutex;
use talon_sdk::{EventReceipt, EventSource, SourceEvent, tracing};
use talon_sink::edit_notices::{EditNotices, edited_conversation};
use talon_sink::peer_text::one_line;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::api::Api;
use crate::frame::{Envelope, Frame, acknowledgement};
use crate::inbound::{AppUser, Inbound, inbound};
use crate::socket::{Socket, SocketMessage};
use crate::user_names::UserNames;

/// After how long without a sign of life Slack is asked for one. 30 s: it pings every few seconds.
const SILENCE: Duration = Duration::from_secs(30);
/// How long after that the connection counts as dead.
const SIGN_TIME: Duration = Duration::from_secs(15);
/// How long a connection is still heard that Slack has said to end. 30 s: Slack closes it after some 10 s.
const END_TIME: Duration = Duration::from_secs(30);

/// How many envelopes of a connection may wait for the name of who did something. 32: each waits for a second at most, and all at the same time;
/// meanwhile no further one is read.
const MAX_NAMELESS: usize = 32;

/// What the connections of one app share.
pub(crate) struct Listener {
    pub(crate) api: Api,
    pub(crate) own: AppUser,
    pub(crate) events: EventSource,
    pub(crate) thread_replies: bool,
    pub(crate) names: UserNames,
    pub(crate) edits: Mutex<EditNotices>,
    /// Why nothing is connected; `None` while something is.
    pub(crate) outage: Mutex<Option<String>>,
}

/// Why a connection is to be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// Slack has said so, with its reason.
    Asked(String),
    /// It has ended.
    Ended(String),
}

impl Listener {
    /// Serves a connection until it ends. That it has to be replaced is said as soon as it is known.
    pub(crate) async fn serve(&self, mut socket: Socket, replacement: oneshot::Sender<Replacement>) {
        let mut replacement = Some(replacement);
        // In the order in which they came, so that a conversation keeps its own.
        let mut nameless = FuturesOrdered::new();
        let mut receipts = FuturesUnordered::new();
        let (mut sign_due, mut is_asked) = (Instant::now() + SILENCE, false);
        let mut end = None;
        let ended = loop {
            let due = end.map_or(sign_due, |end: Instant| end.min(sign_due));
            tokio::select! {
                heard = socket.hear(), if nameless.len() < MAX_NAMELESS => {
                    (sign_due, is_asked) = (Instant::now() + SILENCE, false);
                    match heard {
                        Err(reason) => break reason,
                        Ok(SocketMessage::Frame(Frame::Envelope(envelope))) => match self.read(&envelope) {
                            Some(said) => nameless.push_back(self.named(envelope.id, said)),
                            None => {
                                if let Err(reason) = socket.say(acknowledgement(&envelope.id)).await {
                                    break reason;
                                }
                            }
                        },
                        Ok(SocketMessage::Frame(Frame::Disconnect(reason))) => {
                            tracing::debug!("Slack asks for another connection: {reason}");
                            end = Some(Instant::now() + END_TIME);
                            if let Some(replacement) = replacement.take() {
                                // Nobody waits any more when the plugin ends.
                                let _ = replacement.send(Replacement::Asked(reason));
                            }
                        }
                        Ok(SocketMessage::Frame(Frame::Other(kind))) => tracing::debug!("Slack says {kind}, which is left out"),
                        Ok(SocketMessage::Frame(Frame::Hello) | SocketMessage::Sign) => {}
                    }
                }
                Some((envelope, event)) = nameless.next(), if !nameless.is_empty() => match self.tell(event) {
                    EnvelopeOutcome::Waits(receipt) => receipts.push(settled(envelope, receipt)),
                    EnvelopeOutcome::Nothing => {
                        if let Err(reason) = socket.say(acknowledgement(&envelope)).await {
                            break reason;
                        }
                    }
                    // It comes again.
                    EnvelopeOutcome::NoRoom => {}
                },
                Some(envelope) = receipts.next(), if !receipts.is_empty() => {
                    if let Err(reason) = socket.say(acknowledgement(&envelope)).await {
                        break reason;
                    }
                }
                () = sleep_until(due) => {
                    if end.is_some_and(|end| end <= Instant::now()) {
                        break "it was to end".to_owned();
                    }
                    if is_asked {
                        break "there was no sign of life".to_owned();
                    }
                    if let Err(reason) = socket.ping().await {
                        break reason;
                    }
                    (sign_due, is_asked) = (Instant::now() + SIGN_TIME, true);
                }
            }
        };
        // What was not acknowledged comes again on the next connection, and is known by its id.
        if let Some(replacement) = replacement {
            let _ = replacement.send(Replacement::Ended(ended));
        }
    }

    /// What an envelope says to the agent, if anything.
    fn read(&self, envelope: &Envelope) -> Option<Inbound> {
        let said = match inbound(envelope, &self.own, self.thread_replies) {
            Ok(said) => said?,
            // It would come again and again. What is wrong with it is not logged: that quotes what people wrote.
            Err(_) => {
                let id = envelope.payload["event_id"].as_str().unwrap_or("an event without an id");
                let what = one_line(&format!("{}: {id}", envelope.kind));
                tracing::warn!("something of Slack's is not understood, and is left out: {what}");
                return None;
            }
        };
        if envelope.retries > 0 {
            tracing::debug!("{} comes again ({})", said.id, envelope.retries);
        }
        Some(said)
    }

    /// The event of what somebody did, by their name, beside the id of its envelope.
    async fn named(&self, envelope: String, said: Inbound) -> (String, SourceEvent) {
        let name = self.names.name(&self.api, &said.user).await;
        let name = name.or_else(|| said.name.clone()).unwrap_or_else(|| said.user.clone());
        (envelope, said.event(&name))
    }

    /// Tells the host an event.
    fn tell(&self, event: SourceEvent) -> EnvelopeOutcome {
        if !self.is_due(&event) {
            return EnvelopeOutcome::Nothing;
        }
        let id = event.id().to_owned();
        match self.events.tell(event) {
            Ok(receipt) => EnvelopeOutcome::Waits(receipt),
            Err(error) => {
                tracing::warn!("{id}: {error}; Slack sends it again");
                EnvelopeOutcome::NoRoom
            }
        }
    }

    fn is_due(&self, event: &SourceEvent) -> bool {
        edited_conversation(event)
            .is_none_or(|conversation| self.edits.lock().is_due(&conversation, std::time::Instant::now()))
    }
}

/// What became of an envelope.
enum EnvelopeOutcome {
    /// The host gets an event of it.
    Waits(EventReceipt),
    /// There is nothing in it for the agent.
    Nothing,
    /// Too many events wait for the host.
    NoRoom,
}

/// The envelope's id, once the host has the event, or never takes it.
async fn settled(envelope: String, receipt: EventReceipt) -> String {
    if let Err(error) = receipt.acknowledged().await {
        tracing::warn!("{error}");
    }
    envelope
}
