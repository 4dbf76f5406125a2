//! Measures how much time each layer of a stack takes, without the layers below it.
//!
//! A [`Stopwatch`] wraps layers: each records when a call comes in and when its answer goes out. A layer's self time is
//! the time between its two marks minus the time between those of the next layer below it. The outermost layer adds up
//! the times when the answer leaves the stack.
//!
//! It runs only while a client reads the metrics ([`Stopwatch::run_for`]), and measures one call in [`EVERY`]: reading
//! the clock twice for each layer takes one microsecond a call, and four on a virtual machine whose clock is slow. A
//! stopped stopwatch costs one memory read a call.
//!
//! | metric | labels | meaning |
//! |---|---|---|
//! | `talon_guard_layer_duration_seconds` | layer | a layer's self time in one call |
//!
//! The plugin is not a label: these are the costs of the guard. The time of the plugin is under `instance`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use metrics::Histogram;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::call::{ArcById, Call};

/// One call in this many is measured, starting with the first. That is at most half a microsecond a call on average,
/// and enough calls for a histogram. The other calls are not recorded.
pub const SAMPLE_INTERVAL: u64 = 8;

/// A layer of the stack, or the service inside it, the outermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the layers, and described where those are")]
pub enum LayerKind {
    Trace,
    Taint,
    Wrap,
    Truncate,
    Sanitize,
    Rescue,
    Validate,
    Resolve,
    Quarantine,
    Deadline,
    Breaker,
    Admission,
    /// The service inside the stack: the wait for an instance, and its answer.
    Instance,
}

impl LayerKind {
    /// All layers in their order, the outermost first. Documentation and stacks are tested against it.
    pub const ALL: [Self; 13] = [
        Self::Trace,
        Self::Taint,
        Self::Wrap,
        Self::Truncate,
        Self::Sanitize,
        Self::Rescue,
        Self::Validate,
        Self::Resolve,
        Self::Quarantine,
        Self::Deadline,
        Self::Breaker,
        Self::Admission,
        Self::Instance,
    ];

    /// The value of the `layer` label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Taint => "taint",
            Self::Wrap => "wrap",
            Self::Truncate => "truncate",
            Self::Sanitize => "sanitize",
            Self::Rescue => "rescue",
            Self::Validate => "validate",
            Self::Resolve => "resolve",
            Self::Quarantine => "quarantine",
            Self::Deadline => "deadline",
            Self::Breaker => "breaker",
            Self::Admission => "admission",
            Self::Instance => "instance",
        }
    }

    fn index(self) -> usize {
        self as usize
    }
}

/// When a call entered and left each layer, in nanoseconds since it came in; 0 for a layer it did not reach.
pub struct LayerTimings {
    began: Instant,
    marks: [(AtomicU64, AtomicU64); LayerKind::ALL.len()],
}

impl LayerTimings {
    fn new() -> Self {
        Self { began: Instant::now(), marks: Default::default() }
    }

