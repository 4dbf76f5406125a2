//! The output of plugins: kept in memory, sent to live listeners, written to a file, and passed to the
//! supervisor's log.
//!
//! ```text
//! stdout, stderr, GRPCStdio ─► rate ─► ring of the last lines ─► live listeners
//!                                   ├► <log_dir>/<plugin>.log, by its own task
//!                                   └► tracing, target "plugin"; for the agent's process "agent"
//! ```
//!
//! Nothing here waits for a reader: a slow one loses lines, and lost lines are counted.

mod file;
mod line;
mod rate;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use parking_lot::Mutex;
use talon_plugin_config::name::PluginName;
use talon_sanitize::{Raw, Sanitized, sanitized};
use tokio::sync::broadcast;
use tokio::time::Instant;

use self::file::FileLog;
pub use self::line::{Level, LogLine, Stream};
use self::rate::{RateLimiter, Verdict};
use crate::events::{EventKind, Events, NewEvent};
use crate::settings::Settings;

/// How many lines a live listener may lag behind before it loses the oldest ones.
const LIVE_LINES: usize = 256;

/// The memory limit for the kept lines of one plugin, whatever their number: 4 MiB.
const RING_BYTES: usize = 4 << 20;

/// The name of the agent's process, which is logged like a plugin.
const AGENT: &str = "talon-agent";

/// The kept lines of a plugin, and a channel for new ones. No line is missing or duplicated between them.
#[derive(Debug)]
pub struct LogTail {
    /// The last lines, oldest first.
    pub recent: Vec<LogLine>,
    /// New lines. A listener that lags gets `RecvError::Lagged` with the number of lost lines.
    pub live: broadcast::Receiver<LogLine>,
}

/// The log of one plugin. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LogSink {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    plugin: PluginName,
    events: Events,
    line_bytes: usize,
    ring_lines: usize,
    buffer: Mutex<LogBuffer>,
    /// Created for the first listener: a channel allocates all its slots, and few plugins ever have a
    /// listener.
    live: OnceLock<broadcast::Sender<LogLine>>,
    file: Option<FileLog>,
    /// Lines that the plugin logged, including dropped ones.
    lines: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug)]
struct LogBuffer {
    lines: VecDeque<LogLine>,
    bytes: usize,
    rate: RateLimiter,
}

impl LogSink {
    /// The log of one plugin. A task writes the file, so without a tokio runtime there is no file.
    #[must_use]
    pub fn new(plugin: &PluginName, settings: &Settings, events: Events) -> Self {
        let limits = settings.log_limits;
        let file = settings.log_dir.as_deref().and_then(|dir| FileLog::start(dir, plugin, limits));
        let rate = RateLimiter::new(limits.lines_per_second, limits.burst_lines, Instant::now());
        Self {
            inner: Arc::new(Inner {
                plugin: plugin.clone(),
                events,
                line_bytes: limits.line_bytes.max(1),
                ring_lines: limits.ring_lines.max(1),
                buffer: Mutex::new(LogBuffer { lines: VecDeque::new(), bytes: 0, rate }),
                live: OnceLock::new(),
                file,
                lines: AtomicU64::new(0),
                dropped: AtomicU64::new(0),
            }),
        }
    }

    /// The longest line, in bytes.
    pub(crate) fn line_bytes(&self) -> usize {
        self.inner.line_bytes
    }

    /// The kept lines, and a channel for new ones.
    #[must_use]
    pub fn tail(&self) -> LogTail {
        // Lines are also sent under this lock, so none is missing or duplicated.
        let kept = self.inner.buffer.lock();
        let live = self.inner.live.get_or_init(|| broadcast::Sender::new(LIVE_LINES));
        LogTail { recent: kept.lines.iter().cloned().collect(), live: live.subscribe() }
    }

