//! Sets a plugin aside whose answers hold control syntax too often.
//!
//! The sanitizer makes such syntax inert, so nothing happens by it. But a plugin that keeps sending it is either broken
//! into or passes on what strangers write, and an operator may want a person to look at it first. Off unless a threshold
//! is set: a plugin that reads web pages or mail meets such text in the course of its honest work.
//!
//! Counted is what the sanitize layer neutralised in text that the plugin wrote. Not counted are
//!
//! - invisible and control characters and an operator's own patterns: colours of a terminal are no attack;
//! - answers to calls whose action or arguments hold control syntax themselves, and the host's own texts, because
//!   otherwise a caller, or another plugin that talked a model into a call, could have a plugin quarantined.
//!
//! That goes by each call: a plugin that gets a model to put such syntax into its arguments is not counted for that call.
//!
//! A quarantined plugin gets no calls ([`reason::QUARANTINED`]) until somebody lifts it: time heals nothing here.
//! The layer stands beside the breaker, below rescue. What is already under way is still delivered, as inert as ever.

use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use metrics::{Counter, Gauge};
use pin_project_lite::pin_project;
use tokio::sync::watch;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::call::Call;
use crate::error::CallError;
use crate::onward::{Onward, onward};
use crate::reason;
use crate::report::Report;
use crate::text::Quoted;

mod window;

use window::Window;

/// The time within which the threshold has to be reached: long enough that a plugin called now and then gets noticed,
/// short enough that the text it met last week does not count. Set with [`QuarantineSettings::window`].
pub const DEFAULT_WINDOW: Duration = Duration::from_secs(10 * 60);

/// Families that are no syntax: see the [module](self).
const NOT_SYNTAX: [&str; 3] = ["invisible", "control", "pattern"];

/// When a plugin is quarantined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuarantineSettings {
    /// So much neutralised syntax within the window is too much. None, the default, means never.
    pub threshold: Option<NonZeroU32>,
    /// The time within which it is counted. Default [`DEFAULT_WINDOW`].
    pub window: Duration,
}

impl Default for QuarantineSettings {
    fn default() -> Self {
        Self { threshold: None, window: DEFAULT_WINDOW }
    }
}

/// What a quarantined plugin did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quarantined {
    /// How much syntax was neutralised within the window when that became too much.
    pub neutralised: u32,
    /// When that was.
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

/// The quarantine of one plugin: counts, refuses, and lets an operator lift it. Clones are the same quarantine, so it
/// outlives the stack that a changed configuration replaces.
#[derive(Debug, Clone)]
pub struct Quarantine {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    threshold: Option<NonZeroU32>,
    window: Mutex<Window>,
    state: watch::Sender<Option<Quarantined>>,
    /// Whether there is something in `state`. Each call asks that, and a lock of all calls is a dear way to ask.
    apart: AtomicBool,
    times: Counter,
    now: Gauge,
}

