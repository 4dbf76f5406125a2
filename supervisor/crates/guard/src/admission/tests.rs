//! The inner service is a mock: a call "runs" from the moment the mock hands it out until it is answered.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use tokio::sync::oneshot;
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok, task};
use tower::service_fn;
use tower_test::mock;

use super::*;
use crate::answer::RawAnswer;
use crate::testing::{call, raw};

fn layer(concurrency: usize, queue: usize) -> AdmissionLayer {
    AdmissionLayer::new(AdmissionSettings { concurrency, queue })
}

// Promises: GUARD-39
#[tokio::test(start_paused = true)]
async fn runs_up_to_the_limit_then_queues_then_refuses() {
    let layer = layer(1, 1);
    let gauge = layer.gauge();
    let (mut service, mut plugin) = mock::spawn_layer::<Call, RawAnswer, _>(layer);
    plugin.allow(3);

    assert_ready_ok!(service.poll_ready());
    let mut first = task::spawn(service.call(call("1")));
    assert_pending!(first.poll());
    let (_, reply) = assert_ready!(task::spawn(plugin.next_request()).poll()).expect("the first runs");

    let mut second = task::spawn(service.call(call("2")));
    assert_pending!(second.poll());
    assert_pending!(plugin.poll_request());
    assert_eq!((gauge.in_flight(), gauge.waiting()), (1, 1));

    let mut third = task::spawn(service.call(call("3")));
    let refused = assert_ready_err!(third.poll());
    assert_eq!(
        refused.to_string(),
        "plugin \"x\" is overloaded: 1 calls run and 1 wait; try again a little later"
    );
    assert!(matches!(refused, CallError::Refused { reason: "overloaded", retryable: true, .. }));

    reply.send_response(raw("1", "done"));
    assert_ready_ok!(first.poll());
    assert!(second.is_woken());
    assert_pending!(second.poll());
    let (sent, reply) = assert_ready!(task::spawn(plugin.next_request()).poll()).expect("the second runs");
    assert_eq!(&*sent.id, "2");
    assert_eq!((gauge.in_flight(), gauge.waiting()), (1, 0));
    reply.send_response(raw("2", "done"));
    assert_ready_ok!(second.poll());
    assert_eq!((gauge.in_flight(), gauge.waiting()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_finished_call_frees_its_place_before_it_is_dropped() {
    let (mut service, mut plugin) = mock::spawn_layer::<Call, RawAnswer, _>(layer(1, 0));
    plugin.allow(2);
    let mut first = task::spawn(service.call(call("1")));
    assert_pending!(first.poll());
    let (_, reply) = plugin.next_request().await.expect("runs");
    reply.send_response(raw("1", ""));
    assert_ready_ok!(first.poll());
    let mut second = task::spawn(service.call(call("2")));
    assert_pending!(second.poll());
    drop(first);
}

// Promises: GUARD-40
#[tokio::test(start_paused = true)]
async fn a_waiter_that_gives_up_frees_its_place_in_the_queue() {
    let layer = layer(1, 1);
    let gauge = layer.gauge();
    let (mut service, mut plugin) = mock::spawn_layer::<Call, RawAnswer, _>(layer);
    plugin.allow(2);
    let mut first = task::spawn(service.call(call("1")));
    assert_pending!(first.poll());
    let mut second = task::spawn(service.call(call("2")));
    assert_pending!(second.poll());
    drop(second);
    assert_eq!(gauge.waiting(), 0);

    let mut third = task::spawn(service.call(call("3")));
    assert_pending!(third.poll());
    plugin.next_request().await.expect("the first runs").1.send_response(raw("1", ""));
    assert_ready_ok!(first.poll());
    assert!(third.is_woken());
    assert_pending!(third.poll());
    assert_eq!(&*plugin.next_request().await.expect("the third runs").0.id, "3");
}

// Promises: GUARD-40
#[tokio::test(start_paused = true)]
async fn a_running_call_that_is_dropped_frees_its_place() {
    let layer = layer(1, 1);
    let gauge = layer.gauge();
    let (mut service, mut plugin) = mock::spawn_layer::<Call, RawAnswer, _>(layer);
    plugin.allow(2);
    let mut first = task::spawn(service.call(call("1")));
    assert_pending!(first.poll());
    drop(first);
    assert_eq!(gauge.in_flight(), 0);
}

// Promises: GUARD-6
#[tokio::test(start_paused = true)]
async fn waiting_ends_with_the_deadline() {
    let layer = layer(1, 1);
    let gauge = layer.gauge();
    let (mut service, mut plugin) = mock::spawn_layer::<Call, RawAnswer, _>(layer);
    plugin.allow(2);
    let mut first = task::spawn(service.call(call("1")));
    assert_pending!(first.poll());

    let mut late = call("2");
    late.deadline = Some(Instant::now() + Duration::from_secs(3));
    let mut second = task::spawn(service.call(late));
    assert_pending!(second.poll());
    tokio::time::advance(Duration::from_millis(2999)).await;
    assert_pending!(second.poll());
    tokio::time::advance(Duration::from_millis(1)).await;
    let refused = assert_ready_err!(second.poll());
    assert_eq!(
        refused.to_string(),
        "plugin \"x\" is overloaded: no free place within 3s; try again a little later"
    );
    assert_eq!(refused.reason(), "overloaded");
    assert_eq!(gauge.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn services_of_one_layer_share_its_places() {
    let layer = layer(1, 0);
    let (a, mut plugin) = mock::pair::<Call, RawAnswer>();
    plugin.allow(2);
    let (mut one, mut other) = (layer.layer(a.clone()), layer.layer(a));
    let mut first = task::spawn(one.call(call("1")));
    assert_pending!(first.poll());
    assert_ready_err!(task::spawn(other.call(call("2"))).poll());
}

#[tokio::test(start_paused = true)]
async fn a_concurrency_of_zero_is_one() {
    let (mut service, mut plugin) = mock::spawn_layer::<Call, RawAnswer, _>(layer(0, 0));
    plugin.allow(1);
    assert_pending!(task::spawn(service.call(call("1"))).poll());
}

/// What may happen to an admission layer.
#[derive(Debug, Clone)]
enum Step {
    Arrive,
    /// The plugin answers the n-th of the running calls.
    Answer(usize),
    /// The n-th of all live callers goes away.
    GiveUp(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Arrive),
        2 => any::<usize>().prop_map(Step::Answer),
        1 => any::<usize>().prop_map(Step::GiveUp),
    ];
    proptest::collection::vec(step, 1..80)
}

proptest! {
    // Promises: GUARD-39
    #[test]
    fn never_exceeds_its_limits_and_leaves_no_caller_behind(
        concurrency in 1usize..4, queue in 0usize..5, steps in steps(),
    ) {
        // No deadline is set, so nothing here needs a clock.
        type Running = Rc<RefCell<Vec<(Arc<str>, oneshot::Sender<()>)>>>;
        let running: Running = Rc::default();
        let entered: Rc<RefCell<Vec<usize>>> = Rc::default();
        let layer = layer(concurrency, queue);
        let gauge = layer.gauge();
        let mut service = layer.layer(service_fn({
            let (running, entered) = (running.clone(), entered.clone());
            move |call: Call| {
                let (reply, answered) = oneshot::channel();
                entered.borrow_mut().push(call.id.parse().expect("ids are numbers here"));
                running.borrow_mut().push((call.id.clone(), reply));
                async move { answered.await.map_err(|_| CallError::defect("nobody answers")) }
            }
        }));

        let mut live = Vec::new();
        let mut arrived = 0;
        let settle = |live: &mut Vec<(usize, task::Spawn<_>)>| {
            // Polls until nothing moves: an answer may let several waiters in, one after the other.
            loop {
                let before = live.len();
                live.retain_mut(|(_, caller): &mut (usize, task::Spawn<ResponseFuture<_>>)| caller.poll().is_pending());
                if live.len() == before { break }
            }
        };
        for step in steps {
            match step {
                Step::Arrive => {
                    live.push((arrived, task::spawn(service.call(call(&arrived.to_string())))));
                    arrived += 1;
                }
                Step::Answer(n) => {
                    let mut running = running.borrow_mut();
                    if !running.is_empty() {
                        let n = n % running.len();
                        let _ = running.remove(n).1.send(());
                    }
                }
                Step::GiveUp(n) => {
                    if !live.is_empty() {
                        let n = n % live.len();
                        let (id, caller) = live.remove(n);
                        drop(caller);
                        running.borrow_mut().retain(|(running, _)| **running != *id.to_string());
                    }
                }
            }
            settle(&mut live);
            prop_assert!(running.borrow().len() <= concurrency);
            prop_assert_eq!(gauge.in_flight(), running.borrow().len());
            prop_assert!(gauge.waiting() <= queue);
            prop_assert_eq!(gauge.in_flight() + gauge.waiting(), live.len());
            // No call waits while a permit is free.
            prop_assert!(gauge.waiting() == 0 || gauge.in_flight() == concurrency);
        }
        // First come, first served.
        prop_assert!(entered.borrow().is_sorted());

        // Once the plugin answers everything, no call remains.
        while !live.is_empty() {
            prop_assert!(!running.borrow().is_empty(), "{} callers are stuck", live.len());
            for (_, reply) in running.borrow_mut().drain(..) {
                let _ = reply.send(());
            }
            settle(&mut live);
        }
        prop_assert_eq!((gauge.in_flight(), gauge.waiting()), (0, 0));
    }
}
