use std::collections::BTreeMap;

use talon_event_bus::{Delivery, KindSet, Subscription};
use talon_proto::host::GuardLayer;

use super::*;
use crate::driver::GuardTrace;

fn kinds(subscription: &mut Subscription) -> Vec<Payload> {
    std::iter::from_fn(|| subscription.try_next())
        .map(|delivery| match delivery {
            Delivery::Event(event) => {
                assert_eq!((event.sender.as_str(), event.session_id.as_str()), ("anna", "s1"));
                event.payload.clone().expect("each event has one")
            }
            Delivery::Missed(missed) => panic!("{missed} are missing"),
        })
        .collect()
}

// Promises: GW-152
#[test]
fn a_finished_call_says_what_each_layer_did_and_a_refusal_and_what_was_neutralized_are_events_too() {
    let bus = EventBus::default();
    let observer = BusObserver::new(Arc::new(()), bus.clone());
    assert!(!observer.wants_layer_times(), "nobody watches");
    let mut watch = bus.subscribe(KindSet::all()).expect("room");
    assert!(observer.wants_layer_times());
    let caller = Caller { sender: "anna".to_owned(), session: "s1".to_owned(), ..Caller::default() };
    let layer = |name: &str, verdict: &str, reason: &str| GuardLayer {
        layer: name.to_owned(),
        verdict: verdict.to_owned(),
        duration_ns: Some(7),
        reason: reason.to_owned(),
    };
    let trace = GuardTrace {
        reason: "not_granted".to_owned(),
        layers: vec![layer("sanitize", "changed", ""), layer("resolve", "deny", "not_granted")],
        neutralized: BTreeMap::from([("tag".to_owned(), 2)]),
    };
    let call = FinishedCall {
        call_id: "c1",
        tool: "files.read",
        plugin: "files",
        action: "read",
        outcome: CallOutcome::Failed,
        latency: Duration::from_millis(3),
        truncated: false,
        guard: &trace,
    };
    observer.on_tool_call(&caller, &call);
    let told = kinds(&mut watch);
    let [
        Payload::ToolComplete(complete),
        Payload::GuardRefused(refused),
        Payload::GuardNeutralized(neutralized),
    ] = &told[..]
    else {
        panic!("{told:?}")
    };
    assert_eq!((complete.outcome.as_str(), complete.reason.as_str()), ("failed", "not_granted"));
    assert_eq!((complete.duration_ms, &complete.layers), (3, &trace.layers));
    assert_eq!((refused.layer.as_str(), refused.call_id.as_str()), ("resolve", "c1"));
    assert_eq!((neutralized.layer.as_str(), neutralized.neutralized["tag"]), ("sanitize", 2));
}

#[test]
fn a_call_that_passed_is_no_event_of_the_guard() {
    let bus = EventBus::default();
    let observer = BusObserver::new(Arc::new(()), bus.clone());
    let mut watch = bus.subscribe(KindSet::all()).expect("room");
    let caller = Caller { sender: "anna".to_owned(), session: "s1".to_owned(), ..Caller::default() };
    let call = FinishedCall {
        call_id: "c1",
        tool: "files.read",
        plugin: "files",
        action: "read",
        outcome: CallOutcome::Succeeded,
        latency: Duration::ZERO,
        truncated: false,
        guard: &GuardTrace::default(),
    };
    observer.on_tool_call(&caller, &call);
    let told = kinds(&mut watch);
    assert!(matches!(&told[..], [Payload::ToolComplete(_)]), "{told:?}");
}
