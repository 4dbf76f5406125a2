//! Floods of one sender, and what others notice of them. `TALON_TEST_CROWD` says how large they are. Figures are printed; of times nothing is
//! asserted.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use talon_tests::gateway_client::{Setting, says, start_all, text_of};
use talon_tests::provider::Provider;
use tokio::net::TcpSocket;

use super::crowd::{LONG_WAIT, crowd, tokens, until_end};

/// Turns of others that are measured, at most. 200: two of them are slower than the 99th part.
const MAX_TURNS: usize = 200;

/// Times of requests, in their order.
#[derive(Debug)]
struct Latencies(Vec<Duration>);

impl Latencies {
    /// In per cent.
    fn percentile(&self, percent: usize) -> Duration {
        self.0[(self.0.len() - 1) * percent / 100]
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p50 {:.1?}, p99 {:.1?}", self.percentile(50), self.percentile(99))
    }
}

/// What turns of others take: one after the other, each of another sender. Every one is answered.
async fn turns_of_others(setting: &Setting, tokens: &[String], times: usize) -> Latencies {
    let mut took = Vec::new();
    for token in tokens.iter().cycle().take(times) {
        let began = Instant::now();
        let (status, answer) =
            setting.json(token, "POST", "/api/sessions/new/send", &json!({"text": "Hello"})).await;
        took.push(began.elapsed());
        assert_eq!(
            (status, &answer["content"]),
            (200, &json!("Hi.")),
            "{answer}\n{}",
            setting.supervisor.log()
        );
    }
    took.sort_unstable();
    Latencies(took)
}

/// Sends messages over WebSocket without end.
async fn flood_messages(setting: &Setting, token: &str) -> Infallible {
    let mut socket = setting.socket(token).await;
    let mut number = 0_u64;
    loop {
        number += 1;
        socket.say(&format!("f{number}"), "channel.message", json!({"text": "Again"})).await;
        // Each message has one event at least, an error if nothing else.
        socket.next_within(LONG_WAIT).await.expect("it is open");
    }
}

/// Sends requests without end.
async fn flood_requests(setting: &Setting, token: &str) -> Infallible {
    loop {
        let path = "/api/sessions/new/send";
        let answer = setting.send(token, "POST", path, "", &json!({"text": "Again"})).await;
        assert!([200, 429].contains(&answer.status), "{answer:?}");
    }
}

async fn flood(setting: &Setting, token: &str) -> Infallible {
    let requests = join_all((0..8).map(|_| flood_requests(setting, token)));
    tokio::select! {
        never = flood_messages(setting, token) => never,
        never = requests => never[0],
    }
}

// Promises: GW-148
#[tokio::test(flavor = "multi_thread")]
async fn floods_of_one_sender_and_of_connections_leave_others_unharmed() {
    let (count, turns) = (crowd(50), crowd(8).min(MAX_TURNS));
    let provider = Provider::responding(|_| says("Hi.")).await;
    // The flood and the others come from one address here.
    let setting = start_all(provider, "", "limits: { requests_per_minute_per_address: 1000000 }").await;
    let others = tokens(&setting, 4).await;
    let flooder = setting.token(&["--scope", "chat"]).await;
    turns_of_others(&setting, &others, 4).await;
    let quiet = turns_of_others(&setting, &others, turns).await;
    let flooded = tokio::select! {
        flooded = turns_of_others(&setting, &others, turns) => flooded,
        never = flood(&setting, &flooder) => match never {},
    };
    let mut connections = Vec::new();
    for _ in 0..10 * count {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, 2], 0))).expect("an address of this machine");
        connections.push(socket.connect(setting.address).await.expect("it listens"));
    }
    let crowded = turns_of_others(&setting, &others, turns).await;
    println!(
        "turns of others (unoptimized build): {quiet} in quiet; {flooded} while one sender floods; {crowded} while another address opens {} connections",
        connections.len()
    );
    let status = setting.supervisor.gateway_status().await;
    assert!(status.connections.unwrap_or_default() <= 2048 + 64, "{status:?}");
    setting.supervisor.stop().await;
}

// Promises: GW-148
#[tokio::test(flavor = "multi_thread")]
async fn a_sender_with_thousands_of_sessions_leaves_others_unharmed() {
    let (count, turns) = (10 * crowd(10), crowd(6).min(MAX_TURNS));
    let provider = Provider::responding(|_| says("Hi.")).await;
    let limits = "limits: { requests_per_minute: 1000000, requests_per_minute_per_address: 1000000 }";
    let setting = start_all(provider, "", limits).await;
    let others = tokens(&setting, 4).await;
    let owner = setting.token(&["--scope", "chat"]).await;
    let quiet = turns_of_others(&setting, &others, turns).await;
    let make = |_: usize| async {
        let (status, made) = setting.json(&owner, "POST", "/api/sessions", &json!({})).await;
        assert_eq!(status, 201, "{made}");
    };
    stream::iter(0..count).map(make).buffer_unordered(8).collect::<Vec<()>>().await;
    // Theirs are paged, and who follows them all is told of them all.
    let (status, page) = setting.json(&owner, "GET", "/api/sessions", &Value::Null).await;
    assert_eq!(status, 200, "{page}");
    let mut socket = setting.socket(&owner).await;
    socket.say("m", "channel.message", json!({"text": "Hello"})).await;
    assert_eq!(text_of(&until_end(&mut socket).await), "Hi.");
    let many = turns_of_others(&setting, &others, turns).await;
    println!(
        "turns of others (unoptimized build): {quiet} before, {many} beside {count} sessions of one sender"
    );
    setting.supervisor.stop().await;
}
