use serde_json::json;

use super::*;
use crate::server::message_filter::Updates;
use crate::server::scripted::Scripted;

const PATIENCE: Duration = Duration::from_secs(10);
const WHOLE: Duration = Duration::from_secs(22);

fn at(seconds: u64, message: Value) -> (Duration, Value) {
    (Duration::from_secs(seconds), message)
}

fn discovered(versions: &[&str]) -> Value {
    json!({"jsonrpc": "2.0", "id": DISCOVER_ID, "result": {"resultType": "complete", "supportedVersions": versions,
        "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}, "ttlMs": 0, "cacheScope": "private"}})
}

fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "id": INITIALIZE_ID, "result": {"protocolVersion": "2025-06-18", "capabilities": {},
        "serverInfo": {"name": "x", "version": "1"}}})
}

fn refused(id: i64, code: i32, data: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no", "data": data}})
}

/// What comes of it, and the methods that were asked.
async fn with(messages: Vec<(Duration, Value)>) -> (Result<Agreement, NegotiateError>, Vec<String>) {
    let scripted = Scripted::saying(messages);
    let mut filter = MessageFilter::new(scripted.clone(), Updates::default());
    let us = ClientConfig::new(Default::default(), rmcp::model::Implementation::new("us", "1"));
    let ended = negotiate(&mut filter, &us, PATIENCE, Instant::now() + WHOLE).await;
    let sent = scripted.sent.lock().iter().map(|m| m["method"].as_str().unwrap().to_owned()).collect();
    (ended, sent)
}

fn is_new(agreement: &Agreement) -> bool {
    matches!(agreement.mode, ClientLifecycleMode::Discover { .. })
}

// Promises: MCP-28
#[tokio::test(start_paused = true)]
async fn an_answer_after_the_deadline_of_the_probe_counts() {
    // A server that needs 12 s reads both requests then; one of the current revision refuses the older.
    let old_refused = refused(INITIALIZE_ID, -32022, json!({"supported": ["2026-07-28"]}));
    for late in [
        vec![at(12, discovered(&["2026-07-28"])), at(12, old_refused.clone())],
        vec![at(12, old_refused), at(13, discovered(&["2026-07-28"]))],
    ] {
        let (agreed, sent) = with(late).await;
        assert!(is_new(&agreed.unwrap()));
        assert_eq!(sent, ["server/discover", "initialize"]);
    }
    for late in [
        vec![at(12, refused(DISCOVER_ID, -32601, Value::Null)), at(12, initialized())],
        vec![at(12, initialized())],
    ] {
        let (agreed, sent) = with(late).await;
        assert!(!is_new(&agreed.unwrap()));
        assert_eq!(sent, ["server/discover", "initialize"], "each is asked once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_in_time_is_asked_no_more_than_needed() {
    let (agreed, sent) = with(vec![at(1, discovered(&["2025-11-25", "2026-07-28"]))]).await;
    assert!(is_new(&agreed.unwrap()));
    assert_eq!(sent, ["server/discover"]);
    for old in [
        refused(DISCOVER_ID, -32601, Value::Null),
        refused(DISCOVER_ID, -32602, json!("")),
        refused(DISCOVER_ID, -32022, json!({"supported": ["2025-11-25"]})),
        discovered(&["2025-06-18"]),
    ] {
        let (agreed, sent) = with(vec![at(1, old), at(2, initialized())]).await;
        assert!(!is_new(&agreed.unwrap()));
        assert_eq!(sent, ["server/discover", "initialize"]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_ends_badly_says_why() {
    let (ended, _) = with(Vec::new()).await;
    assert!(matches!(ended, Err(NegotiateError::Timeout("initialize"))), "{ended:?}");
    let (ended, _) = with(vec![at(12, refused(INITIALIZE_ID, -32000, Value::Null))]).await;
    assert!(matches!(ended, Err(NegotiateError::Refused(_))), "{ended:?}");
    let (ended, _) = with(vec![at(1, discovered(&["2031-01-01"]))]).await;
    assert!(matches!(ended, Err(NegotiateError::Versions(_))), "{ended:?}");
    let (ended, sent) = with(vec![at(1, Value::Null)]).await;
    assert!(matches!(ended, Err(NegotiateError::Closed { initialize_asked: false })), "{ended:?}");
    assert_eq!(sent, ["server/discover"]);
    let gone = vec![at(1, refused(DISCOVER_ID, -32601, Value::Null)), at(2, Value::Null)];
    let (ended, _) = with(gone).await;
    assert!(matches!(ended, Err(NegotiateError::Closed { initialize_asked: true })), "{ended:?}");
    let odd = json!({"jsonrpc": "2.0", "id": DISCOVER_ID.to_string(), "result": {"tools": []}});
    let (ended, _) = with(vec![at(1, odd)]).await;
    assert!(matches!(ended, Err(NegotiateError::Unexpected(_))), "{ended:?}");
}
