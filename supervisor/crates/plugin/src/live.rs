//! One process that takes calls: its client, the calls in flight, and the word that ends them all at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use slab::Slab;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;
use tracing::{Instrument, Span};

use crate::execute::Progress;
use crate::execute::{ExecuteError, ExecuteRequest};
use crate::followed::{Followed, News};
use crate::lifecycle::event::CallsEnd;
use crate::name::PluginName;
use crate::overdue::{Overdue, Watched};
use crate::seam::{Sent, Wire};

/// How long a call whose connection broke waits for the news that its process died: the kernel closes a dying
/// process's sockets shortly before its exit is told. Without such news the call fails as a broken connection.
const EXIT_NEWS_WAIT: Duration = Duration::from_millis(500);

/// A process of one generation, from ready to gone.
pub(crate) struct Live {
    pub(crate) client: Arc<dyn Wire>,
    /// Which instance of its plugin it is.
    of: (PluginName, u32),
    calls: Mutex<Calls>,
    /// Told whenever the last call in flight ends.
    idle: Notify,
    /// Calls that the plugin answered since somebody last asked.
    answered: AtomicU64,
    ended: CancellationToken,
    how: OnceLock<CallsEnd>,
    generation: u64,
    /// Whether anybody reads what the process tells of its calls; nothing is kept for it otherwise.
    heard: AtomicBool,
    /// Where calls go whose deadline passed; `None` lets go of them at once.
    overdue: Option<mpsc::Sender<Box<Overdue>>>,
}

struct Calls {
    open: bool,
    /// By ticket. Bounded by the guard's admission layer.
    flights: Slab<Flight>,
}

/// What is known of one call in flight.
struct Flight {
    /// Until when it may take.
    deadline: Option<Instant>,
    /// Once it is on its way to a process that tells how far its calls are.
    followed: Option<Followed>,
}

impl Live {
    pub(crate) fn new(
        client: Arc<dyn Wire>,
        of: (PluginName, u32),
        generation: u64,
        overdue: Option<mpsc::Sender<Box<Overdue>>>,
    ) -> Self {
        Self {
            client,
            of,
            calls: Mutex::new(Calls { open: true, flights: Slab::new() }),
            idle: Notify::new(),
            answered: AtomicU64::new(0),
            ended: CancellationToken::new(),
            how: OnceLock::new(),
            generation,
            heard: AtomicBool::new(false),
            overdue,
        }
    }

    /// Counts a call in, unless the process takes none any more.
    pub(crate) fn enter(self: &Arc<Self>, deadline: Option<Instant>) -> Option<InFlight> {
        let mut calls = self.calls();
        if !calls.open {
            return None;
        }
        let ticket = calls.flights.insert(Flight { deadline, followed: None });
        Some(InFlight { live: self.clone(), ticket })
    }

    /// From here on no call is counted in.
    pub(crate) fn close(&self) {
        self.calls().open = false;
    }

    /// Ends every call in flight with an error, now. The first word stands.
    pub(crate) fn fail_calls(&self, how: CallsEnd) {
        self.close();
        let _ = self.how.set(how);
        self.ended.cancel();
    }

