//! What comes from the network and is none of a client's: each meets a limit or a typed error, and others are served.

use std::collections::BTreeSet;
use std::future::ready;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use talon_proto::host::GatewayStatus;
use talon_tests::Builder;
use talon_tests::http::Answer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::{bearer, gateway, get, problem, request, serving, token};

/// Writes bytes, and reads to the end of the connection.
async fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    // What is refused early is closed before all of it is written.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

// Promises: GW-253
#[tokio::test]
async fn a_request_that_hides_another_one_is_answered_once() {
    let supervisor = gateway("limits: { header_timeout: 2s }").start().await;
    let (address, _) = serving(&supervisor).await;
    let head = format!("POST /api/session HTTP/1.1\r\nHost: {address}\r\n");
    let hidden = format!("GET /api/health HTTP/1.1\r\nHost: {address}\r\n\r\n");
    // Read by its chunks: what follows them is somebody else's by its length, and is not read.
    for both in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
    ] {
        let answers = exchange(address, format!("{head}{both}\r\n0\r\n\r\n{hidden}").as_bytes()).await;
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{both}: {answers}");
        assert!(answers.contains("connection: close") && !answers.contains(r#""ok""#), "{both}: {answers}");
    }
    let long = "1".repeat(40);
    for wrong in [
        "Content-Length: 4\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "Content-Length: +4\r\n\r\n0\r\n\r\n",
        "Content-Length: -1\r\n\r\n",
        &format!("Content-Length: {long}\r\n\r\n"),
        "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "X: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "X: a\0b\r\n\r\n",
        "X\u{7f}: a\r\n\r\n",
    ] {
        let answers = exchange(address, format!("{head}{wrong}{hidden}").as_bytes()).await;
        assert!(answers.starts_with("HTTP/1.1 400 "), "{wrong:?}: {answers}");
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{wrong:?}: {answers}");
    }
    for odd in
        ["GET /api/health HTTP/2.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x03\x01\x02\x00\x01"]
    {
        let answers = exchange(address, odd.as_bytes()).await;
        assert!(!answers.contains(" 200 "), "{odd:?}: {answers}");
    }
    assert_eq!(get(address, "/api/health", &[]).await.status, 200);
    supervisor.stop().await;
}

/// How much of the large body is sent at once.
const PIECE: usize = 64 << 10;
/// 100 MB.
const LARGE: usize = 100_000_000;
/// The default of `gateway.limits.body`, and what the kernel's buffers on both sides may hold.
const TAKEN: usize = 24 << 20;

// Promises: GW-253
#[tokio::test]
async fn a_body_of_100_mb_is_refused_and_others_are_served() {
    let supervisor = gateway("").start().await;
    let (address, _) = serving(&supervisor).await;
    let (secret, _) = token(&supervisor, &["--scope", "chat"]).await;
    let credential = bearer(&secret);
    let head = format!("POST /api/sessions HTTP/1.1\r\nHost: {address}\r\n{credential}\r\n");
    let announced = exchange(address, format!("{head}Content-Length: {LARGE}\r\n\r\n").as_bytes()).await;
    assert!(
        announced.starts_with("HTTP/1.1 413 ") && announced.contains("gateway.limits.body"),
        "{announced}"
    );
    // Without a length it is read up to the limit.
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream
        .write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes())
        .await
        .expect("it is open");
    let chunk = format!("{PIECE:x}\r\n{}\r\n", " ".repeat(PIECE));
    let mut written = 0;
    while written < LARGE && stream.write_all(chunk.as_bytes()).await.is_ok() {
        written += PIECE;
    }
    assert!(written < TAKEN, "{written} bytes were taken");
    assert_eq!(get(address, "/api/health", &[]).await.status, 200);
    supervisor.stop().await;
}

/// More connections than any limit.
const CONNECTIONS: usize = 10_000;
/// How many the gateway serves in all, and of one address.
const SERVED: (usize, usize) = (400, 300);

/// Asks for its health from another address of this machine. Returns how long that took.
async fn asks_from_elsewhere(address: SocketAddr) -> Duration {
    let began = Instant::now();
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.2:0".parse().expect("an address")).expect("all of 127.0.0.0/8 is ours");
    let mut stream = socket.connect(address).await.expect("it listens");
    let request = format!("GET /api/health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it is open");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    began.elapsed()
}

// Promises: GW-253
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_connections_of_one_address_leave_room_for_others() {
    let keys = format!(
        "limits: {{ connections: {}, connections_per_address: {}, requests_per_minute_per_address: 1000000 }}",
        SERVED.0, SERVED.1
    );
    let supervisor = gateway(&keys).start().await;
    let (address, _) = serving(&supervisor).await;
    let mut held = Vec::new();
    for _ in 0..SERVED.1 {
        held.push(TcpStream::connect(address).await.expect("it listens"));
    }
    let flood = tokio::spawn(async move {
        for _ in SERVED.1..CONNECTIONS {
            // What is closed at once may be reset while it connects.
            let _ = TcpStream::connect(address).await;
        }
    });
    let mut times = Vec::new();
    while !flood.is_finished() {
        times.push(asks_from_elsewhere(address).await);
    }
    flood.await.expect("it ends");
    times.sort_unstable();
    // How long is no promise: the machine is somebody else's, too.
    eprintln!("{} requests beside the flood; p99 {:?}", times.len(), times[times.len() * 99 / 100]);
    let held_now = u32::try_from(held.len()).expect("few");
    // Of those that were let go before they were accepted, not each is counted.
    let most = u64::try_from(CONNECTIONS / 2).expect("few");
    let is_over =
        |status: &GatewayStatus| status.connections == Some(held_now) && status.refused >= Some(most);
    supervisor.wait_gateway("the others are refused", is_over).await;
    drop(held);
    supervisor.wait_gateway("they are gone", |status| status.connections == Some(0)).await;
    supervisor.stop().await;
}

