//! Turns of no session, and tools of clients.

use futures_util::StreamExt as _;
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{
    AskRequest, ClientCall, ClientResult, ClientTool, CompleteRequest, CompletionMessage, CompletionRefusal,
    Done, GetCostsRequest, ListSessionsRequest,
};
use tonic::Code;

use crate::support::{Agent, Client, TestDirectory, done, next, question, refused, until};

fn look() -> ClientTool {
    let parameters = r#"{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}"#;
    ClientTool { name: "look".to_owned(), parameters: parameters.to_owned(), ..ClientTool::default() }
}

fn says(role: &str, text: &str) -> CompletionMessage {
    CompletionMessage { role: role.to_owned(), text: text.to_owned(), ..CompletionMessage::default() }
}

fn request(messages: Vec<CompletionMessage>) -> CompleteRequest {
    CompleteRequest { messages, client_tools: vec![look()], ..CompleteRequest::default() }
}

/// What follows an answer that calls the client's tool.
fn followed(first: &Done) -> Vec<CompletionMessage> {
    let calls: Vec<ClientCall> = first.client_calls.clone();
    let result = CompletionMessage { call_id: calls[0].id.clone(), ..says("tool", "It is warm.") };
    vec![says("user", "glance"), CompletionMessage { calls, ..says("assistant", &first.text) }, result]
}

async fn complete(client: &mut Client, request: CompleteRequest) -> Done {
    done(client.complete(request).await.unwrap().into_inner()).await
}

// Promises: GW-163, GW-176
#[tokio::test]
async fn a_completion_leaves_no_session_and_expires_with_the_agent() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let first = complete(&mut client, request(vec![says("user", "glance")])).await;
    assert_eq!((first.text.as_str(), first.finish.as_str()), ("I look.", "client_calls"));
    assert_eq!((first.client_calls[0].name.as_str(), agent.plugins.requests().len()), ("look", 1));
    let second = complete(&mut client, request(followed(&first))).await;
    assert_eq!((second.text.as_str(), agent.plugins.requests().len()), ("It was seen.", 1));
    // It is there for a client that sends its request again.
    assert_eq!(complete(&mut client, request(followed(&first))).await.text, "It was seen.");
    let mut stranger = agent.client("bob").await;
    let status = refused(stranger.complete(request(followed(&first))).await);
    assert_eq!(CompletionRefusal::of(&status).expect("a reason").reason, "turn_expired");
    let sessions = client.list_sessions(ListSessionsRequest::default()).await.unwrap().into_inner();
    assert_eq!(sessions.sessions, []);
    let mut operator = agent.client_with("ada", "operate", "person").await;
    let costs = operator.get_costs(GetCostsRequest::default()).await.unwrap().into_inner();
    assert!(costs.today.expect("something was spent").cost_pico_usd > 0);
    agent.kill();

    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let status = refused(client.complete(request(followed(&first))).await);
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(CompletionRefusal::of(&status).expect("a reason").reason, "turn_expired");
}

// Promises: GW-290
#[tokio::test]
async fn a_client_that_waits_for_the_whole_answer_is_sent_nothing_before_it() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let chunks =
        |word: &str| CompleteRequest { chunks: word.to_owned(), ..request(vec![says("user", "hello")]) };
    let stream = client.complete(chunks("none")).await.unwrap().into_inner();
    let kinds: Vec<_> = stream.map(|chunk| chunk.unwrap().kind).collect().await;
    let [Some(Kind::Started(_)), Some(Kind::Done(done))] = &kinds[..] else { panic!("{kinds:?}") };
    assert_eq!(done.text, "Hello to you, too.");
    let stream = client.complete(chunks("text")).await.unwrap().into_inner();
    let kinds: Vec<_> = stream.map(|chunk| chunk.unwrap().kind).collect().await;
    let text: String = kinds.iter().filter_map(|kind| Some(pieces_of(kind.as_ref()?))).collect();
    assert_eq!(text, "Hello to you, too.");
    assert!(!kinds.iter().any(|kind| matches!(kind, Some(Kind::Loop(_)))), "{kinds:?}");
    let asked = AskRequest { chunks: "none".to_owned(), ..question("", "hello") };
    let stream = client.ask(asked).await.unwrap().into_inner();
    assert_eq!(stream.count().await, 2);
    let status = refused(client.complete(chunks("some")).await);
    assert_eq!(status.code(), Code::InvalidArgument);
}

fn pieces_of(kind: &Kind) -> &str {
    match kind {
        Kind::Text(text) => &text.text,
        _ => "",
    }
}

// Promises: GW-177
#[tokio::test]
async fn letting_go_of_a_completion_ends_its_turn_and_frees_its_place() {
    let place = TestDirectory::new();
    let settings = format!("{}  limits: {{ turns: 1 }}\n", crate::support::SETTINGS);
    let (agent, _) = Agent::with(&place, &settings).await;
    let mut client = agent.client("alice").await;
    let mut stream = client.complete(request(vec![says("user", "hang")])).await.unwrap().into_inner();
    until(&mut stream, |kind| matches!(kind, Kind::Text(_))).await;
    let status = refused(client.complete(request(vec![says("user", "hello")])).await);
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    drop(stream);
    let answered = async {
        loop {
            match client.complete(request(vec![says("user", "hello")])).await {
                Ok(stream) => return done(stream.into_inner()).await,
                Err(status) => assert_eq!(status.code(), Code::ResourceExhausted, "{status}"),
            }
        }
    };
    let answered = tokio::time::timeout(std::time::Duration::from_secs(60), answered).await;
    assert_eq!(answered.expect("the place is free").text, "Hello to you, too.");
}

// Promises: GW-176
#[tokio::test]
async fn in_a_session_results_follow_the_calls_of_the_last_turn() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let asks = |request: AskRequest| AskRequest { client_tools: vec![look()], ..request };
    let mut stream = client.ask(asks(question("", "glance"))).await.unwrap().into_inner();
    let Some(Kind::Started(started)) = next(&mut stream).await else { panic!("it starts") };
    let first = done(stream).await;
    let id = first.client_calls[0].id.clone();
    let result = |call_id: &str| ClientResult { call_id: call_id.to_owned(), text: "It is warm.".to_owned() };
    let after = |results: Vec<ClientResult>, turn| {
        let request = AskRequest {
            client_results: results,
            after_turn: Some(turn),
            ..question(&started.session_id, "")
        };
        asks(request)
    };
    for (results, code) in [(vec![result("other")], Code::InvalidArgument), (vec![], Code::InvalidArgument)] {
        assert_eq!(refused(client.ask(after(results, 1)).await).code(), code);
    }
    assert_eq!(refused(client.ask(after(vec![result(&id)], 7)).await).code(), Code::Aborted);
    let second = client.ask(after(vec![result(&id)], 1)).await.unwrap().into_inner();
    assert_eq!(done(second).await.text, "It was seen.");
    // The last turn ended with no call.
    assert_eq!(refused(client.ask(after(vec![result(&id)], 2)).await).code(), Code::InvalidArgument);
}
