//! The machine on its own: what each fault leads to, and what holds for every sequence of events.

use proptest::prelude::*;

use talon_sanitize::Sanitized;

use super::transitions::KILL_RETRY;
use super::*;
use crate::lifecycle::backoff::Jitter;
use crate::lifecycle::event::{CheckResult, FailureKind, ProcessReport};

const SECOND: Duration = Duration::from_secs(1);

fn policy() -> LifecycleSettings {
    LifecycleSettings {
        restart_window: Duration::from_secs(300),
        max_restarts: 3,
        ..LifecycleSettings::default()
    }
}

/// A machine with its clock, for tests that read as a story.
struct Story {
    machine: Machine,
    now: MachineTime,
}

impl Story {
    fn new(policy: LifecycleSettings) -> Self {
        Self { machine: Machine::new(policy), now: Duration::ZERO }
    }

    /// As far as Ready.
    fn ready(policy: LifecycleSettings) -> Self {
        let mut story = Self::new(policy);
        assert_eq!(story.take(MachineEvent::Start), vec![MachineAction::Launch { generation: 1 }]);
        story.comes_up();
        story
    }

    fn take(&mut self, event: MachineEvent) -> Vec<MachineAction> {
        self.machine.step(event, Input { now: self.now, jitter: Jitter(u32::MAX) })
    }

    fn hear(&mut self, report: ProcessReport) -> Vec<MachineAction> {
        let generation = self.machine.generation();
        self.take(MachineEvent::Report { generation, report })
    }

    fn comes_up(&mut self) {
        assert_eq!(self.hear(ProcessReport::ProcessStarted), vec![]);
        assert_eq!(self.machine.state(), State::Handshaking);
        assert_eq!(self.hear(ProcessReport::Launched), vec![]);
        assert_eq!(self.machine.state(), State::Ready);
    }

    /// Lets time pass until the machine wants to be woken.
    fn wake(&mut self) -> Vec<MachineAction> {
        self.now = self.machine.wake_at().expect("it waits for something").max(self.now);
        self.take(MachineEvent::Tick)
    }

    fn dies(&mut self) -> Vec<MachineAction> {
        self.hear(ProcessReport::Exited { how: "killed by SIGKILL".into() })
    }

    fn says(&self) -> Sanitized {
        self.machine.reason().unwrap().describe(&talon_plugin_config::name::PluginName::new("x").unwrap())
    }
}

fn silent(busy_until: Option<MachineTime>) -> ProcessReport {
    ProcessReport::Checked(CheckResult::NoAnswer { cause: "timed out".into(), busy_until, answered: false })
}

fn failed(refused: bool) -> ProcessReport {
    let kind = if refused { FailureKind::Permanent } else { FailureKind::Passing };
    ProcessReport::LaunchFailed { cause: "no handshake".into(), kind }
}

// Promises: LIFE-33
#[test]
fn an_outage_is_waited_out_with_longer_and_longer_waits() {
    let mut story = Story::ready(policy());
    story.dies();
    story.hear(ProcessReport::Gone);
    story.wake();
    let away = || ProcessReport::LaunchFailed { cause: "no answer".into(), kind: FailureKind::Outage };
    let mut longest = Duration::ZERO;
    for _ in 0..50 {
        let before = story.now;
        story.hear(away());
        assert_eq!(story.machine.state(), State::Backoff);
        assert!(!story.machine.will_be_ready(), "no call waits for it");
        assert!(story.says().contains("tried again in"), "{}", story.says());
        assert!(matches!(story.wake()[..], [MachineAction::Launch { .. }]));
        longest = longest.max(story.now - before);
    }
    assert!(longest > policy().backoff_max && longest <= Duration::from_secs(120), "{longest:?}");
    story.comes_up();
    assert_eq!(story.machine.reason(), None);

    let mut never = Story::new(LifecycleSettings { max_restarts: 0, ..policy() });
    never.take(MachineEvent::Start);
    never.hear(away());
    assert_eq!(never.machine.state(), State::Failed, "no restarts are no restarts");
}

