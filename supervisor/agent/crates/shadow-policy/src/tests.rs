use proptest::prelude::*;

use super::*;

pub(crate) fn at(unix_ms: u64) -> WallTime {
    WallTime { unix_ms, local_minute: u16::try_from(unix_ms / 60_000 % 1440).unwrap_or(0) }
}

pub(crate) fn limits() -> PolicyLimits {
    PolicyLimits {
        cooldown_ms: 30_000,
        max_ghosts_per_hour: 10,
        boundaries_only: true,
        quiet_hours: None,
        muted: Vec::new(),
        tokens_per_day: 100_000,
        tokens_per_question: 2_000,
        pico_usd_per_day: None,
    }
}

pub(crate) fn candidate(id: &str, at_ms: u64) -> Candidate {
    Candidate {
        id: id.to_owned(),
        trigger: "test_failed".to_owned(),
        repository: "/code".to_owned(),
        fingerprint: format!("finding {id}"),
        boundary: false,
        at_ms,
    }
}

// Promises: SHADOW-6
#[test]
fn dismissals_lower_a_rate_and_approvals_raise_it() {
    let mut state = SenderState::default();
    let rate = |state: &SenderState| state.triggers["todo"].rate.percent();
    let mut rates = Vec::new();
    for end in [
        GhostEnd::Dismissed,
        GhostEnd::Dismissed,
        GhostEnd::Expired,
        GhostEnd::Approved,
        GhostEnd::Approved,
        GhostEnd::Approved,
    ] {
        state.ended("todo", end);
        rates.push(rate(&state));
    }
    assert_eq!(rates, [60, 36, 32, 62, 92, 100]);
    for _ in 0..20 {
        state.ended("todo", GhostEnd::Dismissed);
    }
    assert_eq!(rate(&state), 10, "a trigger that nobody wants is still heard now and then");
    let mut rate = state.triggers["todo"].rate;
    assert_eq!((0..100).filter(|_| rate.take()).count(), 10);
    let stats = &state.triggers["todo"];
    assert_eq!((stats.approved, stats.dismissed, stats.expired), (3, 22, 1));
}

#[test]
fn quiet_hours_go_over_midnight_and_a_text_that_is_none_is_refused() {
    let hours: QuietHours = "22:00-07:00".parse().expect("quiet hours");
    let quiet = [0, 419, 420, 1319, 1320, 1439].map(|minute| hours.contains(minute));
    assert_eq!(quiet, [true, true, false, false, true, true]);
    assert_eq!(hours.to_string(), "22:00-07:00");
    for wrong in
        ["", "22:00", "22-07", "24:00-01:00", "10:60-11:00", "10:00-10:00", "+1:00-02:00", "1:000-2:00"]
    {
        assert!(wrong.parse::<QuietHours>().is_err(), "{wrong}");
    }
}

#[test]
fn the_stricter_limit_counts() {
    let strict = limits().stricter(Some(10), Some(3));
    assert_eq!((strict.cooldown_ms, strict.max_ghosts_per_hour), (30_000, 3));
    let strict = limits().stricter(Some(90_000), Some(30));
    assert_eq!((strict.cooldown_ms, strict.max_ghosts_per_hour), (90_000, 10));
}

#[derive(Debug, Clone)]
enum Step {
    Seen { finding: u8, trigger: u8, boundary: bool },
    Answered { ghost: bool, tokens: u64 },
    Ended(GhostEnd),
    Wait(u64),
    SetBack(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<u8>(), 0_u8..4, any::<bool>())
            .prop_map(|(finding, trigger, boundary)| Step::Seen { finding, trigger, boundary }),
        3 => (any::<bool>(), 0_u64..2_000).prop_map(|(ghost, tokens)| Step::Answered { ghost, tokens }),
        1 => prop_oneof![Just(GhostEnd::Approved), Just(GhostEnd::Dismissed), Just(GhostEnd::Expired)]
            .prop_map(Step::Ended),
        3 => (0_u64..120_000).prop_map(Step::Wait),
        1 => (0_u64..600_000).prop_map(Step::SetBack),
    ]
}

proptest! {
    // Promises: SHADOW-1, SHADOW-2, SHADOW-4, SHADOW-5
    #[test]
    fn whatever_happens_no_limit_is_passed_and_nothing_grows(
        steps in proptest::collection::vec(step(), 1..400)
    ) {
        let limits = PolicyLimits { tokens_per_day: 20_000, ..limits() };
        let (mut state, mut now) = (SenderState::default(), 1_000_000_000_u64);
        // By a clock that is never set back.
        let (mut elapsed, mut ghosts, mut asked) = (0_u64, Vec::<u64>::new(), std::collections::BTreeSet::new());
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Seen { finding, trigger, boundary } => {
                    let seen = Candidate {
                        id: format!("o{number}"),
                        trigger: if trigger == 0 { String::new() } else { format!("t{trigger}") },
                        fingerprint: format!("f{finding}"),
                        boundary,
                        ..candidate("", now)
                    };
                    let before = state.asking.clone();
                    if let Some(chosen) = state.observe(&limits, seen.clone(), at(now)).ask {
                        prop_assert!(before.is_none(), "one question at a time");
                        prop_assert!(!chosen.trigger.is_empty());
                        prop_assert!(asked.insert(chosen.fingerprint), "no finding twice");
                    }
                    prop_assert!(!state.observe(&limits, seen, at(now)).new);
                }
                Step::Answered { ghost, tokens } => {
                    let Some(id) = state.asking.clone() else { continue };
                    state.spend(tokens, 0, at(now));
                    state.answered(&id, "t1", ghost, at(now));
                    if ghost {
                        ghosts.push(elapsed);
                    }
                }
                Step::Ended(end) => state.ended("t1", end),
                Step::Wait(ms) => {
                    now += ms;
                    elapsed += ms;
                }
                Step::SetBack(ms) => now -= ms,
            }
            prop_assert!(state.waiting.len() <= MAX_CANDIDATES && state.known_ids.len() <= MAX_KNOWN_IDS);
            prop_assert!(state.triggers.len() <= MAX_TRIGGERS + 1);
            prop_assert!(state.spent(at(now)).tokens <= limits.tokens_per_day);
            let stats = state.triggers.values();
            prop_assert!(stats.clone().all(|stats| (10..=100).contains(&stats.rate.percent())));
        }
        for window in ghosts.windows(2) {
            prop_assert!(window[1] - window[0] >= limits.cooldown_ms, "{ghosts:?}");
        }
        for window in ghosts.windows(11) {
            prop_assert!(window[10] - window[0] >= 3_600_000, "{ghosts:?}");
        }
    }
}
