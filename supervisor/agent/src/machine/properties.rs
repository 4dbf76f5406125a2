//! What holds on every path, whatever facts and events come in whatever order.

use std::time::Duration;

use proptest::prelude::*;

use super::tests::{asks, calls, result, says};
use super::*;
use crate::answer;
use crate::answer::AnswerVerdict;
use crate::budget::{Budgets, Limit};
use crate::loop_context::Failure;
use crate::tool_result::{CallOutcome, ToolResult};

/// What a driver might bring, sensible or not. Results are made to fit the calls only when they are used.
#[derive(Debug, Clone)]
enum Brought {
    Ready,
    Says(&'static str),
    Calls(Vec<(&'static str, &'static str)>),
    Results(Vec<(CallOutcome, &'static str)>),
    TooFewResults,
    Checked,
    /// An answer that asks the person, and what comes of it.
    Asks,
    Clarified,
    Failed,
}

fn brought() -> impl Strategy<Value = Brought> {
    let tool = prop::sample::select(vec!["a", "b", "c"]);
    let text = prop::sample::select(vec!["", "1", "2"]);
    let ran = prop::sample::select(vec![
        CallOutcome::Succeeded,
        CallOutcome::Failed,
        CallOutcome::NotOffered,
        CallOutcome::OverTheLimit,
        CallOutcome::HandedOver,
    ]);
    prop_oneof![
        1 => Just(Brought::Ready),
        3 => text.clone().prop_map(Brought::Says),
        6 => prop::collection::vec((tool, text.clone()), 1..5).prop_map(Brought::Calls),
        6 => prop::collection::vec((ran, text), 1..5).prop_map(Brought::Results),
        1 => Just(Brought::TooFewResults),
        3 => Just(Brought::Checked),
        1 => Just(Brought::Asks),
        1 => Just(Brought::Clarified),
        1 => Just(Brought::Failed),
    ]
}

fn fact(brought: &Brought, context: &LoopContext) -> Fact {
    match brought {
        Brought::Ready => Fact::Ready,
        Brought::Says(text) => Fact::Answered { answer: says(text), micro_usd: 3 },
        Brought::Calls(made) => Fact::Answered { answer: calls(made), micro_usd: 3 },
        Brought::Results(each) => Fact::Executed(
            (0..context.calls().len())
                .zip(each.iter().cycle())
                .map(|(_, (ran, said))| result(*ran, said))
                .collect(),
        ),
        Brought::TooFewResults => Fact::Executed(Vec::<ToolResult>::new()),
        Brought::Checked => match context.answer() {
            Some(answer) => Fact::Checked(answer::check(answer, None)),
            None => Fact::Checked(AnswerVerdict::Invalid(answer::AnswerError::Empty)),
        },
        Brought::Asks => Fact::Answered { answer: asks("what?", &[]), micro_usd: 3 },
        Brought::Clarified => Fact::Clarified(result(CallOutcome::Succeeded, "that")),
        Brought::Failed => Fact::Failed(Failure::Cancelled),
    }
}

fn budgets() -> impl Strategy<Value = Budgets> {
    let number = || (1..6u32).prop_map(|n| n.try_into().expect("not 0"));
    (number(), number(), number(), number(), number(), 0..3u32, 0..400u64, prop::option::of(0..40u64))
        .prop_map(
            |(
                iterations,
                calls_at_once,
                tool_errors,
                identical_successes,
                no_progress,
                structured_retries,
                ms,
                micro_usd,
            )| Budgets {
                iterations,
                calls_at_once,
                tool_errors,
                identical_successes,
                no_progress,
                structured_retries,
                continuations: 0,
                clarifications: 2,
                wall_time: Duration::from_millis(ms),
                micro_usd,
            },
        )
}

/// What has to be true of a turn at every moment.
fn holds(turn: &Turn) -> Result<(), TestCaseError> {
    let (context, budgets) = (turn.context(), turn.context().budgets());
    let left = context.budget_use();
    prop_assert!(context.iteration() <= budgets.iterations.get());
    prop_assert!(context.retries() <= budgets.structured_retries);
    prop_assert_eq!(context.iteration() + left.iterations_left, budgets.iterations.get());
    prop_assert_eq!(context.retries() + left.retries_left, budgets.structured_retries);
    prop_assert!(left.tool_errors_left <= budgets.tool_errors.get());
    prop_assert!(left.left_ms <= u64::try_from(budgets.wall_time.as_millis()).expect("short"));
    prop_assert!(left.micro_usd_left.unwrap_or_default() <= budgets.micro_usd.unwrap_or_default());
    Ok(())
}

proptest! {
    /// No sequence of events escapes the table: also raw events, without any facts behind them.
    // Promises: AGENT-1
    #[test]
    fn raw_events_stay_in_the_table(events in prop::collection::vec(prop::sample::select(Event::ALL), 0..60)) {
        let context = LoopContext::new("goal", Budgets::default());
        let mut state = State::Init;
        for event in events {
            match step(state, event, &context) {
                Ok((to, _)) => {
                    prop_assert!(TRANSITIONS.iter().any(|t| (t.from, t.event, t.to) == (state, event, to)));
                    state = to;
                }
                Err(TransitionError::Ended { .. }) => prop_assert!(state.is_terminal()),
                Err(_) => {}
            }
        }
    }

    /// Nor do facts, and each transition leaves a record that links to the one before.
    // Promises: AGENT-2
    #[test]
    fn facts_stay_in_the_table_and_the_budgets(
        budgets in budgets(),
        path in prop::collection::vec((brought(), 0..40u64), 0..120),
    ) {
        let longest = Turn::max_transitions(&budgets);
        let mut turn = Turn::new("goal", budgets);
        let (mut at, mut clock, mut transitions) = (State::Init, 0, 0);
        for (brought, ms) in path {
            clock += ms;
            let before = turn.clone();
            match turn.apply(fact(&brought, turn.context()), Duration::from_millis(clock)) {
                Ok(advance) => {
                    prop_assert!(!advance.records.is_empty());
                    for record in &advance.records {
                        prop_assert_eq!(record.from, at);
                        prop_assert!(TRANSITIONS.iter().any(
                            |t| (t.from, t.event, t.to) == (record.from, record.event, record.to)
                        ));
                        at = record.to;
                        transitions += 1;
                    }
                    prop_assert_eq!(turn.state(), at);
                }
                Err(_) => prop_assert_eq!(&turn, &before),
            }
            holds(&turn)?;
            prop_assert!(transitions <= longest, "{transitions} of {longest}");
        }
    }

    /// Every path ends: a driver that always brings what is waited for gets to an end within the bound, the
    /// end is told exactly once, and the same facts lead there again.
    // Promises: AGENT-2
    #[test]
    fn every_path_ends_and_tells_so_once(budgets in budgets(), wishes in prop::collection::vec(brought(), 1..30), ms in 0..40u64) {
        let longest = Turn::max_transitions(&budgets);
        let mut turn = Turn::new("goal", budgets.clone());
        let mut facts = Vec::new();
        let mut wishes = wishes.iter().cycle();
        let (mut transitions, mut told, mut clock) = (0, 0, 0);
        while !turn.state().is_terminal() {
            let wish = wishes.next().expect("a cycle of at least one has no end");
            let brought = match (turn.state(), wish) {
                (State::Init, _) => Brought::Ready,
                (State::AwaitLlm, Brought::Says(_) | Brought::Calls(_) | Brought::Asks) => wish.clone(),
                (State::RequestClarification, _) => Brought::Clarified,
                (State::AwaitLlm, _) => Brought::Calls(vec![("a", "1")]),
                (State::ProcessTools, Brought::Results(_)) => wish.clone(),
                (State::ProcessTools, _) => Brought::Results(vec![(CallOutcome::Succeeded, "1")]),
                (_, _) => Brought::Checked,
            };
            clock += ms;
            facts.push((fact(&brought, turn.context()), Duration::from_millis(clock)));
            let (fact, at) = facts.last().cloned().expect("it was just put there");
            let advance = turn
                .apply(fact, at)
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            transitions += advance.records.len() as u64;
            let tells = |e: &&Effect| matches!(e, Effect::TellDone(_) | Effect::TellHandedOver | Effect::TellEnd(_));
            told += advance.effects.iter().filter(tells).count();
            prop_assert!(transitions <= longest, "{transitions} of {longest}");
            holds(&turn)?;
        }
        prop_assert_eq!(told, 1);
        let mut again = Turn::new("goal", budgets);
        for (fact, at) in facts {
            prop_assert!(again.apply(fact, at).is_ok());
        }
        prop_assert_eq!(again, turn);
    }

    /// No limit on repetition ends a turn that was not warned of it, if there was room for a warning.
    // Promises: AGENT-3
    #[test]
    fn repetition_never_ends_a_turn_unwarned(rounds in prop::collection::vec(
        prop::collection::vec((prop::sample::select(vec!["a", "b"]), prop::sample::select(vec!["1", "2"])), 1..4), 1..10,
    )) {
        let mut turn = Turn::new("goal", Budgets::default());
        turn.apply(Fact::Ready, Duration::ZERO).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut warned = false;
        for round in rounds {
            let results = vec![result(CallOutcome::Succeeded, "same"); round.len()];
            for fact in [Fact::Answered { answer: calls(&round), micro_usd: 0 }, Fact::Executed(results)] {
                let advance = turn.apply(fact, Duration::ZERO).map_err(|error| TestCaseError::fail(error.to_string()))?;
                for effect in &advance.effects {
                    match effect {
                        Effect::Warn { note } => warned = note.contains("once more ends the turn"),
                        Effect::TellEnd(end) if !matches!(end.reason, Failure::Limit(Limit::Iterations { .. })) => {
                            prop_assert!(warned, "{end:?}");
                        }
                        _ => {}
                    }
                }
            }
            if turn.state().is_terminal() {
                break;
            }
        }
    }
}
