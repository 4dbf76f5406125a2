use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::FutureExt;
use talon_proto::plugin::plugin_service_server::{PluginService, PluginServiceServer};
use talon_proto::plugin::{Action, HostMessage, PluginCapabilities, PluginMessage, ToolResultResponse};
use tokio::net::UnixListener;
use tokio::sync::Notify;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response};
use tower::{Service, service_fn};

use super::*;
use crate::handshake::Address;
use crate::socket_dir::SocketDir;
use crate::socket_dir::testing::scratch;

/// A plugin in this very process, which answers what the action's name says.
#[derive(Default)]
struct Scripted {
    refreshes: bool,
    capability_calls: AtomicU32,
    /// Notified when a hanging call is dropped, which is how a server sees a cancelled call.
    cancelled: Arc<Notify>,
    /// Releases the calls that wait.
    go_on: Notify,
    seen_timeout: parking_lot::Mutex<Option<String>>,
}

struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tonic::async_trait]
impl PluginService for Scripted {
    async fn init(&self, request: Request<PluginInitRequest>) -> Result<Response<()>, Status> {
        match request.into_inner().config_json.as_str() {
            "{}" => Err(Status::unimplemented("")),
            r#"{"root":"/srv"}"# => Ok(Response::new(())),
            _ => Err(Status::invalid_argument("configure: no such root\x1b[0m")),
        }
    }

    async fn execute(
        &self,
        request: Request<ToolCallRequest>,
    ) -> Result<Response<ToolResultResponse>, Status> {
        let timeout = request.metadata().get("grpc-timeout").map(|v| v.to_str().unwrap().to_owned());
        *self.seen_timeout.lock() = timeout;
        let request = request.into_inner();
        let content = match request.action.as_str() {
            "big" => "x".repeat(request.args["bytes"].parse().unwrap()),
            "hang" => {
                let _told = OnDrop(self.cancelled.clone());
                std::future::pending().await
            }
            "wait" => {
                let told = OnDrop(self.cancelled.clone());
                self.go_on.notified().await;
                std::mem::forget(told);
                "at last".to_owned()
            }
            "status" => return Err(Status::resource_exhausted("y".repeat(5000))),
            "panic" => panic!("on purpose"),
            other => other.to_owned(),
        };
        Ok(Response::new(ToolResultResponse { call_id: request.id, content, ..Default::default() }))
    }

    async fn capabilities(&self, _: Request<()>) -> Result<Response<PluginCapabilities>, Status> {
        self.capability_calls.fetch_add(1, Ordering::Relaxed);
        let actions = vec![Action { name: "echo".to_owned(), ..Default::default() }];
        Ok(Response::new(PluginCapabilities { name: "scripted".to_owned(), actions, ..Default::default() }))
    }

    async fn refresh_capabilities(
        &self,
        request: Request<()>,
    ) -> Result<Response<PluginCapabilities>, Status> {
        if self.refreshes { self.capabilities(request).await } else { Err(Status::unimplemented("")) }
    }

    type ExecuteBidiStream = tokio_stream::Pending<Result<PluginMessage, Status>>;

    async fn execute_bidi(
        &self,
        _: Request<tonic::Streaming<HostMessage>>,
    ) -> Result<Response<Self::ExecuteBidiStream>, Status> {
        unreachable!("Talon never calls ExecuteBidi")
    }
}

struct Served {
    _dir: tempfile::TempDir,
    _private: Arc<SocketDir>,
    client: Client,
    plugin: Arc<Scripted>,
    /// The plugin's own runtime, so that it can go away with all its connections.
    server: Option<tokio::runtime::Runtime>,
}

