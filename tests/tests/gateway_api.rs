//! The gateway's API over a real agent: sessions and turns over HTTP, WebSocket and OpenAI's dialect.

use serde_json::{Value, json};
use talon_tests::provider::ScriptedReply;
use talon_tests::repository;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use talon_tests::gateway_client::{WAIT, of_type, says, start, text_of};

/// The founding documents' message, verbatim.
const FOUNDING: &str = include_str!("../../supervisor/gateway/src/events/fixtures/inbound.json");

// Promises: GW-110
#[tokio::test(flavor = "multi_thread")]
async fn the_founding_message_is_answered_over_websocket_in_one_session() {
    let setting = start(vec![says("There are three."), says("Still three.")], "").await;
    let token = setting.token(&["--scope", "channel", "--channel", "telegram"]).await;
    let mut socket = setting.socket(&token).await;
    socket.send(FOUNDING).await;
    let events = socket.until("agent.response.end").await;
    assert_eq!(text_of(&events), "There are three.", "{events:#?}");
    let created = of_type(&events, "session.created").next().expect("the session begins");
    assert_eq!(created["payload"]["senderId"], "gw:telegram/user_12345");
    let end = &events.last().unwrap()["payload"];
    assert_eq!((&end["providerId"], &end["sessionId"]), (&json!("local"), &created["payload"]["sessionId"]));
    assert!(end["usage"]["totalTokens"].is_u64() && end["sessionId"].as_str().unwrap().starts_with("sess_"));
    // The same sender, later and over another connection, is in the same session.
    let mut other = setting.socket(&token).await;
    other.send(FOUNDING).await;
    let again = other.until("agent.response.end").await;
    assert_eq!(of_type(&again, "session.created").count(), 0, "{again:#?}");
    assert_eq!(again.last().unwrap()["payload"]["sessionId"], end["sessionId"]);
    setting.supervisor.stop().await;
}

// Promises: GW-111
#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_the_answer_of_a_person_and_nobody_else() {
    let call = || ScriptedReply::ToolCalls(vec![("liar__echo".to_owned(), json!({"text": "hello"}))]);
    let script = vec![call(), says("It said hello."), call(), says("I may not.")];
    let setting = start(script, "  confirm: { rules: [{ tool: liar.echo, ask: always }] }").await;
    let token = setting.token(&["--scope", "chat,approve"]).await;
    let mut socket = setting.socket(&token).await;
    socket.say("m1", "channel.message", json!({"text": "Ask it"})).await;
    let events = socket.until("confirmation.request").await;
    let asked = events.last().unwrap()["payload"].clone();
    assert_eq!(asked["text"], "⚠️ The assistant wants to run: liar.echo hello", "{events:#?}");
    let call = of_type(&events, "tool.call").next().expect("a call");
    assert_eq!(call["payload"]["args"], json!({"text": "hello"}));
    // What was not seen is not approved, nor by whom may not.
    let wrong = json!({"id": asked["id"], "allow": true, "digest": "0".repeat(64)});
    socket.say("w1", "confirmation.answer", wrong).await;
    assert_eq!(socket.one("error").await["payload"]["replyTo"], "w1");
    let chat_alone = setting.token(&["--scope", "chat"]).await;
    let mut stranger = setting.socket(&chat_alone).await;
    let answer = json!({"id": asked["id"], "allow": true, "digest": asked["digest"]});
    stranger.say("w2", "confirmation.answer", answer.clone()).await;
    assert_eq!(stranger.one("error").await["payload"]["reason"], "forbidden");
    let other_person = setting.token(&["--scope", "chat,approve"]).await;
    let mut other = setting.socket(&other_person).await;
    other.say("w3", "confirmation.answer", answer.clone()).await;
    assert_eq!(other.one("error").await["payload"]["reason"], "not_found");

    socket.say("a1", "confirmation.answer", answer).await;
    let rest = socket.until("agent.response.end").await;
    let result = of_type(&rest, "tool.result").next().expect("a result");
    assert_eq!(
        (&result["payload"]["id"], &result["payload"]["success"]),
        (&call["id"], &json!(true)),
        "{rest:#?}"
    );
    assert!(result["payload"]["metadata"]["executionTime"].is_u64());

    socket.say("m2", "channel.message", json!({"text": "Again"})).await;
    let asked = socket.one("confirmation.request").await["payload"].clone();
    socket
        .say(
            "a2",
            "confirmation.answer",
            json!({"id": asked["id"], "allow": false, "digest": asked["digest"]}),
        )
        .await;
    let rest = socket.until("agent.response.end").await;
    let result = of_type(&rest, "tool.result").next().expect("a result");
    assert!(result["payload"]["output"].as_str().unwrap().contains("denied by user"), "{result}");
    setting.supervisor.stop().await;
}

