use std::time::Duration;

use talon_llm::model::{Answer, Arguments, Finish, ToolCall, Usage};

use super::*;
use crate::budget::Budgets;
use crate::tool_result::{CallOutcome, NEVER_OFFERED, Provenance, ToolResult};

/// One question with one call, which went like this.
fn round(context: &mut LoopContext, tool: &str, ran: CallOutcome, said: &str) {
    let call = ToolCall {
        id: "c".to_owned(),
        name: tool.to_owned(),
        arguments: Arguments::Object(Default::default()),
    };
    let answer = Answer {
        text: String::new(),
        calls: vec![call],
        finish: Finish::ToolCalls,
        usage: Some(Usage::default()),
        model: "scripted".to_owned(),
        ..Answer::default()
    };
    context.record_answer(answer, 0);
    context.record_results(vec![ToolResult {
        outcome: ran,
        block: String::new(),
        output: said.to_owned(),
        provenance: Provenance::default(),
    }]);
}

fn context(budgets: Budgets) -> LoopContext {
    LoopContext::new("goal", budgets)
}

fn many() -> Budgets {
    Budgets { iterations: 100.try_into().expect("not 0"), ..Budgets::default() }
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let budgets = Budgets::default();
    assert_eq!(
        (
            budgets.iterations.get(),
            budgets.calls_at_once.get(),
            budgets.tool_errors.get(),
            budgets.identical_successes.get()
        ),
        (10, 10, 8, 3)
    );
    assert_eq!((budgets.no_progress.get(), budgets.structured_retries), (3, 2));
    assert_eq!((budgets.wall_time, budgets.micro_usd), (Duration::from_secs(600), Some(1_000_000)));
}

// Promises: AGENT-4
#[test]
fn a_tool_that_fails_too_often_ends_the_turn_and_a_success_takes_one_error_back() {
    let mut context = context(many());
    // Seven errors and a success, and again: each time one success less than would be needed.
    for n in 0..7 {
        round(&mut context, "a", CallOutcome::Failed, &format!("no {n}"));
    }
    let BudgetCheck::Within(warnings) = context.check_budgets() else { panic!("seven of eight") };
    assert_eq!(warnings, [Warning::ToolErrors { tool: "a".to_owned(), errors: 7 }]);
    round(&mut context, "a", CallOutcome::Succeeded, "yes");
    assert_eq!(context.tool_stats()["a"].errors(), 6);
    assert_eq!(context.check_budgets(), BudgetCheck::Within(vec![]));
    round(&mut context, "a", CallOutcome::Failed, "no 8");
    round(&mut context, "a", CallOutcome::Failed, "no 9");
    let limit = Limit::ToolErrors { tool: "a".to_owned(), errors: 8 };
    assert_eq!(context.check_budgets(), BudgetCheck::Exceeded(limit));
}

#[test]
fn errors_are_counted_by_tool_and_made_up_names_together() {
    let mut context = context(many());
    for n in 0..7 {
        round(&mut context, &format!("made-up-{n}"), CallOutcome::NotOffered, "no such tool");
        round(&mut context, &format!("real-{n}"), CallOutcome::Failed, "no");
    }
    assert_eq!(context.tool_stats()[NEVER_OFFERED].errors(), 7);
    assert!(matches!(context.check_budgets(), BudgetCheck::Within(_)));
    round(&mut context, "another", CallOutcome::NotOffered, "no such tool");
    assert!(
        matches!(context.check_budgets(), BudgetCheck::Exceeded(Limit::ToolErrors { tool, .. }) if tool == NEVER_OFFERED)
    );
}

#[test]
fn only_the_same_success_in_a_row_is_a_repetition() {
    let mut context = context(many());
    for said in ["x", "x", "y", "y", "x"] {
        round(&mut context, "a", CallOutcome::Succeeded, said);
        assert!(matches!(context.check_budgets(), BudgetCheck::Within(_)), "{said}");
    }
    round(&mut context, "a", CallOutcome::Failed, "no");
    for _ in 0..2 {
        round(&mut context, "a", CallOutcome::Succeeded, "x");
        assert!(matches!(context.check_budgets(), BudgetCheck::Within(_)));
    }
    round(&mut context, "a", CallOutcome::Succeeded, "x");
    assert!(matches!(
        context.check_budgets(),
        BudgetCheck::Exceeded(Limit::IdenticalSuccesses { times: 3, .. })
    ));
}

