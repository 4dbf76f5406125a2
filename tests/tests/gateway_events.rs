//! Events of the gateway over restarts of both sides: each durable event once, and in its order.

use std::collections::BTreeSet;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use talon_tests::kills;
use talon_tests::provider::{Gate, Provider, ScriptedReply};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::time::timeout;

use talon_tests::gateway_client::{Setting, Socket, WAIT, of_type, says, start, start_before, text_of};

#[path = "../gateway/crowd.rs"]
mod crowd;
#[path = "../gateway/floods.rs"]
mod floods;

/// How often gateway and agent are killed, in turns.
const KILLS: usize = 10;

/// A model that calls a tool, and then says what came of it.
fn calls_and_tells(question: &Value) -> ScriptedReply {
    let last = question["messages"].as_array().and_then(|messages| messages.last());
    if last.is_some_and(|message| message["role"] == "tool") {
        says("It said hello.")
    } else {
        ScriptedReply::ToolCalls(vec![("liar__echo".to_owned(), json!({"text": "hello"}))])
    }
}

/// What the model says of a round in the end, in two halves: nothing of another round's.
fn told(round: &str) -> [String; 2] {
    [format!("It said hello to {round}. ").repeat(100), format!("And {round} said hello. ").repeat(100)]
}

/// The same model, which says in the end what it was asked for: the second half once the gate is open.
fn calls_and_tells_what_was_asked(gate: &Gate, question: &Value) -> ScriptedReply {
    match calls_and_tells(question) {
        ScriptedReply::Text(_) => {
            let messages = question["messages"].as_array().expect("messages");
            let asked = messages.iter().rev().find(|message| message["role"] == "user").expect("a question");
            let text = asked["content"].to_string();
            let round =
                text.split("round ").nth(1).expect("a round").split(|c: char| !c.is_ascii_digit()).next();
            let [first, second] = told(round.expect("a number"));
            ScriptedReply::Paused(gate.clone(), first, second)
        }
        calls => calls,
    }
}

fn is_end(event: &Value) -> bool {
    event["type"] == "agent.response.end" || (event["type"] == "error" && event["sequence"].is_u64())
}

/// Durable events of one session, as a client has seen them.
#[derive(Debug, Default)]
struct Seen(Vec<Value>);

impl Seen {
    fn take(&mut self, event: Value) {
        if event["sequence"].is_u64() {
            self.0.push(event);
        }
    }

    /// What to go on from.
    fn cursor(&self) -> u64 {
        self.0.last().map_or(0, |event| event["sequence"].as_u64().expect("a sequence"))
    }

    fn ends(&self) -> usize {
        self.0.iter().filter(|event| is_end(event)).count()
    }
}

/// What these tests do to a setting.
trait Kills {
    async fn new_session(&self, token: &str) -> String;
    async fn kill_gateway(&self);
    /// Kills the agent, and returns which process it was.
    async fn kill_agent(&self) -> u32;
    async fn replace_agent(&self);
}

impl Kills for Setting {
    async fn new_session(&self, token: &str) -> String {
        let (status, made) = self.json(token, "POST", "/api/sessions", &json!({})).await;
        assert_eq!(status, 201, "{made}");
        made["id"].as_str().expect("an id").to_owned()
    }

    async fn kill_gateway(&self) {
        let before = self.supervisor.gateway_status().await;
        kill(Pid::from_raw(before.pid.cast_signed()), Signal::SIGKILL).expect("it runs");
        let is_next =
            |now: &talon_proto::host::GatewayStatus| now.state == "serving" && now.pid != before.pid;
        self.supervisor.wait_gateway("another gateway serves", is_next).await;
    }

    async fn kill_agent(&self) -> u32 {
        let before = self.supervisor.agent_status().await.pid;
        kill(Pid::from_raw(before.cast_signed()), Signal::SIGKILL).expect("it runs");
        before
    }

    async fn replace_agent(&self) {
        let before = self.kill_agent().await;
        let is_next = |now: &talon_proto::host::AgentStatus| now.state == "serving" && now.pid != before;
        self.supervisor.wait_agent("another agent serves", is_next).await;
    }
}

