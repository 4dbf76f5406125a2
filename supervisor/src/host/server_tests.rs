use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use talon_guard::Origin;
use talon_proto::host::host_client::HostClient;
use talon_proto::host::{ExecuteRequest, GetStatusRequest, WatchEventsRequest};
use talon_wire::frames::FrameLimits;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use super::super::SOCKET_NAME;
use super::super::agent_connection::serve_agent;
use super::super::limits::REQUEST_SLACK_BYTES;
use super::super::pending_host::{CallEvent, PendingHost};
use super::*;
use crate::agent::AgentConnection;
use crate::config::{HostLimits, Role};
use crate::peer::Peer;
use crate::socket::bind_host;

/// Classifies every peer as the test process with these rights.
fn everybody(rights: Option<(Role, Origin)>) -> PeerClassifier {
    Arc::new(move |credentials| {
        Some(Peer {
            uid: credentials.uid(),
            gid: credentials.gid(),
            pid: credentials.pid().and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default(),
            rights,
            allowed: None,
            service: None,
            delegation: None,
        })
    })
}

async fn client(dir: &Path) -> HostClient<Channel> {
    let path = dir.join(SOCKET_NAME);
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    HostClient::new(Endpoint::from_static("http://test").connect_with_connector(connector).await.unwrap())
}

struct Fixture {
    dir: tempfile::TempDir,
    server: Server,
    seen: mpsc::UnboundedReceiver<CallEvent>,
    _file: Option<crate::socket::SocketFile>,
}

fn start(rights: Option<(Role, Origin)>) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let socket = bind_host(dir.path(), None).unwrap();
    let (sender, seen) = mpsc::unbounded_channel();
    let service = PendingHost { seen: sender };
    let operators = StateProxy::new(None);
    let server = Server::start(
        &socket.listener,
        everybody(rights),
        service,
        operators,
        MAX_ARGUMENT_BYTES,
        FrameLimits::default(),
        &HostLimits::default(),
    )
    .unwrap();
    Fixture { dir, server, seen, _file: socket.file }
}

const MAX_ARGUMENT_BYTES: usize = 1 << 20;
const ADMIN: Option<(Role, Origin)> = Some((Role::Admin, Origin::Person));

// Promises: HOST-5
#[tokio::test]
async fn a_call_is_dropped_when_its_caller_gives_up() {
    let mut fixture = start(ADMIN);
    let mut client = client(fixture.dir.path()).await;
    let call = tokio::spawn(async move { client.execute(ExecuteRequest::default()).await });
    assert_eq!(fixture.seen.recv().await, Some(CallEvent::Began));
    call.abort();
    assert_eq!(fixture.seen.recv().await, Some(CallEvent::Dropped));
}

// Promises: HOST-5
#[tokio::test]
async fn a_call_is_dropped_when_its_callers_connection_ends() {
    let mut fixture = start(ADMIN);
    // A connection dies with its runtime, as with a client process that is killed.
    let dir = fixture.dir.path().to_owned();
    let client_side = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut client = client(&dir).await;
            let call = client.execute(ExecuteRequest::default());
            // Long enough for the request to be sent; below, the test waits until it was received.
            let _ = tokio::time::timeout(Duration::from_millis(200), call).await;
        });
    });
    assert_eq!(fixture.seen.recv().await, Some(CallEvent::Began));
    assert_eq!(fixture.seen.recv().await, Some(CallEvent::Dropped));
    client_side.join().unwrap();
}

// Promises: GUARD-34
#[tokio::test]
async fn the_peer_is_who_the_kernel_says() {
    let fixture = start(ADMIN);
    let you = client(fixture.dir.path())
        .await
        .get_status(GetStatusRequest {})
        .await
        .unwrap()
        .into_inner()
        .you
        .unwrap();
    assert_eq!((you.uid, you.pid), (nix::unistd::getuid().as_raw(), std::process::id()));
    assert_eq!((you.role.as_str(), you.origin.as_str()), ("admin", "person"));
}

// Promises: HOST-3
#[tokio::test]
async fn a_stranger_is_refused_by_name() {
    let fixture = start(None);
    let status = client(fixture.dir.path()).await.get_status(GetStatusRequest {}).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    assert!(status.message().contains("no role"), "{}", status.message());
}

// Promises: HOST-23
#[tokio::test]
async fn a_stranger_has_two_connections_which_end_after_four_refusals() {
    let fixture = start(None);
    let path = fixture.dir.path().join(SOCKET_NAME);
    let first = UnixStream::connect(&path).await.unwrap();
    let _second = UnixStream::connect(&path).await.unwrap();
    // The queue is served in order, so the first two have their places before the third is looked at.
    let mut third = UnixStream::connect(&path).await.unwrap();
    assert_eq!(third.read(&mut [0]).await.unwrap(), 0, "the third is closed");

    let (mut requests, connection) = h2::client::handshake(first).await.unwrap();
    let connection = tokio::spawn(connection);
    for _ in 0..4 {
        requests = requests.ready().await.expect("it still takes requests");
        let request = http::Request::post("http://test/talon.host.v1.Host/GetStatus")
            .header("content-type", "application/grpc")
            .body(())
            .unwrap();
        let (answer, _) = requests.send_request(request, true).unwrap();
        let answer = answer.await.unwrap();
        let code = (Code::PermissionDenied as i32).to_string();
        assert_eq!(answer.headers()["grpc-status"], code.as_str());
    }
    // The server ends it, although the client sends nothing more.
    let _ = connection.await.unwrap();
    assert!(requests.ready().await.is_err());
}

