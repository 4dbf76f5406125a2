//! The gateway's API over a real agent: sessions and turns over HTTP, WebSocket and OpenAI's dialect.

use serde_json::{Value, json};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::repository;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use talon_tests::gateway_client::{WAIT, of_type, says, start, start_all, text_of};

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

// Promises: GW-235
#[tokio::test(flavor = "multi_thread")]
async fn a_group_over_websocket_has_one_session_and_the_model_sees_who_speaks() {
    let provider = Provider::start([says("For Ada."), says("For Bob."), says("For Ada alone.")]).await;
    let setting = start_all(provider, "", "routing: { names: [talon] }").await;
    let token = setting.token(&["--scope", "channel", "--channel", "telegram"]).await;
    let mut socket = setting.socket(&token).await;
    let said = |sender: &str, name: &str, text: &str| {
        json!({"channel": "telegram", "senderId": sender, "senderName": name, "text": text, "media": null,
            "isGroup": true, "groupId": "g7"})
    };
    // What is between people gets no turn, and no model hears of it.
    socket.say("m1", "channel.message", said("42", "Ada", "between us")).await;
    let refused = socket.one("error").await["payload"].clone();
    assert_eq!(
        (&refused["replyTo"], &refused["reason"]),
        (&json!("m1"), &json!("unprocessable")),
        "{refused}"
    );
    // By a name of `gateway.routing.names`, and by the channel's own mark.
    socket.say("m2", "channel.message", said("42", "Ada", "@Talon, what is new?")).await;
    let first = socket.until("agent.response.end").await;
    assert_eq!(text_of(&first), "For Ada.", "{first:#?}");
    let created = of_type(&first, "session.created").next().expect("the session begins");
    assert_eq!(created["payload"]["senderId"], "gw:telegram/group:g7");
    let mut marked = said("43", "Bob", "and for me?");
    marked["mentioned"] = json!(true);
    socket.say("m3", "channel.message", marked).await;
    let second = socket.until("agent.response.end").await;
    assert_eq!(text_of(&second), "For Bob.", "{second:#?}");
    let session = |events: &[Value]| events.last().expect("an end")["payload"]["sessionId"].clone();
    assert_eq!(session(&first), session(&second));
    // A direct message of a member is in a session of its own.
    let direct = json!({"channel": "telegram", "senderId": "42", "senderName": "Ada", "text": "and alone?"});
    socket.say("m4", "channel.message", direct).await;
    let third = socket.until("agent.response.end").await;
    assert_ne!(session(&first), session(&third));
    let bodies = setting.provider.bodies();
    assert!(bodies.iter().all(|body| !body.contains("between us")), "{bodies:#?}");
    assert!(bodies[0].contains("[From Ada]") && !bodies[0].contains("[From Bob]"), "{}", bodies[0]);
    assert!(bodies[1].contains("[From Ada]") && bodies[1].contains("[From Bob]"), "{}", bodies[1]);
    assert!(!bodies[2].contains("[From "), "nobody has to be told apart: {}", bodies[2]);
    // A token that speaks for nobody else speaks in no group.
    let own = setting.token(&["--scope", "chat"]).await;
    let mut stranger = setting.socket(&own).await;
    let mut claimed = said("42", "Ada", "@talon hi");
    claimed.as_object_mut().expect("an object").remove("channel");
    stranger.say("m5", "channel.message", claimed).await;
    assert_eq!(stranger.one("error").await["payload"]["reason"], "forbidden");
    setting.supervisor.stop().await;
}

// Promises: GW-111, GW-256
#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_the_answer_of_a_person_and_nobody_else() {
    let call = || ScriptedReply::ToolCalls(vec![("liar__echo".to_owned(), json!({"text": "hello"}))]);
    let question = json!({"question": "Which one?", "choices": ["red", "blue"]});
    let asks = ScriptedReply::ToolCalls(vec![("talon__ask_user".to_owned(), question)]);
    let script = vec![call(), says("It said hello."), call(), says("I may not."), asks, says("Blue it is.")];
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

    // A question of the model's is answered where it is asked.
    socket.say("m3", "channel.message", json!({"text": "Paint it"})).await;
    let asked = socket.one("clarification.request").await["payload"].clone();
    assert_eq!(
        (&asked["question"], &asked["options"]),
        (&json!("Which one?"), &json!(["red", "blue"])),
        "{asked}"
    );
    socket.say("c1", "clarification.answer", json!({"id": asked["id"], "answer": "blue"})).await;
    let rest = socket.until("agent.response.end").await;
    assert_eq!(text_of(&rest), "Blue it is.", "{rest:#?}");
    let decided = of_type(&rest, "clarification.decided").next().expect("it waits no more");
    assert_eq!(decided["payload"]["state"], "answered", "{decided}");
    let asked = setting.provider.questions().last().expect("a question").to_string();
    assert!(asked.contains("blue"), "{asked}");
    setting.supervisor.stop().await;
}

