//! Refuses calls to a plugin whose answers hold control syntax too often.
//!
//! The sanitizer neutralizes such syntax, so it does no harm. But a plugin that keeps sending it is either
//! compromised or passes on what strangers write, and an operator may want to inspect it first. Off unless a
//! threshold is set: a plugin that reads web pages or mail meets such text in its normal work.
//!
//! It counts what the sanitize layer neutralized in text that the plugin wrote. It does not count
//!
//! - invisible and control characters and matches of an operator's patterns: terminal colours are no attack;
//! - answers to calls whose action or arguments hold control syntax themselves, and the host's own texts,
//!   because otherwise a caller, or another plugin that talked a model into a call, could have a plugin
//!   quarantined.
//!
//! That is decided for each call: a plugin that gets a model to put such syntax into its arguments is not
//! counted for that call.
//!
//! A quarantined plugin gets no calls ([`reason::QUARANTINED`]) until an operator lifts the quarantine: it
//! does not expire. The layer stands above the breaker, below rescue. Calls that are running are still
//! answered, and sanitized.

use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use metrics::{Counter, Gauge};
use parking_lot::Mutex;
use pin_project_lite::pin_project;
use tokio::sync::watch;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::call::Call;
use crate::call_when_ready::{CallWhenReady, POLLED_AFTER_END, call_when_ready};
use crate::error::CallError;
use crate::reason;
use crate::report::Report;
use crate::text::Quoted;

mod window;

use window::Window;

/// The time within which the threshold has to be reached: long enough for a plugin that is called now and
/// then, short enough that the text it met last week does not count. Set with [`QuarantineSettings::window`].
pub const DEFAULT_WINDOW: Duration = Duration::from_secs(10 * 60);

/// Families that are not syntax: see the [module](self).
const NOT_SYNTAX: [&str; 3] = ["invisible", "control", "pattern"];

/// When a plugin is quarantined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuarantineSettings {
    /// The number of neutralized places within the window that causes a quarantine. `None`, the default,
    /// means never.
    pub threshold: Option<NonZeroU32>,
    /// The time within which they are counted. Default [`DEFAULT_WINDOW`].
    pub window: Duration,
}

impl Default for QuarantineSettings {
    fn default() -> Self {
        Self { threshold: None, window: DEFAULT_WINDOW }
    }
}

/// Why and since when a plugin is quarantined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuarantineInfo {
    /// How much syntax was neutralized within the window when the threshold was reached.
    pub neutralised: u32,
    /// When it was quarantined.
    pub since: Instant,
}

/// The plugin is quarantined.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "plugin {} is quarantined: its answers held too much control syntax; an operator can lift that",
    Quoted(.plugin)
)]
pub struct QuarantineError {
    /// The plugin that was called.
    pub plugin: String,
}

impl From<QuarantineError> for CallError {
    fn from(error: QuarantineError) -> Self {
        Self::refused(reason::QUARANTINED, error.to_string())
    }
}

/// The quarantine of one plugin: counts, refuses calls, and can be lifted by an operator. Clones share it, so
/// it outlives the stack when a changed configuration replaces that.
#[derive(Debug, Clone)]
pub struct Quarantine {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    threshold: Option<NonZeroU32>,
    window: Mutex<Window>,
    state: watch::Sender<Option<QuarantineInfo>>,
    /// Whether `state` is set. Each call reads this, and a lock shared by all calls would be expensive.
    active: AtomicBool,
    quarantines_total: Counter,
    active_gauge: Gauge,
}

