//! The event bus of a real agent: what can be provoked is emitted, and everybody sees their own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use talon_event_bus::EventKind;
use talon_proto::agent::bus_event::Payload;
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::watch_bus_response::Item;
use talon_proto::agent::{
    BusEvent, DecideRequest, RunJobRequest, TestNotificationRequest, WatchBusRequest, WatchBusResponse,
};
use talon_proto::host::Event;
use tokio::time::{sleep, timeout};
use tonic::{Code, Streaming};

use crate::shadow::{finding, observe};
use crate::sink::Sink;
use crate::support::{Agent, Client, SETTINGS, TestDirectory, answer, ask, done, refused, until};

/// How long an event is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a condition that nobody tells of.
const POLL: Duration = Duration::from_millis(10);

async fn watch(client: &mut Client, kinds: &[&str], everybody: bool) -> Streaming<WatchBusResponse> {
    let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    client.watch_bus(WatchBusRequest { kinds, everybody }).await.unwrap().into_inner()
}

async fn next(stream: &mut Streaming<WatchBusResponse>) -> BusEvent {
    let next = timeout(PATIENCE, stream.message()).await.expect("in time");
    match next.unwrap().expect("it goes on").item {
        Some(Item::Event(event)) => event,
        other => panic!("nothing is missing: {other:?}"),
    }
}

/// What the supervisor says of a plugin.
fn news(kind: &str, fields: &[(&str, &str)]) -> Event {
    Event {
        kind: kind.to_owned(),
        plugin: "files".to_owned(),
        fields: fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..Event::default()
    }
}

/// What the test provokes.
const PROVOKED: [EventKind; 22] = [
    EventKind::MessageInbound,
    EventKind::MessageOutbound,
    EventKind::ToolExecute,
    EventKind::ToolComplete,
    EventKind::ShadowEvent,
    EventKind::ShadowGhost,
    EventKind::SessionCreated,
    EventKind::ConfigChanged,
    EventKind::AgentThinking,
    EventKind::PluginReady,
    EventKind::PluginExited,
    EventKind::PluginEvent,
    EventKind::GuardQuarantined,
    EventKind::GuardDeclarationChanged,
    EventKind::ApprovalWaiting,
    EventKind::ApprovalDecided,
    EventKind::TaskStarted,
    EventKind::TaskCompleted,
    EventKind::NotificationSending,
    EventKind::NotificationDelivered,
    EventKind::NotificationRetried,
    EventKind::PluginChanged,
];

// Promises: GW-152, GW-153
#[tokio::test]
async fn what_happens_is_emitted_with_its_payload() {
    let (place, sink) = (TestDirectory::new(), Sink::new(100));
    sink.answer([serde_json::json!({"status": "retry", "reason": "busy"})]);
    let mut agent = Agent::start(&place);
    agent.plugins.set_sink(sink);
    let settings = format!("{SETTINGS}\nshadow: {{ enabled: true, cooldown: 1ms }}\n");
    let extensions = "{ schedule: [{ id: greet, at: '2199-01-01T00:00:00Z', ask: hello }], notifications: [{ on: [test], action: sink.send, name: ops }] }";
    agent.configure_with(&place, &settings, extensions).await;
    let mut operator = agent.client_with("ada", "operate", "person").await;
    let mut stream = watch(&mut operator, &[], true).await;
    while agent.plugins.news.receiver_count() == 0 {
        sleep(POLL).await;
    }
    for event in [
        news("state_changed", &[("from", "starting"), ("to", "ready")]),
        news("plugin_exited", &[("exit", "0")]),
        news("capabilities_changed", &[]),
        news("source_event", &[("topic", "mail")]),
        news("quarantined", &[("reason", "marks")]),
        news("tools_changed", &[("action", "read"), ("what", "description")]),
        news("config_reloaded", &[("changed", "log.level"), ("needs_restart", "")]),
    ] {
        agent.plugins.news.send(event).unwrap();
    }
    let (session, mut turn) = ask(&mut operator, "", "write b").await;
    let Kind::Approval(approval) = until(&mut turn, |kind| matches!(kind, Kind::Approval(_))).await else {
        panic!("an approval")
    };
    operator
        .decide(DecideRequest { id: approval.id.clone(), approve: true, ..DecideRequest::default() })
        .await
        .unwrap();
    assert_eq!(done(turn).await.text, "It was written.");
    observe(&mut operator, vec![finding("o1", "one test")]).await;
    operator.run_job(RunJobRequest { job: "greet".to_owned() }).await.unwrap();
    let test = TestNotificationRequest { entry: "ops".to_owned() };
    let first = operator.test_notification(test.clone()).await.unwrap().into_inner();
    assert_eq!(first.state, "waiting");
    operator.test_notification(test).await.unwrap();

    let mut told = BTreeMap::<EventKind, BusEvent>::new();
    let mut sequence = 0;
    while !PROVOKED.iter().all(|kind| told.contains_key(kind)) {
        let event = next(&mut stream).await;
        assert!(event.sequence > sequence && event.unix_ms > 0, "{event:?}");
        sequence = event.sequence;
        let kind = EventKind::of(event.payload.as_ref().expect("each has one"));
        // Of a job's turn there are some kinds, too.
        if event.session_id.is_empty() || event.session_id == session {
            told.entry(kind).or_insert(event);
        }
    }
    let of = |kind: EventKind| told[&kind].payload.clone().expect("each has one");
    let Payload::MessageInbound(inbound) = of(EventKind::MessageInbound) else { panic!("{told:?}") };
    assert_eq!((inbound.text.as_str(), inbound.turn, inbound.left_out_bytes), ("write b", 1, 0));
    assert_eq!(told[&EventKind::MessageInbound].sender, "ada");
    let Payload::ToolExecute(execute) = of(EventKind::ToolExecute) else { panic!("{told:?}") };
    assert_eq!((execute.plugin.as_str(), execute.action.as_str()), ("files", "write"));
    assert!(execute.arguments.contains("\"path\""), "{execute:?}");
    let Payload::ToolComplete(complete) = of(EventKind::ToolComplete) else { panic!("{told:?}") };
    assert_eq!((complete.outcome.as_str(), &complete.call_id), ("succeeded", &execute.call_id));
    let [layer] = &complete.layers[..] else { panic!("{complete:?}") };
    assert_eq!((layer.verdict.as_str(), layer.duration_ns), ("pass", Some(5)), "it is measured: {layer:?}");
    let Payload::ApprovalDecided(decided) = of(EventKind::ApprovalDecided) else { panic!("{told:?}") };
    assert_eq!((&decided.approval, decided.about.as_str()), (&approval.id, "call"));
    assert_eq!((decided.state.as_str(), decided.decided_by.as_str()), ("approved", "ada"));
    let Payload::MessageOutbound(outbound) = of(EventKind::MessageOutbound) else { panic!("{told:?}") };
    assert_eq!((outbound.text.as_str(), outbound.model.as_str()), ("It was written.", "scripted/large"));
    let Payload::ConfigChanged(config) = of(EventKind::ConfigChanged) else { panic!("{told:?}") };
    assert_eq!(config.keys, ["log.level"]);
    assert!(told[&EventKind::ConfigChanged].sender.is_empty());
    let Payload::TaskStarted(task) = of(EventKind::TaskStarted) else { panic!("{told:?}") };
    assert_eq!((task.job.as_str(), task.attempt), ("greet", 1));
    let Payload::NotificationRetried(retried) = of(EventKind::NotificationRetried) else {
        panic!("{told:?}")
    };
    assert_eq!(
        (retried.entry.as_str(), retried.kind.as_str(), retried.reason.as_str()),
        ("ops", "test", "busy")
    );
}

