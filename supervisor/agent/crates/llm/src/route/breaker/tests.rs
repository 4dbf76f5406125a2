use proptest::prelude::*;

use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn settle(breaker: &mut Breaker, verdict: Verdict, now: Instant) -> Option<Change> {
    let (admitted, _) = breaker.admit(now);
    breaker.settle(admitted.expect("it is let in"), verdict, now)
}

/// An open one.
fn open(now: Instant) -> Breaker {
    let mut breaker = Breaker::new(BreakerSettings::default());
    for _ in 0..DEFAULT_FAILURES {
        settle(&mut breaker, Verdict::Failed, now);
    }
    assert_eq!(breaker.state(), BreakerState::Open);
    breaker
}

#[test]
fn failures_in_a_row_open_it_and_a_success_between_them_does_not() {
    let now = Instant::now();
    let mut breaker = Breaker::new(BreakerSettings::default());
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
    assert_eq!(breaker.admit(now + seconds(59)), (None, None));
    assert_eq!(breaker.retry_in(now + seconds(20)), seconds(40));
}

#[test]
fn two_probes_in_a_row_bring_it_back_and_one_does_not() {
    let now = Instant::now();
    let mut breaker = open(now);
    assert_eq!(breaker.next_probe(), Some(now + seconds(60)));
    assert_eq!(breaker.admit_probe(now + seconds(59)), (None, None));
    let now = now + seconds(60);
    let (first, change) = breaker.admit_probe(now);
    assert_eq!(change, Some(Change { from: BreakerState::Open, to: BreakerState::HalfOpen }));
    // One at a time, be it a probe or a request.
    assert_eq!(breaker.next_probe(), None);
    assert_eq!(breaker.admit_probe(now), (None, None));
    assert_eq!(breaker.admit(now), (None, None));
    assert_eq!(breaker.settle(first.expect("it is let in"), Verdict::Healthy, now), None);
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    // The next one waits, but a request does not.
    assert_eq!(breaker.admit_probe(now + seconds(4)), (None, None));
    let (second, _) = breaker.admit_probe(now + seconds(5));
    let change = breaker.settle(second.expect("it is let in"), Verdict::Healthy, now + seconds(5));
    assert_eq!(change, Some(Change { from: BreakerState::HalfOpen, to: BreakerState::Closed }));
    assert_eq!(breaker.next_probe(), None);
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
    for _ in 0..DEFAULT_FAILURES {
        settle(&mut breaker, Verdict::Failed, now);
    }
    assert_eq!(breaker.retry_in(now), seconds(60));
}

#[test]
fn stragglers_of_a_bad_time_change_nothing() {
    let now = Instant::now();
    let mut breaker = Breaker::new(BreakerSettings::default());
    let (straggler, _) = breaker.admit(now);
    let straggler = straggler.expect("it is closed");
    for _ in 0..DEFAULT_FAILURES {
        settle(&mut breaker, Verdict::Failed, now);
    }
    assert_eq!(breaker.settle(straggler, Verdict::Healthy, now), None);
    let now = now + seconds(60);
    settle(&mut breaker, Verdict::Healthy, now);
    assert_eq!(breaker.settle(straggler, Verdict::Failed, now), None);
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
}

#[test]
fn a_trial_that_was_given_up_makes_room_for_the_next() {
    let now = Instant::now();
    let mut breaker = open(now);
    let now = now + seconds(60);
    assert_eq!(settle(&mut breaker, Verdict::Inconclusive, now), None);
    assert_eq!(breaker.next_probe(), Some(now + seconds(5)));
    assert!(breaker.admit(now).0.is_some());
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
    /// Whatever happens in whatever order: it takes every step, changes only along its arrows, has one trial at most, and what
    /// is out always has a way back.
    #[test]
    fn no_sequence_of_events_leaves_the_machine(
        steps in prop::collection::vec(step(), 0..200), failures: u32, successes in 0_u32..5, open_for in 0_u64..1000,
    ) {
        let mut now = Instant::now();
        let settings = BreakerSettings {
            failures: failures % 5, successes, open_for: seconds(open_for), ..BreakerSettings::default()
        };
        let mut breaker = Breaker::new(settings);
        let mut under_way: Vec<Permit> = Vec::new();
        for step in steps {
            let before = breaker.state();
            let change = match step {
                Step::Wait(time) => {
                    now += seconds(time);
                    None
                }
                Step::Admit | Step::Probe => {
                    let due = breaker.next_probe().is_some_and(|due| due <= now);
                    let is_probe = matches!(step, Step::Probe);
                    let (admitted, change) = if is_probe { breaker.admit_probe(now) } else { breaker.admit(now) };
                    if is_probe {
                        prop_assert_eq!(admitted.is_some(), due);
                    }
                    under_way.extend(admitted);
                    change
                }
                Step::Settle(which, verdict) if !under_way.is_empty() => {
                    let admitted = under_way.swap_remove(which % under_way.len());
                    breaker.settle(admitted, verdict, now)
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
            prop_assert_eq!(breaker.state() != Closed && trials == 0, breaker.next_probe().is_some());
            prop_assert!(breaker.retry_in(now) <= DEFAULT_OPEN_MAX.max(seconds(open_for)));
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
