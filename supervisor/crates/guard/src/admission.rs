//! Lets a bounded number of calls run in the plugin and a bounded number wait in a queue.
//!
//! Waiting calls are served in the order in which they came. When the queue is full too, a call is refused at
//! once as retryable. A caller that gives up frees its place in the queue. Waiting ends with
//! [`CallFields::deadline`](crate::CallFields::deadline): a call that never ran fails with `overloaded`,
//! which the breaker does not count as a fault of the plugin.
//!
//! tower's `ConcurrencyLimit` waits in `poll_ready`, before there is a call: neither its waiters nor their
//! time can be counted, and a `LoadShed` in front of it has no queue at all. Here the wait is part of the
//! call.
//!
//! All services made by one layer share its limits.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep_until};
use tower_layer::Layer;
use tower_service::Service;

use crate::call::Call;
use crate::call_when_ready::{CallWhenReady, POLLED_AFTER_END, call_when_ready};
use crate::error::CallError;
use crate::reason;
use crate::text::Quoted;

/// Calls that one plugin works on at the same time. A tool is a process with a handful of threads and the
/// calls of one session rarely exceed a few at once; 16 keeps a plugin with asynchronous work busy without
/// letting a burst multiply its memory. Further calls wait. Set with [`AdmissionSettings::concurrency`].
pub const DEFAULT_CONCURRENCY: usize = 16;

/// Calls that wait in the queue. Four rounds of [`DEFAULT_CONCURRENCY`]: a call further back would most
/// likely reach its deadline in the queue, so it is better refused at once. Set with
/// [`AdmissionSettings::queue`].
pub const DEFAULT_QUEUE: usize = 64;

/// How many calls run and wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionSettings {
    /// Calls at the same time, at least 1. Default [`DEFAULT_CONCURRENCY`].
    pub concurrency: usize,
    /// Calls that wait. 0: none. Default [`DEFAULT_QUEUE`].
    pub queue: usize,
}

impl Default for AdmissionSettings {
    fn default() -> Self {
        Self { concurrency: DEFAULT_CONCURRENCY, queue: DEFAULT_QUEUE }
    }
}

/// Why a call was not admitted. Both can be retried a little later.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AdmissionError {
    /// All permits and the whole queue are taken.
    #[error(
        "plugin {} is overloaded: {in_flight} calls run and {waiting} wait; try again a little later",
        Quoted(.plugin)
    )]
    QueueFull {
        /// The plugin that was called.
        plugin: String,
        /// Calls that run.
        in_flight: usize,
        /// Calls that wait.
        waiting: usize,
    },
    /// The deadline passed in the queue.
    #[error("plugin {} is overloaded: no free place within {waited:?}; try again a little later", Quoted(.plugin))]
    QueueTimeout {
        /// The plugin that was called.
        plugin: String,
        /// How long the call waited, in whole milliseconds.
        waited: Duration,
    },
}

impl From<AdmissionError> for CallError {
    fn from(error: AdmissionError) -> Self {
        Self::refused(reason::OVERLOADED, error.to_string()).with_retryable(true)
    }
}

/// Makes [`Admission`] services.
#[derive(Debug, Clone)]
pub struct AdmissionLayer {
    gate: Arc<Gate>,
}

impl AdmissionLayer {
    /// A layer with these limits. A concurrency of 0 counts as 1.
    #[must_use]
    pub fn new(settings: AdmissionSettings) -> Self {
        let concurrency = settings.concurrency.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            gate: Arc::new(Gate {
                permits: Arc::new(Semaphore::new(concurrency)),
                queue: settings.queue,
                in_flight: AtomicUsize::new(0),
                waiting: AtomicUsize::new(0),
            }),
        }
    }

    /// A handle that reads how many calls run and wait.
    #[must_use]
    pub fn gauge(&self) -> AdmissionGauge {
        AdmissionGauge { gate: self.gate.clone() }
    }
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = Admission<S>;
    fn layer(&self, inner: S) -> Admission<S> {
        Admission { gate: self.gate.clone(), inner }
    }
}

/// Reads how many calls of an [`AdmissionLayer`] run and wait. Cheap to clone and to read.
#[derive(Debug, Clone)]
pub struct AdmissionGauge {
    gate: Arc<Gate>,
}

impl AdmissionGauge {
    /// Calls that run.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.gate.in_flight.load(Ordering::Relaxed)
    }
    /// Calls that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.gate.waiting.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Gate {
    /// In an `Arc` of its own, because a queued call waits on it.
    permits: Arc<Semaphore>,
    queue: usize,
    in_flight: AtomicUsize,
    waiting: AtomicUsize,
}

impl Gate {
    /// A permit, if one is free. It never overtakes a waiter: the semaphore gives a released permit to the
    /// first waiter, so a free permit means that no call is waiting.
    #[inline]
    fn try_enter(self: &Arc<Self>) -> Option<RunningCall> {
        self.permits.try_acquire().ok()?.forget();
        Some(RunningCall::new(self.clone()))
    }

    /// A place in the queue, if there is one.
    fn try_queue(self: &Arc<Self>) -> Option<QueuedCall> {
        self.waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < self.queue).then(|| n + 1))
            .ok()?;
        // Boxed because the future of an owned acquire has no name; only calls that wait pay for it.
        Some(QueuedCall { acquire: Box::pin(self.permits.clone().acquire_owned()), gate: self.clone() })
    }
}

