//! Models, memories and metrics.

use std::collections::BTreeMap;

use talon_proto::agent::{
    ForgetMemoriesRequest, GetMemoryRequest, GetMetricsRequest, ListMemoriesRequest, ListModelsRequest,
    MetricFamily, Sample, forget_memories_request,
};
use talon_store::{Engine, NewMemory, StoreOptions};
use tonic::Code;

use crate::support::{Agent, TestDirectory, answer, refused};

#[tokio::test]
async fn models_are_listed_with_prices_and_an_estimate() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let models = client.list_models(ListModelsRequest {}).await.unwrap().into_inner().models;
    let ids: Vec<(&str, &str)> =
        models.iter().map(|model| (model.id.as_str(), model.tier.as_str())).collect();
    assert_eq!(ids, [("scripted/small", "cheap"), ("scripted/large", "premium")]);
    let small = &models[0];
    assert_eq!((small.alias.as_str(), small.state.as_str(), small.tools), ("small", "ready", true));
    assert!(small.input_price.starts_with('1') && small.estimate.starts_with("0.007"), "{small:?}");
}

// Promises: AGENT-54
#[tokio::test]
async fn what_was_counted_is_told_to_operators() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    answer(&mut client, "", "read a").await;
    let mut operator = agent.client_with("root", "operate", "program").await;
    let families = operator.get_metrics(GetMetricsRequest {}).await.unwrap().into_inner().families;
    let families: BTreeMap<&str, &MetricFamily> =
        families.iter().map(|family| (family.name.as_str(), family)).collect();
    assert!(families.keys().all(|name| name.starts_with("talon_agent_")));
    let sample = |name: &str, labels: &[(&str, &str)]| -> Sample {
        let fits = |sample: &&Sample| labels.iter().all(|(label, value)| sample.labels[*label] == *value);
        families[name]
            .samples
            .iter()
            .find(fits)
            .cloned()
            .unwrap_or_else(|| panic!("{name}: {:?}", families[name]))
    };
    assert_eq!(sample("talon_agent_turns_total", &[("outcome", "done")]).value, 1.0);
    let call = [("plugin", "files"), ("action", "read"), ("outcome", "ok")];
    assert_eq!(sample("talon_agent_tool_calls_total", &call).value, 1.0);
    assert_eq!(sample("talon_agent_tool_seconds", &call).count, 1);
    assert_eq!(
        sample("talon_agent_transitions_total", &[("state", "init"), ("event", "start_loop")]).value,
        1.0
    );
    let attempts = families["talon_agent_attempts_total"].samples.iter();
    let well = attempts
        .filter(|sample| sample.labels["provider"] == "scripted" && sample.labels["outcome"] == "ok")
        .map(|sample| sample.value);
    assert_eq!(well.sum::<f64>(), 2.0, "whichever of its models was asked");
    // A counter without events is 0, so that shares can be computed.
    assert_eq!(sample("talon_agent_fallbacks_total", &[]).value, 0.0);
    assert_eq!(sample("talon_agent_over_budget_total", &[("limit", "day")]).value, 0.0);
    assert!(sample("talon_agent_tokens_total", &[("kind", "input")]).value > 0.0);
    assert!(sample("talon_agent_cost_usd_total", &[("provider", "scripted")]).value > 0.0);
    assert_eq!(sample("talon_agent_provider_up", &[("provider", "scripted")]).value, 1.0);
    assert_eq!(sample("talon_agent_turns_running", &[]).value, 0.0);
    assert!(
        families["talon_agent_routed_total"].samples.iter().map(|sample| sample.value).sum::<f64>() >= 2.0
    );
    assert_eq!(families["talon_agent_tool_seconds"].kind, "histogram");
}

#[tokio::test]
async fn memories_are_listed_shown_and_forgotten() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let listed = client.list_memories(ListMemoriesRequest::default()).await.unwrap().into_inner();
    assert!(listed.memories.is_empty());
    for id in ["nonsense", "01ARZ3NDEKTSV4RRFFQ69G5FAV"] {
        assert_eq!(
            refused(client.get_memory(GetMemoryRequest { id: id.to_owned() }).await).code(),
            Code::NotFound
        );
    }
    let forget = |kind| ForgetMemoriesRequest { kind };
    assert_eq!(refused(client.forget_memories(forget(None)).await).code(), Code::InvalidArgument);
    let many = forget_memories_request::Kind::Tag("tea".to_owned());
    assert_eq!(
        refused(client.forget_memories(forget(Some(many.clone()))).await).code(),
        Code::PermissionDenied
    );
    let mut operator = agent.client_with("root", "operate", "person").await;
    assert_eq!(operator.forget_memories(forget(Some(many))).await.unwrap().into_inner().forgotten, 0);
}

// Promises: AGENT-38
#[tokio::test]
async fn what_is_remembered_for_somebody_is_shown_to_nobody_else() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let (mut alice, mut bob) = (agent.client("alice").await, agent.client("bob").await);
    let (_, done) = answer(&mut alice, "", "remember that").await;
    assert_eq!(done.text, "It is remembered.");
    let list = ListMemoriesRequest::default;
    let memories = alice.list_memories(list()).await.unwrap().into_inner().memories;
    assert_eq!(memories.iter().map(|memory| memory.content.as_str()).collect::<Vec<_>>(), ["likes tea"]);
    assert!(bob.list_memories(list()).await.unwrap().into_inner().memories.is_empty());
    let id = memories[0].id.clone();
    assert_eq!(refused(bob.get_memory(GetMemoryRequest { id: id.clone() }).await).code(), Code::NotFound);
    let forget = ForgetMemoriesRequest { kind: Some(forget_memories_request::Kind::Id(id)) };
    assert_eq!(refused(bob.forget_memories(forget.clone()).await).code(), Code::NotFound);
    let mut model = agent.client_with("alice", "call", "model").await;
    assert_eq!(refused(model.forget_memories(forget.clone()).await).code(), Code::PermissionDenied);
    let mut operator = agent.client_with("root", "operate", "person").await;
    assert_eq!(operator.list_memories(list()).await.unwrap().into_inner().memories.len(), 1);
    assert_eq!(alice.forget_memories(forget).await.unwrap().into_inner().forgotten, 1);
}

#[tokio::test]
async fn what_is_everybodys_is_forgotten_by_operators_alone() {
    let place = TestDirectory::new();
    let store =
        StoreOptions::new(Engine::Sqlite { path: place.path("agent/agent.db") }).open().await.unwrap();
    let all = NewMemory {
        content: "the office opens at eight".to_owned(),
        source: "import".to_owned(),
        ..NewMemory::default()
    };
    let id = store.memory().remember(all).await.unwrap().memory.id.to_string();
    store.close().await;
    let agent = Agent::at(&place).await;
    let mut alice = agent.client("alice").await;
    assert_eq!(alice.get_memory(GetMemoryRequest { id: id.clone() }).await.unwrap().into_inner().id, id);
    let forget = ForgetMemoriesRequest { kind: Some(forget_memories_request::Kind::Id(id)) };
    assert_eq!(refused(alice.forget_memories(forget.clone()).await).code(), Code::PermissionDenied);
    let mut operator = agent.client_with("root", "operate", "person").await;
    assert_eq!(operator.forget_memories(forget).await.unwrap().into_inner().forgotten, 1);
}
