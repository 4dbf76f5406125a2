//! Many clients of one gateway at once. `TALON_TEST_CROWD` says how many (`make long`: 1,000); a usual run is short. Figures are printed;
//! of times nothing is asserted.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use talon_proto::host::CreateTokenRequest;
use talon_tests::gateway_client::{Setting, Socket, of_type, says, start_all, text_of};
use talon_tests::provider::{Gate, Provider, ScriptedReply};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Only a limit for hangs: a thousand turns of an unoptimized build share the machine with whatever else runs.
pub(super) const LONG_WAIT: Duration = Duration::from_secs(600);
/// How much of the crowd begins something at the same moment.
const AT_ONCE: usize = 64;

/// How many clients there are.
pub(super) fn crowd(usually: usize) -> usize {
    std::env::var("TALON_TEST_CROWD")
        .map_or(usually, |count| count.parse().expect("TALON_TEST_CROWD is a number"))
}

/// Tokens of as many senders.
pub(super) async fn tokens(setting: &Setting, count: usize) -> Vec<String> {
    let client = &setting.supervisor.client;
    let make = |number: usize| {
        let (name, scopes) = (format!("sender {number}"), vec!["chat".to_owned()]);
        let request = CreateTokenRequest { name, scopes, ..CreateTokenRequest::default() };
        let mut client = client.clone();
        async move { client.raw().create_token(request).await.expect("a token").into_inner().token }
    };
    stream::iter(0..count).map(make).buffered(AT_ONCE).collect().await
}

/// What a process has resident now.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells it");
    line.trim().trim_end_matches(" kB").trim().parse().expect("a number")
}

/// The processes whose memory is looked at.
#[derive(Debug, Clone, Copy)]
struct Processes {
    gateway: u32,
    agent: u32,
}

impl Processes {
    async fn of(setting: &Setting) -> Self {
        let supervisor = &setting.supervisor;
        Self { gateway: supervisor.gateway_status().await.pid, agent: supervisor.agent_status().await.pid }
    }

    /// Of the gateway and of the agent, in KiB.
    fn resident(self) -> (u64, u64) {
        (resident_kib(self.gateway), resident_kib(self.agent))
    }
}

