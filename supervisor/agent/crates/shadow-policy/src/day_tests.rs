//! A day of simulated work: 10,000 events, of which few matter. Seeded, so that it is the same day each time.

use crate::tests::{at, limits};
use crate::{Candidate, GhostEnd, SenderState};

const EVENTS: u64 = 10_000;
/// Eight hours.
const DAY_MS: u64 = 8 * 60 * 60 * 1000;
/// Nine in the morning of some day.
const MORNING: u64 = 20_000 * 24 * 60 * 60 * 1000 + 9 * 60 * 60 * 1000;

/// A generator that gives the same numbers each time (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// An event: what a watcher sends, and whether a person would want to hear of it.
struct LabelledEvent {
    seen: Candidate,
    is_wanted: bool,
}

/// Saves and commands, mostly; a finding in one of forty. Of `test_failed` nine of ten are wanted, of `large_file` one of ten.
fn event(number: u64, random: &mut Numbers) -> LabelledEvent {
    let at_ms = MORNING + number * DAY_MS / EVENTS;
    let kind = random.below(200);
    let (trigger, is_wanted) = match kind {
        0..=2 => ("test_failed", random.below(10) < 9),
        3..=4 => ("large_file", random.below(10) < 1),
        _ => ("", false),
    };
    // The same finding comes again while it is not mended.
    let finding = number / 40;
    let seen = Candidate {
        id: format!("o{number}"),
        trigger: trigger.to_owned(),
        repository: format!("/code/{}", random.below(2)),
        fingerprint: format!("{trigger}{finding}"),
        boundary: random.below(15) == 0,
        at_ms,
    };
    LabelledEvent { seen, is_wanted }
}

// Promises: SHADOW-28
#[test]
fn a_day_of_work_keeps_to_its_limits_and_most_of_what_is_said_is_wanted() {
    let limits = limits();
    let (mut state, mut random) = (SenderState::default(), Numbers(0x5eed));
    let mut wanted = std::collections::BTreeMap::new();
    let (mut ghosts, mut good, mut findings) = (Vec::new(), 0_u32, 0_u32);
    for number in 0..EVENTS {
        let LabelledEvent { seen, is_wanted } = event(number, &mut random);
        let now = at(seen.at_ms);
        findings += u32::from(!seen.trigger.is_empty());
        wanted.insert(seen.id.clone(), is_wanted);
        let Some(asked) = state.observe(&limits, seen, now).ask else { continue };
        state.spend(800, 0, now);
        state.answered(&asked.id, &asked.trigger, true, now);
        let end = if wanted[&asked.id] { GhostEnd::Approved } else { GhostEnd::Dismissed };
        state.ended(&asked.trigger, end);
        ghosts.push(now.unix_ms);
        good += u32::from(wanted[&asked.id]);
    }
    let total = u32::try_from(ghosts.len()).expect("few");
    let of_hour = |from: u64| ghosts.iter().filter(|at| (from..from + 3_600_000).contains(at)).count();
    assert!(ghosts.iter().all(|from| of_hour(*from) <= 10), "{ghosts:?}");
    assert!(ghosts.windows(2).all(|pair| pair[1] - pair[0] >= 30_000));
    assert!(state.spent(at(MORNING + DAY_MS)).tokens <= limits.tokens_per_day);
    // What is not wanted is soon said less: the precision is far above the share of wanted findings, which is 58 %.
    let percent = good * 100 / total;
    assert!(
        findings > 200 && total > 20 && percent >= 75,
        "{good} of {total} ghosts, {findings} findings: {percent} %"
    );
    assert!(state.triggers["large_file"].rate.percent() <= 20);
    assert_eq!(state.triggers["test_failed"].rate.percent(), 100);
}

// Promises: SHADOW-28
#[test]
fn a_day_without_a_finding_asks_nothing() {
    let (mut state, mut random) = (SenderState::default(), Numbers(7));
    for number in 0..EVENTS {
        let mut seen = event(number, &mut random).seen;
        seen.trigger.clear();
        let now = at(seen.at_ms);
        assert_eq!(state.observe(&limits(), seen, now).ask, None);
    }
    assert!(state.triggers.is_empty() && state.spending.tokens == 0);
}
