//! Turns: followers, and how they end.

use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{
    AskRequest, AttachRequest, CancelRequest, CreateSessionRequest, GetLoopRequest, GetSessionRequest,
    GetStatusRequest, ListSessionsRequest,
};
use tonic::Code;

use crate::support::{
    Agent, Client, SETTINGS, TestDirectory, answer, ask, done, error, next, question, refused, until,
};

async fn turn_of(client: &mut Client, session: &str) -> String {
    let request = GetSessionRequest { session_id: session.to_owned(), ..GetSessionRequest::default() };
    client.get_session(request).await.unwrap().into_inner().session.unwrap().turn
}

#[tokio::test]
async fn a_question_is_answered_and_its_session_goes_on() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, done) = answer(&mut client, "", "hello there").await;
    assert_eq!((done.text.as_str(), done.provider.as_str()), ("Hello to you, too.", "scripted"));
    assert!(done.scripted && done.cost_pico_usd > 0, "{done:?}");
    let mut stream = client.ask(question(&session, "hello again")).await.unwrap().into_inner();
    let Some(Kind::Started(started)) = next(&mut stream).await else {
        panic!("it says first which turn it is")
    };
    assert_eq!((started.turn, started.session_id), (2, session.clone()));
    crate::support::done(stream).await;
    assert_eq!(turn_of(&mut client, &session).await, "idle");
}

#[tokio::test]
async fn a_tool_is_called_through_the_host_and_its_answer_comes_back() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, mut stream) = ask(&mut client, "", "read a").await;
    let call = until(&mut stream, |kind| matches!(kind, Kind::ToolCall(_))).await;
    assert!(
        matches!(&call, Kind::ToolCall(call) if (call.plugin.as_str(), call.action.as_str()) == ("files", "read"))
    );
    let result = until(&mut stream, |kind| matches!(kind, Kind::ToolResult(_))).await;
    assert!(
        matches!(&result, Kind::ToolResult(result) if result.success && result.output.contains("a line of text"))
    );
    let done = done(stream).await;
    assert_eq!((done.text.as_str(), done.tool_calls), ("It was read.", 1));
    let calls = agent.plugins.requests();
    assert!(calls.len() == 1 && calls[0].for_model, "{calls:?}");
    assert_eq!(
        (calls[0].context["session_id"].as_str(), calls[0].context["sender"].as_str()),
        (session.as_str(), "alice")
    );
}

// Promises: AGENT-43
#[tokio::test]
async fn a_session_has_one_turn_at_once_and_others_are_not_concerned() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, stream) = ask(&mut client, "", "slow").await;
    agent.plugins.wait_for(1).await;
    let status = refused(client.ask(question(&session, "hello")).await);
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains(&format!("talon chat --session {session}")), "{status}");
    answer(&mut client, "", "hello").await;
    assert_eq!(turn_of(&mut client, &session).await, "running");
    let status = client.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status.turns_running, 1);
    agent.plugins.answers.add_permits(1);
    done(stream).await;
    // Its slot is free as soon as its end was sent.
    answer(&mut client, &session, "hello").await;
}

// Promises: AGENT-44
#[tokio::test]
async fn a_turn_can_be_followed_by_others_who_see_first_where_it_is() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let (mut client, mut other) = (agent.client("alice").await, agent.client("alice").await);
    let (session, stream) = ask(&mut client, "", "slow").await;
    agent.plugins.wait_for(1).await;
    let request = AttachRequest { session_id: session.clone() };
    let mut attached = other.attach(request.clone()).await.unwrap().into_inner();
    let Some(Kind::Loop(at)) = next(&mut attached).await else { panic!("first where it is") };
    assert_eq!(
        (at.state.as_str(), at.phase.as_str(), at.goal.as_str()),
        ("process_tools", "executing", "slow")
    );
    let at = other.get_loop(GetLoopRequest { session_id: session.clone() }).await.unwrap().into_inner();
    assert_eq!(at.state, "process_tools");
    // The follower disconnects, and the turn continues.
    drop(other.attach(request.clone()).await.unwrap());
    agent.plugins.answers.add_permits(1);
    assert_eq!(done(attached).await.text, done(stream).await.text);
    assert_eq!(refused(other.attach(request).await).code(), Code::NotFound);
}

// Promises: AGENT-43
#[tokio::test]
async fn letting_go_of_a_question_cancels_it() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, mut stream) = ask(&mut client, "", "hang").await;
    until(&mut stream, |kind| matches!(kind, Kind::Text(_))).await;
    let request = AttachRequest { session_id: session.clone() };
    let attached = client.attach(request).await.unwrap().into_inner();
    drop(stream);
    let ended = error(attached).await;
    assert_eq!(ended.reason, "cancelled", "{ended:?}");
    answer(&mut client, &session, "hello").await;
}

// Promises: AGENT-43
#[tokio::test]
async fn a_cancelled_turn_ends_and_what_it_did_stays() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, stream) = ask(&mut client, "", "slow").await;
    agent.plugins.wait_for(1).await;
    let cancel = CancelRequest { session_id: session.clone() };
    assert!(client.cancel(cancel.clone()).await.unwrap().into_inner().cancelled);
    // Once the cancellation is answered, the session is free.
    answer(&mut client, &session, "hello").await;
    assert_eq!(error(stream).await.reason, "cancelled");
    assert!(!client.cancel(cancel).await.unwrap().into_inner().cancelled);
    let request = GetSessionRequest { session_id: session, ..GetSessionRequest::default() };
    let messages = client.get_session(request).await.unwrap().into_inner().messages;
    assert!(
        messages.iter().any(|message| message.role == "user" && message.content == "slow"),
        "{messages:?}"
    );
}

