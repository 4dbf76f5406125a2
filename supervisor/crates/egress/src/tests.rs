//! Real sockets on both sides. Where time has to pass, the runtime's clock is paused and jumps.

use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use proptest::prelude::*;
use talon_plugin_config::host_port::HostPort;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::time::Instant;

use super::*;

/// A proxy and its socket.
struct Fixture {
    proxy: Proxy,
    socket: PathBuf,
    denied: Arc<Mutex<Vec<Denial>>>,
    _dir: TempDir,
}

impl Fixture {
    fn new(allow: &[String]) -> Self {
        Self::for_uid(allow, Some(rustix::process::geteuid().as_raw()))
    }

    fn for_uid(allow: &[String], uid: Option<u32>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("proxy.sock");
        let denied = Arc::new(Mutex::new(Vec::new()));
        let seen = denied.clone();
        let on_denied: OnDenied = Arc::new(move |what| seen.lock().push(what.clone()));
        let listener = UnixListener::bind(&socket).unwrap();
        let proxy = Proxy::start(listener, AllowList::parse(allow).unwrap(), uid, on_denied);
        Self { proxy, socket, denied, _dir: dir }
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.socket).await.unwrap()
    }

    /// Sends a text and returns everything that comes back.
    async fn says(&self, text: &[u8]) -> String {
        let mut stream = self.connect().await;
        // It may answer before it has read all of it.
        let _ = stream.write_all(text).await;
        rest(&mut stream).await
    }

    async fn asks_for(&self, place: &str) -> String {
        self.says(format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n").as_bytes()).await
    }

    /// A socket as on the plugin's loopback interface.
    async fn inside(&self, purpose: ListenerPurpose) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        self.proxy.serve_inside(listener, purpose);
        TcpStream::connect(address).await.unwrap()
    }

    /// An open tunnel.
    async fn tunnel(&self, place: &str) -> UnixStream {
        let mut stream = self.connect().await;
        stream.write_all(format!("CONNECT {place} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        let head = head(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        stream
    }
}

async fn rest(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut bytes = Vec::new();
    // A connection that is closed in the middle of what it sends shows as reset.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn head(stream: &mut UnixStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// A listener of this machine and the entry for it.
async fn target() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let entry = listener.local_addr().unwrap().to_string();
    (listener, entry)
}

async fn accepted(listener: &TcpListener) -> TcpStream {
    listener.accept().await.unwrap().0
}

#[tokio::test]
async fn an_allowed_address_is_reached_and_bytes_are_counted() {
    let (listener, entry) = target().await;
    let fixture = Fixture::new(std::slice::from_ref(&entry));
    let mut plugin = fixture.tunnel(&entry).await;
    let mut host = accepted(&listener).await;
    plugin.write_all(b"hello").await.unwrap();
    let mut said = [0; 5];
    host.read_exact(&mut said).await.unwrap();
    host.write_all(b"you too").await.unwrap();
    drop(host);
    assert_eq!((&said, rest(&mut plugin).await.as_str()), (b"hello", "you too"));
    let traffic = fixture.proxy.traffic();
    assert_eq!((traffic.tunnels, traffic.sent_bytes, traffic.received_bytes), (1, 5, 7));
}

#[tokio::test]
async fn bytes_sent_along_with_the_request_are_not_lost() {
    let (listener, entry) = target().await;
    let fixture = Fixture::new(std::slice::from_ref(&entry));
    let mut plugin = fixture.connect().await;
    let text = format!("CONNECT {entry} HTTP/1.1\r\nHost: {entry}\r\nUser-Agent: x\r\n\r\nearly");
    plugin.write_all(text.as_bytes()).await.unwrap();
    plugin.shutdown().await.unwrap();
    let mut host = accepted(&listener).await;
    assert_eq!(rest(&mut host).await, "early");
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_its_tunnel_too() {
    let (listener, entry) = target().await;
    let fixture = Fixture::new(std::slice::from_ref(&entry));
    let mut plugin = fixture.connect().await;
    plugin.write_all(format!("CONNECT {entry} HTTP/1.0\r\n\r\n").as_bytes()).await.unwrap();
    let head = head(&mut plugin).await;
    assert!(head.starts_with("HTTP/1.") && head.contains(" 200 "), "{head}");
    plugin.write_all(b"hello").await.unwrap();
    plugin.shutdown().await.unwrap();
    assert_eq!(rest(&mut accepted(&listener).await).await, "hello");
}

#[tokio::test]
async fn each_side_may_end_before_the_other() {
    let (listener, entry) = target().await;
    let fixture = Fixture::new(std::slice::from_ref(&entry));
    let mut plugin = fixture.tunnel(&entry).await;
    let mut host = accepted(&listener).await;
    plugin.write_all(b"question").await.unwrap();
    plugin.shutdown().await.unwrap();
    assert_eq!(rest(&mut host).await, "question");
    host.write_all(b"answer").await.unwrap();
    drop(host);
    assert_eq!(rest(&mut plugin).await, "answer");

    let mut plugin = fixture.tunnel(&entry).await;
    let mut host = accepted(&listener).await;
    host.shutdown().await.unwrap();
    assert_eq!(rest(&mut plugin).await, "");
    plugin.write_all(b"still here").await.unwrap();
    drop(plugin);
    assert_eq!(rest(&mut host).await, "still here");
}

// Promises: JAIL-39
#[tokio::test]
async fn what_is_not_listed_is_denied_and_the_answer_names_the_entry() {
    let fixture = Fixture::new(&["api.example.org:443".into()]);
    for place in ["db.internal:5432", "api.example.org:80", "127.0.0.1:443", "[::1]:443"] {
        let answer = fixture.asks_for(place).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        let entry = format!("add it: sandbox.allow: [\"{place}\"])\n");
        assert!(answer.ends_with(&entry), "{answer}");
        let denied = fixture.denied.lock().pop();
        assert_eq!(denied, Some(Denial::NotListed { place: place.into() }));
    }
    assert_eq!(fixture.proxy.traffic().denied, 4);
}

// Promises: JAIL-39
#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_denied() {
    let (listener, entry) = target().await;
    let port = listener.local_addr().unwrap().port();
    let name = format!("localhost:{port}");
    let fixture = Fixture::new(std::slice::from_ref(&name));
    let answer = fixture.asks_for(&name).await;
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("no public address"), "{answer}");
    let denied = fixture.denied.lock().pop();
    assert!(matches!(denied, Some(Denial::NotPublic { place, .. }) if place == name));
    // The proxy did not connect: the next connection is this one.
    let own = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    assert_eq!(listener.accept().await.unwrap().1, own.local_addr().unwrap());

    // The operator can allow it explicitly, by the entries that the answer prints.
    let printed = answer.split_once("sandbox.allow: ").unwrap().1.trim_end().trim_end_matches(')');
    let printed: Vec<String> = printed
        .trim_matches(['[', ']'])
        .split(", ")
        .map(|entry| entry.trim_matches('"').to_owned())
        .collect();
    assert!(printed.contains(&name) && printed.contains(&entry), "{printed:?}");
    let fixture = Fixture::new(&printed);
    let _plugin = fixture.tunnel(&name).await;
    accepted(&listener).await;
}