/// The next event of a connection that has to stay open.
async fn next(setting: &Setting, socket: &mut Socket) -> Value {
    let event = socket.next_within(LONG_WAIT).await;
    event.unwrap_or_else(|| {
        let log = setting.supervisor.log();
        let unusual: Vec<&str> = log.lines().filter(|line| !line.contains(r#""level":"INFO""#)).collect();
        panic!("it ended: {unusual:#?}")
    })
}

/// How much more it is now for each of so many, in KiB.
fn for_each(now: u64, before: u64, count: usize) -> u64 {
    now.saturating_sub(before) / count as u64
}

const PIECES: usize = 20;

fn piece(number: usize, place: usize) -> String {
    format!("piece {place} of answer {number}, and some more words so that it has the usual length. ")
}

/// The number at the end of what was asked.
fn asked_number(question: &Value) -> usize {
    let last = question["messages"].as_array().and_then(|messages| messages.last());
    let text = last.and_then(|message| message["content"].as_str()).unwrap_or_default();
    text.split_whitespace().last().and_then(|word| word.parse().ok()).expect("a number was asked for")
}

/// A model that begins each answer at once, and goes on with it once the gate is open.
async fn answers_in_pieces(gate: &Gate) -> Provider {
    let held = gate.clone();
    Provider::responding(move |question| {
        let number = asked_number(question);
        ScriptedReply::Pieces(held.clone(), (0..PIECES).map(|place| piece(number, place)).collect())
    })
    .await
}

fn whole_answer(number: usize) -> String {
    (0..PIECES).map(|place| piece(number, place)).collect()
}

// Promises: GW-138
#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_many_senders_stream_at_once_and_nothing_is_lost() {
    let count = crowd(150);
    let gate = Gate::closed();
    let provider = answers_in_pieces(&gate).await;
    // One connection for each, all from this machine's address, which is no browser's rate.
    let setting = start_all(provider, "", "limits: { requests_per_minute_per_address: 100000 }").await;
    let (gateway, tokens) = (&setting, tokens(&setting, count).await);
    let processes = Processes::of(gateway).await;
    let before = processes.resident();
    let sockets: Vec<Socket> =
        stream::iter(&tokens).map(|token| gateway.socket(token)).buffered(AT_ONCE).collect().await;
    let connected = processes.resident();
    // All ask at once, and each has the beginning of its answer before anybody gets the rest.
    let (begun, streaming) = (AtomicUsize::new(0), OnceLock::new());
    let (begun, streaming, gate) = (&begun, &streaming, &gate);
    let answers = sockets.into_iter().enumerate().map(|(number, mut socket)| async move {
        socket.say("m", "channel.message", json!({"text": format!("Tell me {number}")})).await;
        let mut events = Vec::new();
        let mut has_begun = false;
        loop {
            let event = next(gateway, &mut socket).await;
            let is_end = event["type"] == "agent.response.end";
            if event["type"] == "agent.response" && !std::mem::replace(&mut has_begun, true) {
                let others = begun.fetch_add(1, Ordering::Relaxed);
                if others + 1 == count {
                    streaming.get_or_init(|| (processes.resident(), Instant::now()));
                    gate.open();
                }
            }
            events.push(event);
            if is_end {
                return events;
            }
        }
    });
    let whole = join_all(answers).await;
    assert_eq!(setting.provider.questions().len(), count, "each was asked once");
    let (streaming, began) = streaming.get().expect("all have begun");
    let took = began.elapsed();
    for (number, events) in whole.iter().enumerate() {
        assert_eq!(text_of(events).trim_end(), whole_answer(number).trim_end(), "{events:#?}");
        assert_eq!(of_type(events, "channel.message").count(), 1);
        assert_eq!(of_type(events, "error").count(), 0);
    }
    println!(
        "{count} sessions stream at once (unoptimized build): for each, the gateway has {} KiB connected and {} KiB streaming, the agent {} KiB \
         connected and {} KiB streaming; the last {} pieces of all, and their ends, took {took:.1?}",
        for_each(connected.0, before.0, count),
        for_each(streaming.0, before.0, count),
        for_each(connected.1, before.1, count),
        for_each(streaming.1, before.1, count),
        PIECES - 1
    );
    setting.supervisor.stop().await;
}

// Promises: GW-138
#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_one_sender_stream_at_once_where_that_is_configured() {
    let count = crowd(20);
    let gate = Gate::closed();
    let provider = answers_in_pieces(&gate).await;
    let agent = "  limits: { turns_per_sender: 1024, requests_per_user: 4096 }";
    let setting = start_all(provider, agent, "limits: { requests_per_minute: 5000 }").await;
    let token = setting.token(&["--scope", "chat"]).await;
    let mut sessions = Vec::new();
    for _ in 0..count {
        let (status, made) = setting.json(&token, "POST", "/api/sessions", &json!({})).await;
        assert_eq!(status, 201, "{made}");
        sessions.push(made["id"].as_str().expect("an id").to_owned());
    }
    let mut socket = setting.socket(&token).await;
    for (number, session) in sessions.iter().enumerate() {
        let message = json!({"text": format!("Tell me {number}"), "sessionId": session});
        socket.say(&format!("m{number}"), "channel.message", message).await;
    }
    // All have the beginning of their answers before any gets the rest.
    let mut events = BTreeMap::<String, Vec<Value>>::new();
    let (mut begun, mut ended) = (BTreeSet::new(), 0);
    while ended < count {
        let event = next(&setting, &mut socket).await;
        assert_ne!(event["type"], "error", "{event:#}");
        let Some(session) = event["payload"]["sessionId"].as_str().map(str::to_owned) else { continue };
        if event["type"] == "agent.response" && begun.insert(session.clone()) && begun.len() == count {
            gate.open();
        }
        ended += usize::from(event["type"] == "agent.response.end");
        events.entry(session).or_default().push(event);
    }
    for (number, session) in sessions.iter().enumerate() {
        assert_eq!(text_of(&events[session]).trim_end(), whole_answer(number).trim_end(), "{session}");
    }
    println!("{count} sessions of one sender stream at once over one connection");
    setting.supervisor.stop().await;
}

