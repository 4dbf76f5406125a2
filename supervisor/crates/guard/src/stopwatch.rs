//! Measures how much time each layer of a stack takes, without the layers below it.
//!
//! A [`Stopwatch`] wraps layers: each records when a call comes in and when its answer goes out. A layer's
//! self time is the time between its two marks minus the time between those of the next layer below it. The
//! outermost layer adds up the times when the answer leaves the stack.
//!
//! It runs only while a client reads the metrics ([`Stopwatch::run_for`]), and measures one call in
//! [`SAMPLE_INTERVAL`]: reading the clock twice for each layer takes one microsecond a call, and four on a
//! virtual machine whose clock is slow. A stopped stopwatch costs one memory read a call.
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

use crate::arc_by_id::ArcById;
use crate::call::Call;
use crate::layer_timings::{LayerKind, LayerTimings};

/// One call in this many is measured, starting with the first. That is at most half a microsecond a call on
/// average, and enough calls for a histogram. The other calls are not recorded.
pub const SAMPLE_INTERVAL: u64 = 8;

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
        let histogram = |layer_kind: LayerKind| metrics::histogram!("talon_guard_layer_duration_seconds", "layer" => layer_kind.as_str());
        let shared = Shared {
            epoch: Instant::now(),
            until: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            histograms: LayerKind::ALL.map(histogram),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Measures calls that come in within this time from now, one in [`SAMPLE_INTERVAL`].
    pub fn run_for(&self, time: Duration) {
        let until = self.shared.epoch.elapsed().saturating_add(time).as_nanos();
        self.shared.until.store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether to measure the call that comes in now.
    #[inline]
    fn should_sample(&self) -> bool {
        let until = self.shared.until.load(Ordering::Relaxed);
        until > 0
            && self.shared.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLE_INTERVAL)
            && self.shared.epoch.elapsed() < Duration::from_nanos(until)
    }

    /// A layer whose time is measured.
    pub fn layer<L>(&self, layer_kind: LayerKind, layer: L) -> TimedLayer<L> {
        TimedLayer { layer, layer_kind, watch: self.clone() }
    }

    /// The same for the service inside the stack.
    pub fn service<S>(&self, layer_kind: LayerKind, inner: S) -> Timed<S> {
        // Only the outermost layer needs it. A copy in each layer would cost a reference count for each clone
        // of the stack.
        Timed { inner, layer_kind, watch: (layer_kind == LayerKind::Trace).then(|| self.clone()) }
    }

    fn record(&self, timings: &LayerTimings) {
        for (layer_kind, time) in timings.self_times() {
            self.shared.histograms[layer_kind.index()].record(time);
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
    layer_kind: LayerKind,
    watch: Stopwatch,
}

impl<S, L: Layer<S>> Layer<S> for TimedLayer<L> {
    type Service = Timed<L::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        self.watch.service(self.layer_kind, self.layer.layer(inner))
    }
}

/// Records when calls enter and leave: see the [module](self).
#[derive(Clone)]
pub struct Timed<S> {
    inner: S,
    layer_kind: LayerKind,
    /// Set for the outermost layer alone, which decides whether a call is measured and adds up the times.
    watch: Option<Stopwatch>,
}

impl<S: Service<Call>> Service<Call> for Timed<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = TimedFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, mut call: Call) -> Self::Future {
        let watch = self.watch.as_ref().filter(|watch| watch.should_sample()).cloned();
        if watch.is_some() && call.layer_timings.is_none() {
            call.layer_timings = Some(ArcById::new(Arc::new(LayerTimings::new())));
        }
        let timings = call.layer_timings.clone();
        if let Some(timings) = &timings {
            timings.record_start(self.layer_kind);
        }
        TimedFuture { future: self.inner.call(call), timings, layer_kind: self.layer_kind, watch }
    }
}

pin_project! {
    /// The answer to one call.
    pub struct TimedFuture<F> {
        #[pin]
        future: F,
        timings: Option<ArcById<LayerTimings>>,
        layer_kind: LayerKind,
        watch: Option<Stopwatch>,
    }
}

impl<F: Future> Future for TimedFuture<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.future.poll(cx));
        if let Some(timings) = this.timings {
            timings.record_end(*this.layer_kind);
            if let Some(watch) = this.watch {
                watch.record(timings);
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

    fn timings(marks: &[(LayerKind, u64, u64)]) -> LayerTimings {
        let timings = LayerTimings::new();
        for (layer_kind, down, up) in marks {
            timings.marks[layer_kind.index()].0.store(*down, Ordering::Relaxed);
            timings.marks[layer_kind.index()].1.store(*up, Ordering::Relaxed);
        }
        timings
    }

    // Promises: METRIC-5
    #[test]
    fn a_layers_own_time_is_without_what_is_below_it() {
        // Without taint, which a host may leave out; truncate cancelled the layers below it.
        let timings = timings(&[
            (LayerKind::Trace, 1, 100),
            (LayerKind::Wrap, 11, 95),
            (LayerKind::Truncate, 20, 90),
            (LayerKind::Sanitize, 30, 0),
        ]);
        let times: Vec<(&str, u128)> =
            timings.self_times().map(|(layer_kind, time)| (layer_kind.as_str(), time.as_nanos())).collect();
        assert_eq!(times, [("trace", 15), ("wrap", 14), ("truncate", 70)]);
    }

    #[test]
    fn the_words_are_one_for_each_place() {
        for (place, layer_kind) in LayerKind::ALL.into_iter().enumerate() {
            assert_eq!(layer_kind.index(), place);
        }
    }

    // Promises: METRIC-5
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
        let timings = stack.clone().oneshot(call()).await.unwrap().unwrap();
        let timed: Vec<LayerKind> = timings.self_times().map(|(layer_kind, _)| layer_kind).collect();
        assert_eq!(timed, [LayerKind::Trace, LayerKind::Wrap]);
        for _ in 1..SAMPLE_INTERVAL {
            assert!(stack.clone().oneshot(call()).await.unwrap().is_none());
        }
        assert!(stack.clone().oneshot(call()).await.unwrap().is_some());
        watch.run_for(Duration::ZERO);
        assert!(stack.oneshot(call()).await.unwrap().is_none());
    }
}
