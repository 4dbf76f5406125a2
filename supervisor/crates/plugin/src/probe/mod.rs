//! One process, step by step and from outside: for programs that judge a plugin rather than use it.
//!
//! What a [`Registry`] does in one go (start, handshake, connect, settings) is here a step each, by the same launcher, in
//! the same jail, with the same checks of who is at the other end. What comes back is what the plugin sent, unread.
//!
//! ```text
//! Prober ─start─► Probe ─handshake─► Handshake ─connect─► Wire ─call─► bytes
//!                   └ output, socket, end: what it printed, where it listens, what it leaves behind
//! ```

mod end;
mod problem;
mod wire;

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use talon_sanitize::{Raw, Sanitized, inert};
use tokio::time::{Instant, timeout};

pub use self::end::{Asked, End};
pub use self::problem::{Problem, Stage};
pub use self::wire::{Call, Wire};
use crate::events::Events;
use crate::handshake::{Address, Handshake};
use crate::launch::{Alone, Launcher};
use crate::logs::{LogLine, LogSink, Stream};
use crate::registry::Registry;
use crate::settings::{Settings, SetupError};
use crate::spec::PluginSpec;

/// How long what was killed may take to be gone. It passes only on a machine that hardly moves; the processes' own tasks
/// then go on.
const CLEARING: Duration = Duration::from_secs(10);

/// Starts processes one by one.
pub struct Prober {
    launcher: Arc<Launcher>,
    settings: Arc<Settings>,
    /// What was started and may not be gone.
    started: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl Prober {
    /// A prober, and a registry on the same directories for services that plugins need: what keeps their state.
    ///
    /// # Errors
    /// [`SetupError`], as of [`Registry::new`].
    pub fn new(
        settings: Settings,
        stage: Arc<talon_jail::Stage>,
        events: Events,
    ) -> Result<(Self, Registry), SetupError> {
        let settings = Arc::new(settings);
        let launcher = Arc::new(Launcher::new(settings.clone(), stage)?);
        let registry = Registry::with_launcher(settings.clone(), launcher.clone(), events);
        Ok((Self { launcher, settings, started: Mutex::default() }, registry))
    }

    /// Starts a plugin's program. Its start timeout begins now.
    ///
    /// # Errors
    /// [`Problem`] of [`Stage::Files`] or [`Stage::Jail`]: nothing was started.
    pub async fn start(&self, spec: &PluginSpec) -> Result<Probe, Problem> {
        // Events are for who watches a supervisor; here nobody does.
        let logs = LogSink::new(&spec.name, &self.settings, Events::new());
        let deadline = Instant::now() + spec.lifecycle.start_timeout;
        let alone = self.launcher.start_alone(spec, deadline, &logs).await?;
        let gone = alone.process().gone_signal().boxed();
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.retain_mut(|gone| gone.now_or_never().is_none());
        started.push(gone);
        drop(started);
        Ok(Probe { alone, logs, spec: spec.clone(), deadline })
    }

    /// Waits until nothing is left of what was started. For once every [`Probe`] was dropped.
    pub async fn cleared(&self) {
        let started = std::mem::take(&mut *self.started.lock().unwrap_or_else(PoisonError::into_inner));
        // The processes' own tasks clear up; who waits longer learns nothing more.
        let _ = timeout(CLEARING, join_all(started)).await;
    }
}

impl std::fmt::Debug for Prober {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prober").finish_non_exhaustive()
    }
}

/// A process that runs. Dropping it kills the process and all it started.
pub struct Probe {
    alone: Alone,
    logs: LogSink,
    spec: PluginSpec,
    deadline: Instant,
}

/// The socket that a plugin listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Socket {
    /// The one that it was handed.
    Handed,
    /// One of its own, with these permissions.
    Own {
        /// The lower nine bits of its mode.
        mode: u32,
    },
    /// A TCP port.
    Tcp,
    /// It cannot be looked at.
    Unknown,
}

