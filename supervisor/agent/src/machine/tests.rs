use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use talon_llm::model::{Answer, Arguments, Finish, ToolCall, Usage};

use super::*;
use crate::answer::{self, Schema};
use crate::budget::{Budgets, Limit};
use crate::loop_context::Failure;
use crate::tool_result::{CallOutcome, Provenance, ToolResult};

const REWRITE: &str = "TALON_REWRITE_DOCS";

pub(super) fn says(text: &str) -> Answer {
    Answer {
        text: text.to_owned(),
        calls: Vec::new(),
        finish: Finish::Stop,
        usage: Some(Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() }),
        model: "scripted".to_owned(),
        ..Answer::default()
    }
}

pub(super) fn calls(calls: &[(&str, &str)]) -> Answer {
    let call = |(i, (name, argument)): (usize, &(&str, &str))| ToolCall {
        id: format!("c{i}"),
        name: (*name).to_owned(),
        arguments: Arguments::Object([("q".to_owned(), json!(argument))].into_iter().collect()),
    };
    Answer { calls: calls.iter().enumerate().map(call).collect(), finish: Finish::ToolCalls, ..says("") }
}

pub(super) fn result(ran: CallOutcome, said: &str) -> ToolResult {
    ToolResult {
        outcome: ran,
        block: format!("[plugin_output]\n{said}\n[/plugin_output]"),
        output: said.to_owned(),
        provenance: Provenance::default(),
    }
}

fn answered(answer: Answer) -> Fact {
    Fact::Answered { answer, micro_usd: 7 }
}

/// A turn that has been started.
fn started(budgets: Budgets) -> Turn {
    let mut turn = Turn::new("find it", budgets);
    turn.apply(Fact::Ready, Duration::ZERO).expect("a turn begins");
    turn
}

fn take(turn: &mut Turn, fact: Fact) -> Advance {
    turn.apply(fact, Duration::from_millis(5)).expect("the turn waits for this")
}

#[test]
fn the_table_leads_to_one_place_from_each_state_and_event() {
    let pairs: BTreeSet<_> = TRANSITIONS.iter().map(|t| (t.from, t.event)).collect();
    assert_eq!(pairs.len(), TRANSITIONS.len());
}

#[test]
fn the_words_are_those_of_the_contract() {
    let states: Vec<&str> = State::ALL.iter().map(|state| state.word()).collect();
    assert_eq!(
        states,
        [
            "init",
            "await_llm",
            "evaluate_response",
            "process_tools",
            "request_clarification",
            "update_budgets",
            "handle_completion",
            "finalize",
            "terminate_error"
        ]
    );
    let events: Vec<&str> = Event::ALL.iter().map(|event| event.word()).collect();
    assert_eq!(
        events,
        [
            "start_loop",
            "llm_response",
            "response_no_tool",
            "response_with_tools",
            "tools_executed",
            "budget_ok",
            "budget_exceeded",
            "completion_retry",
            "completion_success",
            "failure",
            "request_clarification",
            "clarification_received",
            "hand_over"
        ]
    );
    let phases: BTreeSet<&str> = Phase::ALL.iter().map(|phase| phase.word()).collect();
    assert_eq!(
        phases,
        ["planning", "deciding", "executing", "evaluating", "compressing", "responding", "done"].into()
    );
}

// Promises: AGENT-1
#[test]
fn the_table_is_total_and_what_it_does_not_have_is_refused_with_the_reason() {
    let context = LoopContext::new("goal", Budgets::default());
    for &state in State::ALL {
        for &event in Event::ALL {
            let known = TRANSITIONS.iter().any(|t| (t.from, t.event) == (state, event));
            match step(state, event, &context) {
                Ok((to, _)) => assert!(known && !state.is_terminal() && to != state, "{state} {event}"),
                Err(TransitionError::GuardFailed { .. }) => assert!(known, "{state} {event}"),
                Err(TransitionError::Ended { .. }) => {
                    assert!(state.is_terminal() && !known, "{state} {event}")
                }
                Err(TransitionError::NoTransition { .. }) => {
                    assert!(!known && !state.is_terminal(), "{state} {event}")
                }
            }
        }
    }
}

