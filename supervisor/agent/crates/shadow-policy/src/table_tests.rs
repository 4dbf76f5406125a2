//! The policy as a table: what was before, what comes, and what becomes of it.

use crate::HoldReason::{
    Asking, Cooldown, HourlyLimit, MoneyBudget, Muted, NoBoundary, Paused, QuietHours as Quiet, Rate,
    Repeated, TokenBudget,
};
use crate::tests::{at, candidate, limits};
use crate::{Candidate, GhostEnd, HoldReason, PolicyLimits, SenderState, WallTime};

/// What becomes of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Asked,
    /// It waits; what stands in its way at the next boundary, if anything does.
    Waits(Option<HoldReason>),
    Held(HoldReason),
    /// It only is an event.
    Nothing,
}

struct Row {
    name: &'static str,
    limits: PolicyLimits,
    before: fn(&mut SenderState),
    comes: Candidate,
    now: WallTime,
    outcome: Outcome,
}

const MINUTE: u64 = 60 * 1000;
/// When things happen in the table: at ten o'clock, some days after 1970.
const NOW: u64 = 10 * 24 * 60 * MINUTE + 10 * 60 * MINUTE;

fn row(name: &'static str, before: fn(&mut SenderState), outcome: Outcome) -> Row {
    let comes = Candidate { boundary: true, ..candidate("new", NOW) };
    Row { name, limits: limits(), before, comes, now: at(NOW), outcome }
}

fn nothing(_: &mut SenderState) {}

fn ghost_before(state: &mut SenderState, ms: u64) {
    state.answered("old", "test_failed", true, at(NOW - ms));
}

#[rustfmt::skip]
fn table() -> Vec<Row> {
    vec![
        row("a finding at a boundary", nothing, Outcome::Asked),
        Row { comes: candidate("new", NOW), ..row("a finding while somebody types", nothing, Outcome::Waits(None)) },
        Row { comes: candidate("new", NOW), limits: PolicyLimits { boundaries_only: false, ..limits() },
              ..row("the same, if boundaries do not count", nothing, Outcome::Asked) },
        Row { comes: Candidate { trigger: String::new(), boundary: true, ..candidate("new", NOW) },
              ..row("an event without a finding", nothing, Outcome::Nothing) },
        row("what was told of", |state| state.told.push_back("finding new".to_owned()), Outcome::Held(Repeated)),
        row("what waits already", |state| { state.waiting.push(Candidate { id: "old".to_owned(), ..candidate("new", NOW - MINUTE) }); state.asking = Some("x".to_owned()); }, Outcome::Held(Repeated)),
        row("while it rests", |state| state.pause(true, None), Outcome::Held(Paused)),
        row("while it rests for an hour", |state| state.pause(true, Some(NOW + 1)), Outcome::Held(Paused)),
        row("after it rested for an hour", |state| state.pause(true, Some(NOW)), Outcome::Asked),
        row("in a repository that the person muted", |state| assert!(state.mute("/code", true)), Outcome::Held(Muted)),
        row("in one that is muted no more", |state| assert!(state.mute("/code", true) && state.mute("/code", false)), Outcome::Asked),
        Row { limits: PolicyLimits { muted: vec!["/code".to_owned()], ..limits() },
              ..row("in a repository that the operator muted", nothing, Outcome::Held(Muted)) },
        row("after a dismissal of the trigger", |state| state.ended("test_failed", GhostEnd::Dismissed), Outcome::Held(Rate)),
        row("after a dismissal of another trigger", |state| state.ended("large_file", GhostEnd::Dismissed), Outcome::Asked),
        row("after an approval of the trigger", |state| state.ended("test_failed", GhostEnd::Approved), Outcome::Asked),
        row("while another is asked about", |state| state.asking = Some("other".to_owned()), Outcome::Waits(Some(Asking))),
        row("29.999 s after a ghost", |state| ghost_before(state, 29_999), Outcome::Waits(Some(Cooldown))),
        row("30 s after a ghost", |state| ghost_before(state, 30_000), Outcome::Asked),
        row("after ten ghosts within an hour", |state| (0..10).for_each(|n| ghost_before(state, (59 - n) * MINUTE)), Outcome::Waits(Some(HourlyLimit))),
        row("after ten ghosts, one of them an hour ago", |state| (0..10).for_each(|n| ghost_before(state, (60 - n) * MINUTE)), Outcome::Asked),
        Row { limits: PolicyLimits { max_ghosts_per_hour: 0, ..limits() },
              ..row("if there may be none an hour", nothing, Outcome::Waits(Some(HourlyLimit))) },
        Row { limits: PolicyLimits { quiet_hours: "09:59-10:01".parse().ok(), ..limits() },
              ..row("in quiet hours", nothing, Outcome::Waits(Some(Quiet))) },
        Row { limits: PolicyLimits { quiet_hours: "22:00-07:00".parse().ok(), ..limits() },
              ..row("outside of quiet hours", nothing, Outcome::Asked) },
        row("with too few tokens left", |state| state.spend(98_500, 0, at(NOW)), Outcome::Waits(Some(TokenBudget))),
        row("with as many tokens left as a question takes", |state| state.spend(98_000, 0, at(NOW)), Outcome::Asked),
        row("with the tokens of yesterday spent", |state| state.spend(100_000, 0, at(NOW - 24 * 60 * MINUTE)), Outcome::Asked),
        Row { limits: PolicyLimits { pico_usd_per_day: Some(50), ..limits() },
              ..row("with the money spent", |state| state.spend(1, 50, at(NOW)), Outcome::Waits(Some(MoneyBudget))) },
        Row { limits: PolicyLimits { pico_usd_per_day: Some(0), ..limits() },
              ..row("without money, for models that cost nothing", nothing, Outcome::Asked) },
        row("after the clock was set back by a day", |state| state.answered("old", "test_failed", true, at(NOW + 24 * 60 * MINUTE)), Outcome::Waits(Some(Cooldown))),
    ]
}

