use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::route::catalog::{Cost, ModelRef};
use crate::route::task::Tier;

fn money(text: &str) -> Money {
    text.parse().expect("an amount")
}

fn model(input: &str, cached: Option<&str>, output: &str) -> Model {
    let price = |text: &str| text.parse().expect("a price");
    Model {
        alias: None,
        tier: Tier::Cheap,
        context_window: 128_000,
        max_output_tokens: Some(16_384),
        tools: true,
        vision: false,
        cost: Some(Cost {
            input: price(input),
            cached_input: cached.map(price),
            cache_write: None,
            output: price(output),
        }),
        free: false,
        weight: 100,
        priority: None,
        temperature: None,
        top_p: None,
        max_tokens: None,
        thinking: None,
    }
}

fn usage(input: u64, cached: u64, output: u64) -> Usage {
    Usage {
        input_tokens: input,
        cache_written_tokens: 0,
        cached_input_tokens: cached,
        output_tokens: output,
        thinking_tokens: 0,
    }
}

fn id(name: &str) -> ModelRef {
    name.parse().expect("a provider and a name")
}

const TODAY: Day = Day(20_000);

#[test]
fn a_cost_is_what_the_price_list_says() {
    let mini = model("0.15", Some("0.075"), "0.60");
    assert_eq!(Charge::counted(&mini, usage(1000, 0, 500)).cost, money("0.00045"));
    assert_eq!(Charge::counted(&mini, usage(1000, 400, 500)).cost, money("0.00042"));
    // More than there was cannot come from a cache.
    assert_eq!(Charge::counted(&mini, usage(1000, 4000, 0)).cost, money("0.000075"));
    let uncached = model("3", None, "15");
    assert_eq!(Charge::counted(&uncached, usage(1000, 1000, 0)).cost, money("0.003"));
    let guess = Charge::guessed(&uncached, 1000, 401);
    assert_eq!((guess.usage.output_tokens, guess.estimated), (101, true));
}

// Promises: AGENT-66
#[test]
fn what_a_cache_saves_is_counted_and_what_is_written_there_costs_its_price() {
    let mut haiku = model("1", Some("0.10"), "5");
    let used = Usage { cache_written_tokens: 1000, ..usage(10_000, 8000, 100) };
    assert_eq!(Charge::counted(&haiku, used).cost, money("0.0033"));
    assert_eq!(saved_by_cache(&haiku, used), money("0.0072"));
    haiku.cost.as_mut().expect("it costs").cache_write = "1.25".parse().ok();
    assert_eq!(Charge::counted(&haiku, used).cost, money("0.00355"));
    assert_eq!(saved_by_cache(&haiku, used), money("0.00695"));
    // Writing alone saves nothing yet.
    assert_eq!(saved_by_cache(&haiku, Usage { cached_input_tokens: 0, ..used }), Money::ZERO);
}

#[test]
fn an_estimate_expects_no_more_than_the_model_can_say() {
    let mini = model("0.15", None, "0.60");
    let estimated =
        estimate(&mini, Requirements { input_tokens: 6000, output_tokens: 500, ..Requirements::default() });
    assert_eq!(estimated.cost, money("0.0012"));
    let estimated = estimate(&mini, Requirements { output_tokens: 1_000_000, ..Requirements::default() });
    assert_eq!(estimated.output_tokens, 16_384);
}

fn spend(ledgers: &Ledgers, session: &str, day: Day, cost: &str) -> Result<(), OverBudgetError> {
    let charge = Charge { cost: money(cost), ..Charge::default() };
    ledgers.reserve(session, day, money(cost))?.charge(&id("p/m"), &charge, true);
    Ok(())
}