#[test]
fn the_same_error_three_times_is_no_progress() {
    let mut context = context(many());
    for _ in 0..2 {
        round(&mut context, "a", CallOutcome::Failed, "no");
    }
    assert_eq!(context.check_budgets(), BudgetCheck::Within(vec![Warning::NoProgress { times: 2 }]));
    round(&mut context, "a", CallOutcome::Failed, "no");
    assert_eq!(context.check_budgets(), BudgetCheck::Exceeded(Limit::NoProgress { times: 3 }));
}

#[test]
fn time_and_money_warn_once_and_then_end() {
    let mut context = context(Budgets { wall_time: Duration::from_secs(10), ..many() });
    context.advance_clock(Duration::from_secs(8));
    assert_eq!(context.check_budgets(), BudgetCheck::Within(vec![Warning::WallTime { left_seconds: 2 }]));
    context.begin_question();
    assert_eq!(context.check_budgets(), BudgetCheck::Within(vec![]));
    // A clock that goes back gives nothing back.
    context.advance_clock(Duration::from_secs(10));
    context.advance_clock(Duration::from_secs(1));
    assert_eq!(
        context.check_budgets(),
        BudgetCheck::Exceeded(Limit::WallTime { most: Duration::from_secs(10) })
    );
}

#[test]
fn every_limit_has_its_sentences() {
    let tool = || "git__status".to_owned();
    let limits = [
        Limit::Iterations { most: 10 },
        Limit::ToolErrors { tool: tool(), errors: 8 },
        Limit::ToolErrors { tool: NEVER_OFFERED.to_owned(), errors: 8 },
        Limit::IdenticalSuccesses { tool: tool(), times: 3 },
        Limit::NoProgress { times: 3 },
        Limit::WallTime { most: Duration::from_secs(600) },
        Limit::Cost { most_micro_usd: 1_250_000 },
    ];
    for limit in limits {
        let (user, model) = (limit.for_user(), limit.for_model());
        // What happened, and what to do about it.
        assert!(user.ends_with('.') && user.matches(". ").count() == 1, "{user}");
        assert!(model.starts_with('[') && model.ends_with(']'), "{model}");
    }
    assert!(Limit::Cost { most_micro_usd: 1_250_000 }.for_user().contains("$1.25"));
    assert!(Limit::Cost { most_micro_usd: 3_000_000 }.for_user().contains("$3."));
}

/// A wait of so many seconds.
fn waits(context: &mut LoopContext, seconds: u64) {
    let arguments = Arguments::Object([("seconds".to_owned(), seconds.into())].into_iter().collect());
    let call = ToolCall { id: "w".to_owned(), name: "talon__wait".to_owned(), arguments };
    context.record_answer(Answer { calls: vec![call], ..Answer::default() }, 0);
    let said = format!("waited {seconds} s");
    context.record_results(vec![ToolResult {
        outcome: CallOutcome::Succeeded,
        block: said.clone(),
        output: said,
        provenance: Provenance::default(),
    }]);
}

// Promises: AGENT-82
#[test]
fn to_poll_with_growing_waits_is_progress_and_with_the_same_ones_it_is_not() {
    let mut polls = context(many());
    for seconds in [5, 10, 20, 40, 80, 160] {
        round(&mut polls, "a", CallOutcome::Succeeded, "pending");
        assert!(matches!(polls.check_budgets(), BudgetCheck::Within(_)), "{seconds}");
        waits(&mut polls, seconds);
        assert!(matches!(polls.check_budgets(), BudgetCheck::Within(_)), "{seconds}");
    }
    let mut polls = context(many());
    let mut rounds = 0;
    while matches!(polls.check_budgets(), BudgetCheck::Within(_)) {
        round(&mut polls, "a", CallOutcome::Succeeded, "pending");
        waits(&mut polls, 5);
        rounds += 1;
    }
    assert!(rounds <= 4, "{rounds}");
}
