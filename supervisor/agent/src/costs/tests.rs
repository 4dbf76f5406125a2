use talon_llm::model::Usage;
use talon_llm::route::Money;
use talon_llm::route::cost::{Budget, Charge};
use talon_store::{Engine, Store, StoreOptions};

use super::*;

async fn store(directory: &tempfile::TempDir) -> Store {
    let path = directory.path().join("private").join("agent.db");
    StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store")
}

fn charge(picodollars: u128) -> Charge {
    Charge {
        usage: Usage { input_tokens: 10, output_tokens: 3, ..Usage::default() },
        cost: Money::from_picodollars(picodollars),
        estimated: false,
    }
}

// Promises: AGENT-48
#[tokio::test]
async fn what_was_spent_survives_a_restart_and_counts_for_budgets() {
    let directory = tempfile::tempdir().expect("a directory");
    let model: ModelRef = "openai/small".parse().expect("a model");
    let kept = store(&directory).await;
    let costs = Arc::new(Costs::new(kept.key_values()).expect("costs"));
    for _ in 0..3 {
        costs.charge("one", None, &model, &charge(5), true);
    }
    costs.charge("two", None, &model, &charge(7), false);
    assert_eq!(costs.session_totals("one").await.expect("read").total().cost, Money::from_picodollars(15));
    costs.flush().await;
    costs.charge("one", None, &model, &charge(1), true);
    assert_eq!(costs.session_totals("one").await.expect("read").total().answers, 4);
    costs.flush().await;
    kept.close().await;

    let kept = store(&directory).await;
    let costs = Arc::new(Costs::new(kept.key_values()).expect("costs"));
    let ledgers = Ledgers::new(Budget { per_session: Some(Money::from_picodollars(20)), per_day: None });
    costs.open_session(&ledgers, "one").await.expect("read");
    costs.open_day(&ledgers).await.expect("read");
    assert_eq!(ledgers.lock().session("one").cost, Money::from_picodollars(16));
    assert_eq!(ledgers.lock().spent_on(today()), Money::from_picodollars(23));
    assert!(ledgers.reserve("one", today(), Money::from_picodollars(5)).is_err());
    assert_eq!(costs.session_totals("two").await.expect("read").total().failures, 1);
    costs.forget("two").await.expect("forgotten");
    assert_eq!(costs.session_totals("two").await.expect("read"), CostTotals::default());
    assert_eq!(costs.day_totals(today()).await.expect("read").providers()["openai"].input_tokens, 50);
}

#[tokio::test]
async fn days_long_ago_are_forgotten() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = store(&directory).await;
    let costs = Arc::new(Costs::new(kept.key_values()).expect("costs"));
    let (model, now) = ("openai/small".parse().expect("a model"), today());
    let days = [Day(0), Day(now.0 - KEPT_DAYS - 1), Day(now.0 - KEPT_DAYS), now];
    for day in days {
        costs.requeue(|waiting| waiting.days.entry(day).or_default().add(&model, &charge(1), true));
    }
    costs.flush().await;
    costs.forget_old_days().await.expect("forgotten");
    for (day, answers) in days.into_iter().zip([0, 0, 1, 1]) {
        assert_eq!(costs.day_totals(day).await.expect("read").total().answers, answers, "{day:?}");
    }
}

// Promises: EXT-123
#[tokio::test]
async fn what_plugins_ask_counts_for_them_and_for_the_session_or_their_own_account() {
    let directory = tempfile::tempdir().expect("a directory");
    let model: ModelRef = "openai/small".parse().expect("a model");
    let kept = store(&directory).await;
    let costs = Arc::new(Costs::new(kept.key_values()).expect("costs"));
    let (day, own) = (today(), own_session("lua", today()));
    costs.charge("one", Some("lua"), &model, &charge(5), true);
    costs.flush().await;
    costs.charge(&own, Some("lua"), &model, &charge(7), true);
    costs.charge(&own, Some("other"), &model, &charge(1), false);
    for _ in 0..2 {
        let cost = |totals: CostTotals| totals.total().cost.picodollars();
        assert_eq!(cost(costs.session_totals("one").await.expect("read")), 5);
        assert_eq!(cost(costs.plugin_totals("lua", day).await.expect("read")), 12);
        assert_eq!(cost(costs.own_totals("lua", day).await.expect("read")), 7);
        assert_eq!(cost(costs.day_totals(day).await.expect("read")), 13);
        let plugins = costs.plugins_of(day).await.expect("read");
        assert_eq!(plugins.into_keys().collect::<Vec<_>>(), ["lua", "other"]);
        costs.flush().await;
    }
}