#[test]
fn a_session_stops_at_its_budget_and_others_go_on() {
    let ledgers = Ledgers::new(Budget { per_session: Some(money("1")), per_day: None });
    spend(&ledgers, "a", TODAY, "0.60").expect("within it");
    let error = spend(&ledgers, "a", TODAY, "0.50").expect_err("beyond it");
    assert_eq!((error.limit, error.spent), (BudgetScope::Session, money("0.60")));
    assert!(error.to_string().starts_with("$0.60 of this session's budget of $1.00 are spent"), "{error}");
    assert!(error.to_string().contains("models.budget.per_session"), "{error}");
    spend(&ledgers, "a", TODAY, "0.40").expect("to the last cent");
    spend(&ledgers, "a", TODAY, "0").expect("what costs nothing is never stopped");
    spend(&ledgers, "b", TODAY, "1").expect("a budget of its own");
    assert_eq!(ledgers.lock().left(&ledgers.budget(), "a", TODAY), Some(Money::ZERO));
}

#[test]
fn a_day_stops_all_sessions_until_the_next_one() {
    let ledgers = Ledgers::new(Budget { per_session: None, per_day: Some(money("1")) });
    spend(&ledgers, "a", TODAY, "0.70").expect("within it");
    let error = spend(&ledgers, "b", TODAY, "0.70").expect_err("beyond it");
    assert_eq!(error.limit, BudgetScope::Day);
    assert!(error.to_string().contains("after midnight UTC"), "{error}");
    spend(&ledgers, "b", Day(TODAY.0 + 1), "0.70").expect("a new day");
    // A clock that is set back gives nothing twice.
    spend(&ledgers, "b", TODAY, "0").expect("free");
    assert_eq!(ledgers.lock().spent_on(Day(TODAY.0 + 1)), money("0.70"));
}

#[test]
fn what_is_under_way_counts_and_is_given_back_when_dropped() {
    let ledgers = Ledgers::new(Budget { per_session: Some(money("1")), per_day: Some(money("5")) });
    let first = ledgers.reserve("a", TODAY, money("0.80")).expect("within it");
    let error = ledgers.reserve("a", TODAY, money("0.30")).expect_err("the rest is too small");
    assert_eq!(error.spent, money("0.80"));
    drop(first);
    drop(ledgers.reserve("a", TODAY, money("1")).expect("all of it"));
    assert_eq!(ledgers.lock().total(), UsageTotals::default());
}

#[test]
fn sums_survive_a_restart_where_the_owner_kept_them() {
    let ledgers = Ledgers::new(Budget { per_session: Some(money("1")), per_day: Some(money("2")) });
    let before = UsageTotals { answers: 3, cost: money("0.90"), ..UsageTotals::default() };
    ledgers.lock().open_session("a", before);
    ledgers.lock().open_session("a", UsageTotals::default());
    ledgers.lock().open_day(TODAY, money("1.95"));
    assert_eq!(ledgers.lock().session("a"), before);
    assert_eq!(ledgers.lock().left(&ledgers.budget(), "a", TODAY), Some(money("0.05")));
    assert_eq!(ledgers.lock().left(&Budget::default(), "a", TODAY), None);
    ledgers.lock().close_session("a");
    assert_eq!(ledgers.lock().session("a"), UsageTotals::default());
    assert!(spend(&ledgers.with_budget(Budget::default()), "a", TODAY, "100").is_ok());
}

#[test]
fn sessions_are_bounded_and_those_under_way_stay() {
    let ledgers = Ledgers::new(Budget::default());
    let under_way = ledgers.reserve("first", TODAY, money("1")).expect("no limit");
    for n in 0..MAX_SESSIONS + 10 {
        spend(&ledgers, &n.to_string(), TODAY, "1").expect("no limit");
    }
    under_way.charge(&id("p/m"), &Charge { cost: money("1"), ..Charge::default() }, true);
    assert_eq!(ledgers.lock().session("first").cost, money("1"));
    assert_eq!(ledgers.lock().session("0"), UsageTotals::default());
    assert_eq!(ledgers.lock().total().answers, u64::try_from(MAX_SESSIONS).expect("small") + 11);
}

#[test]
fn days_are_counted_from_1970() {
    use std::time::{Duration, UNIX_EPOCH};
    assert_eq!(Day::of(UNIX_EPOCH + Duration::from_secs(86_399)), Day(0));
    assert_eq!(Day::of(UNIX_EPOCH + Duration::from_secs(86_400)), Day(1));
    assert_eq!(Day::of(UNIX_EPOCH - Duration::from_secs(1)), Day(0));
}

