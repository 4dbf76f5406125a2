//! The latest calls, for an operator who looks at them: in memory alone, and bounded.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use talon_guard::{ArcById, Call, Guarded, LayerTimings};

use super::call_id::requested_id;

/// How many calls are kept: what a person looks through. The oldest make room; those that still run stay.
pub const KEPT_CALLS: usize = 1000;
/// The longest arguments of a call that are kept, in bytes: as much as a page shows. Of longer ones nothing is kept.
const MAX_ARGUMENT_BYTES: usize = 32 << 10;
/// The most that all kept arguments take, in bytes: 4 MiB. Beyond it the oldest go.
const MAX_ARGUMENTS_BYTES: usize = 4 << 20;
/// For how long after a look each call's way through the layers is measured, which takes some microseconds a call.
const WATCHED_FOR: Duration = Duration::from_secs(60);
/// The most that is kept of texts that callers choose, in bytes.
const MAX_TEXT_BYTES: usize = 128;

/// What is known of a call when it comes in.
pub(super) struct NewCall<'c> {
    pub(super) call: &'c Call,
    pub(super) subject: String,
    pub(super) session: &'c str,
    pub(super) trace_id: String,
    /// As one JSON object; `None` if the guard keeps no answers.
    pub(super) arguments: Option<String>,
    /// Whether its way through the layers is measured, also if nobody looks at calls.
    pub(super) measured: bool,
}

/// A call of the log.
#[derive(Debug)]
pub struct LoggedCall {
    /// The id of the call in the audit log and in events.
    pub id: Arc<str>,
    /// The requested plugin, whether it exists or not.
    pub plugin: String,
    /// The requested action.
    pub action: String,
    /// `person`, `model`, `program` or `system`.
    pub origin: &'static str,
    /// The role that the action plays; empty if none.
    pub role: &'static str,
    /// For whom it is.
    pub subject: String,
    /// The caller's session; empty if it named none.
    pub session: String,
    /// Empty if it belongs to no trace.
    pub trace_id: String,
    /// When it came in.
    pub at: SystemTime,
    /// When each layer was passed, if somebody looked at calls then.
    pub timings: Option<ArcById<LayerTimings>>,
    began: Instant,
    arguments: Mutex<Option<String>>,
    end: OnceLock<CallEnd>,
}

/// How a call ended.
#[derive(Debug, Clone, Default)]
pub struct CallEnd {
    /// `ok`, `tool_error`, `refused`, `host_fault` or `cancelled`.
    pub outcome: &'static str,
    /// A reason of the guard; empty if it succeeded.
    pub reason: &'static str,
    /// From request to answer.
    pub duration: Duration,
    /// How often control syntax was neutralized.
    pub neutralised: u32,
    /// Whether a size limit left something out.
    pub truncated: bool,
    /// Whether the arguments carry what other plugins answered.
    pub tainted: bool,
}

impl CallEnd {
    pub(super) fn of(answer: &Guarded, duration: Duration) -> Self {
        let (outcome, report) = (answer.outcome(), answer.report());
        Self {
            outcome: outcome.as_str(),
            reason: outcome.reason(),
            duration,
            neutralised: report.neutralised.values().sum(),
            truncated: report.truncated(),
            tainted: !report.tainted_by.is_empty(),
        }
    }
}

impl LoggedCall {
    /// How it ended; `None` while it runs.
    #[must_use]
    pub fn end(&self) -> Option<&CallEnd> {
        self.end.get()
    }

    /// How long it took, or has run until now.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.end.get().map_or_else(|| self.began.elapsed(), |end| end.duration)
    }

    /// The arguments as one JSON object, if they are still kept.
    #[must_use]
    pub fn arguments(&self) -> Option<String> {
        self.arguments.lock().clone()
    }
}

/// A call in flight; without an answer it counts as cancelled.
pub(super) struct RunningCall(Arc<LoggedCall>);

impl RunningCall {
    pub(super) fn finish(self, answer: &Guarded) -> Arc<LoggedCall> {
        // Nothing else ends it.
        let _ = self.0.end.set(CallEnd::of(answer, self.0.began.elapsed()));
        Arc::clone(&self.0)
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.0.end.get_or_init(|| CallEnd {
            outcome: "cancelled",
            reason: "",
            duration: self.0.began.elapsed(),
            ..CallEnd::default()
        });
    }
}