// Promises: GW-112
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_gets_an_error_and_the_connection_stays() {
    let setting = start(vec![says("Hi.")], "").await;
    let token = setting.token(&["--scope", "chat"]).await;
    let mut socket = setting.socket(&token).await;
    let deep =
        format!(r#"{{"id":"d","type":"resume","payload":{}{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
    for (text, reason) in [
        ("{", "malformed"),
        (deep.as_str(), "malformed"),
        (r#"{"id":"x","type":"agent.response","payload":{}}"#, "unknown_type"),
        (r#"{"id":"x","type":"channel.message","payload":{"text":"a","senderId":"somebody"}}"#, "forbidden"),
        (r#"{"id":"x","type":"channel.message","payload":{"text":"a","sessionId":"sess_01J"}}"#, "not_found"),
    ] {
        socket.send(text).await;
        assert_eq!(socket.one("error").await["payload"]["reason"], reason, "{text:.60}");
    }
    socket.send_raw(Message::binary(vec![1, 2, 3])).await;
    assert_eq!(socket.one("error").await["payload"]["reason"], "bad_request");
    socket.say("m", "channel.message", json!({"text": "Hello"})).await;
    assert_eq!(text_of(&socket.until("agent.response.end").await), "Hi.");
    setting.supervisor.stop().await;
}

// Promises: GW-113
#[tokio::test(flavor = "multi_thread")]
async fn a_message_over_http_is_awaited_streamed_or_goes_on_by_itself() {
    let setting = start(vec![says("One."), says("Two."), says("Three.")], "").await;
    let token = setting.token(&["--scope", "chat"]).await;
    let (status, whole) =
        setting.json(&token, "POST", "/api/sessions/new/send", &json!({"text": "1?"})).await;
    assert_eq!((status, &whole["content"]), (200, &json!("One.")), "{whole}");
    let session = whole["sessionId"].as_str().unwrap().to_owned();
    let path = format!("/api/sessions/{session}/send");

    let streamed =
        setting.send(&token, "POST", &path, "Accept: text/event-stream\r\n", &json!({"text": "2?"})).await;
    assert!(streamed.head.contains("text/event-stream"), "{streamed:?}");
    assert!(
        streamed.body.contains("event: agent.response\n") && streamed.body.contains("Two."),
        "{streamed:?}"
    );
    assert!(streamed.body.contains("event: agent.response.end\n"), "{streamed:?}");

    let left = setting.send(&token, "POST", &path, "Prefer: respond-async\r\n", &json!({"text": "3?"})).await;
    assert_eq!(left.status, 202, "{left:?}");
    assert!(left.head.contains(&format!("location: /api/sessions/{session}")), "{left:?}");
    setting.provider.wait_questions(3).await;
    let read = timeout(WAIT, async {
        loop {
            let (_, read) =
                setting.json(&token, "GET", &format!("/api/sessions/{session}"), &Value::Null).await;
            if read["turn"] == "idle"
                && read["messages"].as_array().is_some_and(|messages| messages.len() >= 6)
            {
                return read;
            }
        }
    });
    let read = read.await.expect("the turn ends");
    assert_eq!((&read["id"], &read["state"]), (&json!(session), &json!("active")), "{read}");
    assert_eq!(read["messages"][0]["role"], "user");
    assert!(read["messages"].to_string().contains("Three."), "{read}");
    assert!(
        read["metadata"]["createdAt"].is_u64() && read["metadata"]["messageCount"].as_u64() >= Some(6),
        "{read}"
    );

    // As founded: settings change, and the session goes.
    let path = format!("/api/sessions/{session}");
    let (status, changed) =
        setting.json(&token, "PATCH", &path, &json!({"thinkingLevel": "low", "labels": {"a": "b"}})).await;
    assert_eq!((status, &changed["config"]["thinkingLevel"]), (200, &json!("low")), "{changed}");
    assert_eq!(changed["labels"]["a"], "b", "{changed}");
    assert_eq!(setting.send(&token, "DELETE", &path, "", &Value::Null).await.status, 204);
    assert_eq!(setting.json(&token, "GET", &path, &Value::Null).await.0, 404);
    setting.supervisor.stop().await;
}

// Promises: GW-114
#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_session_is_as_one_that_is_not_there() {
    let setting = start(vec![says("One.")], "").await;
    let (one, other) = (setting.token(&["--scope", "chat"]).await, setting.token(&["--scope", "chat"]).await);
    let (_, whole) = setting.json(&one, "POST", "/api/sessions/new/send", &json!({"text": "1?"})).await;
    let theirs = whole["sessionId"].as_str().unwrap();
    let bare = theirs.trim_start_matches("sess_");
    let missing = format!("sess_{}{}", &bare[..bare.len() - 1], if bare.ends_with('0') { '1' } else { '0' });
    for (method, below, body) in [
        ("GET", "", Value::Null),
        ("PATCH", "", json!({"model": ""})),
        ("DELETE", "", Value::Null),
        ("POST", "/send", json!({"text": "Hi"})),
        ("POST", "/cancel", Value::Null),
        ("POST", "/compact", Value::Null),
    ] {
        let mut answers = Vec::new();
        for id in [theirs, missing.as_str()] {
            let (status, mut answer) =
                setting.json(&other, method, &format!("/api/sessions/{id}{below}"), &body).await;
            answer.as_object_mut().unwrap().remove("requestId");
            answers.push((status, answer));
        }
        assert_eq!(answers[0].0, 404, "{method} {below}: {answers:?}");
        assert_eq!(answers[0], answers[1], "{method} {below}");
    }
    let (_, list) = setting.json(&other, "GET", "/api/sessions", &Value::Null).await;
    assert_eq!(list["items"], json!([]));
    let (_, list) = setting.json(&one, "GET", "/api/sessions", &Value::Null).await;
    assert_eq!(list["items"][0]["id"], theirs, "{list}");
    setting.supervisor.stop().await;
}

// Promises: GW-115
#[tokio::test(flavor = "multi_thread")]
async fn what_stands_behind_it_is_shown_to_whom_may_see_it() {
    let setting = start(vec![], "").await;
    let (chat, operate) =
        (setting.token(&["--scope", "chat"]).await, setting.token(&["--scope", "operate"]).await);
    let (status, document) = setting.json(&chat, "GET", "/api/openapi.json", &Value::Null).await;
    assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")), "{document}");
    let mut gets = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        // Streams of events have no end (gateway_events.rs).
        let get = &operations["get"];
        let streams = get["responses"]["200"]["content"].get("text/event-stream").is_some();
        if get.is_null() || streams || path.contains('{') {
            continue;
        }
        let (status, answer) = setting.json(&operate, "GET", path, &Value::Null).await;
        let is_for_administrators = path.starts_with("/api/audit") || path.starts_with("/api/config");
        let expected: &[u16] = if is_for_administrators { &[403] } else { &[200, 409, 501] };
        assert!(expected.contains(&status), "{path}: {status} {answer}");
        gets += 1;
    }
    assert!(gets >= 10, "{gets}");
    for path in
        ["/api/schedule", "/api/notifications", "/api/extensions", "/api/plugins/liar/logs", "/metrics"]
    {
        let (status, problem) = setting.json(&chat, "GET", path, &Value::Null).await;
        assert_eq!(status, 403, "{path}: {problem}");
    }
    let (_, tools) = setting.json(&chat, "GET", "/api/tools", &Value::Null).await;
    assert!(tools["items"].to_string().contains("liar"), "{tools}");
    let (_, stopped) = setting.json(&operate, "POST", "/api/plugins/liar/stop", &Value::Null).await;
    assert_eq!(stopped["desired"], "down", "{stopped}");
    let metrics = setting.send(&operate, "GET", "/metrics", "", &Value::Null).await;
    assert!(metrics.body.contains("talon_gateway_websockets 0"), "{metrics:?}");
    setting.supervisor.stop().await;
}

// Promises: GW-116
#[tokio::test(flavor = "multi_thread")]
async fn a_chat_completion_is_one_turn_and_leaves_no_session() {
    let setting = start(vec![says("One."), says("Two.")], "").await;
    let token = setting.token(&["--scope", "chat"]).await;
    let ask = json!({"model": "talon", "messages": [{"role": "user", "content": "Count"}]});
    let (status, whole) = setting.json(&token, "POST", "/v1/chat/completions", &ask).await;
    assert_eq!((status, &whole["choices"][0]["message"]["content"]), (200, &json!("One.")), "{whole}");
    assert_eq!(
        (&whole["object"], &whole["choices"][0]["finish_reason"]),
        (&json!("chat.completion"), &json!("stop"))
    );
    let mut streamed = ask.clone();
    streamed["stream"] = json!(true);
    let stream = setting.send(&token, "POST", "/v1/chat/completions", "", &streamed).await;
    assert!(stream.body.contains("chat.completion.chunk") && stream.body.contains("Two."), "{stream:?}");
    assert!(stream.body.contains("data: [DONE]\n"), "{stream:?}");
    let (_, models) = setting.json(&token, "GET", "/v1/models", &Value::Null).await;
    let names: Vec<_> = models["data"].as_array().unwrap().iter().map(|model| model["id"].clone()).collect();
    assert!(names.contains(&json!("talon")) && names.contains(&json!("local/test")), "{names:?}");
    let mut refused = ask.clone();
    refused["seed"] = json!(7);
    let (status, error) = setting.json(&token, "POST", "/v1/chat/completions", &refused).await;
    assert_eq!((status, &error["error"]["param"]), (400, &json!("seed")), "{error}");
    let (status, error) = setting.json("talon_x_y", "POST", "/v1/chat/completions", &ask).await;
    assert_eq!((status, &error["error"]["type"]), (401, &json!("authentication_error")), "{error}");
    let gone = timeout(WAIT, async {
        while setting.json(&token, "GET", "/api/sessions", &Value::Null).await.1["items"] != json!([]) {}
    });
    gone.await.expect("their sessions go");
    setting.supervisor.stop().await;
}

// Promises: GW-117
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_websocket_client_works() {
    let packaged =
        tokio::process::Command::new("/usr/bin/python3").args(["-c", "import websockets"]).status().await;
    if !packaged.is_ok_and(|status| status.success()) {
        talon_tests::skip(
            "a_foreign_websocket_client_works",
            "there is no python3-websockets (tests/scripts/deps.sh test)",
        );
        return;
    }
    let setting = start(vec![says("From afar.")], "").await;
    let token = setting.token(&["--scope", "channel", "--channel", "telegram"]).await;
    let url = format!("ws://{}/ws", setting.address);
    let client = repository().join("tests/gateway/websocket_client.py");
    let run =
        tokio::process::Command::new("/usr/bin/python3").arg(client).args([&url, &token, FOUNDING]).output();
    let output = timeout(WAIT, run).await.expect("it ends").unwrap();
    assert!(output.status.success(), "{output:?}\n{}", setting.supervisor.log());
    let events: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(text_of(&events), "From afar.", "{events:#?}");
    setting.supervisor.stop().await;
}
