//! What all routes share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;

use crate::backends::Backends;
use crate::background::BackgroundTurns;
use crate::config_updates::ConfigUpdates;
use crate::identity::{Authenticate, Rates, Revocations};
use crate::settings::Settings;
use crate::socket_counters::SocketCounters;
use crate::task_updates::TaskUpdates;

/// The state of the router. Cheap to clone.
#[derive(Clone)]
pub struct App {
    /// Host and agent.
    pub backends: Backends,
    settings: Arc<ArcSwap<Settings>>,
    pub(crate) credentials: Arc<dyn Authenticate>,
    pub(crate) rates: Arc<Rates>,
    /// WebSocket connections, counted.
    pub(crate) sockets: Arc<SocketCounters>,
    /// Places of turns that nobody waits for.
    pub(crate) background_turns: BackgroundTurns,
    /// Changes of the configuration.
    pub(crate) config_updates: ConfigUpdates,
    /// Runs of jobs.
    pub(crate) task_updates: TaskUpdates,
    /// What is open for long (WebSocket, SSE) watches its caller's credential here.
    pub revocations: Revocations,
    ending: CancellationToken,
}

impl App {
    /// `credentials` says whom a token or a browser session stands for; `ending` is cancelled when the process ends.
    #[must_use]
    pub fn new(
        settings: Settings,
        backends: Backends,
        credentials: Arc<dyn Authenticate>,
        ending: CancellationToken,
    ) -> Self {
        Self {
            backends,
            settings: Arc::new(ArcSwap::from_pointee(settings)),
            credentials,
            rates: Arc::default(),
            sockets: Arc::default(),
            background_turns: BackgroundTurns::default(),
            config_updates: ConfigUpdates::default(),
            task_updates: TaskUpdates::default(),
            revocations: Revocations::default(),
            ending,
        }
    }

    /// The settings as of now. A request keeps those that it began with.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Replaces the settings for requests and connections to come.
    pub fn set_settings(&self, settings: Settings) {
        self.settings.store(Arc::new(settings));
    }

    /// Cancelled when the process ends: streams close then (WebSocket: 1012), and their clients connect anew.
    #[must_use]
    pub fn ending(&self) -> CancellationToken {
        self.ending.clone()
    }
}
