//! The layers of a stack, and when a call passed each.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// When a call entered and left each layer, in nanoseconds since it came in; 0 for a layer it did not reach.
pub struct LayerTimings {
    began: Instant,
    pub(crate) marks: [(AtomicU64, AtomicU64); LayerKind::ALL.len()],
}

impl Default for LayerTimings {
    fn default() -> Self {
        Self { began: Instant::now(), marks: Default::default() }
    }
}

impl LayerTimings {
    /// Timings of a call that comes in now. A host that sets `layer_timings` of a call has it measured,
    /// whatever the stopwatch samples.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn now(&self) -> u64 {
        // Never 0, which means that nothing was recorded.
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    pub(crate) fn record_start(&self, layer: LayerKind) {
        self.marks[layer.index()].0.store(self.now(), Ordering::Relaxed);
    }

    pub(crate) fn record_end(&self, layer: LayerKind) {
        self.marks[layer.index()].1.store(self.now(), Ordering::Relaxed);
    }

    /// Each layer's self time. A layer that was cancelled has no end mark; its time counts for the layer that
    /// cancelled it.
    pub fn self_times(&self) -> impl Iterator<Item = (LayerKind, Duration)> {
        let marked = |layer: &LayerKind| {
            let (down, up) = &self.marks[layer.index()];
            let (down, up) = (down.load(Ordering::Relaxed), up.load(Ordering::Relaxed));
            (down > 0 && up > 0).then_some((*layer, down, up))
        };
        let mut marked = LayerKind::ALL.iter().filter_map(marked).peekable();
        std::iter::from_fn(move || {
            let (layer, down, up) = marked.next()?;
            let inside = marked.peek().map_or(0, |(_, down, up)| up.saturating_sub(*down));
            Some((layer, Duration::from_nanos(up.saturating_sub(down).saturating_sub(inside))))
        })
    }
}