// Promises: AGENT-1
#[test]
fn a_failure_is_taken_by_every_state_in_which_something_is_done() {
    let mut context = LoopContext::new("goal", Budgets::default());
    context.record_failure(Failure::Cancelled);
    for &state in State::ALL.iter().filter(|state| !state.is_terminal()) {
        let (to, effects) = step(state, Event::Failure, &context).expect("a working state takes a failure");
        assert_eq!(to, State::TerminateError);
        assert_eq!(effects[..2], [Effect::CancelRunning, Effect::Store]);
    }
}

#[test]
fn no_event_claims_what_the_facts_do_not_bear_out() {
    let context = LoopContext::new("goal", Budgets::default());
    let refused =
        step(State::UpdateBudgets, Event::BudgetExceeded, &context).expect_err("nothing is exceeded");
    assert_eq!(refused.to_string(), "update_budgets takes budget_exceeded only if a limit is reached");
    assert!(step(State::HandleCompletion, Event::CompletionSuccess, &context).is_err());
    assert!(step(State::AwaitLlm, Event::LlmResponse, &context).is_err());
    assert!(step(State::AwaitLlm, Event::Failure, &context).is_err());
}

#[test]
fn a_fact_that_is_not_waited_for_changes_nothing() {
    let mut turn = started(Budgets::default());
    let before = turn.clone();
    let late = Duration::from_secs(1);
    let early = turn.apply(Fact::Executed(Vec::new()), late).expect_err("nothing runs");
    assert_eq!(early, TransitionError::NoTransition { state: State::AwaitLlm, event: Event::ToolsExecuted });
    assert!(turn.apply(Fact::Ready, late).is_err());
    assert_eq!(turn, before);

    take(&mut turn, answered(calls(&[("a", "1"), ("b", "2")])));
    let before = turn.clone();
    let few = turn
        .apply(Fact::Executed(vec![result(CallOutcome::Succeeded, "x")]), late)
        .expect_err("one is missing");
    assert!(matches!(few, TransitionError::GuardFailed { guard: Guard::ResultsComplete, .. }));
    assert_eq!(turn, before);
}

#[test]
fn a_turn_with_tools_goes_round_and_ends_with_its_answer() {
    let mut turn = started(Budgets::default());
    let advance = take(&mut turn, answered(calls(&[("git__status", "a")])));
    let run = Effect::RunTools { calls: turn.context().calls().to_vec() };
    assert_eq!(advance.effects, [Effect::AppendAnswer, run]);
    assert_eq!(turn.context().pending(), ["git__status"]);

    let advance = take(&mut turn, Fact::Executed(vec![result(CallOutcome::Succeeded, "clean")]));
    let ask = Effect::AskModel { iteration: 2 };
    assert_eq!(advance.effects, [Effect::AppendResults, Effect::PrepareContext, ask]);
    let way: Vec<_> = advance.records.iter().map(|r| (r.from, r.event, r.to, r.phase)).collect();
    assert_eq!(
        way,
        [
            (State::ProcessTools, Event::ToolsExecuted, State::UpdateBudgets, Phase::Evaluating),
            (State::UpdateBudgets, Event::BudgetOk, State::AwaitLlm, Phase::Planning),
        ]
    );

    let advance = take(&mut turn, answered(says("All is clean.")));
    assert_eq!(advance.effects, [Effect::AppendAnswer, Effect::CheckAnswer]);
}