impl Served {
    fn goes_away(&mut self) {
        if let Some(server) = self.server.take() {
            server.shutdown_background();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.goes_away();
    }
}

async fn served(plugin: Scripted, health: Option<&str>, connections: u32) -> Served {
    let dir = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
    let private = scratch(dir.path());
    let socket = private.path().join("s/plugin1");
    let server = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = {
        let _there = server.enter();
        UnixListener::bind(&socket).unwrap()
    };
    let plugin = Arc::new(plugin);
    let (reporter, health_server) = tonic_health::server::health_reporter();
    if let Some(service) = health {
        reporter.set_service_status(service, tonic_health::ServingStatus::Serving).await;
    }
    let has_health = health.is_some();
    let service = PluginServiceServer::from_arc(plugin.clone()).max_encoding_message_size(64 << 20);
    // By hand, because tonic's own router brings a web framework along.
    let router = service_fn(move |request: http::Request<tonic::body::Body>| {
        let (mut service, mut health_server) = (service.clone(), health_server.clone());
        async move {
            match request.uri().path().split('/').nth(1) {
                Some("opentalon.plugin.v1.PluginService") => service.call(request).await,
                Some("grpc.health.v1.Health") if has_health => health_server.call(request).await,
                _ => Ok(Status::unimplemented("").into_http()),
            }
        }
    });
    let serving =
        tonic::transport::Server::builder().serve_with_incoming(router, UnixListenerStream::new(listener));
    server.spawn(async move { serving.await.unwrap() });
    let uid = rustix::process::geteuid().as_raw();
    let target = Target::new(&Address::Unix(socket), &private, uid, std::process::id(), false).unwrap();
    let name = PluginName::new("configured").unwrap();
    let client = Client::connect(name, Methods::default(), target, connections).await.unwrap();
    Served { _dir: dir, _private: private, client, plugin, server: Some(server) }
}

async fn plain() -> Served {
    served(Scripted::default(), None, 1).await
}

fn call(action: &str) -> ToolCallRequest {
    ToolCallRequest { id: "1".to_owned(), action: action.to_owned(), ..Default::default() }
}

fn big(bytes: usize) -> ToolCallRequest {
    let mut call = call("big");
    call.args.insert("bytes".to_owned(), bytes.to_string());
    call
}

const LIMIT: usize = 1 << 20;

#[tokio::test]
async fn an_answer_comes_back_as_its_bytes() {
    let s = plain().await;
    let bytes = s.client.execute(&call("echo"), MetadataMap::new(), None, LIMIT).answer.await.unwrap();
    let answer = ToolResultResponse::decode(bytes).unwrap();
    assert_eq!((answer.call_id.as_str(), answer.content.as_str()), ("1", "echo"));
    assert_eq!(*s.plugin.seen_timeout.lock(), None);
}

// Promises: WIRE-7
#[tokio::test]
async fn the_deadline_travels_to_the_plugin() {
    let s = plain().await;
    let deadline = Instant::now() + Duration::from_secs(20);
    s.client.execute(&call("echo"), MetadataMap::new(), Some(deadline), LIMIT).answer.await.unwrap();
    let seen = s.plugin.seen_timeout.lock().clone().unwrap();
    let micros: u64 = seen.strip_suffix('u').expect("microseconds").parse().unwrap();
    assert!((10_000_000..=20_000_000).contains(&micros), "{seen}");
}

// Promises: GUARD-5
#[tokio::test]
async fn a_late_answer_is_a_timeout_and_is_cancelled_on_the_wire() {
    let s = plain().await;
    let deadline = Instant::now() + Duration::from_millis(50);
    let error =
        s.client.execute(&call("hang"), MetadataMap::new(), Some(deadline), LIMIT).answer.await.unwrap_err();
    assert!(matches!(error, ExecuteError::TimedOut { .. }), "{error}");
    s.plugin.cancelled.notified().await;
    let past = s
        .client
        .execute(&call("echo"), MetadataMap::new(), Some(Instant::now()), LIMIT)
        .answer
        .await
        .unwrap_err();
    assert!(matches!(past, ExecuteError::TimedOut { .. }), "{past}");
}

#[tokio::test]
async fn a_stream_can_be_kept_after_its_caller_and_ends_when_the_plugin_ends_it() {
    let s = plain().await;
    let PendingCall { mut answer, stream_end } =
        s.client.execute(&call("wait"), MetadataMap::new(), None, LIMIT);
    assert!(futures_util::poll!(&mut answer).is_pending());
    s.client.execute(&call("echo"), MetadataMap::new(), None, LIMIT).answer.await.unwrap();
    drop(answer);
    let mut rest = std::pin::pin!(stream_end);
    assert!(futures_util::poll!(&mut rest).is_pending());
    // The connection works in order: had the stream been reset, its handler would be gone.
    s.client.execute(&call("echo"), MetadataMap::new(), None, LIMIT).answer.await.unwrap();
    s.plugin.go_on.notify_waiters();
    rest.await;
    assert!(s.plugin.cancelled.notified().now_or_never().is_none(), "it was not cancelled");
}

#[tokio::test]
async fn a_kept_stream_is_reset_once_nobody_holds_it() {
    let s = plain().await;
    let PendingCall { mut answer, stream_end } =
        s.client.execute(&call("hang"), MetadataMap::new(), None, LIMIT);
    assert!(futures_util::poll!(&mut answer).is_pending());
    s.client.execute(&call("echo"), MetadataMap::new(), None, LIMIT).answer.await.unwrap();
    drop(answer);
    let mut rest = Box::pin(stream_end);
    assert!(futures_util::poll!(&mut rest).is_pending());
    drop(rest);
    s.plugin.cancelled.notified().await;
}

#[tokio::test]
async fn a_plugin_that_follows_the_deadline_ends_the_stream_by_itself() {
    let s = plain().await;
    let deadline = Some(Instant::now() + Duration::from_millis(50));
    // tonic's server, as the SDK uses it, drops the handler when the time in the header is over.
    let PendingCall { answer, stream_end } =
        s.client.execute(&call("hang"), MetadataMap::new(), deadline, LIMIT);
    assert!(matches!(answer.await, Err(ExecuteError::TimedOut { .. })));
    stream_end.await;
    s.plugin.cancelled.notified().await;
}

#[tokio::test]
async fn what_still_comes_on_a_kept_stream_is_thrown_away() {
    let s = plain().await;
    let (message, tap) = (talon_wire::message::framed(&big(60 << 20)), SharedStream::default());
    let answer = s.client.clone().answer(message, MetadataMap::new(), None, usize::MAX, tap.clone());
    let mut answer = Box::pin(answer);
    while !tap.is_receiving() {
        assert!(futures_util::poll!(&mut answer).is_pending());
        tokio::task::yield_now().await;
    }
    drop(answer);
    tap.drain_to_end().await;
    s.client.execute(&call("echo"), MetadataMap::new(), None, LIMIT).answer.await.unwrap();
}

#[tokio::test]
async fn a_call_that_was_never_sent_is_not_waited_for() {
    let s = plain().await;
    let PendingCall { answer, stream_end } =
        s.client.execute(&call("hang"), MetadataMap::new(), Some(Instant::now()), LIMIT);
    assert!(matches!(answer.await, Err(ExecuteError::TimedOut { .. })));
    stream_end.await;
}

// Promises: WIRE-8
#[tokio::test]
async fn dropping_a_call_cancels_it_on_the_wire() {
    let s = plain().await;
    let client = s.client.clone();
    let hanging =
        tokio::spawn(
            async move { client.execute(&call("hang"), MetadataMap::new(), None, LIMIT).answer.await },
        );
    while s.client.inner.pool.slots()[0].in_flight.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    // The connection works in order, so once this answer is here the plugin has the hanging call.
    s.client.execute(&call("echo"), MetadataMap::new(), None, LIMIT).answer.await.unwrap();
    hanging.abort();
    s.plugin.cancelled.notified().await;
    assert!(hanging.await.unwrap_err().is_cancelled());
    assert_eq!(s.client.inner.pool.slots()[0].in_flight.load(Ordering::Relaxed), 0);
}

// Promises: GUARD-10
#[tokio::test]
async fn an_answer_over_the_limit_fails_cleanly_and_the_connection_lives() {
    let s = plain().await;
    for bytes in [LIMIT + 1, 32 << 20] {
        let error = s.client.execute(&big(bytes), MetadataMap::new(), None, LIMIT).answer.await.unwrap_err();
        assert!(matches!(error, ExecuteError::TooLarge { limit: LIMIT }), "{error}");
    }
    let bytes = s.client.execute(&big(LIMIT - 100), MetadataMap::new(), None, LIMIT).answer.await.unwrap();
    assert!(bytes.len() <= LIMIT);
    let larger = s.client.execute(&big(9 << 20), MetadataMap::new(), None, 16 << 20).answer.await.unwrap();
    assert!(larger.len() > 9 << 20);
}

#[tokio::test]
async fn a_call_over_the_limit_is_not_sent() {
    let s = plain().await;
    let mut large = call("echo");
    large.args.insert("x".to_owned(), "x".repeat(LIMIT));
    let error = s.client.execute(&large, MetadataMap::new(), None, LIMIT).answer.await.unwrap_err();
    assert!(!error.retryable());
    assert!(error.to_string().contains("max_message_bytes"), "{error}");
}

// Promises: WIRE-12
#[tokio::test]
async fn the_plugins_own_errors_are_told_bounded() {
    let s = plain().await;
    let error = s.client.execute(&call("status"), MetadataMap::new(), None, LIMIT).answer.await.unwrap_err();
    let ExecuteError::Status { code, message } = error else { panic!("{error}") };
    assert_eq!(code, Code::ResourceExhausted);
    assert!(message.chars().count() <= crate::execute_error::MAX_STATUS_MESSAGE_CHARS + 1);
    // A handler that panics resets its stream; the connection stays open.
    let error = s.client.execute(&call("panic"), MetadataMap::new(), None, LIMIT).answer.await.unwrap_err();
    assert!(matches!(error, ExecuteError::Transport(_) | ExecuteError::Status { .. }), "{error}");
    s.client.execute(&call("echo"), MetadataMap::new(), None, LIMIT).answer.await.unwrap();
}

#[tokio::test]
async fn a_plugin_that_goes_away_is_a_broken_connection() {
    let mut s = plain().await;
    let client = s.client.clone();
    let hanging =
        tokio::spawn(
            async move { client.execute(&call("hang"), MetadataMap::new(), None, LIMIT).answer.await },
        );
    while s.client.inner.pool.slots()[0].in_flight.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    s.client.execute(&call("echo"), MetadataMap::new(), None, LIMIT).answer.await.unwrap();
    s.goes_away();
    let error = hanging.await.unwrap().unwrap_err();
    assert!(matches!(error, ExecuteError::Transport(_)), "{error}");
    let error = s.client.execute(&call("echo"), MetadataMap::new(), None, LIMIT).answer.await.unwrap_err();
    assert!(matches!(error, ExecuteError::Transport(_)), "{error}");
    assert!(error.retryable());
}

// Promises: WIRE-13
#[tokio::test]
async fn calls_that_pile_up_spread_over_more_connections() {
    let s = served(Scripted::default(), None, 3).await;
    let pool = &s.client.inner.pool;
    let mut held: Vec<_> = (0..8).map(|_| s.client.least_used()).collect();
    assert_eq!(pool.opened(), 1, "a few calls at once need no other");
    while pool.opened() < 3 {
        held.push(s.client.least_used());
        tokio::task::yield_now().await;
    }
    let most = pool.slots().iter().map(|place| place.in_flight.load(Ordering::Relaxed)).max().unwrap();
    while held.len() < 3 * most + 60 {
        held.push(s.client.least_used());
    }
    let counts: Vec<_> = pool.slots().iter().map(|place| place.in_flight.load(Ordering::Relaxed)).collect();
    assert_eq!(counts.iter().sum::<usize>(), held.len());
    assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
    drop(held);
    assert!(pool.slots().iter().all(|place| place.in_flight.load(Ordering::Relaxed) == 0));
    for _ in 0..30 {
        s.client.execute(&call("echo"), MetadataMap::new(), None, LIMIT).answer.await.unwrap();
    }
}

#[tokio::test]
async fn a_plugin_that_cannot_be_connected_to_again_is_called_as_before() {
    let s = served(Scripted::default(), None, 3).await;
    let path = s._private.path().join("s/plugin1");
    std::fs::remove_file(path).unwrap();
    let held: Vec<_> = (0..20).map(|_| s.client.least_used()).collect();
    for _ in 0..30 {
        s.client.execute(&call("echo"), MetadataMap::new(), None, LIMIT).answer.await.unwrap();
    }
    assert_eq!((s.client.inner.pool.opened(), held.len()), (1, 20));
}

// Promises: WIRE-3, WIRE-4
#[tokio::test]
async fn init_and_capabilities_are_optional_in_their_ways() {
    let s = plain().await;
    let mut config = serde_json::Map::new();
    assert!(matches!(s.client.init(&config).await, Ok(InitOutcome::Unimplemented)));
    config.insert("root".to_owned(), "/srv".into());
    assert!(matches!(s.client.init(&config).await, Ok(InitOutcome::Done)));
    config.insert("root".to_owned(), "/nowhere".into());
    let refused = s.client.init(&config).await.unwrap_err();
    assert_eq!(refused.to_string(), r"InvalidArgument: configure: no such root␛[0m");
    assert_eq!(s.client.capabilities().await.unwrap().declared_name.as_str(), "scripted");
    let timeout = Duration::from_secs(5);
    assert_eq!(s.client.refresh_capabilities(timeout).await.unwrap(), None);
    let s = served(Scripted { refreshes: true, ..Default::default() }, None, 1).await;
    assert!(s.client.refresh_capabilities(timeout).await.unwrap().is_some());
}

// Promises: WIRE-9
#[tokio::test]
async fn health_is_found_wherever_it_is() {
    let timeout = Duration::from_secs(5);
    for (service, by_capabilities) in [(Some("plugin"), 0), (Some(""), 0), (None, 2)] {
        let s = served(Scripted::default(), service, 1).await;
        for _ in 0..2 {
            assert_eq!(s.client.health(timeout).await, HealthStatus::Serving, "{service:?}");
        }
        assert_eq!(s.plugin.capability_calls.load(Ordering::Relaxed), by_capabilities, "{service:?}");
    }
}

// Promises: WIRE-11
#[tokio::test]
async fn a_plugin_without_shutdown_says_no() {
    let s = plain().await;
    assert!(!s.client.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn a_plugin_without_a_broker_says_no_and_is_called_as_before() {
    let s = plain().await;
    assert!(!s.client.drain_broker().await);
    s.client.execute(&call("echo"), MetadataMap::new(), None, LIMIT).answer.await.unwrap();
}