// Promises: AGENT-46
#[tokio::test]
async fn what_a_turn_may_call_is_narrowed_by_its_session_and_its_question() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let request = AskRequest { tools: vec!["slow.*".to_owned()], ..question("", "read a") };
    let (mut stream, mut offered) = (client.ask(request).await.unwrap().into_inner(), true);
    while let Some(kind) = next(&mut stream).await {
        if let Kind::ToolResult(result) = kind {
            offered = result.success;
        }
    }
    assert!(!offered && agent.plugins.called().is_empty(), "{:?}", agent.plugins.called());
    let request = AskRequest { no_tools: true, ..question("", "read a") };
    let mut stream = client.ask(request).await.unwrap().into_inner();
    while next(&mut stream).await.is_some() {}
    assert!(agent.plugins.called().is_empty());
}

#[tokio::test]
async fn an_answer_fits_the_schema_that_was_asked_for() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
    let fits = AskRequest { schema: schema.to_owned(), ..question("", "json") };
    let stream = client.ask(fits).await.unwrap().into_inner();
    let answer: serde_json::Value = serde_json::from_str(&done(stream).await.text).unwrap();
    assert_eq!(answer["n"], 7);
    let never = AskRequest { schema: schema.to_owned(), ..question("", "hello") };
    let ended = error(client.ask(never).await.unwrap().into_inner()).await;
    assert_eq!(ended.reason, "invalid_answer", "{ended:?}");
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_with_what_to_do_and_makes_no_session() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let asked = |change: &dyn Fn(&mut AskRequest)| {
        let mut request = question("", "hello");
        change(&mut request);
        request
    };
    for (request, says) in [
        (question("", " \n"), "empty"),
        (asked(&|request| request.text = "x".repeat((256 << 10) + 1)), "may have"),
        (asked(&|request| request.model = "smalll".to_owned()), "small"),
        (asked(&|request| request.thinking = "hard".to_owned()), "medium"),
        (asked(&|request| request.schema = "{".to_owned()), "no JSON"),
        (asked(&|request| request.schema = r#"{"type": 7}"#.to_owned()), "JSON Schema"),
        (asked(&|request| request.tools = vec!["files".to_owned()]), "plugin.action"),
        (asked(&|request| request.tools = vec!["Files.*".to_owned()]), "plugin.action"),
        (asked(&|request| request.tools = vec!["a.b.c".to_owned()]), "plugin.action"),
        (asked(&|request| request.tools = vec!["files.*".to_owned(); 65]), "agent.allow"),
        (asked(&|request| request.channel = "a b".to_owned()), "channel"),
    ] {
        let status = refused(client.ask(request).await);
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains(says), "{status}");
    }
    let sessions = client.list_sessions(ListSessionsRequest::default()).await.unwrap().into_inner().sessions;
    assert!(sessions.is_empty(), "{sessions:?}");
    let too_large = question("", &"x".repeat(2 << 20));
    assert_eq!(refused(client.ask(too_large).await).code(), Code::OutOfRange);
}

// Promises: AGENT-55
#[tokio::test]
async fn who_only_calls_does_not_choose_the_channel_whose_list_holds() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    for channel in ["gateway", "CLI", "cli:1"] {
        let asks = AskRequest { channel: channel.to_owned(), ..question("", "hello") };
        let creates = CreateSessionRequest { channel: channel.to_owned(), ..Default::default() };
        let refusals = [refused(client.ask(asks).await), refused(client.create_session(creates).await)];
        for status in refusals {
            assert_eq!(status.code(), Code::PermissionDenied, "{status}");
            assert!(status.message().contains("role operate"), "{status}");
        }
    }
    for channel in ["", "cli"] {
        let creates = CreateSessionRequest { channel: channel.to_owned(), ..Default::default() };
        assert_eq!(client.create_session(creates).await.unwrap().into_inner().channel, "cli");
    }
    let mut operator = agent.client_with("root", "operate", "program").await;
    let creates = CreateSessionRequest { channel: "gateway".to_owned(), ..Default::default() };
    assert_eq!(operator.create_session(creates).await.unwrap().into_inner().channel, "gateway");
}

#[tokio::test]
async fn the_lists_of_a_sender_hold_in_their_turns() {
    let place = TestDirectory::new();
    let settings = format!("{SETTINGS}  allow: {{ senders: {{ alice: [] }} }}\n");
    let (agent, _) = Agent::with(&place, &settings).await;
    let mut client = agent.client("alice").await;
    let mut stream = client.ask(question("", "read a")).await.unwrap().into_inner();
    let result = until(&mut stream, |kind| matches!(kind, Kind::ToolResult(_))).await;
    assert!(matches!(&result, Kind::ToolResult(result) if result.output.contains("there is no tool")));
    assert!(agent.plugins.requests().is_empty());
}

// Promises: AGENT-46
#[tokio::test]
async fn a_pinned_model_answers() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let request = AskRequest { model: "scripted/large".to_owned(), ..question("", "hello") };
    let stream = client.ask(request).await.unwrap().into_inner();
    let done = done(stream).await;
    assert!(done.model.contains("large"), "{done:?}");
}