impl Quarantine {
    /// A quarantine for the plugin of this configured name, which becomes a metrics label.
    #[must_use]
    pub fn new(plugin: &str, settings: QuarantineSettings) -> Self {
        let shared = Shared {
            threshold: settings.threshold,
            window: Mutex::new(Window::new(settings.window)),
            state: watch::Sender::new(None),
            apart: AtomicBool::new(false),
            times: metrics::counter!("talon_guard_quarantines_total", "plugin" => plugin.to_owned()),
            now: metrics::gauge!("talon_guard_quarantined", "plugin" => plugin.to_owned()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Whether it can ever quarantine.
    pub(crate) fn is_on(&self) -> bool {
        self.shared.threshold.is_some()
    }

    /// Whether the plugin gets no calls.
    #[must_use]
    pub fn is_quarantined(&self) -> bool {
        self.shared.apart.load(Ordering::Acquire)
    }

    /// Follows it: each time it begins there is one change to `Some`, each time it is lifted one to `None`.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Option<Quarantined>> {
        self.shared.state.subscribe()
    }

    /// Lets calls through again and forgets what was counted. Says whether there was something to lift.
    pub fn lift(&self) -> bool {
        let mut window = self.shared.window.lock().unwrap_or_else(PoisonError::into_inner);
        window.clear();
        self.shared.apart.store(false, Ordering::Release);
        let lifted = self.shared.state.send_if_modified(|state| state.take().is_some());
        self.shared.now.set(0.0);
        lifted
    }

    /// Sets the plugin apart without having counted anything: another one like this did, whose word still holds, such as that
    /// of the supervisor before. Does nothing where it is apart already.
    pub fn impose(&self, neutralised: u32) {
        // In the order in which lifting and counting are seen.
        let _window = self.shared.window.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.apart.store(true, Ordering::Release);
        self.shared.state.send_if_modified(|state| {
            let begins = state.is_none();
            state.get_or_insert_with(|| Quarantined { neutralised, since: Instant::now() });
            begins
        });
        self.shared.now.set(1.0);
    }

    /// What it did, if the plugin gets no calls.
    #[must_use]
    pub fn quarantined(&self) -> Option<Quarantined> {
        *self.shared.state.borrow()
    }

    /// Counts what was neutralised in one answer of the plugin.
    pub(crate) fn count(&self, report: &Report) {
        let Some(threshold) = self.shared.threshold else { return };
        let syntax = report.neutralised.iter().filter(|(family, _)| !NOT_SYNTAX.contains(family));
        let count = syntax.fold(0u32, |sum, (_, count)| sum.saturating_add(*count));
        if count == 0 {
            return;
        }
        let now = Instant::now();
        let mut window = self.shared.window.lock().unwrap_or_else(PoisonError::into_inner);
        let neutralised = window.add(now, count);
        if neutralised < threshold.get() {
            return;
        }
        self.shared.apart.store(true, Ordering::Release);
        // Told under the lock, so that lifting and quarantining are seen in their order.
        let begins = self.shared.state.send_if_modified(|state| {
            let begins = state.is_none();
            state.get_or_insert(Quarantined { neutralised, since: now });
            begins
        });
        if begins {
            self.shared.times.increment(1);
            self.shared.now.set(1.0);
        }
    }
}

/// Makes [`Quarantining`] services.
#[derive(Debug, Clone)]
pub struct QuarantineLayer {
    quarantine: Quarantine,
}

impl QuarantineLayer {
    /// A layer that refuses while this quarantine lasts.
    #[must_use]
    pub fn new(quarantine: Quarantine) -> Self {
        Self { quarantine }
    }
}

impl<S> Layer<S> for QuarantineLayer {
    type Service = Quarantining<S>;
    fn layer(&self, inner: S) -> Quarantining<S> {
        Quarantining { quarantine: self.quarantine.clone(), inner }
    }
}

/// Refuses calls while the quarantine lasts: see the [module](self).
#[derive(Debug, Clone)]
pub struct Quarantining<S> {
    quarantine: Quarantine,
    inner: S,
}

impl<S> Service<Call> for Quarantining<S>
where
    S: Service<Call, Error = CallError> + Clone,
{
    type Response = S::Response;
    type Error = CallError;
    type Future = ResponseFuture<S>;

    /// Always ready: a quarantined plugin's calls wait for nothing.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        if self.quarantine.is_quarantined() {
            return ResponseFuture { future: None, refused: Some(call.plugin.clone()) };
        }
        ResponseFuture { future: Some(onward(&mut self.inner, call)), refused: None }
    }
}

pin_project! {
    /// The answer to one call, or a refusal.
    pub struct ResponseFuture<S>
    where
        S: Service<Call>,
    {
        #[pin]
        future: Option<Onward<S>>,
        refused: Option<Arc<str>>,
    }
}

impl<S> Future for ResponseFuture<S>
where
    S: Service<Call, Error = CallError>,
{
    type Output = Result<S::Response, CallError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(future) = this.future.as_mut().as_pin_mut() {
            return future.poll(cx);
        }
        let plugin = this.refused.take().expect("polled after it was done").to_string();
        Poll::Ready(Err(QuarantineError { plugin }.into()))
    }
}

#[cfg(test)]
mod tests;
