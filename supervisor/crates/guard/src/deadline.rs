//! Gives every call a deadline and ends it there.
//!
//! The time counts from [`CallFields::accepted`](crate::CallFields::accepted), so what the call waited in
//! layers above is part of it. The layer stands above breaker and admission, so that the time spent waiting
//! for a permit or for a restart counts too. The deadline is passed on in
//! [`CallFields::deadline`](crate::CallFields::deadline), from which the transport sets the gRPC timeout.
//! When it passes, the inner future is dropped, which resets the stream on the wire, and the caller gets an
//! error that names the plugin and the timeout. A transport that watches the same deadline may notice first;
//! its `timed_out` gets the same text and is kept as the cause; so is whether the action may have taken
//! effect.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_layer::Layer;
use tower_service::Service;

use crate::call::Call;
use crate::call_when_ready::{CallWhenReady, call_when_ready};
use crate::error::CallError;
use crate::reason;
use crate::text::Quoted;

/// The default timeout: that of the founding design. Set with [`Timeouts`].
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest timeout: a longer call is a job and must not hold a permit. Longer configured timeouts are
/// reduced to it.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the calls of one plugin may last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// The timeout of actions not named in `actions`. Default [`DEFAULT_TIMEOUT`], at most [`MAX_TIMEOUT`].
    pub default: Duration,
    /// Timeouts of single actions, longer or shorter than the default.
    pub actions: BTreeMap<String, Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { default: DEFAULT_TIMEOUT, actions: BTreeMap::new() }
    }
}

impl Timeouts {
    /// How long this call may last: the configured time of its action, or less if the caller waits less.
    #[must_use]
    pub fn timeout_of(&self, call: &Call) -> Duration {
        let configured = self.configured(call);
        call.timeout.map_or(configured, |wish| wish.min(configured))
    }

    fn configured(&self, call: &Call) -> Duration {
        self.actions.get(&call.action).copied().unwrap_or(self.default).min(MAX_TIMEOUT)
    }
}

/// The deadline passed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("plugin {} timed out after {timeout:?}", Quoted(.plugin))]
pub struct DeadlineError {
    /// The plugin that was called.
    pub plugin: String,
    /// The timeout of the call, waiting included.
    pub timeout: Duration,
}

impl From<DeadlineError> for CallError {
    fn from(error: DeadlineError) -> Self {
        Self::fault(reason::TIMED_OUT, error.to_string())
    }
}

/// Makes [`Deadline`] services.
#[derive(Debug, Clone, Default)]
pub struct DeadlineLayer {
    timeouts: Arc<Timeouts>,
}

impl DeadlineLayer {
    /// A layer with these timeouts.
    #[must_use]
    pub fn new(timeouts: Timeouts) -> Self {
        Self { timeouts: timeouts.into() }
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadline<S>;
    fn layer(&self, inner: S) -> Deadline<S> {
        Deadline { timeouts: self.timeouts.clone(), inner }
    }
}

/// Ends calls at their deadline: see the [module](self).
#[derive(Debug, Clone)]
pub struct Deadline<S> {
    timeouts: Arc<Timeouts>,
    inner: S,
}

impl<S> Service<Call> for Deadline<S>
where
    S: Service<Call> + Clone,
    S::Error: Into<CallError>,
{
    type Response = S::Response;
    type Error = CallError;
    type Future = ResponseFuture<S>;

    /// Always ready: waiting for the inner service is part of the call, so that it counts too.
    #[inline]
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, mut call: Call) -> Self::Future {
        let configured = self.timeouts.configured(&call);
        call.timeout = call.timeout.filter(|wish| *wish < configured);
        let own = call.accepted + call.timeout.unwrap_or(configured);
        // A host above may have set an earlier one.
        let deadline = call.deadline.map_or(own, |outer| outer.min(own));
        let timeout = deadline.saturating_duration_since(call.accepted);
        call.deadline = Some(deadline);
        let plugin = call.plugin.clone();
        // If no time is left, the call is not made.
        let future = (deadline > Instant::now()).then(|| call_when_ready(&mut self.inner, call));
        ResponseFuture { future, deadline, sleep: None, plugin, timeout }
    }
}

pin_project! {
    /// The answer to one call, or its deadline.
    pub struct ResponseFuture<S>
    where
        S: Service<Call>,
    {
        #[pin]
        future: Option<CallWhenReady<S>>,
        deadline: Instant,
        // Created when there is something to wait for: a call that is answered or refused at once needs no
        // timer.
        #[pin]
        sleep: Option<Sleep>,
        plugin: Arc<str>,
        timeout: Duration,
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
        // Poll the answer first: one that arrives together with the deadline is still an answer, and a layer
        // below that knows better why the time ran out (admission) can report that.
        if let Some(future) = this.future.as_mut().as_pin_mut()
            && let Poll::Ready(answer) = future.poll(cx)
        {
            return Poll::Ready(answer.map_err(|error| {
                let error = error.into();
                if error.reason() != reason::TIMED_OUT {
                    return error;
                }
                let late = DeadlineError { plugin: this.plugin.to_string(), timeout: *this.timeout };
                let late = CallError::from(late).with_retryable(error.outcome().is_retryable());
                let late = if error.is_effect_unknown() { late.with_unknown_effect() } else { late };
                late.caused_by(error)
            }));
        }
        if this.sleep.is_none() {
            this.sleep.set(Some(sleep_until(*this.deadline)));
        }
        if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
            ready!(sleep.poll(cx));
        }
        // Cancel on the wire now, not when the caller drops this future.
        this.future.set(None);
        let error = DeadlineError { plugin: this.plugin.to_string(), timeout: *this.timeout };
        Poll::Ready(Err(error.into()))
    }
}

#[cfg(test)]
mod tests;
