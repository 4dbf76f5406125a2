//! Budgets, floods, and what is charged of a completion that does not end by itself.

use serde_json::json;
use talon_tests::Supervisor;
use talon_tests::ask::ask;
use talon_tests::provider::{Gate, ScriptedReply};

use crate::{LOOKS, PAUSE, complete, costs, provider_calling, repeats, supervisor, text};

// Promises: EXT-126
#[tokio::test]
async fn a_budget_of_its_own_is_bounded_by_the_day() {
    let provider = provider_calling(json!({}), repeats).await;
    let grant = "models: { allow: [priced], own_budget: { per_day: 0.5, calls_per_day: 2 } }";
    let supervisor = supervisor(&provider, grant, "").await;
    let own = [("prompt", "P:own"), ("id", "")];
    for _ in 0..2 {
        assert_eq!(complete(&supervisor, &own).await, "said <P:own> by local/priced");
    }
    let refused = complete(&supervisor, &own).await;
    assert!(refused.contains("ResourceExhausted too_many_calls"), "{refused}");
    assert!(refused.contains("try after midnight UTC"), "{refused}");
    let plugin = costs(&supervisor, "").await.by_plugin.remove(0);
    assert_eq!(plugin.cost.expect("a cost").answers, 2);
    supervisor.stop().await;
}

// Promises: EXT-124
#[tokio::test]
async fn a_turns_budget_ends_in_the_middle_of_its_completions() {
    let arguments = json!({"prompt": "P:one", "model": "priced", "times": "4"});
    let provider = provider_calling(arguments, repeats).await;
    let grant = "models: { allow: [priced], concurrency: 1 }";
    // Two completions of 0.0011 $ go beyond it.
    let supervisor = supervisor(&provider, grant, "  turn: { cost: 0.002 }").await;
    let asked = ask(&supervisor, "go", &[]).await;
    let shown = supervisor.cli(&["session", "show", asked.text("session_id")]).await;
    let shown = format!("{asked:?}{}", String::from_utf8_lossy(&shown.stdout));
    assert!(shown.contains("over_budget"), "{shown}");
    assert_eq!(provider.bodies().iter().filter(|body| body.contains("\"P:one\"")).count(), 2);
    supervisor.stop().await;
}

