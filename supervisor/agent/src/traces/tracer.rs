//! Which turns are traced, and the spans that wait to be sent.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use prost::Message as _;
use talon_agent_settings::{ProviderKeys, ProviderKind};
use talon_proto::agent::{Span, Spans};
use talon_trace_context::TraceParent;
use tokio::sync::Notify;

/// The most spans that wait: as many as the supervisor's own queue has. Further ones are dropped and counted.
const MAX_QUEUED_SPANS: usize = 2048;
/// The most bytes of spans in one message: a packet of the control socket has 64 KiB.
const MAX_PACKET_BYTES: usize = 48 << 10;

/// Records spans.
#[derive(Default)]
pub struct Tracer {
    state: Mutex<TracerState>,
    recorded: Notify,
}

#[derive(Default)]
struct TracerState {
    /// The share of turns that are traced where the client has not decided; `None`: traces are off.
    sample: Option<f64>,
    /// The conventions' names of providers, by their names in the configuration.
    providers: BTreeMap<String, &'static str>,
    queue: VecDeque<Span>,
    dropped: u64,
}

/// The position of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanContext {
    pub(super) position: TraceParent,
    /// The span above it; 0 without one.
    pub(super) parent: u64,
    pub(super) is_recorded: bool,
}

impl SpanContext {
    /// The position of a span below this one. Where nothing is recorded, it is the same.
    #[must_use]
    pub fn child(&self) -> Self {
        if !self.is_recorded {
            return *self;
        }
        let position = TraceParent { span_id: random_u64(), ..self.position };
        Self { position, parent: self.position.span_id, is_recorded: true }
    }

    /// The header that continues the trace below this span.
    #[must_use]
    pub fn header(&self) -> String {
        self.position.to_string()
    }
}

impl Tracer {
    /// Turns traces on, with this share of turns where the client has not decided, or off.
    pub fn set_sample(&self, sample: Option<f64>) {
        self.state.lock().sample = sample;
    }

    /// Sets what the providers of a configuration speak.
    pub fn set_providers(&self, providers: &ProviderKeys) {
        let names = providers.0.iter().map(|(name, entry)| (name.clone(), provider_name(entry.kind)));
        self.state.lock().providers = names.collect();
    }

    /// The name of a provider as the conventions have it.
    #[must_use]
    pub fn provider(&self, name: &str) -> String {
        self.state.lock().providers.get(name).map_or_else(|| name.to_owned(), |known| (*known).to_owned())
    }

    /// The position of a new turn: below the client's span, if it sent one. A client's decision whether the trace is
    /// recorded stands. Where traces are off, it is the client's own position, so that its trace reaches the plugins.
    #[must_use]
    pub fn begin(&self, client: Option<TraceParent>) -> Option<SpanContext> {
        let Some(share) = self.state.lock().sample else {
            return client.map(|position| SpanContext { position, parent: 0, is_recorded: false });
        };
        let trace_id = client.map_or_else(random_trace_id, |client| client.trace_id);
        let sampled = client.map_or_else(|| is_sampled(trace_id, share), |client| client.is_sampled());
        let flags = TraceParent::flags_of(sampled);
        Some(SpanContext {
            position: TraceParent { trace_id, span_id: random_u64(), flags },
            parent: client.map_or(0, |client| client.span_id),
            is_recorded: sampled,
        })
    }

    /// Adds a span, if there is room.
    pub(super) fn record(&self, span: Span) {
        let mut state = self.state.lock();
        if state.queue.len() >= MAX_QUEUED_SPANS {
            state.dropped += 1;
        } else {
            state.queue.push_back(span);
        }
        drop(state);
        self.recorded.notify_one();
    }

    /// The next spans to send, as many as fit one message; waits until there are some.
    pub async fn next(&self) -> Spans {
        loop {
            let recorded = self.recorded.notified();
            if let Some(spans) = self.take() {
                return spans;
            }
            recorded.await;
        }
    }

    fn take(&self) -> Option<Spans> {
        let mut state = self.state.lock();
        let mut spans = Spans { spans: Vec::new(), dropped: std::mem::take(&mut state.dropped) };
        let mut bytes = 0;
        while let Some(span) = state.queue.front() {
            bytes += span.encoded_len();
            if bytes > MAX_PACKET_BYTES && !spans.spans.is_empty() {
                break;
            }
            spans.spans.extend(state.queue.pop_front());
        }
        (!spans.spans.is_empty() || spans.dropped > 0).then_some(spans)
    }
}

/// Whether a new trace is recorded, by its id: so any other program that samples in this way decides alike.
fn is_sampled(trace_id: u128, share: f64) -> bool {
    // The conventional way: the lower 63 bits of the id against the share of them.
    let id = (trace_id as u64) >> 1;
    (id as f64) < share * (1_u64 << 63) as f64
}

/// The name of a provider in the conventions, or else our own word.
fn provider_name(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Responses => "openai",
        ProviderKind::Gemini => "gcp.gemini",
        ProviderKind::Mistral => "mistral_ai",
        kind => kind.word(),
    }
}

/// A number that is not zero.
fn random_u64() -> u64 {
    // Ids have to differ, and are no secret: the time does where the operating system has no random numbers.
    let fallback = || u64::from(std::time::Instant::now().elapsed().subsec_nanos());
    getrandom::u64().unwrap_or_else(|_| fallback()).max(1)
}

fn random_trace_id() -> u128 {
    (u128::from(random_u64()) << 64) | u128::from(random_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(name: &str) -> Span {
        Span { name: name.to_owned(), ..Span::default() }
    }

    // Promises: TRACE-19
    #[test]
    fn a_clients_decision_stands_and_without_traces_its_position_is_passed_on() {
        let client: TraceParent =
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().expect("a position");
        let tracer = Tracer::default();
        assert_eq!(tracer.begin(None), None);
        let off = tracer.begin(Some(client)).expect("a position");
        assert_eq!(off.child().header(), client.to_string());
        tracer.set_sample(Some(0.0));
        assert!(!tracer.begin(None).expect("a position").is_recorded);
        let turn = tracer.begin(Some(client)).expect("a position");
        assert_eq!(
            (turn.position.trace_id, turn.parent, turn.is_recorded),
            (client.trace_id, client.span_id, true)
        );
        let below = turn.child();
        assert_eq!((below.position.trace_id, below.parent), (client.trace_id, turn.position.span_id));
        assert_ne!(below.position.span_id, turn.position.span_id);
        let unsampled = TraceParent { flags: 0, ..client };
        tracer.set_sample(Some(1.0));
        let turn = tracer.begin(Some(unsampled)).expect("a position");
        assert!(!turn.is_recorded && turn.header().ends_with("-00"), "{}", turn.header());
        assert!(tracer.begin(None).expect("a position").is_recorded);
    }

    // Promises: TRACE-20
    #[tokio::test]
    async fn spans_wait_within_bounds_and_go_in_packets() {
        let tracer = Tracer::default();
        let long = "x".repeat(20 << 10);
        (0..5).for_each(|_| tracer.record(span(&long)));
        assert_eq!(tracer.next().await.spans.len(), 2);
        assert_eq!(tracer.next().await.spans.len(), 2);
        assert_eq!(tracer.next().await.spans.len(), 1);
        (0..MAX_QUEUED_SPANS + 7).for_each(|_| tracer.record(span("a")));
        let first = tracer.next().await;
        assert_eq!(first.dropped, 7);
        assert!(first.encoded_len() <= 64 << 10);
    }
}