// Promises: LIFE-5
#[test]
fn a_death_goes_through_draining_and_backoff_to_ready_again() {
    let mut story = Story::ready(policy());
    let end = CallFailure::Died { how: "killed by SIGKILL".into(), restarting: true };
    assert_eq!(story.dies(), vec![MachineAction::FailCalls(end), MachineAction::Kill]);
    assert_eq!(story.machine.state(), State::Draining);
    assert!(story.machine.will_be_ready());
    assert_eq!(story.hear(ProcessReport::Gone), vec![]);
    assert_eq!(story.machine.state(), State::Backoff);
    assert_eq!(story.says(), "killed by SIGKILL; restart 1 of 3 follows");
    assert_eq!(story.wake(), vec![MachineAction::Launch { generation: 2 }]);
    assert_eq!(story.now, Duration::ZERO, "the first restart is at once");
    story.comes_up();
    assert_eq!(story.machine.reason(), None);

    story.dies();
    story.hear(ProcessReport::Gone);
    assert_eq!(story.machine.state(), State::Backoff);
    assert_eq!(story.wake(), vec![MachineAction::Launch { generation: 3 }]);
    assert_eq!(story.now, Duration::from_millis(400));
}

// Promises: LIFE-6
#[test]
fn one_death_more_than_allowed_within_the_window_is_failed_until_an_operator_says_so() {
    let mut story = Story::ready(policy());
    for _ in 0..3 {
        story.dies();
        story.hear(ProcessReport::Gone);
        story.wake();
        story.comes_up();
    }
    let end = CallFailure::Died { how: "killed by SIGKILL".into(), restarting: false };
    assert_eq!(story.dies(), vec![MachineAction::FailCalls(end), MachineAction::Kill]);
    story.hear(ProcessReport::Gone);
    assert_eq!(story.machine.state(), State::Failed);
    assert_eq!(
        story.says(),
        "died 4 times within 5 min; last: killed by SIGKILL; see `talon plugin logs x`, then `talon plugin start x`"
    );
    assert_eq!(story.machine.wake_at(), None);
    story.now += 1000 * SECOND;
    assert_eq!(story.take(MachineEvent::Tick), vec![]);
    assert_eq!(story.machine.state(), State::Failed);

    assert_eq!(story.take(MachineEvent::Start), vec![MachineAction::Launch { generation: 5 }]);
    assert_eq!(story.machine.deaths(story.now), 0);
    assert_eq!(story.machine.reason(), None);
}

// Promises: LIFE-6
#[test]
fn deaths_far_apart_never_fail_it() {
    let mut story = Story::ready(policy());
    for _ in 0..20 {
        story.now += 301 * SECOND;
        story.dies();
        story.hear(ProcessReport::Gone);
        assert_eq!(story.machine.state(), State::Backoff);
        story.wake();
        story.comes_up();
    }
}

// Promises: LIFE-9
#[test]
fn without_restarts_the_first_death_fails_it() {
    let mut story = Story::ready(LifecycleSettings { restart_on_failure: false, ..policy() });
    story.dies();
    story.hear(ProcessReport::Gone);
    assert_eq!(story.machine.state(), State::Failed);
    assert!(story.says().contains("restart_on_failure is off"));
}

// Promises: LIFE-5
#[test]
fn a_launch_that_fails_is_a_death_and_one_that_is_refused_ends_it() {
    let mut story = Story::new(policy());
    let _ = story.take(MachineEvent::Start);
    assert_eq!(story.hear(failed(false)), vec![]);
    assert_eq!(story.machine.state(), State::Backoff);
    assert_eq!(story.machine.deaths(story.now), 1);
    story.wake();
    assert_eq!(story.now, Duration::from_millis(200), "what did not even start has to wait");
    assert_eq!(story.hear(failed(true)), vec![]);
    assert_eq!(story.machine.state(), State::Refused);
    assert!(!story.machine.will_be_ready());
}

// Promises: LIFE-23
#[test]
fn a_planned_restart_is_no_death() {
    let mut story = Story::ready(policy());
    for generation in 2..20 {
        assert_eq!(story.take(MachineEvent::Restart), vec![MachineAction::AwaitCalls]);
        assert_eq!(story.hear(ProcessReport::CallsDone), vec![MachineAction::AskToExit]);
        story.hear(ProcessReport::Exited { how: "exit code 0".into() });
        assert_eq!(story.hear(ProcessReport::Gone), vec![MachineAction::Launch { generation }]);
        story.comes_up();
    }
    assert_eq!(story.machine.deaths(story.now), 0);
}