async fn resume(socket: &mut Socket, session: &str, after: u64) {
    socket.say("r", "resume", json!({"cursors": [{"sessionId": session, "after": after}]})).await;
}

async fn say_in(socket: &mut Socket, session: &str, round: usize) {
    let message = json!({"text": format!("Ask it: round {round}"), "sessionId": session});
    socket.say(&format!("m{round}"), "channel.message", message).await;
}

// Promises: GW-120
#[tokio::test(flavor = "multi_thread")]
async fn killed_again_and_again_each_durable_event_comes_once() {
    let gate = Gate::closed();
    let model = gate.clone();
    let respond = move |question: &Value| calls_and_tells_what_was_asked(&model, question);
    let setting = start_before(Provider::responding(respond).await, "").await;
    let token = setting.token(&["--scope", "chat"]).await;
    let session = setting.new_session(&token).await;
    let mut seen = Seen::default();
    let mut socket = setting.socket(&token).await;
    for round in 0..kills(KILLS) {
        let id = format!("m{round}");
        // Every third time in the middle of what the model says, else somewhere else in the turn, one of both is killed.
        let in_text = round % 3 == 2;
        if in_text {
            gate.close();
        } else {
            gate.open();
        }
        say_in(&mut socket, &session, round).await;
        let before = seen.0.len();
        let mut is_said = false;
        while if in_text { !is_said } else { seen.0.len() - before < round % 5 } {
            let event = socket.next().await.expect("it is open");
            is_said = event["type"] == "agent.response" && event["payload"]["whole"] != true;
            seen.take(event);
        }
        if round % 2 == 0 {
            setting.kill_gateway().await;
            while let Some(event) = socket.next().await {
                seen.take(event);
            }
            socket = setting.socket(&token).await;
            resume(&mut socket, &session, seen.cursor()).await;
        } else {
            setting.kill_agent().await;
        }
        gate.open();
        // The same message again is the same turn, however far it was.
        say_in(&mut socket, &session, round).await;
        while seen.ends() <= round {
            let event = socket.next().await.expect("it stays open");
            if event["type"] == "error" && event["payload"]["replyTo"] == id.as_str() {
                assert_eq!(
                    event["payload"]["reason"],
                    "unavailable",
                    "{event:#}\n{}",
                    setting.supervisor.log()
                );
                say_in(&mut socket, &session, round).await;
            }
            seen.take(event);
        }
    }
    let mut whole = Seen::default();
    let mut fresh = setting.socket(&token).await;
    resume(&mut fresh, &session, 0).await;
    while whole.cursor() < seen.cursor() {
        whole.take(fresh.next().await.expect("it is open"));
    }
    assert_eq!(seen.0, whole.0);
    let ids: BTreeSet<_> = seen.0.iter().map(|event| event["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), seen.0.len(), "an event has an id of its own");
    assert_eq!(of_type(&seen.0, "session.created").count(), 1);
    assert_eq!(of_type(&seen.0, "channel.message").count(), kills(KILLS), "{:#?}", seen.0);
    assert_eq!(of_type(&seen.0, "agent.response.end").count(), kills(KILLS), "no turn failed");
    // Each final text is whole, and in its place.
    let wholes = of_type(&seen.0, "agent.response").filter(|event| event["payload"]["whole"] == true);
    let texts = wholes.filter_map(|event| event["payload"]["content"].as_str());
    let finals: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    assert_eq!(finals.len(), kills(KILLS));
    for (round, text) in finals.into_iter().enumerate() {
        let whole = told(&round.to_string()).concat();
        assert!(text.trim_end() == whole.trim_end(), "round {round}: {} bytes: {text:.200}", text.len());
    }
    setting.supervisor.stop().await;
}

/// Server-sent events of one answer.
struct ServerSent(Lines<BufReader<TcpStream>>);

impl ServerSent {
    async fn open(setting: &Setting, token: &str, path: &str, after: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(setting.address).await.expect("it listens");
        let address = setting.address;
        let last = after.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{last}\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is open");
        let mut lines = BufReader::new(stream).lines();
        let status = lines.next_line().await.expect("it is open").expect("an answer");
        assert!(status.contains(" 200 "), "{status}\n{}", setting.supervisor.log());
        Self(lines)
    }

    /// The next event, with its id.
    async fn next(&mut self) -> (String, Value) {
        let read = timeout(WAIT, async {
            let (mut id, mut data) = (String::new(), None);
            loop {
                let line = self.0.next_line().await.expect("it is open").expect("it is open");
                if let Some(text) = line.strip_prefix("id: ") {
                    text.clone_into(&mut id);
                } else if let Some(text) = line.strip_prefix("data: ") {
                    data = Some(serde_json::from_str(text).expect("JSON"));
                } else if line.is_empty()
                    && let Some(data) = data.take()
                {
                    return (id, data);
                }
            }
        });
        read.await.expect("something comes")
    }

    /// Durable events up to the end of a turn, with their ids.
    async fn turn(&mut self) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        loop {
            let (id, event) = self.next().await;
            assert_eq!(id.is_empty(), event["sequence"].is_null(), "what is durable has an id: {event}");
            let is_last = is_end(&event);
            if !id.is_empty() {
                events.push((id, event));
            }
            if is_last {
                return events;
            }
        }
    }
}

// Promises: GW-121
#[tokio::test(flavor = "multi_thread")]
async fn server_sent_events_go_on_after_the_last_one_seen_over_restarts() {
    let setting = start_before(Provider::responding(calls_and_tells).await, "").await;
    let token = setting.token(&["--scope", "chat"]).await;
    let session = setting.new_session(&token).await;
    let (one, all) = (format!("/api/sessions/{session}/events"), "/api/events");
    let mut of_one = ServerSent::open(&setting, &token, &one, None).await;
    let send = async || {
        let path = format!("/api/sessions/{session}/send");
        let (status, answer) = setting.json(&token, "POST", &path, &json!({"text": "Ask it"})).await;
        assert_eq!((status, &answer["content"]), (200, &json!("It said hello.")), "{answer}");
    };
    send().await;
    let first = of_one.turn().await;
    assert!(first.len() >= 5, "{first:#?}");
    drop(of_one);
    setting.kill_gateway().await;
    send().await;
    // From the middle of the first turn: the rest of it, and the second.
    for path in [one.as_str(), all] {
        let mut rest = ServerSent::open(&setting, &token, path, Some(&first[1].0)).await;
        assert_eq!(rest.turn().await, first[2..], "{path}");
        let second = rest.turn().await;
        assert_eq!(second[0].1["type"], "channel.message", "{path}: {second:#?}");
        // It stays open while the agent starts again, and goes on after that.
        setting.replace_agent().await;
        send().await;
        let third = rest.turn().await;
        assert_eq!(third[0].1["type"], "channel.message", "{path}: {third:#?}");
        if path != all {
            // `/api/events` is asked from the same place below, where this turn belongs to what is new.
            let mut again = ServerSent::open(&setting, &token, path, Some(&second[second.len() - 1].0)).await;
            assert_eq!(again.turn().await, third, "{path}");
        }
    }
    let other = setting.token(&["--scope", "chat"]).await;
    let mut theirs = ServerSent::open(&setting, &other, &one, None).await;
    assert_eq!(theirs.next().await.1["type"], "session.deleted", "it is as one that is not there");
    let (status, problem) = {
        let headers = "Last-Event-ID: nonsense\r\n";
        let answer = setting.send(&token, "GET", all, headers, &Value::Null).await;
        (answer.status, answer.body)
    };
    assert_eq!(status, 400, "{problem}");
    setting.supervisor.stop().await;
}

/// A model that says a lot when it is asked for it. More than any buffer on the way holds.
fn tells_at_length(question: &Value) -> ScriptedReply {
    let last = question["messages"].as_array().and_then(|messages| messages.last());
    let asked = last.map(|message| message["content"].to_string()).unwrap_or_default();
    says(&if asked.contains("Tell me all") { "It goes on. ".repeat(LONG) } else { "Hi.".to_owned() })
}

/// 480 KB.
const LONG: usize = 40_000;

// Promises: GW-122
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_hold_up_nobody() {
    const TURNS: usize = 8;
    let setting = start_before(Provider::responding(tells_at_length).await, "").await;
    let token = setting.token(&["--scope", "chat"]).await;
    let mut stalled = Vec::new();
    for place in 0..4 {
        let mut socket = setting.socket(&token).await;
        // It follows, and reads nothing any more.
        socket.say(&format!("s{place}"), "channel.message", json!({"text": "Hello"})).await;
        socket.until("agent.response.end").await;
        stalled.push(socket);
    }
    let mut socket = setting.socket(&token).await;
    for turn in 0..TURNS {
        let session = setting.new_session(&token).await;
        let message = json!({"text": "Tell me all", "sessionId": session});
        socket.say(&format!("m{turn}"), "channel.message", message).await;
        let events = socket.until("agent.response.end").await;
        assert_eq!(text_of(&events).trim_end().len(), LONG * "It goes on. ".len() - 1, "turn {turn}");
    }
    assert_eq!(setting.provider.questions().len(), stalled.len() + TURNS);
    setting.supervisor.stop().await;
}

// Promises: GW-123
#[tokio::test(flavor = "multi_thread")]
async fn what_began_while_a_client_was_away_is_told_from_a_time_on() {
    let setting = start(vec![says("One."), says("Two.")], "").await;
    let token = setting.token(&["--scope", "chat"]).await;
    let mut socket = setting.socket(&token).await;
    socket.say("m1", "channel.message", json!({"text": "1?"})).await;
    let end = socket.one("agent.response.end").await;
    let (main, after, since) = (&end["payload"]["sessionId"], &end["sequence"], &end["timestamp"]);
    drop(socket);
    let (_, other) = setting.json(&token, "POST", "/api/sessions/new/send", &json!({"text": "2?"})).await;
    let mut socket = setting.socket(&token).await;
    let resume = json!({"cursors": [{"sessionId": main, "after": after}], "since": since});
    socket.say("r", "resume", resume).await;
    let events = socket.until("agent.response.end").await;
    assert_eq!(text_of(&events), "Two.", "{events:#?}");
    let mut recorded = events.iter().filter(|event| event["sequence"].is_u64());
    assert!(recorded.all(|event| event["payload"]["sessionId"] == other["sessionId"]), "{events:#?}");
    assert_eq!(of_type(&events, "session.created").count(), 1, "{events:#?}");
    setting.supervisor.stop().await;
}

// Promises: GW-260
#[tokio::test(flavor = "multi_thread")]
async fn runs_of_jobs_are_told_to_who_operates() {
    let job = "extensions:\n  schedule:\n    - { id: report, every: 24h, ask: Report }";
    let setting = start_before(Provider::start([]).await, job).await;
    let token = setting.token(&["--scope", "operate"]).await;
    let mut socket = setting.socket(&token).await;
    let mut told = std::pin::pin!(async {
        let started = socket.one("task.started").await;
        (started, socket.one("task.completed").await)
    });
    // What runs before the gateway follows the agent is told to nobody, so it runs again.
    let (body, mut questions) = (json!({}), 0);
    let (started, completed) = loop {
        let run = setting.json(&token, "POST", "/api/schedule/report/run", &body);
        let (status, answer) = tokio::select! {
            told = &mut told => break told,
            answered = run => answered,
        };
        assert!(status < 500, "{status} {answer}\n{}", setting.supervisor.log());
        if status < 300 {
            questions += 1;
            tokio::select! {
                told = &mut told => break told,
                () = setting.provider.wait_questions(questions) => {}
            }
        }
    };
    assert_eq!((&started["payload"]["job"], &started["payload"]["attempt"]), (&json!("report"), &json!(1)));
    assert_eq!(started["payload"]["run"], completed["payload"]["run"], "{started} {completed}");
    setting.supervisor.stop().await;
}