impl Quarantine {
    /// The quarantine of the plugin with this configured name, which becomes a metrics label.
    #[must_use]
    pub fn new(plugin: &str, settings: QuarantineSettings) -> Self {
        let shared = Shared {
            threshold: settings.threshold,
            window: Mutex::new(Window::new(settings.window)),
            state: watch::Sender::new(None),
            active: AtomicBool::new(false),
            quarantines_total: metrics::counter!("talon_guard_quarantines_total", "plugin" => plugin.to_owned()),
            active_gauge: metrics::gauge!("talon_guard_quarantined", "plugin" => plugin.to_owned()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Whether a threshold is set.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.shared.threshold.is_some()
    }

    /// Whether the plugin is quarantined.
    #[must_use]
    #[inline]
    pub fn is_quarantined(&self) -> bool {
        self.shared.active.load(Ordering::Acquire)
    }

    /// A receiver that changes to `Some` each time a quarantine begins, and to `None` each time it is lifted.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Option<QuarantineInfo>> {
        self.shared.state.subscribe()
    }

    /// Lifts the quarantine and resets the count. Returns whether there was one.
    pub fn lift(&self) -> bool {
        let mut window = self.shared.window.lock();
        window.clear();
        self.shared.active.store(false, Ordering::Release);
        let lifted = self.shared.state.send_if_modified(|state| state.take().is_some());
        self.shared.active_gauge.set(0.0);
        lifted
    }

    /// Quarantines the plugin without a count, because of a quarantine that was decided elsewhere and still
    /// holds, such as that of the previous supervisor. Does nothing if it is quarantined already.
    pub fn impose(&self, neutralised: u32) {
        // The window's lock keeps lifting and counting in order.
        let _window = self.shared.window.lock();
        self.shared.active.store(true, Ordering::Release);
        self.shared.state.send_if_modified(|state| {
            let begins = state.is_none();
            state.get_or_insert_with(|| QuarantineInfo { neutralised, since: Instant::now() });
            begins
        });
        self.shared.active_gauge.set(1.0);
    }

    /// The current quarantine, if there is one.
    #[must_use]
    pub fn quarantined(&self) -> Option<QuarantineInfo> {
        *self.shared.state.borrow()
    }

    /// Counts what was neutralized in one answer of the plugin.
    pub(crate) fn count(&self, report: &Report) {
        let Some(threshold) = self.shared.threshold else { return };
        let syntax = report.neutralised.iter().filter(|(family, _)| !NOT_SYNTAX.contains(family));
        let count = syntax.fold(0u32, |sum, (_, count)| sum.saturating_add(*count));
        if count == 0 {
            return;
        }
        let now = Instant::now();
        let mut window = self.shared.window.lock();
        let neutralised = window.add(now, count);
        if neutralised < threshold.get() {
            return;
        }
        self.shared.active.store(true, Ordering::Release);
        // Sent under the lock, so that watchers see lifting and quarantining in order.
        let begins = self.shared.state.send_if_modified(|state| {
            let begins = state.is_none();
            state.get_or_insert(QuarantineInfo { neutralised, since: now });
            begins
        });
        if begins {
            self.shared.quarantines_total.increment(1);
            self.shared.active_gauge.set(1.0);
        }
    }
}

/// Makes [`QuarantineService`] services.
#[derive(Debug, Clone)]
pub struct QuarantineLayer {
    quarantine: Quarantine,
}

impl QuarantineLayer {
    /// A layer that refuses calls while this quarantine lasts.
    #[must_use]
    pub fn new(quarantine: Quarantine) -> Self {
        Self { quarantine }
    }
}

impl<S> Layer<S> for QuarantineLayer {
    type Service = QuarantineService<S>;
    fn layer(&self, inner: S) -> QuarantineService<S> {
        QuarantineService { quarantine: self.quarantine.clone(), inner }
    }
}

/// Refuses calls while the quarantine lasts: see the [module](self).
#[derive(Debug, Clone)]
pub struct QuarantineService<S> {
    quarantine: Quarantine,
    inner: S,
}

impl<S> Service<Call> for QuarantineService<S>
where
    S: Service<Call, Error = CallError> + Clone,
{
    type Response = S::Response;
    type Error = CallError;
    type Future = ResponseFuture<S>;

    /// Always ready: calls of a quarantined plugin are refused at once.
    #[inline]
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, call: Call) -> Self::Future {
        if self.quarantine.is_quarantined() {
            return ResponseFuture { future: None, refused: Some(call.plugin.clone()) };
        }
        ResponseFuture { future: Some(call_when_ready(&mut self.inner, call)), refused: None }
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
        refused: Option<Arc<str>>,
    }
}

impl<S> Future for ResponseFuture<S>
where
    S: Service<Call, Error = CallError>,
{
    type Output = Result<S::Response, CallError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(future) = this.future.as_mut().as_pin_mut() {
            return future.poll(cx);
        }
        let plugin = this.refused.take().expect(POLLED_AFTER_END).to_string();
        Poll::Ready(Err(QuarantineError { plugin }.into()))
    }
}

#[cfg(test)]
mod tests;
