//! What all parts of the channels share.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use talon_extensions::ChannelEntry;
use talon_extensions::contract::ChannelFeature;
use talon_store::Error;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use ulid::{Generator, Ulid};

use super::event_reader::EventReader;
use super::fetch_places::FetchPlaces;
use super::inbound::InboundMessage;
use super::lane::Lane;
use super::pending::PendingMessage;
use super::routing::Route;
use super::store::ChannelStore;
use crate::agent::Agent;
use crate::hooks::RoleHost;

/// The most short texts of our own that are being sent at once. 64: a channel that does not take them cannot fill the memory.
const MAX_OWN_TEXTS: usize = 64;

/// The channels of a running agent.
pub(crate) struct Channels {
    pub(super) agent: Arc<Agent>,
    pub(super) host: Arc<dyn RoleHost>,
    pub(super) store: ChannelStore,
    pub(super) ending: CancellationToken,
    /// The messages of each sender or group that wait.
    pub(super) lanes: Mutex<HashMap<String, Lane>>,
    /// A message was answered.
    pub(super) room: Notify,
    pub(super) tasks: TaskTracker,
    /// Channels whose plugin has started.
    pub(super) closed: Mutex<Vec<String>>,
    pub(super) wake_opener: Notify,
    /// What each channel can that was opened, by its name.
    pub(super) features: Mutex<HashMap<String, Vec<ChannelFeature>>>,
    /// For short texts of our own that are being sent.
    pub(super) own_texts: Arc<Semaphore>,
    /// For messages whose files are being fetched.
    pub(super) fetching: FetchPlaces,
    /// Locked while a text is compared with what waits for one.
    pub(super) heard: tokio::sync::Mutex<HeardMessages>,
    ids: Mutex<Generator>,
}

/// How far the messages are read.
#[derive(Debug, Default)]
pub(super) struct HeardMessages {
    /// The number of the last one whose turn came, in the supervisor's log.
    pub(super) last: u64,
    /// Channel and event of those that answered a question in the place of a turn, until their events count as read.
    pub(super) answered: Vec<(String, String)>,
}

/// What became of a message that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcceptOutcome {
    /// It has a row, and is worked on.
    Accepted,
    /// Too many of its conversation wait. `is_first` says that nobody was told since there was room.
    TooMany { is_first: bool },
    /// It is there already.
    Known,
}

impl Channels {
    pub(crate) fn new(agent: Arc<Agent>, ending: CancellationToken) -> Arc<Self> {
        let (host, store) = (agent.role_host(), ChannelStore::new(agent.store.key_values()));
        Arc::new(Self {
            agent,
            host,
            store,
            ending,
            lanes: Mutex::default(),
            room: Notify::new(),
            tasks: TaskTracker::new(),
            closed: Mutex::default(),
            wake_opener: Notify::new(),
            features: Mutex::default(),
            own_texts: Arc::new(Semaphore::new(MAX_OWN_TEXTS)),
            fetching: FetchPlaces::default(),
            heard: tokio::sync::Mutex::default(),
            ids: Mutex::new(Generator::new()),
        })
    }

    /// Serves all channels until the agent ends, and what is under way with it.
    pub(crate) async fn run(self: Arc<Self>) {
        self.tasks.spawn(Arc::clone(&self).keep_open());
        if self.load().await {
            let messages = Arc::clone(&self).follow(EventReader::Messages);
            let buttons = Arc::clone(&self).follow(EventReader::Buttons);
            tokio::join!(messages, buttons);
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The configuration of all channels as of now.
    pub(super) fn entries(&self) -> Vec<ChannelEntry> {
        self.agent.setup().environment.hooks.extensions().channels.clone()
    }

    /// The configuration of a channel as of now.
    pub(super) fn entry(&self, channel: &str) -> Option<ChannelEntry> {
        self.agent.setup().environment.hooks.extensions().channel(channel).cloned()
    }

    /// Whether a channel that was opened can something beside sending texts.
    pub(super) fn supports(&self, channel: &str, feature: ChannelFeature) -> bool {
        self.features.lock().get(channel).is_some_and(|features| features.contains(&feature))
    }

    /// Works on a new message, once it has a row. Waits while there are as many of all channels as there may be: further events wait in
    /// the supervisor's log, and their plugins are told to wait.
    pub(super) async fn accept(
        self: &Arc<Self>,
        channel: &str,
        message: InboundMessage,
        route: Route,
    ) -> Result<AcceptOutcome, Error> {
        let limits = self.agent.setup().settings.agent.limits;
        let most = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        while self.lanes.lock().values().map(Lane::len).sum::<usize>() >= most(limits.channel_messages) {
            let room = self.room.notified();
            tokio::select! {
                () = room => {}
                () = self.ending.cancelled() => return Err(Error::Closed),
            }
        }
        {
            let mut lanes = self.lanes.lock();
            if let Some(lane) = lanes.get_mut(&route.owner) {
                if lane.has(channel, &message.id) {
                    return Ok(AcceptOutcome::Known);
                }
                if lane.len() >= most(limits.channel_messages_per_sender) {
                    return Ok(AcceptOutcome::TooMany { is_first: lane.say_full() });
                }
            }
        }
        let pending = PendingMessage::new(self.next_id(), channel, message, route);
        self.store.put(&pending).await?;
        self.work_on(pending);
        Ok(AcceptOutcome::Accepted)
    }

    /// Works on all messages that were left. Returns whether the agent goes on.
    async fn load(self: &Arc<Self>) -> bool {
        loop {
            match self.store.messages().await {
                Ok(messages) => {
                    messages.into_iter().for_each(|message| self.work_on(message));
                    return true;
                }
                Err(error) => {
                    let error = talon_error_chain::error_chain(&error);
                    tracing::error!(error, "the messages of channels that are not answered cannot be read");
                    if !self.pause().await {
                        return false;
                    }
                }
            }
        }
    }

    /// Waits a moment after the store or the supervisor refused something. `false` if the agent ends.
    pub(super) async fn pause(&self) -> bool {
        /// It is not asked as fast as it can refuse.
        const PAUSE: std::time::Duration = std::time::Duration::from_secs(5);
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => true,
            () = self.ending.cancelled() => false,
        }
    }

    /// An id after all earlier ones of this process.
    pub(super) fn next_id(&self) -> String {
        // It fails once in 2^80 ids of a millisecond.
        self.ids.lock().generate().unwrap_or_else(|_| Ulid::generate()).to_string()
    }
}