// Promises: GW-112, GW-255
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
    let events = socket.until("agent.response.end").await;
    assert_eq!(text_of(&events), "Hi.");
    let session = events.last().expect("events")["payload"]["sessionId"].clone();
    let update = |change: Value| json!({"sessionId": session, "change": change});
    socket.say("u1", "session.update", update(json!({"thinkingLevel": "endless"}))).await;
    assert_eq!(socket.one("error").await["payload"]["replyTo"], "u1");
    let change = json!({"model": "local/test", "thinkingLevel": "low", "verboseLevel": true});
    socket.say("u2", "session.update", update(change.clone())).await;
    assert_eq!(socket.one("session.updated").await["payload"]["sessionId"], session);
    let path = format!("/api/sessions/{}", session.as_str().expect("an id"));
    let (_, read) = setting.json(&token, "GET", &path, &Value::Null).await;
    assert_eq!((&read["config"], &read["messages"][0]["channel"]), (&change, &json!("api")), "{read}");
    setting.supervisor.stop().await;
}

// Promises: GW-113, GW-255, GW-274
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
    assert!(read["metadata"]["createdAt"].is_u64(), "{read}");
    let shown = read["messages"].as_array().expect("messages").len();
    assert_eq!(read["metadata"]["messageCount"], json!(shown), "what is shown is counted: {read}");

    // As founded: settings change, and the session goes.
    let path = format!("/api/sessions/{session}");
    let (status, changed) = setting
        .json(
            &token,
            "PATCH",
            &path,
            &json!({"thinkingLevel": "low", "verboseLevel": true, "labels": {"a": "b"}}),
        )
        .await;
    assert_eq!(
        (status, &changed["config"]),
        (200, &json!({"thinkingLevel": "low", "verboseLevel": true})),
        "{changed}"
    );
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

// Promises: GW-115, GW-257
#[tokio::test(flavor = "multi_thread")]
async fn what_stands_behind_it_is_shown_to_whom_may_see_it() {
    let setting = start(vec![], "").await;
    let (chat, operate) =
        (setting.token(&["--scope", "chat"]).await, setting.token(&["--scope", "operate"]).await);
    let (status, document) = setting.json(&chat, "GET", "/api/openapi.json", &Value::Null).await;
    assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")), "{document}");
    let mut gets = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        // Streams of events have no end (gateway_events.rs), and numbers are no JSON.
        let is_json = operations["get"]["responses"]["200"]["content"].get("application/json").is_some();
        if !is_json || path.contains('{') {
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
    // A log goes on while somebody reads it.
    let mut live = TcpStream::connect(setting.address).await.expect("it listens");
    let request = format!(
        "GET /api/plugins/liar/logs?tail=1 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {operate}\r\nAccept: text/event-stream\r\n\r\n",
        setting.address
    );
    live.write_all(request.as_bytes()).await.expect("it is open");
    let mut lines = BufReader::new(live).lines();
    for said in ["once", "again"] {
        let call = json!({"args": {"text": said}});
        setting.json(&operate, "POST", "/api/plugins/liar/actions/log", &call).await;
        let told = timeout(WAIT, async {
            loop {
                let line = lines.next_line().await.expect("it is open").expect("it is open");
                if line.starts_with("data: ") && line.contains(said) {
                    return;
                }
            }
        });
        told.await.unwrap_or_else(|_| panic!("{said} is not told\n{}", setting.supervisor.log()));
    }
    for (operation, desired) in
        [("stop", "down"), ("start", "up"), ("restart", "up"), ("reload", "up"), ("stop", "down")]
    {
        let path = format!("/api/plugins/liar/{operation}");
        let (status, plugin) = setting.json(&operate, "POST", &path, &Value::Null).await;
        assert_eq!((status, &plugin["desired"]), (200, &json!(desired)), "{operation}: {plugin}");
    }
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
    refused["n"] = json!(2);
    let (status, error) = setting.json(&token, "POST", "/v1/chat/completions", &refused).await;
    assert_eq!((status, &error["error"]["param"]), (400, &json!("n")), "{error}");
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