// Promises: GW-259
#[tokio::test]
async fn a_flood_of_one_credential_is_held_back_and_others_are_served() {
    let supervisor = gateway("limits: { requests_per_minute: 20 }").start().await;
    let (address, _) = serving(&supervisor).await;
    let (flooding, _) = token(&supervisor, &["--scope", "chat"]).await;
    let (quiet, _) = token(&supervisor, &["--scope", "chat"]).await;
    let mut refused = 0;
    for _ in 0..60 {
        let answer = get(address, "/api/session", &[&bearer(&flooding)]).await;
        if answer.status == 429 {
            assert_eq!(problem(&answer), "too-many-requests");
            assert!(answer.head.contains("retry-after: "), "{answer:?}");
            refused += 1;
        }
    }
    assert!(refused >= 20, "{refused}");
    assert_eq!(get(address, "/api/session", &[&bearer(&quiet)]).await.status, 200);
    supervisor.stop().await;
}

// Promises: GW-258
#[tokio::test]
async fn a_token_of_one_session_opens_that_one_alone() {
    let supervisor = gateway("").start().await;
    let (address, _) = serving(&supervisor).await;
    // Both count for the same subject, so what keeps one out is its session.
    let of = ["--scope", "chat", "--subject", "gw:desk/ada"];
    let (all, _) = token(&supervisor, &of).await;
    let json = "Content-Type: application/json";
    let mut ids = Vec::new();
    for _ in 0..2 {
        let made = request(address, "POST", "/api/sessions", &[&bearer(&all), json], "{}").await;
        let made: serde_json::Value = serde_json::from_str(&made.body).expect("JSON");
        ids.push(made["id"].as_str().expect("an id").to_owned());
    }
    let (one, _) = token(&supervisor, &[&of[..], &["--session", &ids[0]]].concat()).await;
    let sees = async |token: &str| {
        let listed = get(address, "/api/sessions", &[&bearer(token)]).await;
        let listed: serde_json::Value = serde_json::from_str(&listed.body).expect("JSON");
        listed["items"].as_array().expect("a list").len()
    };
    assert_eq!((sees(&all).await, sees(&one).await), (2, 1));
    // Page by page, each once.
    let page = async |cursor: &str| {
        let answer = get(address, &format!("/api/sessions?limit=1{cursor}"), &[&bearer(&all)]).await;
        serde_json::from_str::<serde_json::Value>(&answer.body).expect("JSON")
    };
    let first = page("").await;
    let cursor = first["nextCursor"].as_str().expect("there is more");
    let second = page(&format!("&cursor={cursor}")).await;
    let seen = [&first, &second].map(|page| page["items"][0]["id"].as_str().expect("an id"));
    assert_eq!(BTreeSet::from(seen), ids.iter().map(String::as_str).collect());
    let wrong = get(address, "/api/sessions?cursor=nonsense", &[&bearer(&all)]).await;
    assert_eq!((wrong.status, problem(&wrong).as_str()), (400, "bad-request"));
    let status = async |id: &str| get(address, &format!("/api/sessions/{id}"), &[&bearer(&one)]).await.status;
    assert_eq!((status(&ids[0]).await, status(&ids[1]).await), (200, 404));
    let another = request(address, "POST", "/api/sessions", &[&bearer(&one), json], "{}").await;
    assert_eq!((another.status, problem(&another).as_str()), (403, "forbidden"));
    supervisor.stop().await;
}

/// Sessions that are made, or deleted, at once.
const AT_ONCE: usize = 8;
/// The most that a page has.
const PAGE: usize = 200;

/// Sessions of one sender, for the test of their limit: 8, or as many as `TALON_TEST_SESSIONS` says (`make long`: 10,000, which is the default of
/// the limit; each is synced twice).
fn most_sessions() -> usize {
    std::env::var("TALON_TEST_SESSIONS")
        .map_or(8, |most| most.parse().expect("TALON_TEST_SESSIONS is a number"))
}

async fn make_session(address: SocketAddr, token: &str) -> Answer {
    let headers = [&*bearer(token), "Content-Type: application/json"];
    request(address, "POST", "/api/sessions", &headers, "{}").await
}

async fn delete_session(address: SocketAddr, token: &str, id: &str) -> u16 {
    request(address, "DELETE", &format!("/api/sessions/{id}"), &[&bearer(token)], "").await.status
}

