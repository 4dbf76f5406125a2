//! The gateway as a process: its listener, its limits, and who may pass.

use std::net::SocketAddr;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use talon_proto::host::GatewayStatus;
use talon_tests::http::{Answer, send_tcp};
use talon_tests::{Builder, Client, ServiceManager, Supervisor};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[path = "../gateway/bad_input.rs"]
mod bad_input;

/// A gateway on a port that the kernel chooses. The agent has nobody to ask, and answers.
fn gateway(keys: &str) -> Builder {
    Builder::new().config(&format!("gateway: {{ enabled: true, address: '127.0.0.1:0', {keys} }}"))
}

async fn serving(supervisor: &Supervisor) -> (SocketAddr, GatewayStatus) {
    let status = supervisor.wait_gateway("the gateway serves", |status| status.state == "serving").await;
    let address = status.url.trim_start_matches("http://").parse();
    (address.unwrap_or_else(|error| panic!("{error}: {status:?}\n{}", supervisor.log())), status)
}

/// Gets a path, with these further header lines.
async fn get(address: SocketAddr, path: &str, headers: &[&str]) -> Answer {
    request(address, "GET", path, headers, "").await
}

async fn request(address: SocketAddr, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
    let host = format!("Host: {address}");
    let own =
        if headers.iter().any(|header| header.starts_with("Host:")) { vec![] } else { vec![host.as_str()] };
    let lines = own.iter().chain(headers).map(|line| format!("{line}\r\n")).collect::<String>();
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    send_tcp(address, &format!("{method} {path} HTTP/1.1\r\n{lines}{length}Connection: close\r\n\r\n{body}"))
        .await
}

fn problem(answer: &Answer) -> String {
    assert!(answer.head.contains("application/problem+json"), "{answer:?}");
    let body: Value =
        serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    assert_eq!(body["status"], answer.status, "{answer:?}");
    let id = body["requestId"].as_str().unwrap_or_else(|| panic!("no id: {answer:?}"));
    assert!(answer.head.contains(&format!("x-request-id: {id}")), "{answer:?}");
    body["type"].as_str().expect("a type").trim_start_matches("urn:talon:problem:").to_owned()
}

/// A new token, by the command line.
async fn token(supervisor: &Supervisor, args: &[&str]) -> (String, String) {
    let all = [&["token", "create", "--output", "json"], args].concat();
    let output = supervisor.cli(&all).await;
    assert!(output.status.success(), "{output:?}");
    let issued: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    (
        issued["token"].as_str().expect("a token").to_owned(),
        issued["credential"]["id"].as_str().expect("an id").to_owned(),
    )
}

