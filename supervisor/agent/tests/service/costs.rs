//! Costs survive a restart.

use talon_proto::agent::{GetCostsRequest, GetSessionRequest};

use crate::support::{Agent, Client, SETTINGS, TestDirectory, answer, ask, error};

async fn of_session(client: &mut Client, session: &str) -> u64 {
    let request = GetSessionRequest { session_id: session.to_owned(), ..GetSessionRequest::default() };
    client.get_session(request).await.unwrap().into_inner().session.unwrap().cost_pico_usd
}

// Promises: AGENT-48
#[tokio::test]
async fn sums_by_session_and_day_survive_a_killed_agent() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, first) = answer(&mut client, "", "hello").await;
    let (_, second) = answer(&mut client, &session, "hello").await;
    let (_, other) = answer(&mut client, "", "hello").await;
    let spent = first.cost_pico_usd + second.cost_pico_usd;
    assert_eq!(of_session(&mut client, &session).await, spent);
    agent.kill();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    assert_eq!(of_session(&mut client, &session).await, spent);
    let request = GetCostsRequest { session_id: session };
    let costs = client.get_costs(request).await.unwrap().into_inner();
    assert_eq!(costs.session.as_ref().map(|cost| (cost.answers, cost.cost_pico_usd)), Some((2, spent)));
    assert!(costs.today.is_none(), "what others spend is not shown to everybody");
    assert!(costs.by_model[0].name.starts_with("scripted/"), "{costs:?}");
    let mut operator = agent.client_with("root", "operate", "person").await;
    let costs = operator.get_costs(GetCostsRequest::default()).await.unwrap().into_inner();
    assert_eq!(costs.today.unwrap().cost_pico_usd, spent + other.cost_pico_usd);
    assert_eq!(costs.by_provider[0].name, "scripted");
}

// Promises: AGENT-48
#[tokio::test]
async fn a_sessions_budget_holds_over_a_restart() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, first) = answer(&mut client, "", "hello").await;
    assert!(first.cost_pico_usd > 0);
    agent.close_control().await;
    // As much as was spent already.
    let dollars = first.cost_pico_usd as f64 / 1e12;
    let settings =
        SETTINGS.replace("models:\n", &format!("models:\n  budget: {{ per_session: {dollars:.12} }}\n"));
    let (agent, _) = Agent::with(&place, &settings).await;
    let mut client = agent.client("alice").await;
    let ended = error(ask(&mut client, &session, "hello").await.1).await;
    assert_eq!(ended.reason, "over_budget", "{ended:?}");
    let costs = client.get_costs(GetCostsRequest { session_id: session }).await.unwrap().into_inner();
    assert_eq!(costs.session_budget_pico_usd, Some(first.cost_pico_usd));
}
