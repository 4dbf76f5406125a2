//! Notifications, with a real agent that is killed in the middle of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{
    ForgetSenderRequest, GetStatusRequest, ListNotificationsRequest, Notification, RetryNotificationsRequest,
    TestNotificationRequest,
};
use tonic::Code;

use crate::sink::Sink;
use crate::support::{Agent, Client, SETTINGS, TestDirectory, ask, error, refused, until as until_chunk};

/// How long a condition is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a condition that nobody tells of.
const POLL: Duration = Duration::from_millis(20);
/// How often the agent is killed.
const KILLS: u64 = 10;
/// As many answers as anybody needs.
const ALWAYS: usize = 100_000;

async fn configure(agent: &mut Agent, place: &TestDirectory, settings: &str, entries: &str) {
    agent.configure_with(place, settings, &format!("notifications: {entries}")).await;
}

async fn notifying(place: &TestDirectory, sink: &Arc<Sink>, entries: &str) -> (Agent, Client) {
    notifying_with(place, sink, SETTINGS, entries).await
}

async fn notifying_with(
    place: &TestDirectory,
    sink: &Arc<Sink>,
    settings: &str,
    entries: &str,
) -> (Agent, Client) {
    let mut agent = Agent::start(place);
    agent.plugins.set_sink(Arc::clone(sink));
    configure(&mut agent, place, settings, entries).await;
    let client = agent.client_with("ada", "operate", "person").await;
    (agent, client)
}

/// All notifications, oldest first.
async fn list(client: &mut Client, state: &str) -> Vec<Notification> {
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = ListNotificationsRequest {
            state: state.to_owned(),
            page_size: 3,
            page_token,
            ..Default::default()
        };
        let page = client.list_notifications(request).await.unwrap().into_inner();
        all.extend(page.notifications);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            all.reverse();
            return all;
        }
    }
}