// Promises: HOST-6
#[tokio::test]
async fn a_request_beyond_the_limit_fails_and_the_connection_lives() {
    let fixture = start(ADMIN);
    let mut client = client(fixture.dir.path()).await;
    let args = [("a".to_owned(), "x".repeat(MAX_ARGUMENT_BYTES + REQUEST_SLACK_BYTES))].into();
    let status = client.execute(ExecuteRequest { args, ..ExecuteRequest::default() }).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
    assert!(client.get_status(GetStatusRequest {}).await.is_ok());
}

// Promises: HOST-14
#[tokio::test]
async fn a_client_that_holds_on_cannot_hold_up_the_end() {
    let fixture = start(ADMIN);
    let mut client = client(fixture.dir.path()).await;
    let _stream = client.watch_events(WatchEventsRequest::default()).await.unwrap();
    fixture.server.stop().await;
}

/// More than any client needs to answer the GOAWAY, and less than it has for its preface.
const GRACE: Duration = Duration::from_secs(9);

// Promises: HANDOVER-40
#[tokio::test(start_paused = true)]
async fn a_client_without_requests_does_not_hold_up_the_next_supervisor() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    // One that only connected, and one that answers nothing, as a process that is stopped.
    for said in [&[][..], &[PREFACE, SETTINGS].concat()] {
        let fixture = start(ADMIN);
        let mut silent = UnixStream::connect(fixture.dir.path().join(SOCKET_NAME)).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut silent, said).await.unwrap();
        assert!(fixture.server.liveness().answers(GRACE).await);
        assert!(fixture.server.close(GRACE).await, "it was waited for");
    }
}

// Promises: HANDOVER-40
#[tokio::test(start_paused = true)]
async fn a_request_in_flight_has_the_whole_grace_period() {
    let mut fixture = start(ADMIN);
    let mut client = client(fixture.dir.path()).await;
    let call = tokio::spawn(async move { client.execute(ExecuteRequest::default()).await });
    assert_eq!(fixture.seen.recv().await, Some(CallEvent::Began));
    assert!(!fixture.server.close(GRACE).await, "it was cut off");
    assert!(call.await.unwrap().is_err());
}

// Promises: STATE-25
#[tokio::test]
async fn operators_need_the_role_admin_and_learn_that_nothing_keeps_state() {
    for (rights, code, said) in [
        (Some((Role::Operate, Origin::Person)), Code::PermissionDenied, "needs the role admin"),
        (ADMIN, Code::FailedPrecondition, "state.engine: off"),
    ] {
        let fixture = start(rights);
        let path = fixture.dir.path().join(SOCKET_NAME);
        let connector = tower::service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://test").connect_with_connector(connector).await.unwrap();
        let mut operator = talon_proto::state::operator_client::OperatorClient::new(channel);
        let status = operator.describe(talon_proto::state::DescribeRequest::default()).await.unwrap_err();
        assert_eq!(status.code(), code, "{status:?}");
        assert!(status.message().contains(said), "{}", status.message());
        fixture.server.stop().await;
    }
}

/// The host service for one connection, and a client at its other end.
async fn alone(seen: mpsc::UnboundedSender<CallEvent>) -> (AgentConnection, HostClient<Channel>) {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let mut theirs = Some(TokioIo::new(UnixStream::from_std(theirs).unwrap()));
    let peer = Peer {
        uid: 1,
        gid: 2,
        pid: 3,
        rights: Some((Role::Call, Origin::Model)),
        allowed: None,
        service: Some(crate::peer::OwnService::Agent),
        delegation: None,
    };
    let alone =
        serve_agent(ours, peer, PendingHost { seen }, MAX_ARGUMENT_BYTES, &HostLimits::default()).unwrap();
    let connector = tower::service_fn(move |_| {
        let stream = theirs.take().ok_or_else(|| std::io::Error::other("there is one"));
        async move { stream }
    });
    let channel = Endpoint::from_static("http://test").connect_with_connector(connector).await.unwrap();
    (alone, HostClient::new(channel))
}

#[tokio::test]
async fn a_connection_of_our_own_making_has_the_peer_that_it_was_given() {
    let (_alone, mut client) = alone(mpsc::unbounded_channel().0).await;
    // Kernel credentials would show the test process and its user.
    let you = client.get_status(GetStatusRequest {}).await.unwrap().into_inner().you.unwrap();
    assert_eq!((you.uid, you.gid, you.pid), (1, 2, 3));
    assert_eq!((you.role.as_str(), you.origin.as_str()), ("call", "model"));
}

#[tokio::test]
async fn a_connection_of_our_own_making_is_cut_when_it_is_let_go_of() {
    let (sender, mut seen) = mpsc::unbounded_channel();
    let (alone, mut client) = alone(sender).await;
    let call = tokio::spawn(async move { client.execute(ExecuteRequest::default()).await });
    assert_eq!(seen.recv().await, Some(CallEvent::Began));
    drop(alone);
    assert_eq!(seen.recv().await, Some(CallEvent::Dropped));
    assert!(call.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_connection_of_our_own_making_is_cut_if_what_is_under_way_does_not_end() {
    let (sender, mut seen) = mpsc::unbounded_channel();
    let (alone, mut client) = alone(sender).await;
    let call = tokio::spawn(async move { client.execute(ExecuteRequest::default()).await });
    assert_eq!(seen.recv().await, Some(CallEvent::Began));
    alone.close(Duration::from_secs(1)).await;
    assert_eq!(seen.recv().await, Some(CallEvent::Dropped));
    assert!(call.await.unwrap().is_err());
}

#[tokio::test]
async fn a_connection_of_our_own_making_that_is_idle_closes_at_once() {
    let (alone, mut client) = alone(mpsc::unbounded_channel().0).await;
    assert!(client.get_status(GetStatusRequest {}).await.is_ok());
    alone.close(Duration::from_secs(3600)).await;
    assert!(client.get_status(GetStatusRequest {}).await.is_err());
}
