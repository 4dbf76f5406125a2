use std::time::Duration;

use serde_json::json;

use super::super::scripted::Scripted;
use super::*;

fn screen(says: &[Value]) -> (MessageFilter<Scripted>, Scripted) {
    let scripted = Scripted::saying(says.iter().map(|message| (Duration::ZERO, message.clone())));
    (MessageFilter::new(scripted.clone(), Updates::default()), scripted)
}

async fn ask(screen: &mut MessageFilter<Scripted>, id: i64, method: &str) {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}});
    screen.send(serde_json::from_value(message).expect("a message")).await.expect("sent");
}

fn result(id: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {}})
}

#[tokio::test]
async fn answers_reach_only_what_was_asked() {
    let (mut screen, _) = screen(&[result(json!(9)), result(json!("1")), result(json!(1)), Value::Null]);
    ask(&mut screen, 1, "tools/list").await;
    let Some(ServerJsonRpcMessage::Response(answer)) = screen.receive().await else { panic!("an answer") };
    assert_eq!(answer.id, NumberOrString::String("1".into()));
    assert!(screen.receive().await.is_none(), "a second answer is dropped");
}

#[tokio::test]
async fn what_was_cancelled_is_not_waited_for() {
    let (mut screen, _) = screen(&[result(json!(1)), Value::Null]);
    ask(&mut screen, 1, "tools/list").await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    screen.send(serde_json::from_value(cancel).expect("a message")).await.expect("sent");
    assert!(screen.receive().await.is_none());
    assert!(screen.pending.is_empty());
}

#[tokio::test]
async fn requests_of_the_server_are_answered_here() {
    let request = |id: u32, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}});
    let (mut screen, scripted) =
        screen(&[request(1, "ping"), request(2, "roots/list"), request(3, "x/y"), Value::Null]);
    assert!(screen.receive().await.is_none());
    let sent = scripted.sent.lock().clone();
    assert_eq!(sent[0], json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    for (answer, id) in sent[1..].iter().zip(2..) {
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32601)), "{answer}");
    }
}

// Promises: MCP-36
#[tokio::test]
async fn roots_are_those_of_the_operator() {
    let (screen, scripted) =
        screen(&[json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list", "params": {}}), Value::Null]);
    let roots = Roots::of(Some(&json!("granted")), &["/srv/a".into()]).unwrap();
    assert!(screen.with_roots(roots).receive().await.is_none());
    let roots = json!({"roots": [{"uri": "file:///srv/a"}]});
    assert_eq!(scripted.sent.lock()[0], json!({"jsonrpc": "2.0", "id": 1, "result": roots}));
}

#[tokio::test]
async fn what_is_known_already_is_not_asked_again() {
    let (screen, scripted) = screen(&[Value::Null]);
    let known = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}});
    let mut screen = screen.answer_with(serde_json::from_value(known).expect("a result"));
    let us = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "y", "version": "1"}});
    let asks = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": us});
    screen.send(serde_json::from_value(asks.clone()).expect("a message")).await.expect("answered");
    let Some(ServerJsonRpcMessage::Response(answer)) = screen.receive().await else { panic!("an answer") };
    assert_eq!(answer.id, NumberOrString::Number(0));
    assert!(scripted.sent.lock().is_empty());
    screen.send(serde_json::from_value(asks).expect("a message")).await.expect("sent");
    assert_eq!(scripted.sent.lock().len(), 1, "it is known for the first request alone");
}

#[tokio::test]
async fn news_of_changed_tools_are_handed_on() {
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let (mut screen, _) = screen(&[changed, Value::Null]);
    assert!(screen.receive().await.is_none());
    screen.updates.tools_changed.notified().await;
}

#[tokio::test]
async fn questions_without_an_answer_are_bounded_and_those_given_up_are_forgotten() {
    let (mut screen, _) = screen(&[]);
    let many = i64::try_from(MAX_PENDING).expect("a few");
    for id in 0..many + 10 {
        ask(&mut screen, id, "tools/list").await;
    }
    assert_eq!(screen.pending.len(), MAX_PENDING);
    assert!(!screen.take_pending(&NumberOrString::Number(9)));
    assert!(screen.take_pending(&NumberOrString::Number(10)));
    let given_up =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": many}});
    screen.send(serde_json::from_value(given_up).expect("a message")).await.expect("sent");
    assert!(!screen.take_pending(&NumberOrString::Number(many)));
    assert_eq!(screen.pending.len(), MAX_PENDING - 2);
}