// Promises: LIFE-20
#[test]
fn a_plugin_that_never_goes_by_itself_is_killed_within_twice_the_grace_period() {
    let mut story = Story::ready(policy());
    let grace = policy().grace_period;
    assert_eq!(story.take(MachineEvent::Stop { grace: None }), vec![MachineAction::AwaitCalls]);
    assert_eq!(story.wake(), vec![MachineAction::FailCalls(CallFailure::Stopped), MachineAction::AskToExit]);
    assert_eq!(story.now, grace);
    assert_eq!(story.wake(), vec![MachineAction::Terminate]);
    assert_eq!(story.wake(), vec![MachineAction::Kill]);
    assert_eq!(story.now, 2 * grace);
    assert_eq!(story.wake(), vec![MachineAction::Kill], "repeated while something is left");
    assert_eq!(story.hear(ProcessReport::Gone), vec![]);
    assert_eq!(story.machine.state(), State::Stopped);
}

// Promises: WIRE-11
#[test]
fn a_plugin_that_knows_no_shutdown_gets_sigterm_at_once() {
    let mut story = Story::ready(policy());
    let _ = story.take(MachineEvent::Stop { grace: None });
    assert_eq!(story.hear(ProcessReport::CallsDone), vec![MachineAction::AskToExit]);
    assert_eq!(story.hear(ProcessReport::ExitAnswered { accepted: false }), vec![MachineAction::Terminate]);
}

#[test]
fn a_shorter_grace_shortens_a_drain_under_way() {
    let mut story = Story::ready(policy());
    let _ = story.take(MachineEvent::Stop { grace: None });
    let _ = story.take(MachineEvent::Stop { grace: Some(SECOND) });
    assert_eq!(story.machine.wake_at(), Some(SECOND));
    story.wake();
    story.wake();
    story.wake();
    assert_eq!(story.now, 2 * SECOND);
}

#[test]
fn stop_while_it_starts_cancels_the_launch() {
    let mut story = Story::new(policy());
    let _ = story.take(MachineEvent::Start);
    assert_eq!(story.take(MachineEvent::Stop { grace: None }), vec![MachineAction::CancelLaunch]);
    assert_eq!(story.machine.state(), State::Draining);
    assert!(!story.machine.will_be_ready());
    assert_eq!(story.hear(ProcessReport::Gone), vec![]);
    assert_eq!(story.machine.state(), State::Stopped);
    assert_eq!(story.machine.deaths(story.now), 0);
}

#[test]
fn start_while_it_stops_starts_it_again_once_it_is_gone() {
    let mut story = Story::ready(policy());
    let _ = story.take(MachineEvent::Stop { grace: None });
    assert_eq!(story.take(MachineEvent::Start), vec![]);
    assert!(story.machine.will_be_ready());
    story.hear(ProcessReport::Exited { how: "exit code 0".into() });
    assert_eq!(story.hear(ProcessReport::Gone), vec![MachineAction::Launch { generation: 2 }]);
}

// Promises: LIFE-13
#[test]
fn failed_checks_make_it_unhealthy_and_past_the_threshold_replace_it() {
    let mut story = Story::ready(policy());
    assert_eq!(story.wake(), vec![MachineAction::CheckHealth]);
    assert_eq!(story.now, policy().health_check_interval);
    assert_eq!(story.hear(silent(None)), vec![]);
    assert_eq!(story.machine.state(), State::Unhealthy);
    assert_eq!(story.wake(), vec![MachineAction::CheckHealth]);
    assert_eq!(story.hear(ProcessReport::Checked(CheckResult::Serving)), vec![]);
    assert_eq!(story.machine.state(), State::Ready);
    for _ in 0..2 {
        story.wake();
        story.hear(silent(None));
    }
    story.wake();
    assert_eq!(story.hear(silent(None)), vec![MachineAction::AwaitCalls]);
    assert_eq!(story.machine.state(), State::Draining);
    assert_eq!(story.machine.deaths(story.now), 1);
    story.hear(ProcessReport::CallsDone);
    story.hear(ProcessReport::Exited { how: "exit code 0".into() });
    story.hear(ProcessReport::Gone);
    assert_eq!(story.machine.state(), State::Backoff);
    assert_eq!(story.machine.deaths(story.now), 1, "counted once");
}