impl Probe {
    /// Waits for the handshake line, as long as the start timeout lasts.
    ///
    /// # Errors
    /// [`Problem`] says which step it was and what to do. The process is killed then.
    pub async fn handshake(&mut self) -> Result<Handshake, Problem> {
        Ok(self.alone.handshake(&self.spec, self.deadline).await?)
    }

    /// Whether it speaks the oldest protocol (`opentalon-v0`), so that it has to be started behind its bridge.
    ///
    /// # Errors
    /// [`Problem`], as of [`Probe::connect`].
    pub async fn is_framed(&self, handshake: &Handshake) -> Result<bool, Problem> {
        Ok(self.alone.is_framed(&self.spec, handshake).await?)
    }

    /// Connects to the address of the handshake, once it is certain who is there.
    ///
    /// # Errors
    /// [`Problem`] of [`Stage::Line`], [`Stage::Address`] or [`Stage::Serves`].
    pub async fn connect(&self, handshake: &Handshake) -> Result<Wire, Problem> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match timeout(left, self.alone.connect(&self.spec, handshake)).await {
            Ok(client) => Ok(Wire::new(client?, &self.spec)),
            Err(_) => Err(Problem::late("it was connected to", &self.spec)),
        }
    }

    /// What it printed so far: its last lines (`log.ring_lines`), sanitized as they were read. The handshake line is not among them.
    #[must_use]
    pub fn output(&self) -> Vec<LogLine> {
        let of_plugin = |line: &LogLine| line.stream != Stream::Supervisor;
        self.logs.tail().recent.into_iter().filter(of_plugin).collect()
    }

    /// How many lines came on standard output before the handshake line.
    #[must_use]
    pub fn stray_lines(&self) -> usize {
        self.alone.stray_lines()
    }

    /// How many of its lines were dropped because there were too many.
    #[must_use]
    pub fn dropped_lines(&self) -> u64 {
        self.logs.dropped()
    }

    /// What it said last, for a message.
    #[must_use]
    pub fn last_words(&self) -> Option<Sanitized> {
        self.output().last().map(|line| Raw::from(line.text.as_str()).line_within(200))
    }

    /// The time that is left of its start.
    #[must_use]
    pub fn start_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Waits until the program has ended; says how.
    pub async fn exited(&self, within: Duration) -> Option<Sanitized> {
        let exit = timeout(within, self.alone.process().exited()).await.ok()?;
        Some(inert!("{}", exit))
    }

    /// Which protections hold.
    #[must_use]
    pub fn report(&self) -> &talon_jail::Report {
        self.alone.report()
    }

    /// What it listens on.
    #[must_use]
    pub fn socket(&self, handshake: &Handshake) -> Socket {
        let path = match &handshake.address {
            Address::Tcp(_) => return Socket::Tcp,
            Address::Unix(path) => path,
        };
        let dir = self.alone.dir();
        if dir.listening().is_some() && *path == dir.listening_path() {
            return Socket::Handed;
        }
        let opened = path.strip_prefix(dir.path()).ok().and_then(|below| dir.open(below).ok());
        let mode = opened.and_then(|fd| Some(std::fs::File::from(fd).metadata().ok()?.permissions().mode()));
        mode.map_or(Socket::Unknown, |mode| Socket::Own { mode: mode & 0o777 })
    }

    /// SIGTERM, through its monitor, as a supervisor sends it.
    pub fn terminate(&self) {
        self.alone.process().terminate();
    }

    /// SIGINT, through its monitor, as a supervisor sends it.
    pub fn interrupt(&self) {
        self.alone.process().interrupt();
    }

    /// Kills what is left and waits until it is gone; false if it takes too long.
    pub async fn kill(self) -> bool {
        self.alone.process().kill_all();
        timeout(CLEARING, self.alone.process().gone()).await.is_ok()
    }
}

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe").field("plugin", &self.spec.name).finish_non_exhaustive()
    }
}