/// The ids of all sessions of a sender, page by page.
async fn all_sessions(address: SocketAddr, token: &str, limit: usize) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(address, &format!("/api/sessions?limit={limit}{cursor}"), &[&bearer(token)]).await;
        let page: serde_json::Value = serde_json::from_str(&page.body).expect("JSON");
        let items = page["items"].as_array().unwrap_or_else(|| panic!("{page}"));
        assert!(items.len() <= limit.min(PAGE), "{} on a page", items.len());
        ids.extend(items.iter().map(|item| item["id"].as_str().expect("an id").to_owned()));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

/// What somebody else waits for an answer meanwhile: the longest time, and that of 99 of 100.
async fn others_wait<T>(
    address: SocketAddr,
    token: &str,
    work: impl Future<Output = T>,
) -> (T, Duration, Duration) {
    let mut times = Vec::new();
    let mut work = std::pin::pin!(work);
    let done = loop {
        let asked = async {
            let began = Instant::now();
            (get(address, "/api/sessions", &[&bearer(token)]).await.status, began.elapsed())
        };
        tokio::select! {
            done = &mut work => break done,
            (status, time) = asked => {
                assert_eq!(status, 200);
                times.push(time);
            }
        }
    };
    times.sort_unstable();
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    (done, at((times.len() * 99 / 100).min(times.len().saturating_sub(1))), at(times.len().saturating_sub(1)))
}

/// What the agent has resident, in KiB.
async fn agent_kib(supervisor: &talon_tests::Supervisor) -> u64 {
    let pid = supervisor.agent_status().await.pid;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells it");
    line.trim().trim_end_matches(" kB").trim().parse().expect("a number")
}

// Promises: GW-261, GW-302
#[tokio::test(flavor = "multi_thread")]
async fn a_sender_has_so_many_sessions_and_others_have_theirs() {
    let most = most_sessions();
    let unlimited = "requests_per_minute: 1000000, requests_per_minute_per_address: 1000000";
    let builder = Builder::new().config(&format!(
        "gateway: {{ enabled: true, address: '127.0.0.1:0', limits: {{ {unlimited} }} }}\nagent: {{ sessions: {{ per_sender: {most} }} }}"
    ));
    let supervisor = builder.start().await;
    let (address, _) = serving(&supervisor).await;
    let (many, _) = token(&supervisor, &["--scope", "chat"]).await;
    let (other, _) = token(&supervisor, &["--scope", "chat"]).await;
    let made = stream::iter(0..most).map(|_| make_session(address, &many)).buffer_unordered(AT_ONCE);
    let (before, began) = (agent_kib(&supervisor).await, Instant::now());
    let refused = made.filter(|answer| ready(answer.status != 201)).collect::<Vec<_>>();
    let (refused, p99, longest) = others_wait(address, &other, refused).await;
    eprintln!("{most} sessions made in {:?}; others: p99 {p99:?}, longest {longest:?}", began.elapsed());
    assert!(refused.is_empty(), "{refused:?}");
    let refused = make_session(address, &many).await;
    assert_eq!((refused.status, problem(&refused).as_str()), (409, "conflict"), "{refused:?}");
    assert!(refused.body.contains("agent.sessions.per_sender"), "{refused:?}");
    assert_eq!(make_session(address, &other).await.status, 201, "others are unharmed");
    // All of them are listed, each once, in pages that are bounded whatever is asked for.
    let large = get(address, "/api/sessions?limit=1000000", &[&bearer(&many)]).await;
    assert!(large.status == 400 || large.body.matches("\"senderId\"").count() <= PAGE, "{}", large.head);
    let limit = if most > PAGE { PAGE } else { 3 };
    let began = Instant::now();
    let (ids, p99, longest) = others_wait(address, &other, all_sessions(address, &many, limit)).await;
    let after = agent_kib(&supervisor).await;
    eprintln!(
        "{most} sessions listed in {:?}; others: p99 {p99:?}, longest {longest:?}; the agent: {before} KiB before, {after} KiB now",
        began.elapsed()
    );
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), most);
    assert_eq!(ids.len(), most, "each once");
    // Room comes back.
    assert_eq!(delete_session(address, &many, &ids[0]).await, 204);
    assert_eq!(make_session(address, &many).await.status, 201);
    // The rest goes as well, and nothing of it is left.
    let began = Instant::now();
    let rest = stream::iter(&ids[1..]).map(|id| delete_session(address, &many, id)).buffer_unordered(AT_ONCE);
    let failed = rest.filter(|status| ready(*status != 204)).collect::<Vec<_>>();
    let (failed, p99, longest) = others_wait(address, &other, failed).await;
    eprintln!(
        "{most} sessions deleted in {:?}; others: p99 {p99:?}, longest {longest:?}; the agent: {} KiB",
        began.elapsed(),
        agent_kib(&supervisor).await
    );
    assert_eq!(failed, Vec::<u16>::new());
    assert_eq!(all_sessions(address, &many, limit).await.len(), 1, "the one that was made again");
    assert_eq!(all_sessions(address, &other, limit).await.len(), 1);
    supervisor.stop().await;
}
