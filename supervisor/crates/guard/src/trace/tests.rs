use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString,
};
use parking_lot::Mutex;
use tokio_test::{assert_pending, assert_ready_ok, task};
use tower_test::mock;

use super::*;
use crate::answer::Answer;
use crate::error::CallError;
use crate::rescue::RescueLayer;
use crate::sanitize::SanitizeLayer;
use crate::testing::{answer, call, sanitizer};
use crate::wrap::WrapLayer;

/// Counts what is recorded, by name and labels.
#[derive(Default)]
struct Ledger(Mutex<BTreeMap<String, Arc<Cell>>>);

#[derive(Default)]
struct Cell(AtomicU64);

impl CounterFn for Cell {
    fn increment(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }
    fn absolute(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Counts the samples and not what they say: durations differ from run to run.
impl HistogramFn for Cell {
    fn record(&self, _: f64) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Ledger {
    fn cell(&self, key: &Key) -> Arc<Cell> {
        let labels: Vec<String> = key.labels().map(|l| format!("{}={}", l.key(), l.value())).collect();
        let name = format!("{}{{{}}}", key.name().trim_start_matches("talon_guard_"), labels.join(","));
        self.0.lock().entry(name).or_default().clone()
    }

    /// Everything that was registered: nothing without a count.
    fn recorded(&self) -> Vec<(String, u64)> {
        let cells = self.0.lock();
        cells.iter().map(|(name, cell)| (name.clone(), cell.0.load(Ordering::Relaxed))).collect()
    }
}

impl Recorder for Ledger {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }
    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.cell(key))
    }
}

/// What one call leaves in the ledger; `None` for a caller that goes away.
fn recorded(reply: Option<Result<Answer, CallError>>) -> Vec<(String, u64)> {
    let ledger = Ledger::default();
    metrics::with_local_recorder(&ledger, || {
        let (inner, mut below) = mock::pair::<Call, Answer>();
        let guarded = WrapLayer::default()
            .layer(SanitizeLayer::new(sanitizer()).layer(RescueLayer::new().layer(inner)));
        let mut service = TraceLayer::new("x").layer(guarded);
        let mut waiting = task::spawn(service.call(call("1")));
        assert_pending!(waiting.poll());
        let Poll::Ready(Some((_, replies))) = below.poll_request() else { panic!("the call goes down") };
        match reply {
            Some(Ok(answer)) => replies.send_response(answer),
            Some(Err(error)) => replies.send_error(error),
            None => return,
        }
        assert_ready_ok!(waiting.poll());
    });
    ledger.recorded()
}

fn assert_recorded(recorded: Vec<(String, u64)>, expected: &[(&str, u64)]) {
    let expected: Vec<(String, u64)> =
        expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    assert_eq!(recorded, expected);
}

#[test]
fn a_good_answer() {
    assert_recorded(
        recorded(Some(Ok(answer("fine", "", "")))),
        &[
            ("bytes_in_total{plugin=x}", 4),
            ("bytes_out_total{plugin=x}", 4),
            ("call_duration_seconds{plugin=x,outcome=ok}", 1),
            ("calls_total{plugin=x,outcome=ok,reason=}", 1),
        ],
    );
}

#[test]
fn a_tool_that_says_no() {
    let recorded = recorded(Some(Ok(answer("", "no such file", ""))));
    assert!(recorded.contains(&("calls_total{plugin=x,outcome=tool_error,reason=tool_error}".to_owned(), 1)));
}

#[test]
fn a_refusal_with_its_reason() {
    let recorded = recorded(Some(Err(CallError::refused(reason::OVERLOADED, "full"))));
    assert!(recorded.contains(&("calls_total{plugin=x,outcome=refused,reason=overloaded}".to_owned(), 1)));
    assert!(recorded.contains(&("call_duration_seconds{plugin=x,outcome=refused}".to_owned(), 1)));
}

#[test]
fn a_host_fault_with_a_word_of_the_hosts_own() {
    let recorded = recorded(Some(Err(CallError::fault("phase_of_the_moon", "full"))));
    assert!(recorded.contains(&("calls_total{plugin=x,outcome=host_fault,reason=other}".to_owned(), 1)));
}

#[test]
fn a_caller_that_goes_away() {
    assert_recorded(
        recorded(None),
        &[
            ("call_duration_seconds{plugin=x,outcome=cancelled}", 1),
            ("calls_total{plugin=x,outcome=cancelled,reason=cancelled}", 1),
        ],
    );
}

// Promises: GUARD-24
#[test]
fn what_was_neutralised_is_counted_by_family() {
    let recorded = recorded(Some(Ok(answer("[tool_call] and no json:", "", "<tool_call>"))));
    let of =
        |name: &str| -> u64 { recorded.iter().filter(|(n, _)| n.starts_with(name)).map(|(_, v)| v).sum() };
    assert_eq!(of("neutralised_total{plugin=x,family="), 2, "{recorded:?}");
    assert_eq!(of("structured_as_text_total"), 1);
}

#[test]
fn what_was_noticed_is_counted() {
    let ledger = Ledger::default();
    metrics::with_local_recorder(&ledger, || {
        let report = Report {
            kinds: [(("tag", "spelled"), 3)].into(),
            neutralised: [("tag", 3)].into(),
            flags: vec!["base64"],
            tainted_by: vec!["web".to_owned(), "mail".to_owned()],
            page: Some("0123".to_owned()),
            ..Report::default()
        };
        Meters::new("x".to_owned()).add(&report);
    });
    assert_recorded(
        ledger.recorded(),
        &[
            ("flagged_total{plugin=x,flag=base64}", 1),
            ("neutralised_kinds_total{plugin=x,family=tag,kind=spelled}", 3),
            ("neutralised_total{plugin=x,family=tag}", 3),
            ("paged_total{plugin=x}", 1),
            ("tainted_total{plugin=x}", 1),
        ],
    );
}

// Promises: GUARD-46
#[test]
fn no_label_comes_from_a_call() {
    let ledger = Ledger::default();
    metrics::with_local_recorder(&ledger, || {
        let (inner, _below) = mock::pair::<Call, Answer>();
        let guarded = WrapLayer::default()
            .layer(SanitizeLayer::new(sanitizer()).layer(RescueLayer::new().layer(inner)));
        let mut service = TraceLayer::for_unknown_plugins().layer(guarded);
        for i in 0..100 {
            let call = Call::new("1", format!("plugin{i}"), format!("action{i}"), crate::Origin::Model);
            drop(service.call(call));
        }
    });
    assert_recorded(
        ledger.recorded(),
        &[
            ("call_duration_seconds{plugin=(unknown),outcome=cancelled}", 100),
            ("calls_total{plugin=(unknown),outcome=cancelled,reason=cancelled}", 100),
        ],
    );
}