/// The latest calls.
#[derive(Debug)]
pub struct CallLog {
    kept: Mutex<CallStore>,
    epoch: Instant,
    /// Until when calls are measured, in milliseconds since the epoch.
    watched_until: AtomicU64,
}

#[derive(Debug, Default)]
struct CallStore {
    /// Oldest first.
    latest: VecDeque<Arc<LoggedCall>>,
    /// Those that made room and still run. The guard bounds how many there are.
    running: Vec<Arc<LoggedCall>>,
    argument_bytes: usize,
}

impl Default for CallLog {
    fn default() -> Self {
        Self { kept: Mutex::default(), epoch: Instant::now(), watched_until: AtomicU64::new(0) }
    }
}

impl CallLog {
    /// The newest calls first, at most this many, and only of one plugin if it is given.
    #[must_use]
    pub fn latest(&self, limit: usize, plugin: Option<&str>) -> Vec<Arc<LoggedCall>> {
        self.watch();
        let kept = self.kept.lock();
        let older = kept.running.iter().rev().filter(|call| call.end().is_none());
        let wanted = |call: &&Arc<LoggedCall>| plugin.is_none_or(|plugin| call.plugin == plugin);
        kept.latest.iter().rev().chain(older).filter(wanted).take(limit).cloned().collect()
    }

    /// A call by its id, or else the newest one with this id of its caller's choice.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Arc<LoggedCall>> {
        self.watch();
        let kept = self.kept.lock();
        let newest = || kept.latest.iter().rev().chain(&kept.running);
        newest()
            .find(|call| *call.id == *id)
            .or_else(|| newest().find(|call| requested_id(&call.id) == id))
            .cloned()
    }

    fn watch(&self) {
        let until = self.epoch.elapsed().saturating_add(WATCHED_FOR).as_millis();
        self.watched_until.store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn is_watched(&self) -> bool {
        let until = self.watched_until.load(Ordering::Relaxed);
        until > 0 && self.epoch.elapsed() < Duration::from_millis(until)
    }

    /// Notes a call that comes in.
    pub(super) fn begin(&self, new: NewCall<'_>) -> (RunningCall, Option<ArcById<LayerTimings>>) {
        let NewCall { call, subject, session, trace_id, arguments, measured } = new;
        let timings = (measured || self.is_watched()).then(|| ArcById::new(Arc::new(LayerTimings::new())));
        let logged = Arc::new(LoggedCall {
            id: Arc::clone(&call.id),
            plugin: cut(&call.plugin).to_owned(),
            action: cut(&call.action).to_owned(),
            origin: call.origin.as_str(),
            role: call.role.unwrap_or_default(),
            subject: cut(&subject).to_owned(),
            session: cut(session).to_owned(),
            trace_id,
            at: SystemTime::now(),
            timings: timings.clone(),
            began: Instant::now(),
            arguments: Mutex::new(arguments.filter(|arguments| arguments.len() <= MAX_ARGUMENT_BYTES)),
            end: OnceLock::new(),
        });
        self.kept.lock().add(Arc::clone(&logged));
        (RunningCall(logged), timings)
    }
}

impl CallStore {
    fn add(&mut self, call: Arc<LoggedCall>) {
        self.argument_bytes += call.arguments.lock().as_ref().map_or(0, String::len);
        self.latest.push_back(call);
        while self.latest.len() > KEPT_CALLS {
            let Some(oldest) = self.latest.pop_front() else { break };
            self.forget_arguments(&oldest);
            if oldest.end().is_none() {
                self.running.retain(|call| call.end().is_none());
                self.running.push(oldest);
            }
        }
        if self.argument_bytes > MAX_ARGUMENTS_BYTES {
            for at in 0..self.latest.len() {
                let call = Arc::clone(&self.latest[at]);
                self.forget_arguments(&call);
                if self.argument_bytes <= MAX_ARGUMENTS_BYTES {
                    break;
                }
            }
        }
    }

    fn forget_arguments(&mut self, call: &LoggedCall) {
        let forgotten = call.arguments.lock().take();
        self.argument_bytes -= forgotten.map_or(0, |arguments| arguments.len());
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]
}

#[cfg(test)]
#[path = "call_log_tests.rs"]
mod tests;
