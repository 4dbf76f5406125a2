//! Runs one process step by step, for programs that test a plugin rather than use it.
//!
//! A [`Registry`] does start, handshake, connect and settings in one go. Here each of them is a separate
//! step, with the same launcher, the same jail and the same checks of the peer. Answers are returned as the
//! plugin sent them, undecoded.
//!
//! ```text
//! Prober ─start─► Probe ─handshake─► Handshake ─connect─► Wire ─call─► bytes
//!                   └ output, socket, end: what it printed, where it listens, what it leaves behind
//! ```

mod error;
mod raw_client;
mod stop;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use talon_sanitize::{Raw, Sanitized, sanitized};
use tokio::time::{Instant, timeout};

pub use self::error::{ProbeError, Stage};
pub use self::raw_client::{CallOptions, RawClient};
pub use self::stop::{StopMethod, StopOutcome};
use talon_plugin_client::handshake::{Address, Handshake};
use talon_plugin_config::spec::PluginSpec;

use crate::events::Events;
use crate::launch::{Launcher, StepwiseStart};
use crate::logs::{LogLine, LogSink, Stream};
use crate::registry::Registry;
use crate::settings::{Settings, SetupError};

/// How long killed processes may take to disappear. It is exceeded only on an extremely slow machine; the
/// processes' own tasks keep cleaning up.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts processes one by one.
pub struct Prober {
    launcher: Arc<Launcher>,
    settings: Arc<Settings>,
    /// Processes that were started and may still exist.
    started: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl Prober {
    /// A prober, and a registry on the same directories for services that plugins need, such as the state
    /// service.
    ///
    /// # Errors
    /// [`SetupError`], as for [`Registry::new`].
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
    /// [`ProbeError`] of [`Stage::Files`] or [`Stage::Jail`]; nothing was started.
    pub async fn start(&self, spec: &PluginSpec) -> Result<Probe, ProbeError> {
        // Events are for observers of a supervisor; a prober has none.
        let logs = LogSink::new(&spec.name, &self.settings, Events::new());
        let deadline = Instant::now() + spec.lifecycle.start_timeout;
        let alone = self.launcher.start_stepwise(spec, deadline, &logs).await?;
        let gone = alone.process().gone_signal().boxed();
        let mut started = self.started.lock();
        started.retain_mut(|gone| gone.now_or_never().is_none());
        started.push(gone);
        drop(started);
        Ok(Probe { launched: alone, logs, spec: spec.clone(), deadline })
    }

    /// Waits until all started processes are gone. Call it after every [`Probe`] was dropped.
    pub async fn wait_until_gone(&self) {
        let started = std::mem::take(&mut *self.started.lock());
        // The processes' own tasks clean up; waiting longer would not help.
        let _ = timeout(CLEANUP_TIMEOUT, join_all(started)).await;
    }
}

impl std::fmt::Debug for Prober {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prober").finish_non_exhaustive()
    }
}

/// A running process. Dropping it kills the process and all processes that it started.
pub struct Probe {
    launched: StepwiseStart,
    logs: LogSink,
    spec: PluginSpec,
    deadline: Instant,
}

/// The socket that a plugin listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListeningSocket {
    /// The inherited one.
    Inherited,
    /// Its own one, with these permissions.
    Bound {
        /// The lower nine bits of its mode.
        mode: u32,
    },
    /// A TCP port.
    Tcp,
    /// It cannot be inspected.
    Unknown,
}

impl Probe {
    /// Waits for the handshake line, until the start timeout.
    ///
    /// # Errors
    /// [`ProbeError`] with the step and what to do. The process is killed then.
    pub async fn handshake(&mut self) -> Result<Handshake, ProbeError> {
        Ok(self.launched.handshake(&self.spec, self.deadline).await?)
    }

    /// Whether it speaks the oldest protocol (`opentalon-v0`), so that it must be started behind its bridge.
    ///
    /// # Errors
    /// [`ProbeError`], as for [`Probe::connect`].
    pub async fn is_framed(&self, handshake: &Handshake) -> Result<bool, ProbeError> {
        Ok(self.launched.is_framed(&self.spec, handshake).await?)
    }

    /// Connects to the address of the handshake, after checking which process listens there.
    ///
    /// # Errors
    /// [`ProbeError`] of [`Stage::HandshakeLine`], [`Stage::Address`] or [`Stage::Serving`].
    pub async fn connect(&self, handshake: &Handshake) -> Result<RawClient, ProbeError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match timeout(left, self.launched.connect(&self.spec, handshake)).await {
            Ok(client) => Ok(RawClient::new(client?, &self.spec)),
            Err(_) => Err(ProbeError::timed_out("it was connected to", &self.spec)),
        }
    }

    /// Its output so far: the last lines (`log.ring_lines`), sanitized when they were read. The handshake
    /// line is not included.
    #[must_use]
    pub fn output(&self) -> Vec<LogLine> {
        let of_plugin = |line: &LogLine| line.stream != Stream::Supervisor;
        self.logs.tail().recent.into_iter().filter(of_plugin).collect()
    }

    /// The number of lines on standard output before the handshake line.
    #[must_use]
    pub fn stray_lines(&self) -> usize {
        self.launched.stray_lines()
    }

    /// The number of lines that were dropped by the rate limit.
    #[must_use]
    pub fn dropped_lines(&self) -> u64 {
        self.logs.dropped()
    }

    /// Its last line of output, for messages.
    #[must_use]
    pub fn last_line(&self) -> Option<Sanitized> {
        self.output().last().map(|line| Raw::from(line.text.as_str()).line_within(200))
    }

    /// The remaining time of its start timeout.
    #[must_use]
    pub fn remaining_start_time(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Waits until the program has exited and returns its exit status as text.
    pub async fn wait_for_exit(&self, within: Duration) -> Option<Sanitized> {
        let exit = timeout(within, self.launched.process().exited()).await.ok()?;
        Some(sanitized!("{}", exit))
    }

    /// The jail's report: which protections are enforced.
    #[must_use]
    pub fn report(&self) -> &talon_jail::Report {
        self.launched.report()
    }

    /// The socket it listens on.
    #[must_use]
    pub fn socket(&self, handshake: &Handshake) -> ListeningSocket {
        let path = match &handshake.address {
            Address::Tcp(_) => return ListeningSocket::Tcp,
            Address::Unix(path) => path,
        };
        let dir = self.launched.dir().sockets();
        if dir.listening().is_some() && *path == dir.listening_path() {
            return ListeningSocket::Inherited;
        }
        let opened = path.strip_prefix(dir.path()).ok().and_then(|below| dir.open(below).ok());
        let mode = opened.and_then(|fd| Some(std::fs::File::from(fd).metadata().ok()?.permissions().mode()));
        mode.map_or(ListeningSocket::Unknown, |mode| ListeningSocket::Bound { mode: mode & 0o777 })
    }

    /// Sends SIGTERM through its monitor, as a supervisor does.
    pub fn terminate(&self) {
        self.launched.process().terminate();
    }

    /// Sends SIGINT through its monitor, as a supervisor does.
    pub fn interrupt(&self) {
        self.launched.process().interrupt();
    }

    /// Kills all remaining processes and waits until they are gone; false after a timeout.
    pub async fn kill(self) -> bool {
        self.launched.process().kill_all();
        timeout(CLEANUP_TIMEOUT, self.launched.process().gone()).await.is_ok()
    }
}

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe").field("plugin", &self.spec.name).finish_non_exhaustive()
    }
}
