use std::collections::VecDeque;
use std::convert::Infallible;

use parking_lot::Mutex;
use rmcp::model::DiscoverResult;
use serde_json::json;

use super::*;

/// A transport that delivers the given messages, and then nothing.
#[derive(Clone, Default)]
struct Scripted {
    says: Arc<Mutex<VecDeque<Value>>>,
    sent: Arc<Mutex<Vec<Value>>>,
}

impl Transport<RoleClient> for Scripted {
    type Error = Infallible;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        self.sent.lock().push(serde_json::to_value(&message).expect("JSON"));
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let next = self.says.lock().pop_front();
        match next {
            Some(Value::Null) => None,
            Some(message) => Some(serde_json::from_value(message).expect("a message")),
            None => std::future::pending().await,
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

fn screen(says: &[Value]) -> (MessageFilter<Scripted>, Scripted) {
    let scripted = Scripted::default();
    scripted.says.lock().extend(says.iter().cloned());
    (MessageFilter::new(scripted.clone(), Updates::default(), Duration::from_secs(5)), scripted)
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

#[tokio::test(start_paused = true)]
async fn silence_after_the_first_question_counts_as_an_answer() {
    let (mut screen, _) = screen(&[]);
    ask(&mut screen, 1, "server/discover").await;
    let Some(ServerJsonRpcMessage::Error(error)) = screen.receive().await else { panic!("an error") };
    assert_eq!(error.error.message, NO_ANSWER);
    assert!(screen.probe.is_none() && screen.pending.is_empty());
}

#[tokio::test]
async fn a_server_that_knows_older_revisions_alone_is_spoken_to_in_one() {
    let discovered = DiscoverResult::new(vec![ProtocolVersion::V_2025_06_18], Default::default());
    let mut said = serde_json::to_value(&discovered).expect("JSON");
    said["serverInfo"] = json!({"name": "x", "version": "1"});
    let refused = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "no",
        "data": {"supported": ["2025-11-25"]}}});
    for answer in [json!({"jsonrpc": "2.0", "id": 1, "result": said}), refused] {
        let (mut screen, _) = screen(&[answer]);
        ask(&mut screen, 1, "server/discover").await;
        let Some(ServerJsonRpcMessage::Error(error)) = screen.receive().await else { panic!("an error") };
        assert_eq!(error.error.code, ErrorCode::METHOD_NOT_FOUND);
    }
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
    assert!(screen.take_pending(&NumberOrString::Number(9)).is_none());
    assert!(screen.take_pending(&NumberOrString::Number(10)).is_some());
    let given_up =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": many}});
    screen.send(serde_json::from_value(given_up).expect("a message")).await.expect("sent");
    assert!(screen.take_pending(&NumberOrString::Number(many)).is_none());
    assert_eq!(screen.pending.len(), MAX_PENDING - 2);
}