    /// Resolves once no call is in flight.
    pub(crate) async fn idle(&self) {
        loop {
            let notified = self.idle.notified();
            tokio::pin!(notified);
            // Listening begins before looking, so that a call that ends in between is not missed.
            notified.as_mut().enable();
            if self.in_flight() == 0 {
                return;
            }
            notified.await;
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.calls().flights.len()
    }

    /// The latest deadline of the calls in flight. A call without one excuses nobody: nothing would end it.
    pub(crate) fn busy_until(&self) -> Option<Instant> {
        self.calls().flights.iter().filter_map(|(_, flight)| flight.deadline).max()
    }

    /// Whether a call was answered since this was last asked.
    pub(crate) fn take_answered(&self) -> bool {
        self.answered.swap(0, Ordering::Relaxed) > 0
    }

    /// Whether calls are known by their ids from here on, so that what the process tells of them finds them.
    pub(crate) fn hear(&self, heard: bool) {
        self.heard.store(heard, Ordering::Relaxed);
    }

    /// Takes how far a call has come, if it is in flight here: a process tells of its own calls alone. What is to be told
    /// now is given back; what comes too soon after what was told before waits for [`Live::due`].
    pub(crate) fn progress(&self, call_id: &str, progress: Progress) -> Option<News> {
        let mut calls = self.calls();
        let mut followed = calls.flights.iter_mut().filter_map(|(_, flight)| flight.followed.as_mut());
        followed.find(|followed| followed.is(call_id))?.take(progress, Instant::now())
    }

    /// What had to wait and is due now, and when to look again.
    pub(crate) fn due(&self) -> (Vec<News>, Option<Instant>) {
        let (now, mut news, mut next) = (Instant::now(), Vec::new(), None);
        let mut calls = self.calls();
        for followed in calls.flights.iter_mut().filter_map(|(_, flight)| flight.followed.as_mut()) {
            news.extend(followed.due(now));
            next = [next, followed.next_due()].into_iter().flatten().min();
        }
        (news, next)
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ended(&self) -> ExecuteError {
        self.ended.cancelled().await;
        match self.how.get() {
            Some(CallsEnd::Died { how, restarting }) => {
                ExecuteError::Died { exit: how.clone(), restarting: *restarting }
            }
            Some(CallsEnd::Stopped) | None => ExecuteError::Stopped,
        }
    }
}

/// One call in flight; dropping it counts the call out.
pub(crate) struct InFlight {
    live: Arc<Live>,
    ticket: usize,
}

impl InFlight {
    /// Makes the call. It ends at once when its process does; what the plugin might answer afterwards belongs
    /// to a stream that this call alone listened to, so it reaches nobody. Neither does what comes after the deadline.
    pub(crate) async fn execute(
        &self,
        request: &ExecuteRequest,
        max_message_bytes: usize,
    ) -> Result<Bytes, ExecuteError> {
        let ExecuteRequest { message, deadline, configured_timeout, follower, metadata } = request;
        let live = &self.live;
        let (plugin, instance) = &live.of;
        // For the call's lines from here on.
        Span::current().record("instance", instance);
        if live.heard.load(Ordering::Relaxed)
            && let Some(flight) = live.calls().flights.get_mut(self.ticket)
        {
            flight.followed = Some(Followed::new(&message.id, &message.action, follower.clone()));
        }
        let began = Instant::now();
        let (span, metadata) = match metadata {
            // The request's own part of a trace; nobody else would look at it.
            Some(metadata) => {
                let span = tracing::error_span!(
                    target: "talon::call",
                    "plugin",
                    plugin = %plugin,
                    action = message.action,
                    instance,
                    outcome = tracing::field::Empty
                );
                let metadata = metadata.within(&span);
                (span, metadata)
            }
            None => (Span::none(), MetadataMap::new()),
        };
        let Sent { answer, rest } = live.client.execute(message, metadata, *deadline, max_message_bytes);
        let answer = answer.instrument(span.clone());
        let mut watched = Watched::new(message, rest);
        if let (Some(to), Some(deadline), Some(timeout)) = (&live.overdue, *deadline, *configured_timeout) {
            watched.hand_over(to, live.generation, deadline, deadline.max(began + timeout));
        }
        let answer = tokio::select! {
            biased;
            answer = answer => answer,
            end = live.ended() => {
                span.record("outcome", "failed");
                watched.let_go();
                return Err(end);
            }
        };
        span.record("outcome", if answer.is_ok() { "ok" } else { "failed" });
        if !matches!(answer, Err(ExecuteError::TimedOut { .. })) {
            watched.let_go();
        }
        match answer {
            Err(ExecuteError::Transport(cause)) => {
                let patience = Instant::now() + EXIT_NEWS_WAIT;
                let until = deadline.map_or(patience, |deadline| deadline.min(patience));
                match tokio::time::timeout_at(until, live.ended()).await {
                    Ok(end) => Err(end),
                    Err(_) if until < patience => Err(ExecuteError::TimedOut { waited: began.elapsed() }),
                    Err(_) => Err(ExecuteError::Transport(cause)),
                }
            }
            Err(error @ ExecuteError::TimedOut { .. }) => Err(error),
            answer => {
                live.answered.fetch_add(1, Ordering::Relaxed);
                // On a busy machine it may be found late that both have come, the answer and the deadline.
                match deadline {
                    Some(deadline) if Instant::now() > *deadline => {
                        Err(ExecuteError::TimedOut { waited: began.elapsed() })
                    }
                    _ => answer,
                }
            }
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut calls = self.live.calls();
        calls.flights.remove(self.ticket);
        if calls.flights.is_empty() {
            self.live.idle.notify_waiters();
        }
    }
}
