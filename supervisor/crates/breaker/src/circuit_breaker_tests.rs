//! With the settings of a plugin's breaker: a window, one trial, and the same time whenever it opens.

use proptest::prelude::*;

use super::*;
use crate::settings::MAX_TIME;

const SETTINGS: BreakerSettings = BreakerSettings {
    failures: 3,
    window: Duration::from_secs(60),
    open_for: Duration::from_secs(10),
    open_max: Duration::from_secs(10),
    successes: 1,
    trial_every: Duration::ZERO,
};

fn second(n: u64) -> impl Fn(Instant) -> Instant {
    move |start| start + Duration::from_secs(n)
}

/// One that just opened at `start`.
fn opened(start: Instant) -> CircuitBreaker {
    let mut breaker = CircuitBreaker::new(SETTINGS);
    for _ in 0..3 {
        let call = breaker.admit(start).unwrap();
        breaker.settle(call, Verdict::Failed, start);
    }
    assert_eq!(breaker.state(), BreakerState::Open);
    breaker
}

#[test]
fn opens_on_failures_in_a_row_only() {
    let start = Instant::now();
    let mut breaker = CircuitBreaker::new(SETTINGS);
    for verdict in [Verdict::Failed, Verdict::Failed, Verdict::Healthy, Verdict::Failed, Verdict::Failed] {
        let call = breaker.admit(start).unwrap();
        breaker.settle(call, verdict, start);
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
    let call = breaker.admit(start).unwrap();
    breaker.settle(call, Verdict::Inconclusive, start);
    assert_eq!(breaker.state(), BreakerState::Closed);
    let call = breaker.admit(start).unwrap();
    breaker.settle(call, Verdict::Failed, start);
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn failures_outside_the_window_are_forgotten() {
    let start = Instant::now();
    let mut breaker = CircuitBreaker::new(SETTINGS);
    for at in [0, 61, 122, 183] {
        let now = second(at)(start);
        let call = breaker.admit(now).unwrap();
        breaker.settle(call, Verdict::Failed, now);
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn admits_one_trial_after_its_time() {
    let start = Instant::now();
    let mut breaker = opened(start);
    assert_eq!(breaker.admit(second(4)(start)), Err(Duration::from_secs(6)));
    let trial = breaker.admit(second(10)(start)).unwrap();
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    assert_eq!(breaker.admit(second(10)(start)), Err(Duration::ZERO));
    breaker.settle(trial, Verdict::Healthy, second(11)(start));
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn a_failed_trial_opens_it_again_for_the_whole_time() {
    let start = Instant::now();
    let mut breaker = opened(start);
    let trial = breaker.admit(second(10)(start)).unwrap();
    breaker.settle(trial, Verdict::Failed, second(12)(start));
    assert_eq!(breaker.admit(second(12)(start)), Err(Duration::from_secs(10)));
}

#[test]
fn an_inconclusive_trial_makes_the_next_call_the_trial() {
    let start = Instant::now();
    let mut breaker = opened(start);
    let trial = breaker.admit(second(10)(start)).unwrap();
    breaker.settle(trial, Verdict::Inconclusive, second(10)(start));
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    assert!(breaker.admit(second(10)(start)).is_ok());
}

#[test]
fn stragglers_of_an_earlier_time_change_nothing() {
    let start = Instant::now();
    let mut breaker = CircuitBreaker::new(SETTINGS);
    let straggler = breaker.admit(start).unwrap();
    for _ in 0..3 {
        let call = breaker.admit(start).unwrap();
        breaker.settle(call, Verdict::Failed, start);
    }
    breaker.settle(straggler, Verdict::Healthy, start);
    assert_eq!(breaker.state(), BreakerState::Open);
    let trial = breaker.admit(second(10)(start)).unwrap();
    breaker.settle(straggler, Verdict::Failed, second(10)(start));
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    breaker.settle(trial, Verdict::Healthy, second(10)(start));
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn absurd_settings_are_harmless() {
    let most = Duration::MAX;
    let settings = BreakerSettings {
        failures: 0,
        window: most,
        open_for: most,
        open_max: most,
        successes: 0,
        trial_every: most,
    };
    let mut breaker = CircuitBreaker::new(settings);
    let now = Instant::now();
    let call = breaker.admit(now).unwrap();
    breaker.settle(call, Verdict::Failed, now);
    assert_eq!(breaker.state(), BreakerState::Open);
    assert_eq!(breaker.admit(now), Err(MAX_TIME));
    assert!(breaker.admit(now + MAX_TIME).is_ok());
}

#[derive(Debug, Clone)]
enum Step {
    Arrive,
    Settle(usize, Verdict),
    Pass(u64),
    Reset,
}

fn step() -> impl Strategy<Value = Step> {
    let verdict = prop_oneof![Just(Verdict::Healthy), Just(Verdict::Failed), Just(Verdict::Inconclusive)];
    prop_oneof![
        6 => Just(Step::Arrive),
        6 => (any::<usize>(), verdict).prop_map(|(n, verdict)| Step::Settle(n, verdict)),
        3 => (0u64..20).prop_map(Step::Pass),
        1 => Just(Step::Reset),
    ]
}

proptest! {
    // Promises: GUARD-41
    #[test]
    fn the_breaker_keeps_its_promises(steps in proptest::collection::vec(step(), 1..200)) {
        let mut now = Instant::now();
        let mut breaker = CircuitBreaker::new(SETTINGS);
        let mut live: Vec<Permit> = Vec::new();
        let mut failures_in_a_row = 0;
        for step in steps {
            let before = breaker.state();
            match step {
                Step::Arrive => match breaker.admit(now) {
                    Ok(call) => {
                        // While half open, exactly one call is running.
                        if breaker.state() == BreakerState::HalfOpen {
                            prop_assert!(call.trial);
                            prop_assert!(!live.iter().any(|other| other.trial && other.epoch == call.epoch));
                        }
                        live.push(call);
                    }
                    Err(retry_in) => {
                        prop_assert_ne!(breaker.state(), BreakerState::Closed);
                        // It never says to stay away for longer than it is set to.
                        prop_assert!(retry_in <= SETTINGS.open_for);
                    }
                },
                Step::Settle(n, verdict) if !live.is_empty() => {
                    let call = live.swap_remove(n % live.len());
                    let current = call.epoch == breaker.epoch;
                    breaker.settle(call, verdict, now);
                    match verdict {
                        _ if !current => prop_assert_eq!(breaker.state(), before),
                        Verdict::Healthy => {
                            failures_in_a_row = 0;
                            prop_assert_eq!(breaker.state(), BreakerState::Closed);
                        }
                        Verdict::Failed => failures_in_a_row += 1,
                        Verdict::Inconclusive => prop_assert_eq!(breaker.state(), before),
                    }
                }
                Step::Settle(..) => {}
                Step::Pass(seconds) => now += Duration::from_secs(seconds),
                Step::Reset => {
                    breaker.reset();
                    failures_in_a_row = 0;
                    prop_assert_eq!(breaker.state(), BreakerState::Closed);
                }
            }
            // From closed it opens only after that many failures without an answer between them.
            if before == BreakerState::Closed && breaker.state() == BreakerState::Open {
                prop_assert!(failures_in_a_row >= SETTINGS.failures);
            }
        }
        // However it went, it comes back: after its time one call may try, and an answer closes it.
        breaker.reset();
        for _ in 0..SETTINGS.failures {
            let call = breaker.admit(now).unwrap();
            breaker.settle(call, Verdict::Failed, now);
        }
        now += SETTINGS.open_for;
        let trial = breaker.admit(now).unwrap();
        breaker.settle(trial, Verdict::Healthy, now);
        prop_assert_eq!(breaker.state(), BreakerState::Closed);
    }
}