/// The golden test of `finalize`: all that is stored and told at the end of a turn.
#[test]
fn finalize_tells_all_of_the_turn() {
    let mut turn = started(Budgets::default());
    take(&mut turn, answered(calls(&[("git__status", "a")])));
    take(&mut turn, Fact::Executed(vec![result(CallOutcome::Succeeded, "clean")]));
    take(&mut turn, answered(says(" All is clean. ")));
    let verdict = answer::check(turn.context().answer().expect("it answered"), None);
    let advance = take(&mut turn, Fact::Checked(verdict));

    assert_eq!(turn.state(), State::Finalize);
    let [Effect::Store, Effect::TellDone(finished)] = &advance.effects[..] else {
        panic!("{:?}", advance.effects)
    };
    assert_eq!(finished.answer.text, "All is clean.");
    assert_eq!(finished.answer.value, None);
    assert_eq!((finished.iterations, finished.micro_usd), (2, 14));
    assert_eq!(turn.context().completed(), ["git__status"]);
    assert_eq!(
        serde_json::to_value(&advance.records).expect("records are plain data"),
        json!([{
            "from": "handle_completion",
            "event": "completion_success",
            "to": "finalize",
            "phase": "responding",
            "iteration": 2,
            "budgets": {
                "iterations_left": 8,
                "tool_errors_left": 8,
                "retries_left": 2,
                "elapsed_ms": 5,
                "left_ms": 599_995,
                "tokens": 220,
                "micro_usd": 14,
                "micro_usd_left": 999_986,
            },
        }])
    );
    assert_eq!(Phase::of(turn.state(), Activity::Finished), Phase::Done);
    assert!(matches!(
        turn.apply(Fact::Failed(Failure::Cancelled), Duration::ZERO),
        Err(TransitionError::Ended { state: State::Finalize, .. })
    ));
}

// Promises: AGENT-3
#[test]
fn repeated_successes_run_into_the_warning_and_then_into_the_limit() {
    let mut turn = started(Budgets::default());
    let mut round = || {
        take(&mut turn, answered(calls(&[("git__status", "a")])));
        take(&mut turn, Fact::Executed(vec![result(CallOutcome::Succeeded, "clean")]))
    };
    assert_eq!(round().effects.len(), 3);
    let second = round();
    let [Effect::AppendResults, Effect::Warn { note }, Effect::PrepareContext, Effect::AskModel { .. }] =
        &second.effects[..]
    else {
        panic!("{:?}", second.effects)
    };
    assert!(note.contains("You called git__status 2 times with the same arguments"), "{note}");
    assert_eq!(note.matches("once more ends the turn").count(), 1, "{note}");
    let third = round();
    let [Effect::AppendResults, Effect::Store, Effect::TellEnd(end)] = &third.effects[..] else {
        panic!("{:?}", third.effects)
    };
    let limit = Limit::IdenticalSuccesses { tool: "git__status".to_owned(), times: 3 };
    assert_eq!(end.reason, Failure::Limit(limit));
    assert!(end.sentence.starts_with("Stopped: the model called git__status 3 times"), "{}", end.sentence);
    assert_eq!(turn.state(), State::TerminateError);
}

#[test]
fn what_is_called_beyond_the_limit_is_not_run_and_counts_against_nobody() {
    let mut turn = started(Budgets::default());
    take(&mut turn, answered(calls(&[("a", "1"), ("a", "2"), ("a", "3")])));
    let over = || result(CallOutcome::OverTheLimit, "not run");
    take(&mut turn, Fact::Executed(vec![result(CallOutcome::Succeeded, "x"), over(), over()]));
    assert_eq!(turn.context().tool_stats()["a"].errors(), 0);
    assert_eq!(turn.context().completed(), ["a"]);
}

#[test]
fn the_same_call_many_times_in_one_answer_does_not_end_a_turn_unwarned() {
    let mut turn = started(Budgets::default());
    take(&mut turn, answered(calls(&[("a", "1"), ("a", "1"), ("a", "1")])));
    let same = || result(CallOutcome::Succeeded, "x");
    let advance = take(&mut turn, Fact::Executed(vec![same(), same(), same()]));
    assert_eq!(turn.state(), State::AwaitLlm, "{advance:?}");
}

#[test]
fn the_last_question_says_that_it_is_the_last_and_then_the_turn_ends_with_what_there_is() {
    let mut turn = started(Budgets { iterations: 2.try_into().expect("not 0"), ..Budgets::default() });
    let mut answer = calls(&[("a", "1")]);
    answer.text = "I will look at 1.".to_owned();
    take(&mut turn, answered(answer));
    let advance = take(&mut turn, Fact::Executed(vec![result(CallOutcome::Succeeded, "x")]));
    assert!(
        matches!(&advance.effects[1], Effect::Warn { note } if note.contains("This is the last time")),
        "{advance:?}"
    );
    take(&mut turn, answered(calls(&[("a", "2")])));
    let advance = take(&mut turn, Fact::Executed(vec![result(CallOutcome::Succeeded, "y")]));
    let Some(Effect::TellEnd(end)) = advance.effects.last() else { panic!("{advance:?}") };
    assert_eq!(end.reason, Failure::Limit(Limit::Iterations { most: 2 }));
    assert_eq!(end.partial.as_deref(), Some("I will look at 1."));
}

