//! Starts and ends the log and the traces of a process.

use std::sync::OnceLock;

use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use crate::log::{self, FilterError, FlushGuard, Format, LineLayer, LogOutput, Writer};
use crate::traces::{self, TraceSettings};

/// The settings.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The format of lines and their destination.
    pub format: Format,
    /// The filter, unless [`FILTER_VARIABLE`](log::FILTER_VARIABLE) is set.
    pub level: String,
    /// Whether text is coloured.
    pub color: bool,
    /// The destination of traces, if any.
    pub traces: Option<TraceSettings>,
}

/// Why the log cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// The filter does not parse.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The writer thread or its socket could not be created.
    #[error(
        "cannot start the log: {0}; see whether a limit of processes or files (ulimit -u, -n) is reached"
    )]
    Thread(std::io::Error),
    /// Resources for traces could not be created.
    #[error("cannot start the traces: {0}; see whether a limit of files (ulimit -n) is reached")]
    Traces(std::io::Error),
    /// A log is already set up.
    #[error("the log is set up twice in one process")]
    AlreadyInitialized,
}

/// Dropping this writes the remaining log lines, for at most a second, and sends the remaining spans, for at
/// most two.
#[must_use = "what is still queued is lost without it"]
pub struct TelemetryGuard {
    // Dropped before the log, because it logs what is lost.
    _traces: Option<traces::FlushGuard>,
    _log: FlushGuard,
}

/// A handle on the running log of this process.
#[derive(Clone)]
pub struct LogHandle {
    filter: reload::Handle<EnvFilter, Registry>,
}

static HANDLE: OnceLock<LogHandle> = OnceLock::new();

/// The log of this process, after [`init`].
#[must_use]
pub fn handle() -> Option<&'static LogHandle> {
    HANDLE.get()
}

impl LogHandle {
    /// Replaces the `log.level` filter. [`FILTER_VARIABLE`](log::FILTER_VARIABLE) still takes precedence.
    ///
    /// # Errors
    /// The filter is invalid; the current one stays.
    pub fn set_level(&self, configured: &str) -> Result<(), TelemetryError> {
        let filter = log::filter(configured)?;
        // Fails only if the subscriber is gone, and the global one never is.
        let _ = self.filter.reload(filter);
        Ok(())
    }
}

impl std::fmt::Debug for LogHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

/// Starts the log of this process, and its traces if they have a destination.
///
/// # Errors
/// [`TelemetryError`]; nothing is set up then.
pub fn init(settings: &Settings) -> Result<TelemetryGuard, TelemetryError> {
    let (filter, handle) = reload::Layer::new(log::filter(&settings.level)?);
    let outlet = LogOutput::for_format(settings.format, settings.color).map_err(TelemetryError::Thread)?;
    let (writer, flush) = log::start(outlet).map_err(TelemetryError::Thread)?;
    let lines = lines(settings, writer).with_filter(filter);
    let traced = settings.traces.as_ref().map(traces::layer).transpose().map_err(TelemetryError::Traces)?;
    let (spans, traces) = traced.unzip();
    tracing_subscriber::registry()
        .with(lines)
        .with(spans)
        .try_init()
        .map_err(|_| TelemetryError::AlreadyInitialized)?;
    let _ = HANDLE.set(LogHandle { filter: handle });
    talon_log::panic::log_panics();
    Ok(TelemetryGuard { _traces: traces, _log: flush })
}

fn lines(settings: &Settings, writer: Writer) -> Box<dyn Layer<Registry> + Send + Sync> {
    match settings.format {
        Format::Text => tracing_subscriber::fmt::layer()
            .with_timer(SystemTime)
            .with_ansi(settings.color)
            .with_writer(writer)
            // It would report its own write errors with eprintln!, which panics when stderr is closed.
            .log_internal_errors(false)
            .boxed(),
        Format::Json | Format::Journald => LineLayer::new(writer).boxed(),
    }
}