// Promises: LIFE-15
#[test]
fn silence_is_excused_until_the_deadline_of_the_calls_that_were_there_when_it_began() {
    let mut story = Story::ready(policy());
    story.wake();
    let deadline = story.now + 20 * SECOND;
    story.hear(silent(Some(deadline)));
    assert_eq!(story.machine.state(), State::Ready);
    // Calls that come later have later deadlines; they do not extend the excuse.
    while story.now < deadline {
        story.wake();
        story.hear(silent(Some(story.now + 30 * SECOND)));
    }
    assert_eq!(story.machine.state(), State::Unhealthy);
}

#[test]
fn a_plugin_that_answers_calls_one_by_one_stays_excused() {
    let mut story = Story::ready(policy());
    for _ in 0..100 {
        story.wake();
        let busy_until = Some(story.now + SECOND);
        story.hear(ProcessReport::Checked(CheckResult::NoAnswer {
            cause: "timed out".into(),
            busy_until,
            answered: true,
        }));
        assert_eq!(story.machine.state(), State::Ready);
    }
}

#[test]
fn reports_of_an_earlier_generation_change_nothing() {
    let mut story = Story::ready(policy());
    story.dies();
    story.hear(ProcessReport::Gone);
    story.wake();
    story.comes_up();
    for report in [ProcessReport::Gone, ProcessReport::Exited { how: "late".into() }, silent(None)] {
        assert_eq!(story.take(MachineEvent::Report { generation: 1, report }), vec![]);
        assert_eq!(story.machine.state(), State::Ready);
    }
}

fn ignored() -> ProcessReport {
    ProcessReport::IgnoredDeadline { which: "call c1 (action greet)".into(), patience: 5 * SECOND }
}

#[test]
fn an_ignored_deadline_is_a_death_without_any_asking() {
    let mut story = Story::ready(policy());
    let how = Sanitized::literal("killed, because it ignored the deadline of another call");
    let end = |restarting| CallFailure::Died { how: how.clone(), restarting };
    assert_eq!(story.hear(ignored()), vec![MachineAction::FailCalls(end(true)), MachineAction::Kill]);
    assert_eq!(story.machine.state(), State::Draining);
    assert!(story.machine.will_be_ready());
    assert_eq!(story.hear(ignored()), vec![], "once is enough");
    assert_eq!(story.dies(), vec![]);
    story.hear(ProcessReport::Gone);
    assert_eq!(story.machine.state(), State::Backoff);
    assert_eq!(story.machine.deaths(story.now), 1);
    assert_eq!(
        story.says(),
        "ignored the deadline of call c1 (action greet) for 5 s; restart 1 of 3 follows"
    );
    for _ in 0..3 {
        story.wake();
        story.comes_up();
        story.hear(ignored());
        story.dies();
        story.hear(ProcessReport::Gone);
    }
    assert_eq!(story.machine.state(), State::Failed);
}

#[test]
fn an_ignored_deadline_ends_no_earlier_and_no_later_process_than_that_which_ignored_it() {
    let mut story = Story::ready(policy());
    story.dies();
    story.hear(ProcessReport::Gone);
    story.wake();
    story.comes_up();
    assert_eq!(story.take(MachineEvent::Report { generation: 1, report: ignored() }), vec![]);
    assert_eq!(story.machine.state(), State::Ready);
    let _ = story.take(MachineEvent::Stop { grace: None });
    assert_eq!(story.hear(ignored()), vec![], "it goes already");
    assert_eq!(story.machine.deaths(story.now), 1);
}

#[test]
fn an_unhealthy_plugin_that_ignores_a_deadline_is_killed_as_well() {
    let mut story = Story::ready(policy());
    story.wake();
    story.hear(silent(None));
    assert_eq!(story.machine.state(), State::Unhealthy);
    assert!(story.hear(ignored()).contains(&MachineAction::Kill));
}