/// How many lines of what was left behind contain this.
async fn wait_left_lines(supervisor: &Supervisor, text: &str, count: usize) -> String {
    let mut last = String::new();
    for _ in 0..LOOKS {
        last = complete(supervisor, &[("how", "left")]).await;
        if last.matches(text).count() >= count {
            return last;
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("{count} of what was left do not say {text:?}: {last}\n{}", supervisor.log())
}

// Promises: EXT-127
#[tokio::test]
async fn a_flood_is_bounded_and_the_turns_go_on() {
    let gate = Gate::closed();
    let held = gate.clone();
    let provider = provider_calling(json!({"prompt": "P:one"}), move |prompt| match prompt {
        "P:flood" => ScriptedReply::Gated(held.clone(), "flooded".to_owned()),
        other => repeats(other),
    })
    .await;
    let grant = "models: { allow: [auto], concurrency: 2, max_calls: 10000, own_budget: { per_day: 1, calls_per_day: 100000 } }";
    let supervisor = supervisor(&provider, grant, "").await;
    let flood = [("how", "leave"), ("prompt", "P:flood"), ("id", ""), ("times", "60")];
    assert_eq!(complete(&supervisor, &flood).await, "left");
    // None is answered before the gate opens: two are asked, and for each four wait, and eight more as the limits have it.
    let admitted = 2 * 5 + 8;
    let left = wait_left_lines(&supervisor, "ResourceExhausted busy", 60 - admitted).await;
    assert_eq!(left.lines().count(), 60 - admitted, "{left}");
    provider.wait_questions(2).await;
    assert_eq!(provider.bodies().len(), 2, "two at once are granted");
    // A turn goes on beside it.
    assert_eq!(text(&ask(&supervisor, "P:beside", &[]).await), "<P:beside>");
    gate.open();
    let left = wait_left_lines(&supervisor, "said flooded", admitted).await;
    assert_eq!(left.lines().count(), 60, "{left}");
    let large = complete(&supervisor, &[("bytes", "67108864"), ("id", "")]).await;
    assert!(large.contains("InvalidArgument invalid"), "{large}");
    assert!(large.contains("1048576 bytes"), "{large}");
    // A thousand connections at once: all but the first are closed, and none costs the plugin its socket.
    let connected = complete(&supervisor, &[("how", "connect"), ("times", "1000")]).await;
    let numbers: Vec<usize> = connected.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!((1..=32).contains(&numbers[0]) && numbers[1] > 0, "{connected}");
    let asked = ask(&supervisor, "go", &[]).await;
    assert!(text(&asked).contains("said <P:one>"), "{asked:?}");
    supervisor.stop().await;
}

// Promises: EXT-172
#[tokio::test]
async fn a_budget_of_its_own_holds_for_what_is_being_asked() {
    let gate = Gate::closed();
    let held = gate.clone();
    let provider =
        provider_calling(json!({}), move |_| ScriptedReply::Gated(held.clone(), "paid".to_owned())).await;
    // One completion of 1,000 tokens may cost a cent, and some for its prompt: two of them fit.
    let grant =
        "models: { allow: [priced], max_tokens: 1000, concurrency: 20, own_budget: { per_day: 0.025 } }";
    let supervisor = supervisor(&provider, grant, "").await;
    let own = [("how", "leave"), ("prompt", "P:own"), ("id", ""), ("times", "20")];
    assert_eq!(complete(&supervisor, &own).await, "left");
    let left = wait_left_lines(&supervisor, "ResourceExhausted over_budget", 18).await;
    assert!(left.contains("could cost $0.01") && left.contains("fewer max_tokens"), "{left}");
    gate.open();
    let left = wait_left_lines(&supervisor, "said paid", 2).await;
    assert_eq!(left.lines().count(), 20, "{left}");
    assert_eq!(provider.bodies().len(), 2);
    // Each cost 110 tokens: what was reserved and not spent is there again.
    let again = complete(&supervisor, &[("prompt", "P:own"), ("id", "")]).await;
    assert_eq!(again, "said paid by local/priced");
    let plugin = costs(&supervisor, "").await.by_plugin.remove(0);
    assert_eq!(plugin.cost.expect("a cost").cost_pico_usd, 3 * 1_100_000_000);
    supervisor.stop().await;
}

// Promises: EXT-171
#[tokio::test]
async fn a_completion_that_ends_with_its_call_is_charged_to_the_turn() {
    let arguments = json!({"how": "leave_and_hold", "prompt": "P:endless", "model": "priced"});
    let provider = provider_calling(arguments, |_| ScriptedReply::Endless("word ".to_owned())).await;
    let supervisor = supervisor(&provider, "models: { allow: [priced] }", "").await;
    // A provider is paid for what it has sent. Whether a piece came before the call ends is up to the machine, so it is tried
    // until one did.
    for attempt in 1..=LOOKS {
        let releasing = async {
            provider.wait_questions(attempt * 3 - 1).await;
            supervisor.client.call("misbehave", "complete", &[("how", "release")]).await
        };
        let (asked, _) = tokio::join!(ask(&supervisor, "go", &[]), releasing);
        assert!(text(&asked).contains("let go"), "{asked:?}");
        let spent = costs(&supervisor, asked.text("session_id")).await;
        let spent = spent.session.expect("a session").cost_pico_usd;
        assert_eq!(asked.said["cost_pico_usd"].as_u64().unwrap_or_default(), spent, "{asked:?}");
        if spent > 0 {
            supervisor.stop().await;
            return;
        }
    }
    panic!("no piece of an answer came in {LOOKS} turns");
}
