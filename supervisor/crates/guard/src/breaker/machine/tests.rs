use proptest::prelude::*;

use super::*;

const SETTINGS: BreakerSettings =
    BreakerSettings { failures: 3, window: Duration::from_secs(60), open_for: Duration::from_secs(10) };

fn second(n: u64) -> impl Fn(Instant) -> Instant {
    move |start| start + Duration::from_secs(n)
}

/// A machine that just opened at `start`.
fn opened(start: Instant) -> Machine {
    let mut machine = Machine::new(SETTINGS);
    for _ in 0..3 {
        let call = machine.admit(start).unwrap();
        machine.settle(call, Verdict::Fault, start);
    }
    assert_eq!(machine.state(), BreakerState::Open);
    machine
}

#[test]
fn opens_on_faults_in_a_row_only() {
    let start = Instant::now();
    let mut machine = Machine::new(SETTINGS);
    for verdict in [Verdict::Fault, Verdict::Fault, Verdict::Alive, Verdict::Fault, Verdict::Fault] {
        let call = machine.admit(start).unwrap();
        machine.settle(call, verdict, start);
    }
    assert_eq!(machine.state(), BreakerState::Closed);
    let call = machine.admit(start).unwrap();
    machine.settle(call, Verdict::Unknown, start);
    assert_eq!(machine.state(), BreakerState::Closed);
    let call = machine.admit(start).unwrap();
    machine.settle(call, Verdict::Fault, start);
    assert_eq!(machine.state(), BreakerState::Open);
}

#[test]
fn faults_outside_the_window_are_forgotten() {
    let start = Instant::now();
    let mut machine = Machine::new(SETTINGS);
    for at in [0, 61, 122, 183] {
        let now = second(at)(start);
        let call = machine.admit(now).unwrap();
        machine.settle(call, Verdict::Fault, now);
    }
    assert_eq!(machine.state(), BreakerState::Closed);
}

#[test]
fn lets_one_probe_through_after_its_time() {
    let start = Instant::now();
    let mut machine = opened(start);
    assert_eq!(machine.admit(second(4)(start)), Err(Duration::from_secs(6)));
    let probe = machine.admit(second(10)(start)).unwrap();
    assert_eq!(machine.state(), BreakerState::HalfOpen);
    assert_eq!(machine.admit(second(10)(start)), Err(Duration::ZERO));
    machine.settle(probe, Verdict::Alive, second(11)(start));
    assert_eq!(machine.state(), BreakerState::Closed);
}

#[test]
fn a_failed_probe_opens_it_again_for_the_whole_time() {
    let start = Instant::now();
    let mut machine = opened(start);
    let probe = machine.admit(second(10)(start)).unwrap();
    machine.settle(probe, Verdict::Fault, second(12)(start));
    assert_eq!(machine.admit(second(12)(start)), Err(Duration::from_secs(10)));
}

#[test]
fn a_probe_that_learned_nothing_hands_over_to_the_next_call() {
    let start = Instant::now();
    let mut machine = opened(start);
    let probe = machine.admit(second(10)(start)).unwrap();
    machine.settle(probe, Verdict::Unknown, second(10)(start));
    assert_eq!(machine.state(), BreakerState::HalfOpen);
    assert!(machine.admit(second(10)(start)).is_ok());
}

#[test]
fn stragglers_of_an_earlier_time_change_nothing() {
    let start = Instant::now();
    let mut machine = Machine::new(SETTINGS);
    let straggler = machine.admit(start).unwrap();
    for _ in 0..3 {
        let call = machine.admit(start).unwrap();
        machine.settle(call, Verdict::Fault, start);
    }
    machine.settle(straggler, Verdict::Alive, start);
    assert_eq!(machine.state(), BreakerState::Open);
    let probe = machine.admit(second(10)(start)).unwrap();
    machine.settle(straggler, Verdict::Fault, second(10)(start));
    assert_eq!(machine.state(), BreakerState::HalfOpen);
    machine.settle(probe, Verdict::Alive, second(10)(start));
    assert_eq!(machine.state(), BreakerState::Closed);
}

#[test]
fn absurd_settings_are_harmless() {
    let settings = BreakerSettings { failures: 0, window: Duration::MAX, open_for: Duration::MAX };
    let mut machine = Machine::new(settings);
    let now = Instant::now();
    let call = machine.admit(now).unwrap();
    machine.settle(call, Verdict::Fault, now);
    assert_eq!(machine.state(), BreakerState::Open);
    assert_eq!(machine.admit(now), Err(MAX_OPEN));
    assert!(machine.admit(now + MAX_OPEN).is_ok());
}

#[derive(Debug, Clone)]
enum Step {
    Arrive,
    Settle(usize, Verdict),
    Pass(u64),
    Reset,
}

fn step() -> impl Strategy<Value = Step> {
    let verdict = prop_oneof![Just(Verdict::Alive), Just(Verdict::Fault), Just(Verdict::Unknown)];
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
    fn the_machine_keeps_its_promises(steps in proptest::collection::vec(step(), 1..200)) {
        let mut now = Instant::now();
        let mut machine = Machine::new(SETTINGS);
        let mut live: Vec<CallPermit> = Vec::new();
        let mut faults_in_a_row = 0;
        for step in steps {
            let before = machine.state();
            match step {
                Step::Arrive => match machine.admit(now) {
                    Ok(call) => {
                        // While half open, exactly one call is running.
                        if machine.state() == BreakerState::HalfOpen {
                            prop_assert!(call.probe);
                            prop_assert!(!live.iter().any(|other| other.probe && other.epoch == call.epoch));
                        }
                        live.push(call);
                    }
                    Err(retry_in) => {
                        prop_assert_ne!(machine.state(), BreakerState::Closed);
                        // It never says to stay away for longer than it is set to.
                        prop_assert!(retry_in <= SETTINGS.open_for);
                    }
                },
                Step::Settle(n, verdict) if !live.is_empty() => {
                    let call = live.swap_remove(n % live.len());
                    let current = call.epoch == machine.epoch;
                    machine.settle(call, verdict, now);
                    match verdict {
                        _ if !current => prop_assert_eq!(machine.state(), before),
                        Verdict::Alive => {
                            faults_in_a_row = 0;
                            prop_assert_eq!(machine.state(), BreakerState::Closed);
                        }
                        Verdict::Fault => faults_in_a_row += 1,
                        Verdict::Unknown => prop_assert_eq!(machine.state(), before),
                    }
                }
                Step::Settle(..) => {}
                Step::Pass(seconds) => now += Duration::from_secs(seconds),
                Step::Reset => {
                    machine.reset();
                    faults_in_a_row = 0;
                    prop_assert_eq!(machine.state(), BreakerState::Closed);
                }
            }
            // From closed it opens only after that many faults without an answer between them.
            if before == BreakerState::Closed && machine.state() == BreakerState::Open {
                prop_assert!(faults_in_a_row >= SETTINGS.failures);
            }
        }
        // However it went, it comes back: after its time one call may try, and an answer closes it.
        machine.reset();
        for _ in 0..SETTINGS.failures {
            let call = machine.admit(now).unwrap();
            machine.settle(call, Verdict::Fault, now);
        }
        now += SETTINGS.open_for;
        let probe = machine.admit(now).unwrap();
        machine.settle(probe, Verdict::Alive, now);
        prop_assert_eq!(machine.state(), BreakerState::Closed);
    }
}