/// A piece of a long text.
const LONG_PIECE: &str = "It goes on and on, and nobody who reads slowly holds up somebody else. ";
/// 280 KB, which are a megabyte of events: more than the buffers on the way to a client that does not read.
const LONG_PIECES: usize = 4_000;

fn long_text() -> String {
    LONG_PIECE.repeat(LONG_PIECES)
}

/// A connection that takes next to nothing unless somebody reads.
async fn narrow(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("it is smaller");
    socket.connect(address).await.expect("it listens")
}

async fn resume(socket: &mut Socket, session: &Value, after: &Value) {
    socket.say("r", "resume", json!({"cursors": [{"sessionId": session, "after": after}]})).await;
}

pub(super) async fn until_end(socket: &mut Socket) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let event = socket.next_within(LONG_WAIT).await.unwrap_or_else(|| panic!("it ended: {events:#?}"));
        let is_end = event["type"] == "agent.response.end";
        events.push(event);
        if is_end {
            return events;
        }
    }
}

// Promises: GW-142
#[tokio::test(flavor = "multi_thread")]
async fn readers_that_stall_hold_little_and_go_on_from_their_cursors() {
    let count = crowd(20);
    let provider = Provider::responding(|question| {
        if !question.to_string().contains("Tell me all") {
            return says("Hi.");
        }
        let open = Gate::closed();
        open.open();
        ScriptedReply::Pieces(open, vec![LONG_PIECE.to_owned(); LONG_PIECES])
    })
    .await;
    // All of them are windows of one caller.
    let agent = "  limits: { requests_per_user: 10000, follows_per_sender: 5000, follows: 5000 }";
    let unread = if count > 100 { "60s" } else { "3s" };
    let limits = format!(
        "limits: {{ requests_per_minute: 100000, requests_per_minute_per_address: 100000, websockets_per_caller: 4096, unread_timeout: {unread} }}"
    );
    let setting = start_all(provider, agent, &limits).await;
    let token = setting.token(&["--scope", "chat,operate"]).await;
    let mut reader = setting.socket(&token).await;
    reader.say("m1", "channel.message", json!({"text": "Hello"})).await;
    let first = until_end(&mut reader).await.pop().expect("an end");
    let (session, cursor) = (&first["payload"]["sessionId"], &first["sequence"]);
    let connect = |()| async { setting.socket_over(narrow(setting.address).await, &token).await };
    let mut stalled: Vec<Socket> =
        stream::iter(std::iter::repeat_n((), count)).map(connect).buffered(AT_ONCE).collect().await;
    let processes = Processes::of(&setting).await;
    let before = processes.resident();
    reader.say("m2", "channel.message", json!({"text": "Tell me all"})).await;
    let events = until_end(&mut reader).await;
    assert_eq!(text_of(&events).trim_end(), long_text().trim_end(), "who reads is held up by nobody");
    let held = processes.resident();
    let each = for_each(held.0, before.0, count);
    println!(
        "{count} readers that stall (unoptimized build): for each, the gateway has {each} KiB more than for one that reads, the agent {} KiB",
        for_each(held.1, before.1, count)
    );
    // They are cut off: at most the one is left that reads.
    let is_cut = async || {
        let metrics = setting.send(&token, "GET", "/metrics", "", &Value::Null).await;
        let open = metrics.body.lines().find_map(|line| line.strip_prefix("talon_gateway_websockets "));
        open.and_then(|open| open.parse::<usize>().ok()).is_some_and(|open| open <= 1)
    };
    let all_are_cut = async {
        while !is_cut().await {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    timeout(LONG_WAIT, all_are_cut).await.expect("they are cut off");
    // What was sent before that is there still, and the rest comes by the cursor.
    for mut socket in stalled.drain(..3) {
        while socket.next_within(LONG_WAIT).await.is_some() {}
        let mut again = setting.socket(&token).await;
        resume(&mut again, session, cursor).await;
        let events = until_end(&mut again).await;
        assert_eq!(text_of(&events).trim_end(), long_text().trim_end(), "the rest comes by the cursor");
    }
    // A part of the process's own growth is in it as well, which is divided by few in a short run.
    if count >= 500 {
        assert!(each <= 64, "{each} KiB for each that stalls");
    }
    setting.supervisor.stop().await;
}