// Promises: AGENT-10
#[test]
fn an_answer_that_does_not_fit_goes_back_twice_and_then_ends_the_turn() {
    let schema = Schema::new(json!({ "type": "object" })).expect("a schema");
    let mut turn = started(Budgets::default());
    for attempt in 1..=2 {
        take(&mut turn, answered(says("no")));
        let verdict = answer::check(turn.context().answer().expect("it answered"), Some(&schema));
        let advance = take(&mut turn, Fact::Checked(verdict));
        let Some(Effect::Feedback { text }) = advance.effects.first() else { panic!("{advance:?}") };
        assert!(text.contains(&format!("(try {attempt} of 2)")), "{text}");
        assert_eq!(turn.state(), State::AwaitLlm);
    }
    take(&mut turn, answered(says("no")));
    let verdict = answer::check(turn.context().answer().expect("it answered"), Some(&schema));
    let advance = take(&mut turn, Fact::Checked(verdict));
    let Some(Effect::TellEnd(end)) = advance.effects.last() else { panic!("{advance:?}") };
    assert_eq!(end.reason.word(), "answer_invalid");
    assert_eq!(turn.context().budget_use().retries_left, 0);
}

// Promises: AGENT-67
#[test]
fn an_empty_withheld_or_refused_answer_goes_back_once_and_a_call_that_was_cut_as_often_as_one_that_does_not_fit()
 {
    let withheld = |finish| Answer { finish, ..says("half of it") };
    let cut =
        || Answer { cut_call: Some("files__write".to_owned()), finish: Finish::Length, ..says("I write.") };
    for (answer, retries, word) in [
        (says(""), 1, "empty_answer"),
        (withheld(Finish::Filtered), 1, "answer_withheld"),
        (withheld(Finish::Refused), 1, "answer_refused"),
        (withheld(Finish::Length), 0, "answer_cut_off"),
        (cut(), 2, "answer_cut_off"),
    ] {
        let mut turn = started(Budgets::default());
        for attempt in 0..=retries {
            take(&mut turn, answered(answer.clone()));
            let verdict = answer::check(turn.context().answer().expect("it answered"), None);
            let advance = take(&mut turn, Fact::Checked(verdict));
            match advance.effects.last() {
                Some(Effect::TellEnd(end)) => {
                    assert_eq!((attempt, end.reason.word()), (retries, word));
                    assert_eq!(end.partial.is_some(), !answer.text.is_empty(), "{word}");
                }
                other => assert!(attempt < retries, "{word}: {other:?}"),
            }
        }
    }
}

// Promises: AGENT-67
#[test]
fn the_model_is_informed_of_a_call_that_was_cut_beside_others() {
    let mut turn = started(Budgets::default());
    let answer = Answer { cut_call: Some("files__write".to_owned()), ..calls(&[("git__status", "a")]) };
    take(&mut turn, answered(answer));
    let advance = take(&mut turn, Fact::Executed(vec![result(CallOutcome::Succeeded, "clean")]));
    let warned = advance.effects.iter().any(
        |effect| matches!(effect, Effect::Warn { note } if note.contains("files__write") && note.contains("not made")),
    );
    assert!(warned, "{:?}", advance.effects);
}

#[test]
fn nothing_runs_once_time_or_money_are_gone() {
    let mut turn = started(Budgets { micro_usd: Some(5), ..Budgets::default() });
    let advance = take(&mut turn, answered(calls(&[("a", "1")])));
    let Some(Effect::TellEnd(end)) = advance.effects.last() else { panic!("{advance:?}") };
    assert_eq!(end.reason, Failure::Limit(Limit::Cost { most_micro_usd: 5 }));
    assert!(!advance.effects.iter().any(|effect| matches!(effect, Effect::RunTools { .. })), "{advance:?}");
    // What is there and paid for is an answer all the same.
    let mut turn = started(Budgets { micro_usd: Some(5), ..Budgets::default() });
    take(&mut turn, answered(says("here")));
    let verdict = answer::check(turn.context().answer().expect("it answered"), None);
    take(&mut turn, Fact::Checked(verdict));
    assert_eq!(turn.state(), State::Finalize);
}

