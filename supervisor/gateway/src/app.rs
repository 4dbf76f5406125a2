//! What all routes share.

use std::ops::Deref;
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

/// The state of the router. Cheap to clone: each layer has one of its own for each request.
#[derive(Clone)]
pub struct App(Arc<AppParts>);

/// What the state consists of.
pub struct AppParts {
    /// Host and agent.
    pub backends: Backends,
    settings: ArcSwap<Settings>,
    pub(crate) credentials: Arc<dyn Authenticate>,
    pub(crate) rates: Rates,
    /// WebSocket connections, counted.
    pub(crate) sockets: SocketCounters,
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
        Self(Arc::new(AppParts {
            backends,
            settings: ArcSwap::from_pointee(settings),
            credentials,
            rates: Rates::default(),
            sockets: SocketCounters::default(),
            background_turns: BackgroundTurns::default(),
            config_updates: ConfigUpdates::default(),
            task_updates: TaskUpdates::default(),
            revocations: Revocations::default(),
            ending,
        }))
    }
}

impl Deref for App {
    type Target = AppParts;

    fn deref(&self) -> &AppParts {
        &self.0
    }
}

impl AppParts {
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