fn any_report() -> impl Strategy<Value = ProcessReport> {
    let verdict = prop_oneof![
        Just(CheckResult::Serving),
        Just(CheckResult::NotServing),
        (proptest::option::of(0u64..10_000), any::<bool>()).prop_map(|(busy, answered)| {
            CheckResult::NoAnswer {
                cause: "silent".into(),
                busy_until: busy.map(Duration::from_secs),
                answered,
            }
        }),
    ];
    prop_oneof![
        Just(ProcessReport::ProcessStarted),
        Just(ProcessReport::Launched),
        any::<bool>().prop_map(failed),
        Just(ProcessReport::Exited { how: "exit code 1".into() }),
        Just(ProcessReport::Gone),
        Just(ProcessReport::CallsDone),
        Just(ignored()),
        any::<bool>().prop_map(|accepted| ProcessReport::ExitAnswered { accepted }),
        verdict.prop_map(ProcessReport::Checked),
    ]
}

fn any_order() -> impl Strategy<Value = MachineEvent> {
    prop_oneof![
        Just(MachineEvent::Start),
        proptest::option::of(any::<Duration>()).prop_map(|grace| MachineEvent::Stop { grace }),
        Just(MachineEvent::Restart),
    ]
}

fn any_event() -> impl Strategy<Value = MachineEvent> {
    prop_oneof![
        any_order(),
        (0u64..4, any_report()).prop_map(|(generation, report)| MachineEvent::Report { generation, report }),
        Just(MachineEvent::Tick),
    ]
}

prop_compose! {
    fn any_policy()(
        max_restarts in 0u32..6,
        restart_on_failure in proptest::bool::weighted(0.8),
        times in proptest::collection::vec(0u64..400, 6),
        health_failure_threshold in 0u32..4,
    ) -> LifecycleSettings {
        let secs = |index: usize| Duration::from_secs(times[index]);
        LifecycleSettings {
            health_check_interval: secs(0),
            health_check_timeout: secs(1),
            restart_window: secs(2),
            backoff_initial: secs(3),
            backoff_max: secs(4),
            grace_period: secs(5),
            max_restarts,
            restart_on_failure,
            health_failure_threshold,
            ..LifecycleSettings::default()
        }
    }
}

/// The environment that the machine acts on: at most one process, and the reports that are possible for it.
#[derive(Default)]
struct FakeEnvironment {
    /// A launch is under way or its process exists.
    occupied: bool,
    launching: bool,
    exited: bool,
    cancelled: bool,
    killed: bool,
    calls_end: bool,
    launches: Vec<MachineTime>,
}

impl FakeEnvironment {
    fn perform(&mut self, actions: &[MachineAction], now: MachineTime) {
        for action in actions {
            match action {
                MachineAction::Launch { .. } => {
                    assert!(!self.occupied, "two processes at once");
                    *self = Self {
                        occupied: true,
                        launching: true,
                        launches: std::mem::take(&mut self.launches),
                        ..Self::default()
                    };
                    self.launches.push(now);
                }
                MachineAction::CancelLaunch => {
                    assert!(self.launching, "nothing to cancel");
                    self.cancelled = true;
                }
                MachineAction::Kill => self.killed = true,
                MachineAction::AwaitCalls => self.calls_end = true,
                MachineAction::CheckHealth | MachineAction::AskToExit | MachineAction::Terminate => {
                    assert!(self.occupied && !self.launching, "asked something of nobody");
                }
                MachineAction::FailCalls(_) => {}
            }
        }
    }