    fn now(&self) -> u64 {
        // Never 0, which means that nothing was recorded.
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    fn record_start(&self, step: LayerKind) {
        self.marks[step.index()].0.store(self.now(), Ordering::Relaxed);
    }

    fn record_end(&self, step: LayerKind) {
        self.marks[step.index()].1.store(self.now(), Ordering::Relaxed);
    }

    /// Each layer's self time. A layer that was cancelled has no end mark; its time counts for the layer that cancelled
    /// it.
    fn self_times(&self) -> impl Iterator<Item = (LayerKind, Duration)> {
        let marked = |step: &LayerKind| {
            let (down, up) = &self.marks[step.index()];
            let (down, up) = (down.load(Ordering::Relaxed), up.load(Ordering::Relaxed));
            (down > 0 && up > 0).then_some((*step, down, up))
        };
        let mut marked = LayerKind::ALL.iter().filter_map(marked).peekable();
        std::iter::from_fn(move || {
            let (step, down, up) = marked.next()?;
            let inside = marked.peek().map_or(0, |(_, down, up)| up.saturating_sub(*down));
            Some((step, Duration::from_nanos(up.saturating_sub(down).saturating_sub(inside))))
        })
    }
}

/// Measures the layers of any number of stacks. Clones share their state.
#[derive(Clone)]
pub struct Stopwatch {
    shared: Arc<Shared>,
}

struct Shared {
    epoch: Instant,
    /// When it stops, in nanoseconds since the epoch; 0 if it was never started.
    until: AtomicU64,
    /// Counts the calls while it runs.
    calls: AtomicU64,
    histograms: [Histogram; LayerKind::ALL.len()],
}

impl Stopwatch {
    /// A stopped stopwatch. Its series are registered with the metrics recorder that is installed now.
    #[must_use]
    pub fn new() -> Self {
        let histogram = |step: LayerKind| metrics::histogram!("talon_guard_layer_duration_seconds", "layer" => step.as_str());
        let shared = Shared {
            epoch: Instant::now(),
            until: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            histograms: LayerKind::ALL.map(histogram),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Measures calls that come in within this time from now, one in [`EVERY`].
    pub fn run_for(&self, time: Duration) {
        let until = self.shared.epoch.elapsed().saturating_add(time).as_nanos();
        self.shared.until.store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether to measure the call that comes in now.
    fn should_sample(&self) -> bool {
        let until = self.shared.until.load(Ordering::Relaxed);
        until > 0
            && self.shared.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLE_INTERVAL)
            && self.shared.epoch.elapsed() < Duration::from_nanos(until)
    }

    /// A layer whose time is measured.
    pub fn layer<L>(&self, step: LayerKind, layer: L) -> TimedLayer<L> {
        TimedLayer { layer, step, watch: self.clone() }
    }

    /// The same for the service inside the stack.
    pub fn service<S>(&self, step: LayerKind, inner: S) -> Timed<S> {
        // Only the outermost layer needs it. A copy in each layer would cost a reference count for each clone of the
        // stack.
        Timed { inner, step, watch: (step == LayerKind::Trace).then(|| self.clone()) }
    }

    fn record(&self, laps: &LayerTimings) {
        for (step, time) in laps.self_times() {
            self.shared.histograms[step.index()].record(time);
        }
    }
}

impl Default for Stopwatch {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes [`Timed`] services of the services that another layer makes.
#[derive(Clone)]
pub struct TimedLayer<L> {
    layer: L,
    step: LayerKind,
    watch: Stopwatch,
}

impl<S, L: Layer<S>> Layer<S> for TimedLayer<L> {
    type Service = Timed<L::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        self.watch.service(self.step, self.layer.layer(inner))
    }
}

/// Records when calls enter and leave: see the [module](self).
#[derive(Clone)]
pub struct Timed<S> {
    inner: S,
    step: LayerKind,
    /// Set for the outermost layer alone, which decides whether a call is measured and adds up the times.
    watch: Option<Stopwatch>,
}

impl<S: Service<Call>> Service<Call> for Timed<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = TimedFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut call: Call) -> Self::Future {
        let watch = self.watch.as_ref().filter(|watch| watch.should_sample()).cloned();
        if watch.is_some() {
            call.layer_timings = Some(ArcById::new(Arc::new(LayerTimings::new())));
        }
        let laps = call.layer_timings.clone();
        if let Some(laps) = &laps {
            laps.record_start(self.step);
        }
        TimedFuture { future: self.inner.call(call), laps, step: self.step, watch }
    }
}

pin_project! {
    /// The answer to one call.
    pub struct TimedFuture<F> {
        #[pin]
        future: F,
        laps: Option<ArcById<LayerTimings>>,
        step: LayerKind,
        watch: Option<Stopwatch>,
    }
}

impl<F: Future> Future for TimedFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.future.poll(cx));
        if let Some(laps) = this.laps {
            laps.record_end(*this.step);
            if let Some(watch) = this.watch {
                watch.record(laps);
            }
        }
        Poll::Ready(result)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::{ServiceBuilder, ServiceExt as _, service_fn};

    use super::*;
    use crate::call::Origin;

    fn laps(marks: &[(LayerKind, u64, u64)]) -> LayerTimings {
        let laps = LayerTimings::new();
        for (step, down, up) in marks {
            laps.marks[step.index()].0.store(*down, Ordering::Relaxed);
            laps.marks[step.index()].1.store(*up, Ordering::Relaxed);
        }
        laps
    }

    #[test]
    fn a_layers_own_time_is_without_what_is_below_it() {
        // Without taint, which a host may leave out; truncate cancelled the layers below it.
        let laps = laps(&[
            (LayerKind::Trace, 1, 100),
            (LayerKind::Wrap, 11, 95),
            (LayerKind::Truncate, 20, 90),
            (LayerKind::Sanitize, 30, 0),
        ]);
        let times: Vec<(&str, u128)> =
            laps.self_times().map(|(step, time)| (step.as_str(), time.as_nanos())).collect();
        assert_eq!(times, [("trace", 15), ("wrap", 14), ("truncate", 70)]);
    }

    #[test]
    fn the_words_are_one_for_each_place() {
        for (place, step) in LayerKind::ALL.into_iter().enumerate() {
            assert_eq!(step.index(), place);
        }
    }

    #[tokio::test]
    async fn it_measures_only_while_somebody_reads_it() {
        let watch = Stopwatch::new();
        let stack = ServiceBuilder::new()
            .layer(watch.layer(LayerKind::Trace, tower_layer::Identity::new()))
            .layer(watch.layer(LayerKind::Wrap, tower_layer::Identity::new()))
            .service(service_fn(|call: Call| {
                std::future::ready(Ok::<_, Infallible>(call.layer_timings.clone()))
            }));
        let call = || Call::new("c1", "hello", "greet", Origin::Model);
        assert!(stack.clone().oneshot(call()).await.unwrap().is_none());
        watch.run_for(Duration::from_secs(60));
        let laps = stack.clone().oneshot(call()).await.unwrap().unwrap();
        let timed: Vec<LayerKind> = laps.self_times().map(|(step, _)| step).collect();
        assert_eq!(timed, [LayerKind::Trace, LayerKind::Wrap]);
        for _ in 1..SAMPLE_INTERVAL {
            assert!(stack.clone().oneshot(call()).await.unwrap().is_none());
        }
        assert!(stack.clone().oneshot(call()).await.unwrap().is_some());
        watch.run_for(Duration::ZERO);
        assert!(stack.oneshot(call()).await.unwrap().is_none());
    }
}