// Promises: SHADOW-1, SHADOW-2, SHADOW-3, SHADOW-4, SHADOW-5
#[test]
fn each_row_of_the_table_holds() {
    for Row { name, limits, before, comes, now, outcome } in table() {
        let mut state = SenderState::default();
        before(&mut state);
        let held_before =
            state.triggers.get("test_failed").map(|stats| stats.held_back.clone()).unwrap_or_default();
        let observed = state.observe(&limits, comes, now);
        assert!(observed.new, "{name}");
        let held = state.triggers.get("test_failed").map(|stats| stats.held_back.clone()).unwrap_or_default();
        let reason = held
            .iter()
            .find(|(reason, count)| held_before.get(reason) != Some(*count))
            .map(|(reason, _)| *reason);
        let waits = state.waiting.iter().any(|one| one.id == "new");
        if waits {
            assert_eq!(observed.postponed, state.obstacle(&limits, now), "{name}");
        }
        let found = match (observed.ask, reason) {
            (Some(asked), None) if asked.id == "new" => Outcome::Asked,
            (None, Some(reason)) => Outcome::Held(reason),
            (None, None) if waits => Outcome::Waits(state.obstacle(&limits, now)),
            (None, None) => Outcome::Nothing,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(found, outcome, "{name}");
    }
}

// Promises: SHADOW-3
#[test]
fn a_candidate_waits_for_a_boundary_of_its_repository_and_not_for_ever() {
    let mut state = SenderState::default();
    let limits = limits();
    assert_eq!(state.observe(&limits, candidate("one", NOW), at(NOW)).ask, None);
    let elsewhere = Candidate {
        trigger: String::new(),
        repository: "/other".to_owned(),
        boundary: true,
        ..candidate("commit elsewhere", NOW)
    };
    assert_eq!(state.observe(&limits, elsewhere, at(NOW + 1)).ask, None);
    let prompt = Candidate {
        trigger: String::new(),
        repository: String::new(),
        boundary: true,
        ..candidate("prompt", NOW)
    };
    let asked =
        state.observe(&limits, prompt.clone(), at(NOW + 2)).ask.expect("a shell's prompt is one everywhere");
    assert_eq!((asked.id.as_str(), state.asking.as_deref()), ("one", Some("one")));
    state.answered("one", "test_failed", false, at(NOW + 3));
    assert_eq!(state.observe(&limits, candidate("two", NOW + 4), at(NOW + 4)).ask, None);
    let late = NOW + 4 + crate::CANDIDATE_LIFETIME_MS;
    let again = Candidate { id: "prompt 2".to_owned(), ..prompt };
    assert_eq!(state.observe(&limits, again, at(late)).ask, None);
    assert_eq!(state.triggers["test_failed"].held_back, [(NoBoundary, 1)].into());
}
