use talon_guard::Origin;

use super::*;

fn begin(log: &CallLog, id: &str, arguments: Option<String>) -> RunningCall {
    let call = Call::new(id, "files", "read", Origin::Model);
    log.begin(NewCall {
        call: &call,
        subject: "gw:a/1".into(),
        session: "s",
        trace_id: String::new(),
        arguments,
        measured: false,
    })
    .0
}

// Promises: GW-130
#[test]
fn the_latest_calls_are_kept_and_those_that_run_stay() {
    let log = CallLog::default();
    let long = begin(&log, "long.0", None);
    for number in 0..KEPT_CALLS + 10 {
        drop(begin(&log, &format!("c.{number}"), None));
    }
    let all = log.latest(usize::MAX, None);
    assert_eq!(all.len(), KEPT_CALLS + 1);
    assert_eq!(&*all[0].id, format!("c.{}", KEPT_CALLS + 9).as_str());
    assert!(all.last().unwrap().end().is_none() && log.get("long.0").is_some());
    assert!(log.get("c.0").is_none_or(|call| &*call.id != "c.0"));
    drop(long);
    assert_eq!(log.latest(usize::MAX, None).len(), KEPT_CALLS);
    assert_eq!(log.latest(5, None).len(), 5);
    assert!(log.latest(5, Some("other")).is_empty());
    assert_eq!(all[0].end().unwrap().outcome, "cancelled");
}

// Promises: GW-130
#[test]
fn arguments_are_kept_within_a_bound_for_one_call_and_for_all() {
    let log = CallLog::default();
    drop(begin(&log, "huge.0", Some("x".repeat(MAX_ARGUMENT_BYTES + 1))));
    assert_eq!(log.get("huge.0").unwrap().arguments(), None);
    let many = MAX_ARGUMENTS_BYTES / MAX_ARGUMENT_BYTES + 3;
    for number in 0..many {
        drop(begin(&log, &format!("c{number}.0"), Some("x".repeat(MAX_ARGUMENT_BYTES))));
    }
    let kept = log.latest(usize::MAX, None).iter().filter(|call| call.arguments().is_some()).count();
    assert_eq!(kept, MAX_ARGUMENTS_BYTES / MAX_ARGUMENT_BYTES);
    assert!(log.get("c0.0").unwrap().arguments().is_none());
}

#[test]
fn calls_are_measured_while_somebody_looks() {
    let log = CallLog::default();
    drop(begin(&log, "a.0", None));
    assert!(log.latest(1, None)[0].timings.is_none());
    drop(begin(&log, "b.0", None));
    assert!(log.get("b.0").unwrap().timings.is_some());
}