#[tokio::test]
async fn a_target_that_does_not_answer_is_the_targets_fault() {
    let (listener, entry) = target().await;
    drop(listener);
    let fixture = Fixture::new(&[entry.clone(), "no-such-host.invalid:443".into()]);
    let answer = fixture.asks_for(&entry).await;
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("refused"), "{answer}");
    let answer = fixture.asks_for("no-such-host.invalid:443").await;
    // Without any name server it takes too long instead.
    let resolved = ["HTTP/1.1 502 ", "HTTP/1.1 504 "].iter().any(|status| answer.starts_with(status));
    assert!(resolved && answer.contains(" no-such-host.invalid:443: "), "{answer}");
    assert_eq!(fixture.proxy.traffic().failed, 2);
}

#[tokio::test]
async fn other_requests_are_answered_and_open_nothing() {
    let (listener, entry) = target().await;
    let fixture = Fixture::new(std::slice::from_ref(&entry));
    let request = |line: String| format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n");
    for (text, status) in [
        (request(format!("GET https://{entry}/")), 400),
        (request(format!("GET http://user@{entry}/")), 400),
        (request("GET http://2130706433/".into()), 400),
        (request("POST /".into()), 405),
        (request("CONNECT example.org".into()), 400),
        (request(format!("CONNECT user@{entry}")), 400),
        (request(format!("CONNECT http://{entry}/")), 400),
        (request("CONNECT 2130706433:80".into()), 400),
        (format!("CONNECT {entry} HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"), 400),
        (format!("CONNECT {entry} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n".into(), 400),
        (format!("CONNECT {entry} HTTP/1.1\r\nX-Long: {}\r\n\r\n", "x".repeat(MAX_HEAD_BYTES)), 431),
    ] {
        let answer = fixture.says(text.as_bytes()).await;
        let shown: String = text.chars().take(60).collect();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{shown:?}: {answer}");
    }
    assert_eq!(fixture.proxy.traffic().tunnels, 0);
    // It still serves.
    let _plugin = fixture.tunnel(&entry).await;
    accepted(&listener).await;
}

/// The head of a request as a host gets it.
async fn head_of(host: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(host.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

// Promises: JAIL-47
#[tokio::test]
async fn a_request_of_plain_http_is_passed_on_with_its_response() {
    let (listener, entry) = target().await;
    let fixture = Fixture::new(std::slice::from_ref(&entry));
    let text = format!(
        "POST http://{entry}/a?b=c HTTP/1.1\r\nHost: elsewhere\r\nProxy-Connection: keep-alive\r\n\
         Proxy-Authorization: Basic eDp5\r\nConnection: x-hop\r\nX-Hop: 1\r\nX-Kept: 2\r\n\
         Content-Length: 5\r\n\r\nhello"
    );
    let host = async {
        let mut host = accepted(&listener).await;
        let head = head_of(&mut host).await;
        let mut body = [0; 5];
        host.read_exact(&mut body).await.unwrap();
        let answer = "HTTP/1.1 201 Created\r\nKeep-Alive: timeout=5\r\nX-Own: 3\r\nTransfer-Encoding: chunked\r\n\r\n\
                      3\r\nyou\r\n4\r\n too\r\n0\r\n\r\n";
        host.write_all(answer.as_bytes()).await.unwrap();
        (head.to_ascii_lowercase(), body, host)
    };
    let (answer, (head, body, _host)) = tokio::join!(fixture.says(text.as_bytes()), host);
    assert!(head.starts_with("post /a?b=c http/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("host: {entry}\r\n")) && head.contains("x-kept: 2\r\n"), "{head}");
    for gone in ["elsewhere", "proxy-", "x-hop"] {
        assert!(!head.contains(gone), "{head}");
    }
    assert_eq!(&body, b"hello");
    let answer = answer.to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 201 created\r\n") && answer.contains("x-own: 3\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n") && !answer.contains("timeout=5"), "{answer}");
    assert!(answer.contains("3\r\nyou\r\n") && answer.ends_with("0\r\n\r\n"), "{answer}");
    let traffic = fixture.proxy.traffic();
    assert_eq!((traffic.requests, traffic.tunnels, traffic.failed), (1, 0, 0));
    assert!(traffic.sent_bytes > 5 && traffic.received_bytes > 7, "{traffic:?}");
}

// Promises: JAIL-39, JAIL-47
#[tokio::test]
async fn plain_http_reaches_what_is_listed_and_nothing_else() {
    let (listener, entry) = target().await;
    let fixture = Fixture::new(&["api.example.org:80".into()]);
    for (url, place) in [
        (format!("http://{entry}/"), entry.clone()),
        ("http://127.0.0.1/".into(), "127.0.0.1:80".into()),
        ("http://api.example.org:8080/".into(), "api.example.org:8080".into()),
    ] {
        let answer =
            fixture.says(format!("GET {url} HTTP/1.1\r\nHost: api.example.org\r\n\r\n").as_bytes()).await;
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.contains(&format!("[\"{place}\"]")),
            "{answer}"
        );
    }
    assert_eq!(fixture.proxy.traffic().denied, 3);
    // Nothing has connected: the next connection is this one.
    let own = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    assert_eq!(listener.accept().await.unwrap().1, own.local_addr().unwrap());
}

// Promises: JAIL-47
#[tokio::test]
async fn a_host_that_answers_no_http_is_the_hosts_fault() {
    let (listener, entry) = target().await;
    let fixture = Fixture::new(std::slice::from_ref(&entry));
    let long = format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\n\r\n", "x".repeat(4 * MAX_RESPONSE_HEAD_BYTES));
    let switch = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";
    for (said, part) in
        [("SSH-2.0-x\r\n", "in HTTP"), ("", "in HTTP"), (&long, "in HTTP"), (switch, "CONNECT")]
    {
        let host = async {
            let mut host = accepted(&listener).await;
            head_of(&mut host).await;
            // It may be refused before it has said everything.
            let _ = host.write_all(said.as_bytes()).await;
        };
        let text = format!("GET http://{entry} HTTP/1.1\r\nHost: x\r\n\r\n");
        let (answer, ()) = tokio::join!(fixture.says(text.as_bytes()), host);
        assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains(part), "{answer}");
        assert!(answer.contains(&entry), "{answer}");
    }
    assert_eq!(fixture.proxy.traffic().failed, 4);
}

// Promises: JAIL-47
#[tokio::test]
async fn a_length_beside_another_framing_is_not_passed_on() {
    let (listener, entry) = target().await;
    let fixture = Fixture::new(std::slice::from_ref(&entry));
    let text = format!(
        "POST http://{entry}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\nhello\r\n0\r\n\r\nGET http://{entry}/second HTTP/1.1\r\nHost: x\r\n\r\n"
    );
    let host = async {
        let mut host = accepted(&listener).await;
        let head = head_of(&mut host).await.to_ascii_lowercase();
        host.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
        (head, rest(&mut host).await)
    };
    let (answer, (head, body)) = tokio::join!(fixture.says(text.as_bytes()), host);
    // Either it is refused as a whole, or one framing is left.
    assert!(answer.contains("ok"), "{answer}");
    assert!(!head.contains("content-length") && head.contains("transfer-encoding: chunked"), "{head}");
    assert!(body.contains("hello") && !body.contains("second"), "{body}");
}

// Promises: JAIL-46
#[tokio::test]
async fn a_socket_inside_takes_requests_or_is_a_tunnel_to_one_host() {
    let (listener, entry) = target().await;
    let place = HostPort::parse(&entry).unwrap();
    let fixture = Fixture::new(std::slice::from_ref(&entry));
    let mut plugin = fixture.inside(ListenerPurpose::Requests).await;
    plugin.write_all(format!("CONNECT {entry} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    assert!(head_of(&mut plugin).await.starts_with("HTTP/1.1 200 "));
    let mut host = accepted(&listener).await;
    plugin.write_all(b"x").await.unwrap();
    assert_eq!(host.read_u8().await.unwrap(), b'x');

    let mut plugin = fixture.inside(ListenerPurpose::Tunnel(place.clone())).await;
    let mut host = accepted(&listener).await;
    // From the first byte on, from either side.
    host.write_all(b"220 hello").await.unwrap();
    let mut said = [0; 9];
    plugin.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"220 hello");
    plugin.shutdown().await.unwrap();
    assert_eq!(rest(&mut host).await, "");
    let sockets = fixture.proxy.sockets_inside().unwrap();
    let purposes: Vec<_> = sockets.into_iter().map(|(_, purpose)| purpose).collect();
    assert_eq!(purposes, [ListenerPurpose::Requests, ListenerPurpose::Tunnel(place)]);
    assert_eq!(fixture.proxy.traffic().tunnels, 2);
}

// Promises: JAIL-39, JAIL-46
#[tokio::test]
async fn a_tunnel_from_the_first_byte_says_in_the_log_why_it_is_closed() {
    let (listener, entry) = target().await;
    drop(listener);
    let fixture = Fixture::new(std::slice::from_ref(&entry));
    let tunnel = |place: &str| ListenerPurpose::Tunnel(HostPort::parse(place).unwrap());
    let mut plugin = fixture.inside(tunnel(&entry)).await;
    assert_eq!(rest(&mut plugin).await, "");
    let said = fixture.denied.lock().pop().unwrap();
    assert!(matches!(said, Denial::Unreachable { .. }), "{said:?}");
    assert!(said.to_string().contains(&entry) && said.to_string().contains("refused"), "{said}");
    // What is not listed is not reached this way either.
    let mut plugin = fixture.inside(tunnel("10.0.0.5:80")).await;
    assert_eq!(rest(&mut plugin).await, "");
    assert_eq!(fixture.denied.lock().pop(), Some(Denial::NotListed { place: "10.0.0.5:80".into() }));
}

// Promises: JAIL-40
#[tokio::test]
async fn all_sockets_of_a_plugin_share_its_places() {
    let (listener, entry) = target().await;
    let fixture = Fixture::new(std::slice::from_ref(&entry));
    let purpose = ListenerPurpose::Tunnel(HostPort::parse(&entry).unwrap());
    let mut open = vec![(fixture.inside(purpose.clone()).await, accepted(&listener).await)];
    let mut tunnels = Vec::new();
    for _ in 1..MAX_CONNECTIONS {
        tunnels.push((fixture.tunnel(&entry).await, accepted(&listener).await));
    }
    tokio::time::pause();
    let answer = fixture.asks_for(&entry).await;
    let mut refused = fixture.inside(purpose).await;
    assert_eq!(rest(&mut refused).await, "");
    tokio::time::resume();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(fixture.proxy.traffic().turned_away, 2);
    drop(open.pop());
    fixture.tunnel(&entry).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_head_is_closed_in_time() {
    let fixture = Fixture::new(&["api.example.org:443".into()]);
    let start = Instant::now();
    for text in [&b"CONNECT api.exa"[..], b""] {
        assert_eq!(fixture.says(text).await, "");
    }
    assert!(start.elapsed() <= 2 * HEAD_TIMEOUT + Duration::from_secs(1), "{:?}", start.elapsed());
}

// Promises: JAIL-40
#[tokio::test]
async fn more_connections_than_places_wait_and_are_then_turned_away() {
    let (listener, entry) = target().await;
    let fixture = Fixture::new(std::slice::from_ref(&entry));
    let mut open = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        open.push((fixture.tunnel(&entry).await, accepted(&listener).await));
    }
    // From here on only time passes; the paused clock jumps.
    tokio::time::pause();
    let start = Instant::now();
    let answer = fixture.asks_for(&entry).await;
    tokio::time::resume();
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("all 64 connections"), "{answer}");
    assert!(start.elapsed() >= SLOT_WAIT);
    assert_eq!(fixture.proxy.traffic().turned_away, 1);

    // A waiting connection gets the slot of one that ends.
    let waiting = fixture.tunnel(&entry);
    let freed = async { drop(open.pop()) };
    let (_plugin, ()) = tokio::join!(waiting, freed);
    assert_eq!(MAX_CONNECTIONS, 64, "the text of the answer says it");
}

// Promises: JAIL-40
#[tokio::test]
async fn dropping_the_proxy_ends_its_connections_and_its_socket() {
    let (listener, entry) = target().await;
    let fixture = Fixture::new(std::slice::from_ref(&entry));
    let mut plugin = fixture.tunnel(&entry).await;
    let mut host = accepted(&listener).await;
    let mut half = fixture.connect().await;
    half.write_all(b"CONNECT ").await.unwrap();
    let Fixture { proxy, socket, _dir, .. } = fixture;
    drop(proxy);
    for text in [rest(&mut plugin).await, rest(&mut host).await, rest(&mut half).await] {
        assert_eq!(text, "");
    }
    assert!(StdUnixStream::connect(socket).is_err());
}

// Promises: JAIL-39
#[tokio::test]
async fn another_user_is_not_served() {
    let (_listener, entry) = target().await;
    let other = rustix::process::geteuid().as_raw() + 1;
    let fixture = Fixture::for_uid(std::slice::from_ref(&entry), Some(other));
    assert_eq!(fixture.asks_for(&entry).await, "");
    let fixture = Fixture::for_uid(std::slice::from_ref(&entry), None);
    let _plugin = fixture.tunnel(&entry).await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_open_a_tunnel_that_is_not_allowed(junk in proptest::collection::vec(any::<u8>(), 0..300), place in "\\PC{0,40}") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let traffic = runtime.block_on(async {
            let fixture = Fixture::new(&["api.example.org:443".into()]);
            fixture.says(&junk).await;
            fixture.asks_for(&place).await;
            fixture.says(format!("GET http://{place}/ HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await;
            fixture.proxy.traffic()
        });
        prop_assert_eq!((traffic.tunnels, traffic.requests), (0, 0));
    }
}
