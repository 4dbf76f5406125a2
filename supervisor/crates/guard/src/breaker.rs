//! Refuses calls to a plugin for a while after it failed too often.
//!
//! A fault is a plugin that died, timed out or was not there. An error of the tool, a gRPC error and an
//! answer that is too large show that the plugin is alive. A refusal below (`overloaded`) and a defect of the
//! host say nothing about it. Neither does `unavailable` where no retry can help: a plugin that is switched
//! off fails at once, for a reason that the caller should read, so opening the breaker would save nothing.
//!
//! A call that is dropped after its deadline counts as a time-out: that is how the deadline layer above ends
//! calls. A caller that gives up early says nothing about the plugin, whether it disconnects or sets a
//! shorter timeout ([`CallFields::timeout`](crate::CallFields::timeout)): otherwise a caller with a short
//! timeout could close the plugin to all others.
//!
//! The clock is tokio's, so a test that pauses it drives the breaker. All services made by one layer share
//! its state.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use pin_project_lite::pin_project;
use talon_breaker::{CircuitBreaker, Permit, Verdict};
use tokio::sync::watch;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::call::Call;
use crate::call_when_ready::{CallWhenReady, POLLED_AFTER_END, call_when_ready};
use crate::error::CallError;
use crate::reason;
use crate::text::Quoted;

mod settings;

pub use settings::{BreakerSettings, DEFAULT_FAILURES, DEFAULT_OPEN_FOR, DEFAULT_WINDOW};
pub use talon_breaker::BreakerState;

/// The breaker is open.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BreakerError {
    /// It will try again after a known time.
    #[error("plugin {} failed too often and gets no calls for now; try again in {retry_in:?}", Quoted(.plugin))]
    Open {
        /// The plugin that was called.
        plugin: String,
        /// How long it stays open, in whole milliseconds, rounded up.
        retry_in: Duration,
    },
    /// Another call is probing whether the plugin works again.
    #[error("plugin {} failed too often and is just being tried again; try again a little later", Quoted(.plugin))]
    Probing {
        /// The plugin that was called.
        plugin: String,
    },
}

impl From<BreakerError> for CallError {
    fn from(error: BreakerError) -> Self {
        Self::refused(reason::BREAKER_OPEN, error.to_string()).with_retryable(true)
    }
}

/// Makes [`Breaker`] services.
#[derive(Debug, Clone)]
pub struct BreakerLayer {
    shared: Arc<Shared>,
}

impl BreakerLayer {
    /// A closed breaker with these settings.
    #[must_use]
    pub fn new(settings: BreakerSettings) -> Self {
        let (state, _) = watch::channel(BreakerState::Closed);
        let machine = CircuitBreaker::new(settings.into());
        let healthy_epoch = AtomicU64::new(healthy_epoch_or_none(&machine));
        Self { shared: Arc::new(Shared { machine: Mutex::new(machine), state, healthy_epoch }) }
    }

    /// A handle that reads, watches and resets the breaker.
    #[must_use]
    pub fn gauge(&self) -> BreakerGauge {
        BreakerGauge { shared: self.shared.clone() }
    }
}

impl<S> Layer<S> for BreakerLayer {
    type Service = Breaker<S>;
    fn layer(&self, inner: S) -> Breaker<S> {
        Breaker { shared: self.shared.clone(), inner }
    }
}

/// Reads, watches and resets a [`BreakerLayer`]. Cheap to clone and to read.
#[derive(Debug, Clone)]
pub struct BreakerGauge {
    shared: Arc<Shared>,
}

impl BreakerGauge {
    /// The current state.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        *self.shared.state.borrow()
    }

    /// A receiver that is notified of each change of state.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<BreakerState> {
        self.shared.state.subscribe()
    }

    /// Closes it and forgets all faults: for a host that knows that the plugin works again, because it just
    /// started a new process.
    pub fn reset(&self) {
        self.shared.update(CircuitBreaker::reset);
    }
}

#[derive(Debug)]
struct Shared {
    machine: Mutex<CircuitBreaker>,
    state: watch::Sender<BreakerState>,
    /// The machine's epoch while it is healthy, else [`NO_HEALTHY_EPOCH`]. Written under the machine's lock
    /// and read without it: a healthy breaker, which nearly every one is, admits and settles calls without a
    /// lock and without reading the clock.
    healthy_epoch: AtomicU64,
}

/// Not an epoch: those count from 0, one for each change of state.
const NO_HEALTHY_EPOCH: u64 = u64::MAX;

fn healthy_epoch_or_none(machine: &CircuitBreaker) -> u64 {
    machine.healthy_epoch().unwrap_or(NO_HEALTHY_EPOCH)
}

impl Shared {
    /// Runs one step of the machine and notifies the watchers if that changed its state.
    fn update<T>(&self, step: impl FnOnce(&mut CircuitBreaker) -> T) -> T {
        // The machine's steps do not panic; if one does, its state is still valid.
        let mut machine = self.machine.lock();
        let before = machine.state();
        let result = step(&mut machine);
        let state = machine.state();
        self.healthy_epoch.store(healthy_epoch_or_none(&machine), Ordering::Release);
        // Sent under the lock, so that watchers see the changes in order.
        if state != before {
            self.state.send_replace(state);
        }
        result
    }