    /// The number of lines that the plugin logged, including dropped ones.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.inner.lines.load(Ordering::Relaxed)
    }

    /// The number of dropped lines: the plugin exceeded its rate, or its file was too slow.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.inner.dropped.load(Ordering::Relaxed) + self.inner.file.as_ref().map_or(0, FileLog::lost)
    }

    /// Waits until all lines so far are in the file, if there is one.
    pub async fn flush(&self) {
        if let Some(file) = &self.inner.file {
            file.flush().await;
        }
    }

    /// Logs a line of the plugin with this length. Returns false if it was dropped by the rate limit. `read`
    /// returns the level and the sanitized text. It is called only for lines that are not dropped, so a flood
    /// costs very little.
    pub(crate) fn line(
        &self,
        instance: u32,
        stream: Stream,
        bytes: usize,
        read: impl FnOnce() -> (Level, Sanitized),
    ) -> bool {
        self.inner.lines.fetch_add(1, Ordering::Relaxed);
        let verdict = self.inner.buffer.lock().rate.take(Instant::now(), bytes);
        if verdict == Verdict::Drop {
            self.inner.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let (level, text) = read();
        let mut kept = self.inner.buffer.lock();
        if let Verdict::PassAndReport { dropped } = verdict {
            self.append_drop_report(&mut kept, instance, dropped);
        }
        self.append(&mut kept, instance, stream, level, text);
        true
    }

    /// Logs a note of the supervisor. It is never dropped, because there are few of them. It may quote the
    /// plugin, so it is sanitized here.
    pub(crate) fn note(&self, instance: u32, level: Level, text: impl Into<Raw<'static>>) {
        let text = text.into().line_within(self.inner.line_bytes);
        self.append(&mut self.inner.buffer.lock(), instance, Stream::Supervisor, level, text);
    }

    /// Logs the number of dropped lines that was not reported yet. Called at the end of a stream.
    pub(crate) fn report_dropped(&self, instance: u32) {
        let mut kept = self.inner.buffer.lock();
        if let Some(dropped) = kept.rate.take_dropped() {
            self.append_drop_report(&mut kept, instance, dropped);
        }
    }

    fn append_drop_report(&self, kept: &mut LogBuffer, instance: u32, dropped: u64) {
        let text =
            sanitized!("{} lines dropped: the plugin logs faster than log.lines_per_second allows", dropped);
        self.inner.events.emit(
            NewEvent::new(EventKind::LogLinesDropped, text.clone())
                .plugin(&self.inner.plugin)
                .instance(instance)
                .field("dropped", dropped),
        );
        self.append(kept, instance, Stream::Supervisor, Level::Warn, text);
    }

    fn append(&self, kept: &mut LogBuffer, instance: u32, stream: Stream, level: Level, text: Sanitized) {
        let line = LogLine {
            at: SystemTime::now(),
            plugin: self.inner.plugin.clone(),
            instance,
            level,
            stream,
            text,
        };
        forward_to_tracing(&line);
        if let Some(file) = &self.inner.file {
            file.write(&line);
        }
        // An error only means that there are no listeners.
        if let Some(live) = self.inner.live.get().filter(|live| live.receiver_count() > 0) {
            let _ = live.send(line.clone());
        }
        kept.bytes += line.text.len();
        kept.lines.push_back(line);
        while kept.lines.len() > self.inner.ring_lines || kept.bytes > RING_BYTES {
            let Some(oldest) = kept.lines.pop_front() else { break };
            kept.bytes -= oldest.text.len();
        }
    }
}

/// Passes a line to the supervisor's log. The agent has its own target, so that `agent=debug` does not enable
/// debug lines of every plugin.
fn forward_to_tracing(line: &LogLine) {
    macro_rules! at {
        ($target:literal, $level:ident) => {
            tracing::event!(
                target: $target,
                tracing::Level::$level,
                plugin = %line.plugin,
                instance = line.instance,
                stream = line.stream.as_str(),
                "{}",
                line.text
            )
        };
    }
    macro_rules! of {
        ($target:literal) => {
            match line.level {
                Level::Trace => at!($target, TRACE),
                Level::Debug => at!($target, DEBUG),
                Level::Info => at!($target, INFO),
                Level::Warn => at!($target, WARN),
                Level::Error => at!($target, ERROR),
            }
        };
    }
    // No plugin can have this name.
    if line.plugin.as_str() == AGENT { of!("agent") } else { of!("plugin") }
}

#[cfg(test)]
mod tests;