/// One call that runs in the plugin. Releases its permit when dropped.
#[derive(Debug)]
struct RunningCall {
    gate: Arc<Gate>,
}

impl RunningCall {
    /// Takes ownership of a permit that was acquired from the semaphore and forgotten.
    #[inline]
    fn new(gate: Arc<Gate>) -> Self {
        gate.in_flight.fetch_add(1, Ordering::Relaxed);
        Self { gate }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        // Before the permit is released, so that the gauge never shows more than the limit.
        self.gate.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.gate.permits.add_permits(1);
    }
}

/// One call in the queue. Leaves it when dropped.
struct QueuedCall {
    acquire: Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>,
    gate: Arc<Gate>,
}

impl Drop for QueuedCall {
    fn drop(&mut self) {
        self.gate.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Admits a limited number of calls: see the [module](self).
#[derive(Debug, Clone)]
pub struct Admission<S> {
    gate: Arc<Gate>,
    inner: S,
}

impl<S> Service<Call> for Admission<S>
where
    S: Service<Call> + Clone,
    S::Error: Into<CallError>,
{
    type Response = S::Response;
    type Error = CallError;
    type Future = ResponseFuture<S>;

    /// Always ready: the wait is part of the call, where it is counted and ends with the deadline.
    #[inline]
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, call: Call) -> Self::Future {
        let state = if let Some(place) = self.gate.try_enter() {
            State::Running { future: call_when_ready(&mut self.inner, call), place }
        } else if let Some(turn) = self.gate.try_queue() {
            let sleep = call.deadline.map(|deadline| Box::pin(sleep_until(deadline)));
            let ahead = Some((self.inner.clone(), call));
            State::Waiting { waiting: Box::new(WaitingCall { turn, sleep, since: Instant::now(), ahead }) }
        } else {
            let error = AdmissionError::QueueFull {
                plugin: call.plugin.to_string(),
                in_flight: self.gate.in_flight.load(Ordering::Relaxed),
                waiting: self.gate.waiting.load(Ordering::Relaxed),
            };
            State::Refused { error: Some(Box::new(error)) }
        };
        ResponseFuture { state }
    }
}

pin_project! {
    /// One call: in the queue, then in the plugin.
    pub struct ResponseFuture<S>
    where
        S: Service<Call>,
    {
        #[pin]
        state: State<S>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S>
    where
        S: Service<Call>,
    {
        // Both are boxed to keep the future small for calls that run at once: it is moved several times.
        Refused { error: Option<Box<AdmissionError>> },
        Waiting { waiting: Box<WaitingCall<S>> },
        // The future is dropped before the permit: the next call starts when this one has ended.
        Running {
            #[pin]
            future: CallWhenReady<S>,
            place: RunningCall,
        },
        Done,
    }
}

/// A call in the queue.
struct WaitingCall<S> {
    turn: QueuedCall,
    sleep: Option<Pin<Box<Sleep>>>,
    since: Instant,
    ahead: Option<(S, Call)>,
}

impl<S> Future for ResponseFuture<S>
where
    S: Service<Call> + Clone,
    S::Error: Into<CallError>,
{
    type Output = Result<S::Response, CallError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                StateProj::Refused { error } => {
                    return Poll::Ready(Err((*error.take().expect(POLLED_AFTER_END)).into()));
                }
                StateProj::Waiting { waiting } => match waiting.turn.acquire.as_mut().poll(cx) {
                    Poll::Ready(Ok(permit)) => {
                        permit.forget();
                        let place = RunningCall::new(waiting.turn.gate.clone());
                        let (mut inner, call) =
                            waiting.ahead.take().expect("left only here, for another state");
                        state.set(State::Running { future: call_when_ready(&mut inner, call), place });
                    }
                    Poll::Ready(Err(closed)) => return Poll::Ready(Err(CallError::defect(closed))),
                    Poll::Pending => {
                        ready!(poll_deadline(waiting.sleep.as_mut(), cx));
                        let plugin = waiting.ahead.as_ref().map(|(_, call)| call.plugin.to_string());
                        let plugin = plugin.unwrap_or_default();
                        let waited = Duration::from_millis(
                            u64::try_from(waiting.since.elapsed().as_millis()).unwrap_or(u64::MAX),
                        );
                        state.set(State::Done);
                        return Poll::Ready(Err(AdmissionError::QueueTimeout { plugin, waited }.into()));
                    }
                },
                StateProj::Running { future, .. } => {
                    let answer = ready!(future.poll(cx));
                    // Release the permit now: the layers above may keep this future for a while.
                    state.set(State::Done);
                    return Poll::Ready(answer.map_err(Into::into));
                }
                StateProj::Done => panic!("{POLLED_AFTER_END}"),
            }
        }
    }
}

/// Ready once the deadline has passed, checked against the clock as well as this timer: the deadline layer
/// above sleeps until the same instant, and whichever timer fires first, this layer has to notice.
fn poll_deadline(sleep: Option<&mut Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> Poll<()> {
    let Some(sleep) = sleep else { return Poll::Pending };
    if Instant::now() >= sleep.deadline() { Poll::Ready(()) } else { sleep.as_mut().poll(cx) }
}

#[cfg(test)]
mod tests;