#[derive(Debug, Clone)]
enum Step {
    Spend { session: usize, model: usize, estimate: u64, true_cost: u64, answered: bool },
    Hold { session: usize, estimate: u64 },
    LetGo,
    Tomorrow,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let amount = || 0_u64..2_000;
    prop::collection::vec(
        prop_oneof![
            4 => (0_usize..3, 0_usize..4, amount(), amount(), any::<bool>()).prop_map(
                |(session, model, estimate, true_cost, answered)| Step::Spend { session, model, estimate, true_cost, answered }
            ),
            1 => (0_usize..3, amount()).prop_map(|(session, estimate)| Step::Hold { session, estimate }),
            1 => Just(Step::LetGo),
            1 => Just(Step::Tomorrow),
        ],
        0..60,
    )
}

const SESSIONS: [&str; 3] = ["a", "b", "c"];
const MODELS: [&str; 4] = ["p/one", "p/two", "q/one", "q/two"];

proptest! {
    // Promises: AGENT-18
    #[test]
    fn budgets_hold_and_sums_equal_their_parts(steps in steps(), per_session in 0_u64..5_000, per_day in 0_u64..9_000) {
        let pico = |amount: u64| Money::from_picodollars(u128::from(amount));
        let budget = Budget { per_session: Some(pico(per_session)), per_day: Some(pico(per_day)) };
        let ledgers = Ledgers::new(budget);
        let mut day = TODAY;
        let mut held = Vec::new();
        let mut parts: BTreeMap<(usize, usize), Vec<(Charge, bool)>> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Spend { session, model, estimate, true_cost, answered } => {
                    let left = ledgers.lock().left(&budget, SESSIONS[session], day).expect("there is a limit");
                    match ledgers.reserve(SESSIONS[session], day, pico(estimate)) {
                        Ok(reservation) => {
                            prop_assert!(estimate == 0 || pico(estimate) <= left);
                            let usage = usage(true_cost, 0, estimate);
                            let charge = Charge { usage, cost: pico(true_cost), estimated: !answered };
                            reservation.charge(&id(MODELS[model]), &charge, answered);
                            parts.entry((session, model)).or_default().push((charge, answered));
                        }
                        Err(error) => {
                            prop_assert!(error.spent.plus(error.estimate) > error.budget);
                            prop_assert!(pico(estimate) > left);
                        }
                    }
                }
                Step::Hold { session, estimate } => {
                    held.extend(ledgers.reserve(SESSIONS[session], day, pico(estimate)));
                }
                Step::LetGo => drop(held.pop()),
                Step::Tomorrow => day = Day(day.0 + 1),
            }
        }
        drop(held);
        let ledger = ledgers.lock();
        let sum_of = |wanted: &dyn Fn(usize, usize) -> bool| {
            parts.iter().filter(|((session, model), _)| wanted(*session, *model)).flat_map(|(_, charges)| charges)
                .fold(UsageTotals::default(), |mut sum, (charge, answered)| {
                    sum.merge(&UsageTotals {
                        answers: u64::from(*answered),
                        failures: u64::from(!*answered),
                        input_tokens: charge.usage.input_tokens,
                        output_tokens: charge.usage.output_tokens,
                        cost: charge.cost,
                        estimated_cost: if charge.estimated { charge.cost } else { Money::ZERO },
                        ..UsageTotals::default()
                    });
                    sum
                })
        };
        prop_assert_eq!(ledger.total(), sum_of(&|_, _| true));
        for (index, session) in SESSIONS.iter().enumerate() {
            prop_assert_eq!(ledger.session(session), sum_of(&|of, _| of == index));
        }
        for (index, model) in MODELS.iter().enumerate() {
            let tally = ledger.models().get(&id(model)).copied().unwrap_or_default();
            prop_assert_eq!(tally, sum_of(&|_, of| of == index));
        }
        for (provider, range) in [("p", 0..2), ("q", 2..4)] {
            let tally = ledger.providers().get(provider).copied().unwrap_or_default();
            prop_assert_eq!(tally, sum_of(&|_, model| range.contains(&model)));
        }
    }
}