    #[inline]
    fn admit(&self) -> Result<Permit, Duration> {
        match self.healthy_epoch.load(Ordering::Acquire) {
            NO_HEALTHY_EPOCH => self.update(|machine| machine.admit(Instant::now())),
            epoch => Ok(Permit::for_healthy_epoch(epoch)),
        }
    }

    #[inline]
    fn settle(&self, call: Permit, verdict: Verdict, now: impl FnOnce() -> Instant) {
        // There is no fault to forget, and this call is not one.
        let is_healthy =
            verdict != Verdict::Failed && self.healthy_epoch.load(Ordering::Acquire) != NO_HEALTHY_EPOCH;
        if !is_healthy {
            self.update(|machine| machine.settle(call, verdict, now()));
        }
    }
}

/// Refuses calls while the breaker is open: see the [module](self).
#[derive(Debug, Clone)]
pub struct Breaker<S> {
    shared: Arc<Shared>,
    inner: S,
}

impl<S> Service<Call> for Breaker<S>
where
    S: Service<Call> + Clone,
    S::Error: Into<CallError>,
{
    type Response = S::Response;
    type Error = CallError;
    type Future = ResponseFuture<S>;

    /// Always ready: an open breaker refuses at once, whatever the state of the plugin.
    #[inline]
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, call: Call) -> Self::Future {
        match self.shared.admit() {
            Ok(admitted) => ResponseFuture {
                ticket: Some(AdmittedCall {
                    shared: self.shared.clone(),
                    permit: admitted,
                    deadline: call.deadline,
                    has_caller_timeout: call.timeout.is_some(),
                    verdict: None,
                }),
                future: Some(call_when_ready(&mut self.inner, call)),
                refused: None,
            },
            Err(retry_in) => {
                let plugin = call.plugin.to_string();
                let error = if retry_in.is_zero() {
                    BreakerError::Probing { plugin }
                } else {
                    BreakerError::Open { plugin, retry_in: whole_millis(retry_in) }
                };
                ResponseFuture { future: None, ticket: None, refused: Some(Box::new(error)) }
            }
        }
    }
}

fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// One admitted call. Settles when dropped: without a verdict by then, its caller gave up.
#[derive(Debug)]
struct AdmittedCall {
    shared: Arc<Shared>,
    permit: Permit,
    deadline: Option<Instant>,
    /// The deadline is the caller's, earlier than the plugin's.
    has_caller_timeout: bool,
    verdict: Option<Verdict>,
}

impl Drop for AdmittedCall {
    fn drop(&mut self) {
        let verdict = self.verdict.unwrap_or_else(|| match self.deadline {
            Some(deadline) if !self.has_caller_timeout && Instant::now() >= deadline => Verdict::Failed,
            _ => Verdict::Inconclusive,
        });
        self.shared.settle(self.permit, verdict, Instant::now);
    }
}

/// What an error below says about the plugin.
fn verdict(error: &CallError, in_a_hurry: bool) -> Verdict {
    match error {
        CallError::Fault { reason: reason::TIMED_OUT, .. } if in_a_hurry => Verdict::Inconclusive,
        CallError::Fault { reason: reason::UNAVAILABLE, retryable: false, effect_unknown: false, .. } => {
            Verdict::Inconclusive
        }
        // The plugin did answer, but the answer cannot be used.
        CallError::Fault { reason, .. } | CallError::Refused { reason, .. }
            if [reason::PLUGIN_ERROR, reason::TOO_LARGE, reason::BAD_RESULT].contains(reason) =>
        {
            Verdict::Healthy
        }
        CallError::Fault { .. } => Verdict::Failed,
        CallError::Refused { .. } | CallError::Defect { .. } => Verdict::Inconclusive,
    }
}

pin_project! {
    /// The answer to one call, or a refusal.
    pub struct ResponseFuture<S>
    where
        S: Service<Call>,
    {
        #[pin]
        future: Option<CallWhenReady<S>>,
        // After the future: the call ends before its verdict is recorded.
        ticket: Option<AdmittedCall>,
        refused: Option<Box<BreakerError>>,
    }
}

impl<S> Future for ResponseFuture<S>
where
    S: Service<Call>,
    S::Error: Into<CallError>,
{
    type Output = Result<S::Response, CallError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(future) = this.future.as_mut().as_pin_mut() else {
            return Poll::Ready(Err((*this.refused.take().expect(POLLED_AFTER_END)).into()));
        };
        let answer = ready!(future.poll(cx)).map_err(Into::into);
        if let Some(mut ticket) = this.ticket.take() {
            ticket.verdict = Some(match &answer {
                Ok(_) => Verdict::Healthy,
                Err(error) => verdict(error, ticket.has_caller_timeout),
            });
        }
        Poll::Ready(answer)
    }
}

#[cfg(test)]
mod tests;
