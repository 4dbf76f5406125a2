use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower_test::mock::{self, Handle, Spawn};

use super::*;
use crate::answer::RawAnswer;
use crate::testing::{call, raw};

type Plugin = Handle<Call, RawAnswer>;
type Service = Spawn<Breaker<mock::Mock<Call, RawAnswer>>>;

const SETTINGS: BreakerSettings =
    BreakerSettings { failures: 2, window: Duration::from_secs(60), open_for: Duration::from_secs(10) };

fn breaker() -> (Service, Plugin, BreakerGauge) {
    let layer = BreakerLayer::new(SETTINGS);
    let gauge = layer.gauge();
    let (service, mut plugin) = mock::spawn_layer(layer);
    plugin.allow(u64::MAX);
    (service, plugin, gauge)
}

/// One call that ends with this error.
async fn fail(service: &mut Service, plugin: &mut Plugin, error: CallError) {
    let mut waiting = task::spawn(service.call(call("1")));
    assert_pending!(waiting.poll());
    plugin.next_request().await.expect("the call goes down").1.send_error(error);
    assert_ready_err!(waiting.poll());
}

fn died() -> CallError {
    CallError::fault(reason::DIED, "it died")
}

async fn open(service: &mut Service, plugin: &mut Plugin) {
    fail(service, plugin, died()).await;
    fail(service, plugin, died()).await;
}

// Promises: GUARD-41
#[tokio::test(start_paused = true)]
async fn opens_on_repeated_faults_and_says_when_to_come_back() {
    let (mut service, mut plugin, gauge) = breaker();
    open(&mut service, &mut plugin).await;
    assert_eq!(gauge.state(), BreakerState::Open);

    // A little more than three seconds: the remaining time is rounded up, so that no caller retries too
    // early.
    tokio::time::advance(Duration::from_micros(3_000_500)).await;
    let error = service.call(call("3")).await.unwrap_err();
    assert_eq!(error.to_string(), "plugin \"x\" failed too often and gets no calls for now; try again in 7s");
    assert!(matches!(error, CallError::Refused { reason: "breaker_open", retryable: true, .. }));
    assert_pending!(plugin.poll_request());
}

// Promises: GUARD-41
#[tokio::test(start_paused = true)]
async fn one_probe_closes_it_again() {
    let (mut service, mut plugin, gauge) = breaker();
    open(&mut service, &mut plugin).await;
    tokio::time::advance(Duration::from_secs(10)).await;

    let mut probe = task::spawn(service.call(call("probe")));
    assert_pending!(probe.poll());
    assert_eq!(gauge.state(), BreakerState::HalfOpen);
    let other = service.call(call("other")).await.unwrap_err();
    assert!(other.to_string().contains("just being tried"), "{other}");

    plugin.next_request().await.expect("the probe goes down").1.send_response(raw("probe", ""));
    assert_ready_ok!(probe.poll());
    assert_eq!(gauge.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_probe_whose_caller_goes_away_hands_over() {
    let (mut service, mut plugin, gauge) = breaker();
    open(&mut service, &mut plugin).await;
    tokio::time::advance(Duration::from_secs(10)).await;
    let mut probe = task::spawn(service.call(call("probe")));
    assert_pending!(probe.poll());
    drop(probe);
    assert_eq!(gauge.state(), BreakerState::HalfOpen);
    assert_pending!(task::spawn(service.call(call("next"))).poll());
}

// Promises: GUARD-42
#[tokio::test(start_paused = true)]
async fn what_is_no_fault_of_the_plugin_does_not_open_it() {
    for harmless in [
        CallError::refused(reason::OVERLOADED, "full"),
        CallError::refused(reason::TOO_LARGE, "8 MiB"),
        CallError::fault(reason::PLUGIN_ERROR, "INVALID_ARGUMENT"),
        CallError::defect("ours"),
        CallError::fault(reason::UNAVAILABLE, "stopped on request").with_retryable(false),
    ] {
        let (mut service, mut plugin, gauge) = breaker();
        for _ in 0..5 {
            fail(&mut service, &mut plugin, harmless.clone()).await;
        }
        assert_eq!(gauge.state(), BreakerState::Closed, "{harmless:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_broke_opens_it_whether_or_not_a_retry_can_help() {
    let (mut service, mut plugin, gauge) = breaker();
    let broken = CallError::fault(reason::UNAVAILABLE, "the connection failed").with_unknown_effect();
    for _ in 0..SETTINGS.failures {
        fail(&mut service, &mut plugin, broken.clone()).await;
    }
    assert_eq!(gauge.state(), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_at_its_deadline_is_a_fault_and_an_earlier_one_is_not() {
    let (mut service, _plugin, gauge) = breaker();
    for (passes, state) in [(4, BreakerState::Closed), (5, BreakerState::Open)] {
        for _ in 0..SETTINGS.failures {
            let mut timed = call("1");
            timed.deadline = Some(Instant::now() + Duration::from_secs(5));
            let mut waiting = task::spawn(service.call(timed));
            assert_pending!(waiting.poll());
            tokio::time::advance(Duration::from_secs(passes)).await;
            drop(waiting);
        }
        assert_eq!(gauge.state(), state);
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_may_come_back_by_itself_counts_while_it_does_not() {
    let (mut service, mut plugin, gauge) = breaker();
    for _ in 0..SETTINGS.failures {
        fail(&mut service, &mut plugin, CallError::fault(reason::UNAVAILABLE, "it restarts")).await;
    }
    assert_eq!(gauge.state(), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_caller_in_a_hurry_cannot_open_it_for_the_others() {
    let (mut service, mut plugin, gauge) = breaker();
    let hurried = || {
        let mut call = call("1");
        call.timeout = Some(Duration::from_millis(1));
        call.deadline = Some(Instant::now() + Duration::from_millis(1));
        call
    };
    for noticed_below in [true, false, true, false] {
        let mut waiting = task::spawn(service.call(hurried()));
        assert_pending!(waiting.poll());
        let (_, reply) = plugin.next_request().await.expect("the call goes down");
        tokio::time::advance(Duration::from_millis(1)).await;
        if noticed_below {
            reply.send_error(CallError::fault(reason::TIMED_OUT, "too late"));
            assert_ready_err!(waiting.poll());
        }
    }
    assert_eq!(gauge.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn can_be_watched_and_reset() {
    let (mut service, mut plugin, gauge) = breaker();
    let mut watch = gauge.subscribe();
    open(&mut service, &mut plugin).await;
    assert!(watch.has_changed().unwrap());
    assert_eq!(*watch.borrow_and_update(), BreakerState::Open);
    gauge.reset();
    assert_eq!(*watch.borrow_and_update(), BreakerState::Closed);
    assert_pending!(task::spawn(service.call(call("3"))).poll());
}