/// The contents of all files below a directory.
fn files_below(directory: &Path) -> Vec<Vec<u8>> {
    let mut contents = Vec::new();
    for entry in directory.read_dir().expect("a directory").map(|entry| entry.expect("an entry")) {
        let kind = entry.file_type().expect("a file type");
        if kind.is_dir() {
            contents.extend(files_below(&entry.path()));
        } else if kind.is_file() {
            // One that SQLite has just deleted is no more.
            contents.extend(std::fs::read(entry.path()).ok());
        }
    }
    contents
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

// Promises: GW-1, GW-2, GW-20
#[tokio::test]
async fn it_serves_health_to_everybody_and_the_rest_to_tokens() {
    let supervisor = gateway("").start().await;
    let (address, status) = serving(&supervisor).await;
    assert!(address.ip().is_loopback() && status.pid != 0, "{status:?}");
    let health = get(address, "/api/health", &[]).await;
    assert_eq!((health.status, health.body.as_str()), (200, r#"{"status":"ok"}"#), "{health:?}");
    assert!(health.head.contains("x-content-type-options: nosniff"), "{health:?}");
    // The agent starts beside it.
    let is_ready = async |_: &Client| get(address, "/api/ready", &[]).await.status == 200;
    supervisor.client.wait_until("host and agent answer", is_ready).await;
    let nobody = get(address, "/api/health/deep", &[]).await;
    assert_eq!((nobody.status, problem(&nobody).as_str()), (401, "unauthenticated"));
    assert!(nobody.head.contains("www-authenticate: Bearer"), "{nobody:?}");
    let (secret, id) = token(&supervisor, &["--scope", "chat", "--name", "laptop"]).await;
    let deep = get(address, "/api/health/deep", &[&bearer(&secret)]).await;
    assert_eq!(deep.status, 200, "{deep:?}");
    let who = get(address, "/api/session", &[&bearer(&secret)]).await;
    let who: Value = serde_json::from_str(&who.body).unwrap();
    assert_eq!(who["subject"], format!("gw:token/{id}"), "{who}");
    assert_eq!(who["scopes"], serde_json::json!(["chat"]), "{who}");
    let nothing = get(address, "/api/nothing", &[]).await;
    assert_eq!((nothing.status, problem(&nothing).as_str()), (404, "not-found"));
    // Status names it.
    let shown = supervisor.cli(&["status"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains(&format!("http://{address}")), "{shown}");
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
    assert_eq!(stopped.processes, Vec::<u32>::new(), "{}", stopped.log);
    assert!(!stopped.log.contains(&secret), "a secret is in the log");
}

// Promises: GW-3, GW-4
#[tokio::test]
async fn who_connects_while_it_is_started_again_waits() {
    let supervisor = gateway("").start().await;
    let (address, status) = serving(&supervisor).await;
    for round in 1..=3 {
        let (_, before) = serving(&supervisor).await;
        kill(Pid::from_raw(before.pid.cast_signed()), Signal::SIGKILL).unwrap();
        // Whether it is dead already or not, the request is answered: by it, or by the next.
        let mut answered = 0;
        for _ in 0..5 {
            let asked = tokio::spawn(async move { get(address, "/api/health", &[]).await });
            if let Ok(answer) = asked.await {
                assert_eq!(answer.status, 200);
                answered += 1;
            }
        }
        assert!(answered >= 4, "one may have been the process's own last; {answered} in round {round}");
        supervisor
            .wait_gateway("another process serves", |now| now.state == "serving" && now.pid != before.pid)
            .await;
    }
    let (still, after) = serving(&supervisor).await;
    assert_eq!((still, after.restarts), (address, status.restarts + 3), "{}", supervisor.log());
    supervisor.stop().await;
}

// Promises: GW-5
#[tokio::test]
async fn a_takeover_keeps_the_listener_and_the_tokens() {
    let old = gateway("").start().await;
    let (address, before) = serving(&old).await;
    let (secret, _) = token(&old, &["--scope", "chat"]).await;
    let sibling = old.start_sibling(&["--takeover"]);
    // Connects at whatever moment of it.
    let mut waits = TcpStream::connect(address).await.unwrap();
    let (new, said) = old.succeeded_by(sibling).await;
    let request = format!("GET /api/health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let _ = waits.write_all(request.as_bytes()).await;
    let (now, after) = serving(&new).await;
    assert_eq!(now, address, "{said}\n{}", new.log());
    assert_ne!(after.pid, before.pid);
    let answer = get(address, "/api/session", &[&bearer(&secret)]).await;
    assert_eq!(answer.status, 200, "{answer:?}\n{}", new.log());
    new.stop().await;
}

// Promises: GW-252
#[tokio::test]
async fn a_service_manager_hands_in_the_listener_and_keeps_it() {
    let manager = ServiceManager::new();
    let unit = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = unit.local_addr().unwrap();
    manager.socket("gateway", unit.into());
    // What the unit says counts, and not the key.
    let builder = Builder::new().config("gateway: { enabled: true, address: '127.0.0.1:1' }");
    let supervisor = manager.attach(builder).start().await;
    let (served, _) = serving(&supervisor).await;
    assert_eq!(served, address, "{}", supervisor.log());
    assert_eq!(get(address, "/api/health", &[]).await.status, 200);
    supervisor.stop().await;
    // Nobody serves, and whoever connects waits for the next start.
    TcpStream::connect(address).await.unwrap();
}

// Promises: GW-20, GW-21, GW-22, GW-23
#[tokio::test]
async fn a_token_that_is_wrong_expired_or_revoked_opens_nothing() {
    let supervisor = gateway("").start().await;
    let (address, _) = serving(&supervisor).await;
    let session = async |secret: &str| get(address, "/api/session", &[&bearer(secret)]).await;
    let (secret, id) = token(&supervisor, &["--scope", "chat,approve"]).await;
    assert_eq!(session(&secret).await.status, 200);
    let mut wrong = secret.clone();
    wrong.replace_range(wrong.len() - 1.., if secret.ends_with('0') { "1" } else { "0" });
    for refused in [wrong.as_str(), "talon_ffffffffffff_00", "x"] {
        let answer = session(refused).await;
        assert_eq!((answer.status, problem(&answer).as_str()), (401, "unauthenticated"), "{refused}");
    }
    // Only the digest is stored.
    let random = secret.rsplit('_').next().unwrap();
    let holds = |text: &str| {
        files_below(&supervisor.scratch.join("data"))
            .iter()
            .any(|file| file.windows(text.len()).any(|part| part == text.as_bytes()))
    };
    assert!(holds(&format!("credential/{id}")) && !holds(random) && !holds(&secret));
    let listed = supervisor.cli(&["token", "list", "--output", "json"]).await;
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["credentials"][0]["id"], id, "{listed}");
    assert_ne!(listed["credentials"][0]["last_used_unix_ms"], 0, "{listed}");
    assert!(!listed.to_string().contains(&secret));
    let revoked = supervisor.cli(&["token", "revoke", &id]).await;
    assert!(revoked.status.success(), "{revoked:?}");
    assert_eq!(session(&secret).await.status, 401, "at once");
    let again = supervisor.cli(&["token", "revoke", &id]).await;
    assert!(!again.status.success(), "{again:?}");
    let (short, _) = token(&supervisor, &["--scope", "chat", "--expires", "1s"]).await;
    supervisor.client.wait_until("it expires", async |_| session(&short).await.status == 401).await;
    supervisor.stop().await;
}

// Promises: GW-30, GW-31, GW-32
#[tokio::test]
async fn a_link_opens_one_session_of_a_browser() {
    let supervisor = gateway("").start().await;
    let (address, _) = serving(&supervisor).await;
    let output = supervisor.cli(&["gateway", "open"]).await;
    assert!(output.status.success(), "{output:?}");
    let url = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let path = url.strip_prefix(&format!("http://{address}")).unwrap_or_else(|| panic!("{url}"));
    let opened = get(address, path, &[]).await;
    assert_eq!(opened.status, 303, "{opened:?}");
    let cookie = opened.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    for part in [&format!("talon_session_{}=", address.port()), "HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{part}: {cookie}");
    }
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let again = get(address, path, &[]).await;
    assert_eq!((again.status, problem(&again).as_str()), (401, "unauthenticated"), "a link is for one use");
    let who = get(address, "/api/session", &[&cookie]).await;
    assert_eq!(who.status, 200, "{who:?}");
    let who: Value = serde_json::from_str(&who.body).unwrap();
    assert_eq!(who["scopes"], serde_json::json!(["chat", "approve"]), "{who}");
    assert!(who["subject"].as_str().unwrap().starts_with("gw:local/"), "{who}");
    // A write needs what another site cannot read.
    let blind = request(address, "POST", "/api/session", &[&cookie], "").await;
    assert_eq!((blind.status, problem(&blind).as_str()), (403, "forbidden"));
    let header = format!("X-Talon-Session: {}", who["sessionToken"].as_str().unwrap());
    let seen = request(address, "POST", "/api/session", &[&cookie, &header], "").await;
    assert_eq!((seen.status, problem(&seen).as_str()), (405, "method-not-allowed"));
    supervisor.stop().await;
}

// Promises: GW-40, GW-41, GW-262
#[tokio::test]
async fn pages_of_other_sites_and_other_names_are_refused() {
    let supervisor = gateway("origins: ['https://desk.example']").start().await;
    let (address, _) = serving(&supervisor).await;
    let own = format!("Origin: http://{address}");
    for fits in [own.as_str(), "Origin: https://desk.example", "Sec-Fetch-Site: same-origin"] {
        assert_eq!(get(address, "/api/health", &[fits]).await.status, 200, "{fits}");
    }
    let rebound = format!("Host: evil.example:{}", address.port());
    for foreign in ["Origin: https://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site", &rebound] {
        let answer = get(address, "/api/health", &[foreign]).await;
        assert_eq!((answer.status, problem(&answer).as_str()), (403, "foreign-site"), "{foreign}");
    }
    // A page of a listed site may send a token, and never the cookie.
    let preflight = async |origin: &str| {
        let asks = ["Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization"];
        request(address, "OPTIONS", "/api/sessions", &[origin, asks[0], asks[1]], "").await
    };
    let listed = preflight("Origin: https://desk.example").await;
    assert!(listed.head.contains("access-control-allow-origin: https://desk.example"), "{listed:?}");
    assert!(!listed.head.contains("access-control-allow-credentials"), "{listed:?}");
    let foreign = preflight("Origin: https://evil.example").await;
    assert!(foreign.status == 403 && !foreign.head.contains("access-control-allow-origin"), "{foreign:?}");
    let answer = get(address, "/api/health", &[]).await;
    for header in [
        "content-security-policy: default-src 'none'; frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "x-frame-options: DENY",
        "referrer-policy: no-referrer",
        "cross-origin-resource-policy: same-origin",
        "cache-control: no-store",
    ] {
        assert!(answer.head.contains(header), "{header}: {answer:?}");
    }
    let nameless = send_tcp(address, "GET /api/health HTTP/1.0\r\n\r\n").await;
    assert_eq!(nameless.status, 403, "{nameless:?}");
    supervisor.stop().await;
}

// Promises: GW-42, GW-43
#[tokio::test]
async fn slow_headers_and_slow_bodies_are_cut_off_and_large_ones_refused() {
    let keys = "limits: { header_timeout: 1s, body_timeout: 1s, body: 64KiB }";
    let supervisor = gateway(keys).start().await;
    let (address, _) = serving(&supervisor).await;
    let (secret, _) = token(&supervisor, &["--scope", "chat"]).await;
    // Half a header: closed without an answer, or with 408.
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /api/health HTTP/1.1\r\nHost: ").await.unwrap();
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest).await;
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{:?}", String::from_utf8_lossy(&rest));
    // Half a body, and then nothing.
    let credential = bearer(&secret);
    let half = format!(
        "POST /api/sessions HTTP/1.1\r\nHost: {address}\r\n{credential}\r\nContent-Length: 9\r\n\r\n{{"
    );
    let late = send_tcp(address, &half).await;
    assert_eq!((late.status, problem(&late).as_str()), (408, "request-timeout"));
    // Half open: it was served, and is not heard of again.
    let mut silent = TcpStream::connect(address).await.unwrap();
    let whole = format!("GET /api/health HTTP/1.1\r\nHost: {address}\r\n\r\n");
    silent.write_all(whole.as_bytes()).await.unwrap();
    let mut heard = String::new();
    silent.read_to_string(&mut heard).await.unwrap();
    assert!(heard.starts_with("HTTP/1.1 200 "), "{heard}");
    // Refused by what it announces.
    let large = get(address, "/api/health", &[&bearer(&secret), "Content-Length: 102400"]).await;
    assert_eq!((large.status, problem(&large).as_str()), (413, "too-large"));
    let packed = request(address, "GET", "/api/health", &["Content-Encoding: gzip"], "x").await;
    assert_eq!((packed.status, problem(&packed).as_str()), (415, "unsupported-media-type"));
    // Others are served meanwhile.
    assert_eq!(get(address, "/api/health", &[]).await.status, 200);
    supervisor.stop().await;
}

// Promises: GW-44, GW-45
#[tokio::test]
async fn a_flood_of_connections_or_requests_meets_a_limit_and_ends_with_it() {
    let keys = "limits: { connections: 64, connections_per_address: 8, requests_per_minute_per_address: 60 }";
    let supervisor = gateway(keys).start().await;
    let (address, _) = serving(&supervisor).await;
    let mut held = Vec::new();
    for _ in 0..64 {
        held.push(TcpStream::connect(address).await.unwrap());
    }
    supervisor.wait_gateway("all but eight are closed", |status| status.refused >= Some(56)).await;
    let shown = supervisor.gateway_status().await;
    assert_eq!(shown.connections, Some(8), "{shown:?}");
    drop(held);
    supervisor.wait_gateway("they are gone", |status| status.connections == Some(0)).await;
    let mut refused = 0;
    for _ in 0..80 {
        let answer = get(address, "/api/health", &[]).await;
        if answer.status == 429 {
            assert_eq!(problem(&answer), "too-many-requests");
            assert!(answer.head.contains("retry-after: "), "{answer:?}");
            refused += 1;
        }
    }
    assert!(refused > 0);
    supervisor.stop().await;
}
