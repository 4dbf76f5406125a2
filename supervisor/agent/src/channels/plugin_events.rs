//! The plugins' events, read in their order.

use std::ops::Bound;
use std::sync::Arc;

use futures_util::StreamExt as _;
use talon_extensions::ChannelEntry;
use talon_proto::host::HostEvent;
use talon_store::Error;
use tonic::{Code, Status};

use super::event_reader::EventReader;
use super::inbound::{InboundEvent, InboundMessage, MessageSource, inbound, plugin};
use super::outbound::OutboundText;
use super::prompts::is_answered_with;
use super::routing::{Drop, Route, is_addressed, route};
use super::service::{AcceptOutcome, Channels};
use super::session_command::SessionCommand;
use super::store::AnsweredQuestion;

/// The most events that are read before their number is stored.
const MAX_EVENTS: usize = 64;

/// Why a stream of events ended.
#[derive(Debug, thiserror::Error)]
enum FollowError {
    #[error("the supervisor gives no events: {}", .0.message())]
    Host(#[from] Status),
    #[error("what channels tell cannot be stored")]
    Store(#[from] Error),
}

impl Channels {
    /// Reads events until the agent ends.
    pub(super) async fn follow(self: Arc<Self>, reader: EventReader) {
        let mut reported = false;
        while !self.ending.is_cancelled() {
            let followed = tokio::select! {
                () = self.ending.cancelled() => return,
                followed = self.follow_stream(reader) => followed,
            };
            match followed {
                Ok(()) => reported = false,
                Err(FollowError::Host(status)) if status.code() == Code::Unimplemented => {
                    if reader == EventReader::Messages {
                        tracing::info!("the supervisor keeps no events of plugins: channels hear nothing");
                    }
                    return;
                }
                // Once, not each time: it is tried again every few seconds.
                Err(error) if !reported && reader == EventReader::Messages => {
                    reported = true;
                    let error = talon_error_chain::error_chain(&error);
                    tracing::warn!(error, "channels hear nothing until the plugins' events can be read");
                }
                Err(_) => {}
            }
            self.pause().await;
        }
    }

    async fn follow_stream(self: &Arc<Self>, reader: EventReader) -> Result<(), FollowError> {
        let events = self.agent.plugin_events();
        let source = reader.source(&self.agent.event_source());
        let after = self.cursor(reader).await?;
        let heard = self.cursor(EventReader::Messages).await?;
        {
            let mut known = self.heard.lock().await;
            known.last = known.last.max(heard);
        }
        let own_source = self.agent.event_source();
        let stream = match events.subscribe(after).await {
            // They are of another log: its directory was lost, or replaced.
            Err(status) if status.code() == Code::OutOfRange && after > 0 => {
                self.heard.lock().await.last = 0;
                if reader == EventReader::Messages {
                    // The new log is not as far, so these were of the old one.
                    let old = (Bound::Excluded(after), Bound::Unbounded);
                    self.store.forget_all_answered(&own_source, old).await?;
                }
                events.subscribe(0).await?
            }
            stream => {
                let stream = stream?;
                if reader == EventReader::Messages {
                    // What a kill or a failure left.
                    self.store.forget_all_answered(&own_source, ..=after).await?;
                }
                stream
            }
        };
        let mut stream = stream.ready_chunks(MAX_EVENTS);
        while let Some(read) = stream.next().await {
            let (mut last, mut failure, mut is_taken) = (None, None, reader == EventReader::Messages);
            for event in read {
                match event {
                    Ok(event) => {
                        last = Some(event.number);
                        if reader.reads(&event) {
                            is_taken |= self.take(&event).await?;
                        } else if reader == EventReader::Buttons {
                            is_taken |= self.answer_early(&event).await?;
                        }
                    }
                    Err(status) => failure = Some(status),
                }
            }
            if let Some(last) = last.filter(|_| is_taken) {
                // Only now: what has no row comes again. Of messages the other reader keeps no cursor: it passes them once more.
                self.store.set_cursor(&source, last).await?;
                if reader == EventReader::Messages {
                    let answered = std::mem::take(&mut self.heard.lock().await.answered);
                    for (channel, event) in answered {
                        self.store.forget_answered(&channel, &event).await?;
                    }
                }
            }
            if let Some(status) = failure {
                return Err(status.into());
            }
        }
        Ok(())
    }

    /// After which event a stream is read.
    async fn cursor(&self, reader: EventReader) -> Result<u64, Error> {
        let source = self.agent.event_source();
        if let Some(after) = self.store.cursor(&reader.source(&source)).await? {
            return Ok(after);
        }
        // An earlier version had one cursor for both. From now on each has its own, whatever the other one reads.
        let after = self.store.cursor(&EventReader::Messages.source(&source)).await?.unwrap_or_default();
        self.store.set_cursor(&reader.source(&source), after).await?;
        Ok(after)
    }

    /// Takes one event. Returns whether it is one of a channel.
    async fn take(self: &Arc<Self>, event: &HostEvent) -> Result<bool, Error> {
        let Some(said) = inbound(event) else { return Ok(false) };
        self.take_inbound(event, said).await.map(|()| true)
    }

    async fn take_inbound(
        self: &Arc<Self>,
        event: &HostEvent,
        said: Result<InboundEvent, &'static str>,
    ) -> Result<(), Error> {
        let plugin = plugin(event);
        let of_plugin = |entry: &ChannelEntry| entry.action.split('.').next() == Some(plugin);
        let Some(entry) = self.entries().into_iter().find(of_plugin) else {
            tracing::info!(
                plugin,
                "an event for a channel is dropped: no entry of extensions.channels names its plugin"
            );
            return Ok(());
        };
        match said {
            Err(why) => {
                tracing::warn!(
                    channel = entry.name,
                    plugin,
                    why,
                    "an event of a channel is none, and is dropped"
                );
                Ok(())
            }
            Ok(InboundEvent::Closed) => {
                self.closed.lock().push(entry.name);
                self.wake_opener.notify_one();
                Ok(())
            }
            Ok(InboundEvent::Button { speaker, button }) => {
                self.press(&entry, &speaker, &button).await;
                Ok(())
            }
            Ok(InboundEvent::Unsupported { speaker, mentioned, what }) => {
                self.refuse(&entry, &speaker, mentioned, &what);
                Ok(())
            }
            Ok(InboundEvent::Message(message)) => self.hear(&entry, message, event.number).await,
        }
    }

    /// Takes a message: it is a command, answers a question that waits, or becomes a turn. A command is carried out once more if its event
    /// comes again, and in the same order.
    async fn hear(
        self: &Arc<Self>,
        entry: &ChannelEntry,
        message: InboundMessage,
        number: u64,
    ) -> Result<(), Error> {
        let setup = self.agent.setup();
        let speaker = &message.speaker;
        let routed = route(entry, &setup.settings.agent, speaker).and_then(|route| {
            let addressed = is_addressed(entry, speaker, &message.text, message.mentioned);
            addressed.then_some(route).ok_or(Drop::NotAddressed)
        });
        let route = match routed {
            Ok(route) => route,
            Err(dropped) => {
                let (channel, sender) = (&entry.name, &speaker.sender_id);
                let group = speaker.group_id.as_deref().unwrap_or_default();
                // Most of what is said in groups is between people.
                if dropped == Drop::NotAddressed {
                    tracing::debug!(channel, sender, group, "{}", dropped.why());
                } else {
                    tracing::info!(channel, sender, group, "a message is dropped: {}", dropped.why());
                }
                return Ok(());
            }
        };
        if message.files.is_empty()
            && let Some(command) = SessionCommand::parse(&message.text, message.mentioned, &entry.names)
        {
            self.carry_out(entry, &message, &route, command).await;
            return Ok(());
        }
        {
            let mut heard = self.heard.lock().await;
            heard.last = heard.last.max(number);
            let channel = &entry.name;
            if self.has_answered(channel, &message).await?
                || (message.files.is_empty() && self.take_answer(&route, channel, &message, number).await?)
            {
                heard.answered.push((channel.clone(), message.id));
                return Ok(());
            }
        }
        let (conversation, id) = (speaker.conversation.clone(), message.id.clone());
        if self.accept(&entry.name, message, route).await? == (AcceptOutcome::TooMany { is_first: true }) {
            self.say(&entry.name, &conversation, format!("full:{id}"), TOO_MANY.to_owned());
        }
        Ok(())
    }

    /// Has a text answer a question before its turn as a message comes, which may have to wait for the room that the answer makes.
    /// Returns whether it did.
    async fn answer_early(&self, event: &HostEvent) -> Result<bool, Error> {
        let heard = self.heard.lock().await;
        if event.number <= heard.last {
            return Ok(false);
        }
        let Some(Ok(InboundEvent::Message(message))) = inbound(event) else { return Ok(false) };
        let of_plugin = |entry: &ChannelEntry| entry.action.split('.').next() == Some(plugin(event));
        let Some(entry) = self.entries().into_iter().find(of_plugin) else { return Ok(false) };
        let (setup, speaker) = (self.agent.setup(), &message.speaker);
        let Ok(route) = route(&entry, &setup.settings.agent, speaker) else { return Ok(false) };
        let is_text = message.files.is_empty()
            && is_addressed(&entry, speaker, &message.text, message.mentioned)
            && SessionCommand::parse(&message.text, message.mentioned, &entry.names).is_none();
        // One whose turn came, although its event does not count as read yet.
        let is_asked = || {
            let lanes = self.lanes.lock();
            lanes.get(&route.owner).is_some_and(|lane| lane.has(&entry.name, &message.id))
        };
        if !is_text || is_asked() {
            return Ok(false);
        }
        let channel = &entry.name;
        Ok(self.has_answered(channel, &message).await?
            || self.take_answer(&route, channel, &message, event.number).await?)
    }

    /// Has a text answer the question that waits in its conversation. Returns whether it did. That it is going to is stored before: else a
    /// process that is killed in between would have the text answer, and then become a turn.
    async fn take_answer(
        &self,
        route: &Route,
        channel: &str,
        message: &InboundMessage,
        number: u64,
    ) -> Result<bool, Error> {
        let Some(question) = self.open_question(route, channel).await else { return Ok(false) };
        let answered = AnsweredQuestion { source: self.agent.event_source(), number, question };
        self.store.put_answered(channel, &message.id, &answered).await?;
        if self.answer_question(&answered.question, &message.text, route.speaker()).await {
            return Ok(true);
        }
        self.store.forget_answered(channel, &message.id).await?;
        Ok(false)
    }

    /// Whether a message has answered a question, before its turn came or before a process was killed.
    async fn has_answered(&self, channel: &str, message: &InboundMessage) -> Result<bool, Error> {
        let Some(answered) = self.store.answered(channel, &message.id).await? else { return Ok(false) };
        let question = self.agent.approvals.get(&answered.question).await;
        Ok(is_answered_with(question.as_ref(), &message.text))
    }

    /// Says of something that it is not passed on, to somebody who may speak there. Strangers get no answer, and groups none that is
    /// between people.
    fn refuse(self: &Arc<Self>, entry: &ChannelEntry, speaker: &MessageSource, mentioned: bool, what: &str) {
        let setup = self.agent.setup();
        let is_heard = route(entry, &setup.settings.agent, speaker).is_ok();
        if !is_heard || !is_addressed(entry, speaker, "", mentioned) {
            let (channel, sender) = (&entry.name, &speaker.sender_id);
            return tracing::debug!(channel, sender, "what a channel does not pass on is dropped");
        }
        let text = format!("This channel does not pass on {what}. Send a text, a photo or a file.");
        self.say(&entry.name, &speaker.conversation, format!("unsupported:{}", self.next_id()), text);
    }

    /// Sends a short text of our own, in the background. It is left out while too many are being sent.
    pub(super) fn say(self: &Arc<Self>, channel: &str, conversation: &str, id: String, text: String) {
        let Ok(place) = Arc::clone(&self.own_texts).try_acquire_owned() else {
            tracing::warn!(channel, id, "a short text of a channel is left out: too many are being sent");
            return;
        };
        let (this, channel, conversation) = (Arc::clone(self), channel.to_owned(), conversation.to_owned());
        self.tasks.spawn(async move {
            let _place = place;
            let said = OutboundText {
                channel: &channel,
                conversation: &conversation,
                id: &id,
                text: &text,
                buttons: &[],
            };
            this.deliver(said, None).await;
        });
    }
}

/// What somebody is told whose messages are too many.
const TOO_MANY: &str = "Too many of your messages wait for an answer, so this one is not worked on. Send it again when one is answered.";
