//! One process that takes calls: its client, the calls in flight, and the signal that ends all of them at
//! once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use slab::Slab;
use talon_plugin_client::{ExecuteError, PendingCall};
use talon_plugin_config::name::PluginName;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;
use tracing::{Instrument, Span};

use crate::execute::CallProgress;
use crate::execute::{ExecuteRequest, OutputObserver};
use crate::lifecycle::event::CallFailure;
use crate::overdue_call::{OverdueCall, StreamGuard};
use crate::progress_throttle::{ProgressThrottle, ProgressUpdate};
use crate::scripts::ScriptTable;
use crate::traits::client::PluginClient;

/// How long a call whose connection broke waits for the report that its process died: the kernel closes a
/// dying process's sockets shortly before its exit is reported. Without that report the call fails as a
/// broken connection.
const EXIT_NEWS_WAIT: Duration = Duration::from_millis(500);

/// A process of one generation, from ready until it is gone.
pub(crate) struct LiveProcess {
    pub(crate) client: Arc<dyn PluginClient>,
    /// The plugin and the index of the instance.
    instance_id: (PluginName, u32),
    calls: Mutex<CallTable>,
    /// Notified whenever the last call in flight ends.
    idle: Notify,
    /// Calls that the plugin answered since the last check.
    answered: AtomicU64,
    ended: CancellationToken,
    end_cause: OnceLock<CallFailure>,
    generation: u64,
    /// Whether the process's notices are read; progress is tracked only then.
    notices_enabled: AtomicBool,
    /// Receives calls whose deadline passed; `None` resets them at the deadline.
    overdue_calls: Option<mpsc::Sender<Box<OverdueCall>>>,
    /// The scripts that it says it runs.
    pub(crate) scripts: Mutex<ScriptTable>,
}

struct CallTable {
    open: bool,
    /// By key. Bounded by the guard's admission layer.
    entries: Slab<CallEntry>,
}

/// One call in flight.
struct CallEntry {
    /// Its deadline.
    deadline: Option<Instant>,
    /// Set when the call is sent to a process that reports progress.
    throttle: Option<ProgressThrottle>,
    /// Receives its output; set with `throttle`.
    output: Option<OutputObserver>,
}

impl LiveProcess {
    pub(crate) fn new(
        client: Arc<dyn PluginClient>,
        instance_id: (PluginName, u32),
        generation: u64,
        overdue_calls: Option<mpsc::Sender<Box<OverdueCall>>>,
    ) -> Self {
        Self {
            client,
            instance_id,
            calls: Mutex::new(CallTable { open: true, entries: Slab::new() }),
            idle: Notify::new(),
            answered: AtomicU64::new(0),
            ended: CancellationToken::new(),
            end_cause: OnceLock::new(),
            generation,
            notices_enabled: AtomicBool::new(false),
            overdue_calls,
            scripts: Mutex::default(),
        }
    }

    /// Admits a call, unless the process is closed to new ones.
    pub(crate) fn enter(self: &Arc<Self>, deadline: Option<Instant>) -> Option<InFlight> {
        let mut calls = self.calls.lock();
        if !calls.open {
            return None;
        }
        let ticket = calls.entries.insert(CallEntry { deadline, throttle: None, output: None });
        Some(InFlight { process: self.clone(), key: ticket })
    }

    /// Admits no more calls.
    pub(crate) fn close(&self) {
        self.calls.lock().open = false;
    }

    /// Ends every call in flight with an error, now. Only the first cause counts.
    pub(crate) fn fail_calls(&self, how: CallFailure) {
        self.close();
        let _ = self.end_cause.set(how);
        self.ended.cancel();
    }