    /// A report that is possible now; `pick` chooses. `None`: only time passes.
    fn next_report(&self, pick: u8, arbitrary: ProcessReport) -> Option<ProcessReport> {
        if !self.occupied {
            return None;
        }
        if self.cancelled {
            return Some(ProcessReport::Gone);
        }
        match (self.launching, self.exited, self.killed) {
            (true, ..) => Some(match pick % 4 {
                0 => ProcessReport::ProcessStarted,
                1 | 2 => ProcessReport::Launched,
                _ => failed(pick.is_multiple_of(8)),
            }),
            (false, false, false) => match pick % 5 {
                0 => Some(ProcessReport::Exited { how: "exit code 1".into() }),
                1 if self.calls_end => Some(ProcessReport::CallsDone),
                // A call that was overdue before it drained may be found ignored afterwards.
                3 => Some(ignored()),
                _ => matches!(arbitrary, ProcessReport::Checked(_) | ProcessReport::ExitAnswered { .. })
                    .then_some(arbitrary),
            },
            (false, false, true) => Some(ProcessReport::Exited { how: "killed by SIGKILL".into() }),
            (false, true, true) => Some(ProcessReport::Gone),
            (false, true, false) => None,
        }
    }

    fn heard(&mut self, report: &ProcessReport) {
        match report {
            ProcessReport::Launched => self.launching = false,
            ProcessReport::LaunchFailed { .. } | ProcessReport::Gone => self.occupied = false,
            ProcessReport::Exited { .. } => self.exited = true,
            _ => {}
        }
    }
}

/// A machine in a world that answers.
struct Life {
    machine: Machine,
    world: FakeEnvironment,
    now: MachineTime,
}

impl Life {
    fn take(&mut self, event: MachineEvent, jitter: u32) {
        let (before, wanted) = (
            self.machine.state(),
            matches!(event, MachineEvent::Start | MachineEvent::Stop { .. } | MachineEvent::Restart),
        );
        let actions = self.machine.step(event, Input { now: self.now, jitter: Jitter(jitter) });
        if matches!(before, State::Failed | State::Refused) && !wanted {
            assert_eq!((self.machine.state(), actions.len()), (before, 0), "failed is sticky");
        }
        self.world.perform(&actions, self.now);
    }

    /// Lets one thing happen without an operator. `false`: nothing can happen any more.
    fn advance(&mut self, pick: u8, arbitrary: ProcessReport) -> bool {
        if let Some(report) = self.world.next_report(pick, arbitrary) {
            self.world.heard(&report);
            let generation = self.machine.generation();
            self.take(MachineEvent::Report { generation, report }, u32::from(pick) << 24);
            return true;
        }
        let Some(due) = self.machine.wake_at() else { return false };
        self.now = self.now.max(due);
        self.take(MachineEvent::Tick, u32::from(pick) << 24);
        true
    }
}