// Promises: GW-153
#[tokio::test]
async fn everybody_sees_their_own_events_and_a_misspelt_kind_is_refused_with_the_nearest() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let (mut alice, mut bob) = (agent.client("alice").await, agent.client("bob").await);
    let all = WatchBusRequest { everybody: true, ..WatchBusRequest::default() };
    assert_eq!(refused(bob.watch_bus(all).await).code(), Code::PermissionDenied);
    let misspelt = WatchBusRequest { kinds: vec!["tool.complet".to_owned()], everybody: false };
    let refusal = refused(bob.watch_bus(misspelt).await);
    assert_eq!(refusal.code(), Code::InvalidArgument);
    assert!(refusal.message().ends_with("did you mean tool.complete?"), "{refusal}");
    let many = WatchBusRequest { kinds: vec!["tool.*".to_owned(); 65], everybody: false };
    assert_eq!(refused(bob.watch_bus(many).await).code(), Code::InvalidArgument);

    let mut stream = watch(&mut bob, &["message.*"], false).await;
    answer(&mut alice, "", "hello").await;
    let (session, _) = answer(&mut bob, "", "hello").await;
    let (first, second) = (next(&mut stream).await, next(&mut stream).await);
    let kinds: BTreeSet<EventKind> =
        [&first, &second].into_iter().map(|event| EventKind::of(event.payload.as_ref().unwrap())).collect();
    assert_eq!(kinds, [EventKind::MessageInbound, EventKind::MessageOutbound].into());
    for event in [first, second] {
        assert_eq!((event.sender.as_str(), &event.session_id), ("bob", &session), "alice's are hers");
    }
}

// Promises: GW-143
#[tokio::test]
async fn one_sender_cannot_take_all_places_of_the_bus() {
    let place = TestDirectory::new();
    let settings = format!("{SETTINGS}  limits: {{ follows: 3, follows_per_sender: 2 }}\n");
    let (agent, _) = Agent::with(&place, &settings).await;
    let (mut alice, mut bob) = (agent.client("alice").await, agent.client("bob").await);
    let _held = (watch(&mut alice, &[], false).await, watch(&mut alice, &[], false).await);
    let refusal = refused(alice.watch_bus(WatchBusRequest::default()).await);
    assert_eq!(refusal.code(), Code::ResourceExhausted);
    assert!(refusal.message().contains("agent.limits.follows_per_sender"), "{refusal}");
    let _bobs = watch(&mut bob, &[], false).await;
    let refusal = refused(bob.watch_bus(WatchBusRequest::default()).await);
    assert!(refusal.message().ends_with("agent.limits.follows"), "{refusal}");
}

// Promises: GW-152
#[tokio::test]
async fn calls_are_measured_only_while_somebody_watches() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut alice = agent.client("alice").await;
    answer(&mut alice, "", "read").await;
    let stream = watch(&mut alice, &["tool.complete"], false).await;
    answer(&mut alice, "", "read").await;
    drop(stream);
    let measured: Vec<bool> = agent.plugins.requests().iter().map(|call| call.measured).collect();
    assert_eq!(measured, [false, true]);
}
