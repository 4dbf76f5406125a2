use h2::client::{ResponseFuture, SendRequest};
use talon_guard::Origin;
use talon_proto::host::ExecuteRequest;
use talon_wire::frames::FrameLimits;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tonic::{Code, Status};

use super::super::accept::{ConnectedClient, serve_client};
use super::super::pending_host::{ANSWERS, CallEvent, PendingHost};
use super::*;
use crate::config::{HostLimits, Role};
use crate::peer::Peer;

/// The service, the calls that it observed, and the results of its connections.
struct Fixture {
    serving: Arc<ConnectionService<PendingHost>>,
    seen: mpsc::UnboundedReceiver<CallEvent>,
}

impl Fixture {
    fn new() -> Self {
        let (sender, seen) = mpsc::unbounded_channel();
        Self {
            serving: ConnectionService::new(
                PendingHost { seen: sender },
                StateProxy::new(None),
                1 << 20,
                RequestLimits::of_socket(&LIMITS),
            ),
            seen,
        }
    }

    /// Connects a client that may call and whose receive window has this size.
    async fn connect(&self, uid: u32, window: u32) -> SendRequest<Bytes> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let rights = Some((Role::Call, Origin::Program));
        let peer = Peer { uid, gid: uid, pid: 1, rights, allowed: None, service: None, delegation: None };
        let served = self.serving.clone().connection(
            serve_client(ours, FrameLimits::default(), ConnectedClient::new(peer, ())).unwrap(),
            CancellationToken::new(),
        );
        tokio::spawn(served);
        let mut builder = h2::client::Builder::new();
        let (sender, connection) = builder.initial_window_size(window).handshake(theirs).await.unwrap();
        tokio::spawn(connection);
        sender.ready().await.unwrap()
    }
}

const WINDOW: u32 = 64 << 10;
const MAX_STREAMS_PER_CONNECTION: u32 = 128;
const MAX_REQUESTS_PER_UID: usize = 256;
/// Fewer than by default, so that they are soon reached.
const LIMITS: HostLimits = HostLimits {
    connections: 256,
    connections_per_user: 192,
    requests: 512,
    requests_per_user: 256,
    requests_per_connection: MAX_STREAMS_PER_CONNECTION,
    service_requests: 4096,
    follows: 64,
    follows_per_user: 64,
};

/// Sends the headers of a call, and its message if there is one.
fn call(sender: &mut SendRequest<Bytes>, plugin: Option<&str>) -> (ResponseFuture, h2::SendStream<Bytes>) {
    let head = Request::post(format!("http://host{EXECUTE}")).header("content-type", "application/grpc");
    let (answer, mut sending) = sender.send_request(head.body(()).unwrap(), false).unwrap();
    if let Some(plugin) = plugin {
        let request = ExecuteRequest { plugin: plugin.to_owned(), ..ExecuteRequest::default() };
        sending.send_data(message::framed(&request), true).unwrap();
    }
    (answer, sending)
}

/// The status of an answer without a body.
async fn status(answer: ResponseFuture) -> Code {
    Status::from_header_map(answer.await.unwrap().headers()).map_or(Code::Ok, |status| status.code())
}

// Promises: HOST-20
#[tokio::test(start_paused = true)]
async fn a_call_that_never_becomes_whole_is_given_up() {
    let fixture = Fixture::new();
    let mut sender = fixture.connect(1000, WINDOW).await;
    let (answer, _sending) = call(&mut sender, None);
    assert_eq!(status(answer).await, Code::DeadlineExceeded);
}

// Promises: HOST-7
#[tokio::test]
async fn one_user_cannot_make_more_than_its_calls_at_once_and_others_get_in() {
    let mut fixture = Fixture::new();
    let mut held = Vec::new();
    while held.len() < MAX_REQUESTS_PER_UID {
        let mut sender = fixture.connect(1000, WINDOW).await;
        held.extend((0..MAX_STREAMS_PER_CONNECTION).map(|_| call(&mut sender, Some("endless"))));
    }
    for _ in 0..MAX_REQUESTS_PER_UID {
        assert_eq!(fixture.seen.recv().await, Some(CallEvent::Began));
    }
    let mut sender = fixture.connect(1000, WINDOW).await;
    assert_eq!(status(call(&mut sender, Some("endless")).0).await, Code::ResourceExhausted);
    let mut other = fixture.connect(0, WINDOW).await;
    assert!(call(&mut other, Some(ANSWERS)).0.await.is_ok());
    // Dropping the request resets the stream, which releases its permit.
    drop(held.pop());
    assert_eq!(fixture.seen.recv().await, Some(CallEvent::Dropped));
    let (_answer, _sending) = call(&mut sender, Some("endless"));
    assert_eq!(fixture.seen.recv().await, Some(CallEvent::Began));
}

// Promises: HOST-20
#[tokio::test]
async fn a_call_whose_answer_nobody_takes_keeps_its_place() {
    let mut fixture = Fixture::new();
    let mut held = Vec::new();
    while held.len() < MAX_REQUESTS_PER_UID {
        let mut sender = fixture.connect(1000, 0).await;
        for _ in 0..MAX_STREAMS_PER_CONNECTION {
            // Headers need no window.
            let answer = call(&mut sender, Some(ANSWERS)).0.await.unwrap();
            assert_eq!(answer.headers().get("grpc-status"), None);
            held.push(answer);
        }
    }
    let mut sender = fixture.connect(1000, WINDOW).await;
    assert_eq!(status(call(&mut sender, Some("endless")).0).await, Code::ResourceExhausted);
    drop(held.pop());
    // The reset uses another connection than this call, so it may arrive later.
    while status(call(&mut sender, Some(ANSWERS)).0).await == Code::ResourceExhausted {}
    let _under_way = call(&mut sender, Some("endless"));
    assert_eq!(fixture.seen.recv().await, Some(CallEvent::Began));
}

// Promises: HOST-21
#[tokio::test]
async fn a_callers_own_time_ends_its_call() {
    let mut fixture = Fixture::new();
    let mut sender = fixture.connect(1000, WINDOW).await;
    let head = Request::post(format!("http://host{EXECUTE}")).header("grpc-timeout", "50m");
    let (answer, mut sending) = sender.send_request(head.body(()).unwrap(), false).unwrap();
    sending.send_data(message::framed(&ExecuteRequest::default()), true).unwrap();
    assert_eq!(status(answer).await, Code::Cancelled);
    assert_eq!(fixture.seen.recv().await, Some(CallEvent::Began));
    assert_eq!(fixture.seen.recv().await, Some(CallEvent::Dropped));
}

#[tokio::test]
async fn what_is_no_call_is_answered_beside_calls() {
    let fixture = Fixture::new();
    let mut sender = fixture.connect(1000, WINDOW).await;
    for path in ["/talon.host.v1.Host/NoSuch", "/no.such.Service/Method"] {
        let head = Request::post(format!("http://host{path}")).body(()).unwrap();
        let (answer, _) = sender.send_request(head, true).unwrap();
        assert_eq!(status(answer).await, Code::Unimplemented, "{path}");
    }
    let (answer, _sending) = call(&mut sender, Some(ANSWERS));
    let mut answer = answer.await.unwrap().into_body();
    while let Some(piece) = answer.data().await {
        let piece = piece.unwrap();
        answer.flow_control().release_capacity(piece.len()).unwrap();
    }
    let trailers = answer.trailers().await.unwrap().unwrap();
    assert_eq!(trailers.get("grpc-status").unwrap(), "0");
}