/// Looks at the notifications until they are as wanted.
async fn until(client: &mut Client, wanted: impl Fn(&[Notification]) -> bool) -> Vec<Notification> {
    let found = async {
        loop {
            let all = list(client, "").await;
            if wanted(&all) {
                return all;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("in time")
}

async fn test(client: &mut Client, entry: &str) -> Notification {
    let request = TestNotificationRequest { entry: entry.to_owned() };
    client.test_notification(request).await.unwrap().into_inner()
}

async fn retry(client: &mut Client, id: &str) -> u64 {
    let request = RetryNotificationsRequest { id: id.to_owned() };
    client.retry_notifications(request).await.unwrap().into_inner().notifications
}

/// The ids that were told, with the attempts of each.
fn attempts(told: &[Value]) -> BTreeMap<String, Vec<u64>> {
    let mut attempts = BTreeMap::<String, Vec<u64>>::new();
    for one in told {
        let id = one["event"]["id"].as_str().expect("an id").to_owned();
        attempts.entry(id).or_default().push(one["attempt"].as_u64().expect("a number"));
    }
    attempts
}

const OPS: &str = "[{ on: [plugin.*], action: sink.send, name: ops }]";

// Promises: EXT-58
#[tokio::test]
async fn a_sink_that_fails_three_times_gets_the_same_id_until_it_accepts() {
    let (place, sink) = (TestDirectory::new(), Sink::new(ALWAYS));
    sink.answer([json!({"status": "retry", "reason": "busy"}), json!({"no": "reply"}), json!("nonsense")]);
    let (_agent, mut client) = notifying(&place, &sink, OPS).await;
    let first = test(&mut client, "ops").await;
    assert_eq!((first.state.as_str(), first.attempt, first.note.as_str()), ("waiting", 1, "busy"));
    assert!(first.next_unix_ms.unwrap() >= first.created_unix_ms + 5000, "{first:?}");
    for attempt in 2..=4 {
        assert_eq!(retry(&mut client, &first.id).await, 1);
        until(&mut client, |all| all[0].attempt == attempt && all[0].state != "sending").await;
    }
    let all = list(&mut client, "delivered").await;
    assert_eq!((all.len(), all[0].id.as_str(), all[0].note.as_str()), (1, first.id.as_str(), ""));
    let told = sink.told();
    assert_eq!(attempts(&told), BTreeMap::from([(first.id.clone(), vec![1, 2, 3, 4])]));
    let event = &told[0]["event"];
    assert_eq!(
        (&event["kind"], &event["severity"], &event["count"]),
        (&json!("test"), &json!("info"), &json!(1))
    );
    assert_eq!(event["fields"], json!({ "entry": "ops" }));
    let again = RetryNotificationsRequest { id: first.id.clone() };
    assert_eq!(refused(client.retry_notifications(again).await).code(), Code::FailedPrecondition);
}

// Promises: EXT-59
#[tokio::test]
async fn what_is_refused_or_given_up_is_kept_and_tried_again_by_wish() {
    let (place, sink) = (TestDirectory::new(), Sink::new(ALWAYS));
    let entries = "[{ action: sink.send, name: strict, retries: 0 }]";
    sink.answer([json!({"status": "refused", "reason": "no such channel"}), json!({"status": "retry"})]);
    let (_agent, mut client) = notifying(&place, &sink, entries).await;
    let one = test(&mut client, "strict").await;
    assert_eq!((one.state.as_str(), one.note.as_str()), ("refused", "no such channel"));
    let other = test(&mut client, "strict").await;
    assert_eq!((other.state.as_str(), other.note.as_str()), ("given_up", "it gives no reason"));
    assert_eq!(list(&mut client, "given_up").await.len(), 1);
    assert_eq!(retry(&mut client, "").await, 2);
    until(&mut client, |all| all.iter().all(|one| one.state == "delivered" && one.attempt == 2)).await;
    assert_eq!(attempts(&sink.told()).len(), 2, "each with the id that it had");
    assert_eq!(retry(&mut client, "").await, 0);
}

// Promises: EXT-57
#[tokio::test]
async fn killed_in_the_middle_every_event_is_told_with_one_id() {
    let (place, sink) = (TestDirectory::new(), Sink::new(0));
    let mut number = 1000;
    for kill in 0..KILLS {
        let (mut agent, mut client) = notifying(&place, &sink, OPS).await;
        let before = sink.told().len();
        for _ in 0..4 {
            number += 1;
            sink.report(number);
        }
        // At another moment each time: before anything is stored, while something is told, or after that.
        match kill % 3 {
            0 => {}
            1 => drop(tokio::time::timeout(PATIENCE, sink.wait_for(before + 1)).await.expect("in time")),
            _ => {
                sink.permits.add_permits(2);
                until(&mut client, |all| all.iter().any(|one| one.state == "delivered")).await;
            }
        }
        agent.kill();
    }
    sink.permits.add_permits(ALWAYS);
    let (agent, mut client) = notifying(&place, &sink, OPS).await;
    let events = usize::try_from(number - 1000).unwrap();
    // What was under way when an agent was killed waits for nothing but the next one.
    let all = until(&mut client, |all| all.len() >= events && all.iter().all(|one| one.state == "delivered"));
    let all = all.await;
    assert_eq!(all.len(), events, "{}", agent.log());
    let told = sink.told();
    let ids: BTreeSet<String> = all.iter().map(|one| one.id.clone()).collect();
    assert_eq!(attempts(&told).into_keys().collect::<BTreeSet<_>>(), ids, "each with the id that is kept");
    let mut by_event = BTreeMap::<String, BTreeSet<String>>::new();
    for one in &told {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        by_event.entry(text(&one["event"]["summary"])).or_default().insert(text(&one["event"]["id"]));
    }
    let expected: BTreeSet<String> = (1001..=number).map(|number| format!("number {number}")).collect();
    assert_eq!(by_event.keys().cloned().collect::<BTreeSet<_>>(), expected, "none is lost");
    assert!(by_event.values().all(|ids| ids.len() == 1), "each always with the same id: {by_event:?}");
    tokio::time::timeout(PATIENCE, async {
        while sink.acknowledged() < number {
            tokio::time::sleep(POLL).await;
        }
    })
    .await
    .expect("acknowledged");
}

// Promises: EXT-54
#[tokio::test]
async fn a_digest_and_an_interval_tell_many_events_in_one() {
    let (place, sink) = (TestDirectory::new(), Sink::new(ALWAYS));
    let entries = "[{ on: [plugin.*], action: sink.send, name: digest, digest: 2s },
        { on: [plugin.failed], where: { plugin: [p7] }, action: sink.send, name: seven, args: { say: '{{ event.summary }}', n: '{{ attempt }}' } }]";
    let (_agent, mut client) = notifying(&place, &sink, entries).await;
    for number in 5..=9 {
        sink.report(number);
    }
    let all =
        until(&mut client, |all| all.len() == 2 && all.iter().all(|one| one.state == "delivered")).await;
    let of = |entry: &str| all.iter().find(|one| one.entry == entry).expect("it is there");
    assert_eq!((of("digest").count, of("seven").count), (5, 1));
    let told = sink.told();
    let digest = told.iter().find(|one| one.get("events").is_some()).expect("a digest");
    assert_eq!(digest["events"].as_array().map(Vec::len), Some(5), "{digest}");
    assert_eq!(digest["event"]["count"], 5);
    // The action knows nothing of the role.
    let plain = told.iter().find(|one| one.get("say").is_some()).expect("by a template");
    assert_eq!(*plain, json!({ "say": "number 7", "n": 1 }));
}

// Promises: EXT-60
#[tokio::test]
async fn notifications_are_for_operators_and_forget_a_sender() {
    let (place, sink) = (TestDirectory::new(), Sink::new(ALWAYS));
    let (agent, mut client) = notifying(&place, &sink, OPS).await;
    let unknown = TestNotificationRequest { entry: "opps".to_owned() };
    let unknown = refused(client.test_notification(unknown).await);
    assert!(unknown.code() == Code::NotFound && unknown.message().contains("did you mean ops?"), "{unknown}");
    let state = ListNotificationsRequest { state: "lost".to_owned(), ..Default::default() };
    assert_eq!(refused(client.list_notifications(state).await).code(), Code::InvalidArgument);
    let nothing = RetryNotificationsRequest { id: "nothing".to_owned() };
    assert_eq!(refused(client.retry_notifications(nothing).await).code(), Code::NotFound);
    assert_eq!(test(&mut client, "ops").await.state, "delivered");
    let forgotten = client.forget_sender(ForgetSenderRequest { sender: "ada".to_owned() }).await.unwrap();
    assert_eq!(forgotten.into_inner().notifications, 0, "it does not name her");
    let mut other = agent.client("alice").await;
    let codes = [
        refused(other.list_notifications(ListNotificationsRequest::default()).await).code(),
        refused(other.retry_notifications(RetryNotificationsRequest::default()).await).code(),
        refused(other.test_notification(TestNotificationRequest { entry: "ops".to_owned() }).await).code(),
    ];
    assert_eq!(codes, [Code::PermissionDenied; 3]);
}

// Promises: EXT-61
#[tokio::test]
async fn a_call_that_waits_is_told_once_over_a_restart_and_forgotten_with_its_sender() {
    let (place, sink) = (TestDirectory::new(), Sink::new(ALWAYS));
    let entries = "[{ on: [approval.waiting], where: { plugin: [files] }, action: sink.send, name: ops }]";
    let (mut agent, mut client) = notifying(&place, &sink, entries).await;
    let (session, mut stream) = ask(&mut client, "", "write b").await;
    until_chunk(&mut stream, |kind| matches!(kind, Kind::Approval(_))).await;
    let all = until(&mut client, |all| all.iter().any(|one| one.state == "delivered")).await;
    assert_eq!((all[0].kind.as_str(), all[0].fields["sender"].as_str()), ("approval.waiting", "ada"));
    assert_eq!((&all[0].fields["session"], &all[0].fields["action"]), (&session, &"write".to_owned()));
    agent.kill();
    // The turn goes on, and waits for the same word.
    let (_agent, mut client) = notifying(&place, &sink, entries).await;
    let turns = async {
        loop {
            let status = client.get_status(GetStatusRequest {}).await.unwrap().into_inner();
            if status.turns_running == 1 && status.approvals_pending == 1 {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(PATIENCE, turns).await.expect("it goes on");
    assert_eq!(test(&mut client, "ops").await.state, "delivered");
    assert_eq!(list(&mut client, "").await.len(), 2, "the test, and the call once");
    let forget = ForgetSenderRequest { sender: "ada".to_owned() };
    assert_eq!(client.forget_sender(forget).await.unwrap().into_inner().notifications, 1);
    assert_eq!(list(&mut client, "").await.len(), 1);
}

// Promises: EXT-61
#[tokio::test]
async fn a_budget_that_is_spent_is_told_once() {
    let (place, sink) = (TestDirectory::new(), Sink::new(ALWAYS));
    let settings = SETTINGS.replace("models:\n", "models:\n  budget: { per_day: 0.000001 }\n");
    let entries = "[{ on: [budget.*], action: sink.send, name: ops }]";
    let (_agent, mut client) = notifying_with(&place, &sink, &settings, entries).await;
    for _ in 0..2 {
        let (_, stream) = ask(&mut client, "", "hello").await;
        error(stream).await;
    }
    let all = until(&mut client, |all| all.iter().any(|one| one.state == "delivered")).await;
    let kinds: Vec<&str> = all.iter().map(|one| one.kind.as_str()).collect();
    assert_eq!(kinds, ["budget.exceeded"], "{all:?}");
    assert_eq!(all[0].fields["budget"], "day");
}
