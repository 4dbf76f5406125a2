//! With the settings of a provider's breaker: no window, several trials, and a longer time whenever one
//! fails.

use proptest::prelude::*;

use super::*;
use crate::settings::MAX_TIME;

const FAILURES: u32 = 3;
const OPEN_MAX: Duration = Duration::from_secs(600);
const SETTINGS: BreakerSettings = BreakerSettings {
    failures: FAILURES,
    window: Duration::MAX,
    open_for: Duration::from_secs(60),
    open_max: OPEN_MAX,
    successes: 2,
    trial_every: Duration::from_secs(5),
};

/// A change of state.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    from: BreakerState,
    to: BreakerState,
}

/// The change of state that a step makes.
fn watched<T>(
    breaker: &mut CircuitBreaker,
    step: impl FnOnce(&mut CircuitBreaker) -> T,
) -> (T, Option<Change>) {
    let (from, epoch) = (breaker.state(), breaker.epoch);
    let result = step(breaker);
    let to = breaker.state();
    assert_eq!(from != to, breaker.epoch != epoch, "each change of state is an epoch");
    (result, (from != to).then_some(Change { from, to }))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn settle(breaker: &mut CircuitBreaker, verdict: Verdict, now: Instant) -> Option<Change> {
    let admitted = breaker.admit(now).expect("it is admitted");
    watched(breaker, |breaker| breaker.settle(admitted, verdict, now)).1
}

/// An open one.
fn open(now: Instant) -> CircuitBreaker {
    let mut breaker = CircuitBreaker::new(SETTINGS);
    for _ in 0..FAILURES {
        settle(&mut breaker, Verdict::Failed, now);
    }
    assert_eq!(breaker.state(), BreakerState::Open);
    breaker
}

#[test]
fn failures_in_a_row_open_it_and_a_success_between_them_does_not() {
    let now = Instant::now();
    let mut breaker = CircuitBreaker::new(SETTINGS);
    for verdict in [
        Verdict::Failed,
        Verdict::Failed,
        Verdict::Healthy,
        Verdict::Failed,
        Verdict::Inconclusive,
        Verdict::Failed,
    ] {
        assert_eq!(settle(&mut breaker, verdict, now), None);
    }
    let change = settle(&mut breaker, Verdict::Failed, now);
    assert_eq!(change, Some(Change { from: BreakerState::Closed, to: BreakerState::Open }));
    assert_eq!(breaker.admit(now + seconds(59)), Err(seconds(1)));
    assert_eq!(breaker.retry_in(now + seconds(20)), seconds(40));
}

#[test]
fn two_probes_in_a_row_bring_it_back_and_one_does_not() {
    let now = Instant::now();
    let mut breaker = open(now);
    assert_eq!(breaker.next_trial(), Some(now + seconds(60)));
    assert_eq!(breaker.admit_trial(now + seconds(59)), None);
    let now = now + seconds(60);
    let (first, change) = watched(&mut breaker, |breaker| breaker.admit_trial(now));
    assert_eq!(change, Some(Change { from: BreakerState::Open, to: BreakerState::HalfOpen }));
    // One at a time, be it a probe or a request.
    assert_eq!(breaker.next_trial(), None);
    assert_eq!(breaker.admit_trial(now), None);
    assert_eq!(breaker.admit(now), Err(Duration::ZERO));
    breaker.settle(first.expect("it is due"), Verdict::Healthy, now);
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    // The next one waits, but a request does not.
    assert_eq!(breaker.admit_trial(now + seconds(4)), None);
    let second = breaker.admit_trial(now + seconds(5)).expect("it is due");
    let (_, change) =
        watched(&mut breaker, |breaker| breaker.settle(second, Verdict::Healthy, now + seconds(5)));
    assert_eq!(change, Some(Change { from: BreakerState::HalfOpen, to: BreakerState::Closed }));
    assert_eq!(breaker.next_trial(), None);
}

#[test]
fn each_failed_return_keeps_it_out_for_longer() {
    let mut now = Instant::now();
    let mut breaker = open(now);
    for time in [60, 120, 240, 480, 600, 600] {
        assert_eq!(breaker.retry_in(now), seconds(time));
        now += seconds(time);
        assert_eq!(settle(&mut breaker, Verdict::Healthy, now), (None));
        let change = settle(&mut breaker, Verdict::Failed, now);
        assert_eq!(change, Some(Change { from: BreakerState::HalfOpen, to: BreakerState::Open }));
    }
    now += seconds(600);
    settle(&mut breaker, Verdict::Healthy, now);
    settle(&mut breaker, Verdict::Healthy, now);
    assert_eq!(breaker.state(), BreakerState::Closed);
    for _ in 0..FAILURES {
        settle(&mut breaker, Verdict::Failed, now);
    }
    assert_eq!(breaker.retry_in(now), seconds(60));
}

#[test]
fn stragglers_of_a_bad_time_change_nothing() {
    let now = Instant::now();
    let mut breaker = CircuitBreaker::new(SETTINGS);
    let straggler = breaker.admit(now).expect("it is closed");
    for _ in 0..FAILURES {
        settle(&mut breaker, Verdict::Failed, now);
    }
    breaker.settle(straggler, Verdict::Healthy, now);
    assert_eq!(breaker.state(), BreakerState::Open);
    let now = now + seconds(60);
    settle(&mut breaker, Verdict::Healthy, now);
    breaker.settle(straggler, Verdict::Failed, now);
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
}

#[test]
fn a_trial_that_was_given_up_makes_room_for_the_next() {
    let now = Instant::now();
    let mut breaker = open(now);
    let now = now + seconds(60);
    assert_eq!(settle(&mut breaker, Verdict::Inconclusive, now), None);
    assert_eq!(breaker.next_trial(), Some(now + seconds(5)));
    assert!(breaker.admit(now).is_ok());
}

#[derive(Debug, Clone)]
enum Step {
    Wait(u64),
    Admit,
    Probe,
    Settle(usize, Verdict),
}

fn step() -> impl Strategy<Value = Step> {
    let verdict = prop_oneof![Just(Verdict::Healthy), Just(Verdict::Failed), Just(Verdict::Inconclusive)];
    prop_oneof![
        (0_u64..200).prop_map(Step::Wait),
        Just(Step::Admit),
        Just(Step::Probe),
        (any::<usize>(), verdict).prop_map(|(which, verdict)| Step::Settle(which, verdict)),
    ]
}

proptest! {
    /// Whatever happens in whatever order: it takes every step, changes only along its arrows, has one trial
    /// at most, and what is out always has a way back.
    #[test]
    fn no_sequence_of_events_leaves_the_machine(
        steps in prop::collection::vec(step(), 0..200), failures: u32, successes in 0_u32..5, open_for in 0_u64..1000,
    ) {
        let mut now = Instant::now();
        let settings = BreakerSettings {
            failures: failures % 5, successes, open_for: seconds(open_for), ..SETTINGS
        };
        let mut breaker = CircuitBreaker::new(settings);
        let mut under_way: Vec<Permit> = Vec::new();
        for step in steps {
            let before = breaker.state();
            let change = match step {
                Step::Wait(time) => {
                    now += seconds(time);
                    None
                }
                Step::Admit | Step::Probe => {
                    let due = breaker.next_trial().is_some_and(|due| due <= now);
                    let is_probe = matches!(step, Step::Probe);
                    let (admitted, change) = watched(&mut breaker, |breaker| {
                        if is_probe { breaker.admit_trial(now) } else { breaker.admit(now).ok() }
                    });
                    if is_probe {
                        prop_assert_eq!(admitted.is_some(), due);
                    }
                    under_way.extend(admitted);
                    change
                }
                Step::Settle(which, verdict) if !under_way.is_empty() => {
                    let admitted = under_way.swap_remove(which % under_way.len());
                    watched(&mut breaker, |breaker| breaker.settle(admitted, verdict, now)).1
                }
                Step::Settle(..) => None,
            };
            use BreakerState::{Closed, HalfOpen, Open};
            let arrows = [(Closed, Open), (Open, HalfOpen), (HalfOpen, Open), (HalfOpen, Closed)];
            match change {
                Some(Change { from, to }) => {
                    prop_assert_eq!((from, to), (before, breaker.state()));
                    prop_assert!(arrows.contains(&(from, to)));
                }
                None => prop_assert_eq!(before, breaker.state()),
            }
            let trials = under_way.iter().filter(|one| one.trial && one.epoch == breaker.epoch).count();
            prop_assert!(trials <= 1);
            prop_assert_eq!(breaker.state() != Closed && trials == 0, breaker.next_trial().is_some());
            prop_assert!(breaker.retry_in(now) <= OPEN_MAX.max(seconds(open_for)));
        }
        // The way back.
        for admitted in under_way {
            breaker.settle(admitted, Verdict::Inconclusive, now);
        }
        now += MAX_TIME;
        for _ in 0..successes.max(1) {
            settle(&mut breaker, Verdict::Healthy, now);
        }
        prop_assert_eq!(breaker.state(), BreakerState::Closed);
    }
}