    /// Resolves once no call is in flight.
    pub(crate) async fn idle(&self) {
        loop {
            let notified = self.idle.notified();
            tokio::pin!(notified);
            // Registered before the check, so that a call that ends in between is not missed.
            notified.as_mut().enable();
            if self.in_flight() == 0 {
                return;
            }
            notified.await;
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.calls.lock().entries.len()
    }

    /// The latest deadline of the calls in flight. Calls without a deadline are ignored: they would excuse
    /// silence forever.
    pub(crate) fn busy_until(&self) -> Option<Instant> {
        self.calls.lock().entries.iter().filter_map(|(_, flight)| flight.deadline).max()
    }

    /// Whether a call was answered since the last time this was called.
    pub(crate) fn take_answered(&self) -> bool {
        self.answered.swap(0, Ordering::Relaxed) > 0
    }

    /// Whether new calls are registered by id, so that progress reports of the process find them.
    pub(crate) fn set_notices_enabled(&self, heard: bool) {
        self.notices_enabled.store(heard, Ordering::Relaxed);
    }

    /// Records the progress of a call, if it is in flight here: a process can report only its own calls.
    /// Returns the update to publish now; an update that comes too soon is stored until [`LiveProcess::due`].
    pub(crate) fn record_progress(&self, call_id: &str, progress: CallProgress) -> Option<ProgressUpdate> {
        let mut calls = self.calls.lock();
        let mut followed = calls.entries.iter_mut().filter_map(|(_, flight)| flight.throttle.as_mut());
        followed.find(|followed| followed.is_call(call_id))?.record(progress, Instant::now())
    }

    /// Who receives the output of a call, if it is in flight here and anybody does.
    pub(crate) fn output_observer(&self, call_id: &str) -> Option<OutputObserver> {
        let calls = self.calls.lock();
        let is_it =
            |flight: &&CallEntry| flight.throttle.as_ref().is_some_and(|known| known.is_call(call_id));
        calls.entries.iter().map(|(_, flight)| flight).find(is_it)?.output.clone()
    }

    /// The stored updates that are due now, and when the next one is.
    pub(crate) fn due_updates(&self) -> (Vec<ProgressUpdate>, Option<Instant>) {
        let (now, mut news, mut next) = (Instant::now(), Vec::new(), None);
        let mut calls = self.calls.lock();
        for followed in calls.entries.iter_mut().filter_map(|(_, flight)| flight.throttle.as_mut()) {
            news.extend(followed.due(now));
            next = [next, followed.next_due()].into_iter().flatten().min();
        }
        (news, next)
    }

    async fn wait_for_end(&self) -> ExecuteError {
        self.ended.cancelled().await;
        match self.end_cause.get() {
            Some(CallFailure::Died { how, restarting }) => {
                ExecuteError::Died { exit: how.clone(), restarting: *restarting }
            }
            Some(CallFailure::Stopped) | None => ExecuteError::Stopped,
        }
    }
}

/// One call in flight; dropping it removes the call from the table.
pub(crate) struct InFlight {
    process: Arc<LiveProcess>,
    key: usize,
}

impl InFlight {
    /// Makes the call. It ends as soon as its process does. Anything the plugin answers later, or after the
    /// deadline, is discarded, because only this call reads its stream.
    pub(crate) async fn execute(
        &self,
        request: &ExecuteRequest,
        max_message_bytes: usize,
    ) -> Result<Bytes, ExecuteError> {
        let ExecuteRequest { message, deadline, configured_timeout, observer: follower, output, metadata } =
            request;
        let live = &self.process;
        let (plugin, instance) = &live.instance_id;
        // For this call's log lines from here on.
        Span::current().record("instance", instance);
        if live.notices_enabled.load(Ordering::Relaxed)
            && let Some(flight) = live.calls.lock().entries.get_mut(self.key)
        {
            flight.throttle = Some(ProgressThrottle::new(&message.id, &message.action, follower.clone()));
            flight.output = output.clone();
        }
        let began = Instant::now();
        let (span, metadata) = match metadata {
            // Only a trace uses the request's own span.
            Some(metadata) => {
                let span = tracing::error_span!(
                    target: "talon::call",
                    "plugin",
                    plugin = %plugin,
                    action = message.action,
                    instance,
                    outcome = tracing::field::Empty
                );
                let metadata = metadata.for_span(&span);
                (span, metadata)
            }
            None => (Span::none(), MetadataMap::new()),
        };
        let PendingCall { answer, stream_end: rest } =
            live.client.execute(message, metadata, *deadline, max_message_bytes);
        let answer = answer.instrument(span.clone());
        let mut watched = StreamGuard::new(message, rest);
        if let (Some(to), Some(deadline), Some(timeout)) =
            (&live.overdue_calls, *deadline, *configured_timeout)
        {
            watched.watch_after_deadline(to, live.generation, deadline, deadline.max(began + timeout));
        }
        let answer = tokio::select! {
            biased;
            answer = answer => answer,
            end = live.wait_for_end() => {
                span.record("outcome", "failed");
                watched.release();
                return Err(end);
            }
        };
        span.record("outcome", if answer.is_ok() { "ok" } else { "failed" });
        if !matches!(answer, Err(ExecuteError::TimedOut { .. })) {
            watched.release();
        }
        match answer {
            Err(ExecuteError::Transport(cause)) => {
                let patience = Instant::now() + EXIT_NEWS_WAIT;
                let until = deadline.map_or(patience, |deadline| deadline.min(patience));
                match tokio::time::timeout_at(until, live.wait_for_end()).await {
                    Ok(end) => Err(end),
                    Err(_) if until < patience => {
                        Err(ExecuteError::TimedOut { waited: began.elapsed(), sent: true })
                    }
                    Err(_) => Err(ExecuteError::Transport(cause)),
                }
            }
            Err(error @ ExecuteError::TimedOut { .. }) => Err(error),
            answer => {
                live.answered.fetch_add(1, Ordering::Relaxed);
                // On a busy machine both the answer and the deadline may have passed before this runs.
                match deadline {
                    Some(deadline) if Instant::now() > *deadline => {
                        Err(ExecuteError::TimedOut { waited: began.elapsed(), sent: true })
                    }
                    _ => answer,
                }
            }
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut calls = self.process.calls.lock();
        calls.entries.remove(self.key);
        if calls.entries.is_empty() {
            self.process.idle.notify_waiters();
        }
    }
}