proptest! {
    // Promises: LIFE-1
    #[test]
    fn no_sequence_of_events_makes_it_panic(
        policy in any_policy(),
        events in proptest::collection::vec((any_event(), any::<Duration>(), any::<u32>()), 0..100),
    ) {
        let mut machine = Machine::new(policy);
        for (event, now, jitter) in events {
            let generation = machine.generation();
            let _ = machine.step(event, Input { now, jitter: Jitter(jitter) });
            prop_assert!(machine.generation() <= generation + 1);
        }
    }

    // Promises: LIFE-2, LIFE-7
    #[test]
    fn there_are_never_two_processes_and_failed_is_sticky(
        policy in any_policy(),
        steps in proptest::collection::vec((proptest::option::weighted(0.2, any_order()), any::<u8>(), any_report()), 1..200),
    ) {
        let mut life = Life { machine: Machine::new(policy), world: FakeEnvironment::default(), now: Duration::ZERO };
        for (order, pick, report) in steps {
            match order {
                Some(order) => life.take(order, u32::from(pick)),
                None => { life.advance(pick, report); }
            }
            let with_process = matches!(
                life.machine.state(),
                State::Starting | State::Handshaking | State::Ready | State::Unhealthy | State::Draining
            );
            prop_assert_eq!(with_process, life.world.occupied);
        }
    }

    #[test]
    fn an_ignored_deadline_kills_what_is_up_and_changes_nothing_else(
        policy in any_policy(),
        steps in proptest::collection::vec((proptest::option::weighted(0.2, any_order()), any::<u8>(), any_report()), 1..100),
    ) {
        let mut life = Life { machine: Machine::new(policy), world: FakeEnvironment::default(), now: Duration::ZERO };
        for (order, pick, report) in steps {
            match order {
                Some(order) => life.take(order, u32::from(pick)),
                None => { life.advance(pick, report); }
            }
            let mut machine = life.machine.clone();
            let (state, generation) = (machine.state(), machine.generation());
            let input = Input { now: life.now, jitter: Jitter(0) };
            let actions = machine.step(MachineEvent::Report { generation, report: ignored() }, input);
            if matches!(state, State::Ready | State::Unhealthy) {
                let killed = matches!(actions[..], [MachineAction::FailCalls(CallFailure::Died { .. }), MachineAction::Kill]);
                prop_assert!(killed, "{:?}", actions);
                prop_assert_eq!(machine.state(), State::Draining);
                prop_assert!(machine.deaths(life.now) >= life.machine.deaths(life.now));
            } else {
                prop_assert_eq!((machine.state(), actions.len()), (state, 0));
            }
        }
    }

    // Promises: LIFE-3
    #[test]
    fn once_unwanted_it_always_comes_to_a_stop_in_bounded_time(
        policy in any_policy(),
        steps in proptest::collection::vec((proptest::option::weighted(0.2, any_order()), any::<u8>(), any_report()), 1..60),
    ) {
        let bound = 2 * policy.grace_period + 2 * KILL_RETRY;
        let mut life = Life { machine: Machine::new(policy), world: FakeEnvironment::default(), now: Duration::ZERO };
        for (order, pick, report) in steps {
            match order {
                Some(order) => life.take(order, u32::from(pick)),
                None => { life.advance(pick, report); }
            }
        }
        life.take(MachineEvent::Stop { grace: None }, 0);
        let (began, mut left) = (life.now, 20);
        // The plugin hangs from here on: it neither exits nor answers unless it is killed.
        while life.machine.state() != State::Stopped {
            prop_assert!(left > 0 && life.now <= began + bound, "stuck in {}", life.machine.state());
            left -= 1;
            prop_assert!(life.advance(2, ProcessReport::ProcessStarted));
        }
        prop_assert!(!life.world.occupied);
        prop_assert!(!life.advance(2, ProcessReport::ProcessStarted), "stopped means that nothing is left to happen");
    }

    // Promises: LIFE-8
    #[test]
    fn a_plugin_that_always_dies_is_started_no_more_often_than_allowed(
        policy in any_policy(), picks in proptest::collection::vec(any::<u8>(), 400),
    ) {
        let (window, allowed, restarts) = (policy.restart_window, policy.max_restarts as usize, policy.restart_on_failure);
        let mut life = Life { machine: Machine::new(policy), world: FakeEnvironment::default(), now: Duration::ZERO };
        life.take(MachineEvent::Start, 0);
        for pick in picks {
            // Checks go well, everything else is chance: launches fail, processes exit.
            if !life.advance(pick, ProcessReport::Checked(CheckResult::Serving)) {
                break;
            }
        }
        // The first start is no restart; any window holds one start more than restarts are allowed at most.
        let launches = &life.world.launches;
        if !restarts {
            prop_assert_eq!(launches.len(), 1);
        }
        for (index, at) in launches.iter().enumerate() {
            let within = launches[index..].iter().filter(|later| **later - *at < window).count();
            prop_assert!(within <= allowed + 1, "{within} starts within {window:?}");
        }
    }

    // Promises: LIFE-3
    #[test]
    fn every_state_but_the_resting_ones_has_a_way_out(
        policy in any_policy(),
        steps in proptest::collection::vec((proptest::option::weighted(0.3, any_order()), any::<u8>(), any_report()), 1..60),
    ) {
        let mut life = Life { machine: Machine::new(policy), world: FakeEnvironment::default(), now: Duration::ZERO };
        for (order, pick, report) in steps {
            match order {
                Some(order) => life.take(order, u32::from(pick)),
                None => { life.advance(pick, report); }
            }
            // Either time or a report of the launch that is under way leads on.
            let resting = matches!(
                life.machine.state(),
                State::Discovered | State::Stopped | State::Failed | State::Refused
            );
            // A health check under way is answered or times out, which is a report as well.
            let up = matches!(life.machine.state(), State::Ready | State::Unhealthy);
            prop_assert!(resting || up || life.world.launching || life.machine.wake_at().is_some());
        }
    }
}