// Promises: AGENT-1
#[test]
fn the_diagram_in_the_docs_is_the_table() {
    const MARKS: [&str; 2] = ["<!-- diagram: begin -->\n```mermaid\n", "```\n<!-- diagram: end -->"];
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agent-loop.md");
    let page = std::fs::read_to_string(path).expect("the page is in the repository");
    let (before, rest) = page.split_once(MARKS[0]).expect("the page has the first mark");
    let (shown, after) = rest.split_once(MARKS[1]).expect("the page has the second mark");
    if std::env::var_os(REWRITE).is_some() {
        let page = [before, MARKS[0], &diagram(), MARKS[1], after].concat();
        std::fs::write(path, page).expect("the page can be written");
        return;
    }
    assert_eq!(shown, diagram(), "docs/agent-loop.md is stale: run this test with {REWRITE}=1");
}

#[test]
fn the_page_names_each_phase_and_each_limit() {
    let page = include_str!("../../../../docs/agent-loop.md");
    for phase in Phase::ALL {
        assert!(page.contains(&format!("`{phase}`")), "{phase}");
    }
    for state in State::ALL {
        assert!(page.contains(&format!("`{state}`")), "{state}");
    }
}

/// An answer that asks the person, with these calls beside the question.
pub(super) fn asks(question: &str, beside: &[(&str, &str)]) -> Answer {
    let mut answer = calls(beside);
    answer.calls.push(ToolCall {
        id: "q".to_owned(),
        name: "talon__ask_user".to_owned(),
        arguments: Arguments::Object([("question".to_owned(), json!(question))].into_iter().collect()),
    });
    answer
}

// Promises: AGENT-85
#[test]
fn a_question_to_the_person_waits_in_a_state_of_its_own_and_leads_back_to_the_model() {
    let mut turn = started(Budgets { clarifications: 1, ..Budgets::default() });
    let advance = take(&mut turn, answered(asks("Which one?", &[])));
    assert_eq!(turn.state(), State::RequestClarification);
    assert!(
        matches!(advance.effects.last(), Some(Effect::AskPerson { call }) if call.id == "q"),
        "{advance:?}"
    );
    let early = turn.apply(Fact::Executed(vec![]), Duration::ZERO).expect_err("not what it waits for");
    assert!(matches!(early, TransitionError::NoTransition { .. }), "{early:?}");
    let advance = take(&mut turn, Fact::Clarified(result(CallOutcome::Succeeded, "the red one")));
    assert_eq!((turn.state(), &advance.effects[0]), (State::AwaitLlm, &Effect::AppendResults));
    // So often and no more.
    take(&mut turn, answered(asks("And now?", &[])));
    assert_eq!(turn.state(), State::ProcessTools);
}

// Promises: AGENT-85
#[test]
fn what_is_no_question_alone_or_may_not_be_asked_is_a_call_like_any_other() {
    for (clarifications, iterations, answer) in [
        (0, 5, asks("Which one?", &[])),
        (1, 5, asks("Which one?", &[("a", "1")])),
        (1, 5, asks(" ", &[])),
        (1, 1, asks("Which one?", &[])),
    ] {
        let iterations = iterations.try_into().expect("not 0");
        let mut turn = started(Budgets { clarifications, iterations, ..Budgets::default() });
        take(&mut turn, answered(answer));
        assert_eq!(turn.state(), State::ProcessTools);
    }
}

// Promises: AGENT-85
#[test]
fn a_question_without_an_answer_ends_the_turn() {
    let mut turn = started(Budgets { clarifications: 1, ..Budgets::default() });
    take(&mut turn, answered(asks("Which one?", &[])));
    let advance = take(&mut turn, Fact::Failed(Failure::Unanswered("1d".to_owned())));
    assert_eq!(turn.state(), State::TerminateError);
    let Some(Effect::TellEnd(end)) = advance.effects.last() else { panic!("{advance:?}") };
    assert_eq!(end.reason.word(), "expired");
}
