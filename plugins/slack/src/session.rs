//! One connection's life: what comes on it is told to the host, and acknowledged once the host has it on its disk.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use talon_sdk::{EventReceipt, EventSource, SourceEvent, tracing};
use talon_sink::edit_notices::{EditNotices, edited_conversation};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::api::Api;
use crate::frame::{Envelope, Frame, acknowledgement};
use crate::inbound::{AppUser, inbound};
use crate::socket::{Heard, Socket};
use crate::user_names::UserNames;

/// After how long without a sign of life Slack is asked for one. 30 s: it pings every few seconds.
const SILENCE: Duration = Duration::from_secs(30);
/// How long after that the connection counts as dead.
const SIGN_TIME: Duration = Duration::from_secs(15);
/// How long a connection is still heard that Slack has said to end. 30 s: Slack closes it after some 10 s.
const END_TIME: Duration = Duration::from_secs(30);

/// What the connections of one app share.
pub(crate) struct Listener {
    pub(crate) api: Api,
    pub(crate) own: AppUser,
    pub(crate) events: EventSource,
    pub(crate) thread_replies: bool,
    pub(crate) names: UserNames,
    pub(crate) edits: Mutex<EditNotices>,
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
        let mut receipts = FuturesUnordered::new();
        let (mut sign_due, mut is_asked) = (Instant::now() + SILENCE, false);
        let mut end = None;
        let ended = loop {
            let due = end.map_or(sign_due, |end: Instant| end.min(sign_due));
            tokio::select! {
                heard = socket.hear() => {
                    (sign_due, is_asked) = (Instant::now() + SILENCE, false);
                    match heard {
                        Err(reason) => break reason,
                        Ok(Heard::Frame(Frame::Envelope(envelope))) => match self.tell(&envelope).await {
                            Told::Waits(receipt) => receipts.push(settled(envelope.id, receipt)),
                            Told::Nothing => {
                                if let Err(reason) = socket.say(acknowledgement(&envelope.id)).await {
                                    break reason;
                                }
                            }
                            // It comes again.
                            Told::NoRoom => {}
                        },
                        Ok(Heard::Frame(Frame::Disconnect(reason))) => {
                            tracing::debug!("Slack asks for another connection: {reason}");
                            end = Some(Instant::now() + END_TIME);
                            if let Some(replacement) = replacement.take() {
                                // Nobody waits any more when the plugin ends.
                                let _ = replacement.send(Replacement::Asked(reason));
                            }
                        }
                        Ok(Heard::Frame(Frame::Other(kind))) => tracing::debug!("Slack says {kind}, which is left out"),
                        Ok(Heard::Frame(Frame::Hello) | Heard::Sign) => {}
                    }
                }
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

    /// Tells the host what an envelope says.
    async fn tell(&self, envelope: &Envelope) -> Told {
        let said = match inbound(envelope, &self.own, self.thread_replies) {
            Ok(Some(said)) => said,
            Ok(None) => return Told::Nothing,
            // It would come again and again.
            Err(error) => {
                tracing::warn!(
                    "something of Slack's ({}) is not understood, and is left out: {error}",
                    envelope.kind
                );
                return Told::Nothing;
            }
        };
        if envelope.retries > 0 {
            tracing::debug!("{} comes again ({})", said.id, envelope.retries);
        }
        let name = self.names.name(&self.api, &said.user).await;
        let name = name.or_else(|| said.name.clone()).unwrap_or_else(|| said.user.clone());
        let event = said.event(&name);
        if !self.is_due(&event) {
            return Told::Nothing;
        }
        match self.events.tell(event) {
            Ok(receipt) => Told::Waits(receipt),
            Err(error) => {
                tracing::warn!("{}: {error}; Slack sends it again", said.id);
                Told::NoRoom
            }
        }
    }

    fn is_due(&self, event: &SourceEvent) -> bool {
        edited_conversation(event)
            .is_none_or(|conversation| self.edits.lock().is_due(&conversation, std::time::Instant::now()))
    }
}

/// What became of an envelope.
enum Told {
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
