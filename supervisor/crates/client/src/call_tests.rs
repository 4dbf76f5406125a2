use std::collections::HashMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use talon_proto::host::{Plugin, WatchEventsRequest};
use talon_proto::plugin::{Action, PluginCapabilities};
use tokio::net::UnixListener;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::codegen::http;

use super::*;
use crate::{StreamUpdate, connect_error, is_not_listening};

/// What a supervisor of these tests does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Answers,
    Drains,
    /// Starts it and never finishes.
    Hangs,
}

/// State shared by all supervisors of a test.
#[derive(Default)]
struct World {
    /// How often a call with this id was executed.
    done: Mutex<HashMap<String, u64>>,
    asked: AtomicU64,
    begun: Notify,
    read_only: bool,
}

/// Answers three of a supervisor's questions.
#[derive(Clone)]
struct Host {
    manner: Manner,
    world: Arc<World>,
}

impl tower::Service<http::Request<Body>> for Host {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let host = self.clone();
        Box::pin(async move {
            let path = request.uri().path().to_owned();
            Ok(match path.rsplit('/').next() {
                Some("Execute") => {
                    let execute = tower::service_fn(move |request| host.clone().execute(request));
                    tonic::server::Grpc::new(tonic_prost::ProstCodec::default()).unary(execute, request).await
                }
                Some("GetPlugin") => {
                    let get = tower::service_fn(move |_: tonic::Request<GetPluginRequest>| {
                        std::future::ready(Ok::<_, Status>(tonic::Response::new(host.plugin())))
                    });
                    tonic::server::Grpc::new(tonic_prost::ProstCodec::default()).unary(get, request).await
                }
                Some("WatchEvents") => {
                    let one = talon_proto::host::Event { kind: "supervisor".into(), ..Default::default() };
                    let watch = tower::service_fn(move |_: tonic::Request<WatchEventsRequest>| {
                        let stream = tokio_stream::once(Ok::<_, Status>(one.clone()));
                        std::future::ready(Ok::<_, Status>(tonic::Response::new(stream)))
                    });
                    tonic::server::Grpc::new(tonic_prost::ProstCodec::default())
                        .server_streaming(watch, request)
                        .await
                }
                _ => Status::unimplemented("not in this test").into_http(),
            })
        })
    }
}

impl Host {
    async fn execute(
        self,
        request: tonic::Request<ExecuteRequest>,
    ) -> Result<tonic::Response<ExecuteResponse>, Status> {
        self.world.asked.fetch_add(1, Ordering::SeqCst);
        self.world.begun.notify_one();
        match self.manner {
            Manner::Drains => {
                return Err(Status::unavailable(format!("{}: later", talon_listen::DRAINING)));
            }
            Manner::Hangs => std::future::pending().await,
            Manner::Answers => {}
        }
        let call_id = request.into_inner().call_id;
        *self.world.done.lock().entry(call_id.clone()).or_default() += 1;
        Ok(tonic::Response::new(ExecuteResponse { call_id, ..ExecuteResponse::default() }))
    }

    fn plugin(&self) -> GetPluginResponse {
        let action = Action { name: "act".into(), read_only: self.world.read_only, ..Action::default() };
        GetPluginResponse {
            plugin: Some(Plugin::default()),
            capabilities: Some(PluginCapabilities { actions: vec![action], ..PluginCapabilities::default() }),
            ..GetPluginResponse::default()
        }
    }
}

/// A supervisor that can be stopped gracefully, or killed.
struct Supervisor {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Supervisor {
    fn on(listener: std::os::unix::net::UnixListener, manner: Manner, world: &Arc<World>) -> Self {
        listener.set_nonblocking(true).unwrap();
        let incoming = UnixListenerStream::new(UnixListener::from_std(listener).unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let host = Host { manner, world: Arc::clone(world) };
        let task = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            tonic::transport::Server::builder()
                .serve_with_incoming_shutdown(host, incoming, stopped)
                .await
                .unwrap();
        });
        Self { stop: Some(stop), task }
    }

    fn at(path: &Path, manner: Manner, world: &Arc<World>) -> Self {
        let _ = std::fs::remove_file(path);
        Self::on(std::os::unix::net::UnixListener::bind(path).unwrap(), manner, world)
    }

    /// Calls in flight are answered.
    async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
    }
}

fn request(call_id: &str) -> ExecuteRequest {
    ExecuteRequest {
        plugin: "one".into(),
        action: "act".into(),
        call_id: call_id.into(),
        ..ExecuteRequest::default()
    }
}

/// A supervisor in a separate runtime, so that its end ends all its connections, as with a process that is
/// killed.
fn killable(path: &Path, manner: Manner, world: &Arc<World>) -> (tokio::runtime::Runtime, Supervisor) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let supervisor = {
        let _inside = runtime.enter();
        Supervisor::at(path, manner, world)
    };
    (runtime, supervisor)
}

// Promises: CLI-35
#[tokio::test]
async fn what_a_draining_supervisor_refuses_is_put_to_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.sock");
    let world = Arc::new(World::default());
    let first = Supervisor::at(&path, Manner::Drains, &world);
    let client = Client::connect(path.clone()).await.unwrap();
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.execute(request("w1")).await }
    });
    world.begun.notified().await;
    first.stop().await;
    let _second = Supervisor::at(&path, Manner::Answers, &world);
    assert_eq!(call.await.unwrap().unwrap().call_id, "w1");
    assert_eq!(world.done.lock()["w1"], 1);
}

// Promises: CLI-35
#[tokio::test]
async fn what_may_have_been_begun_is_repeated_only_if_it_changes_nothing() {
    for read_only in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("host.sock");
        let world = Arc::new(World { read_only, ..World::default() });
        let (first, _alive) = killable(&path, Manner::Hangs, &world);
        let client = Client::connect(path.clone()).await.unwrap();
        let call = tokio::spawn(async move { client.execute(request("c1")).await });
        world.begun.notified().await;
        first.shutdown_background();
        let _second = Supervisor::at(&path, Manner::Answers, &world);
        let result = call.await.unwrap();
        if read_only {
            assert_eq!(result.unwrap().call_id, "c1");
        } else {
            let error = result.unwrap_err();
            assert_eq!(error.fate, RequestFate::Unknown, "{error}");
            assert!(error.to_string().contains("not known"), "{error}");
        }
        assert_eq!(world.done.lock().len(), usize::from(read_only));
    }
}

// Promises: CLI-36
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_work_while_supervisors_succeed_each_other_are_each_done_once() {
    const CALLERS: usize = 8;
    const SUCCESSIONS: u64 = 20;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.sock");
    // Nothing is declared read_only: only calls that were certainly not started are repeated.
    let world = Arc::new(World::default());
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let mut running = Supervisor::on(listener.try_clone().unwrap(), Manner::Answers, &world);
    let going = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (path, going) = (path.clone(), Arc::clone(&going));
            tokio::spawn(async move {
                let client = Client::connect(path).await.unwrap();
                let mut ids = Vec::new();
                while going.load(Ordering::Relaxed) {
                    let id = format!("{caller}-{}", ids.len());
                    client
                        .execute(request(&id))
                        .await
                        .unwrap_or_else(|error| panic!("{:?}: {error}", error.fate));
                    ids.push(id);
                }
                ids
            })
        })
        .collect();
    for succession in 1..=SUCCESSIONS {
        while world.asked.load(Ordering::SeqCst) < succession * 200 {
            world.begun.notified().await;
        }
        // The listener stays open, as during a handover: clients that connect in between wait in its queue.
        running.stop().await;
        running = Supervisor::on(listener.try_clone().unwrap(), Manner::Answers, &world);
    }
    going.store(false, Ordering::Relaxed);
    let mut all = 0;
    for caller in callers {
        for id in caller.await.unwrap() {
            assert_eq!(world.done.lock()[&id], 1, "{id}");
            all += 1;
        }
    }
    assert_eq!(world.done.lock().len(), all);
}

// Promises: CLI-37
#[tokio::test(start_paused = true)]
async fn nobody_is_waited_for_where_nobody_ever_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.sock");
    let error = Client::connect(path.clone()).await.unwrap_err();
    assert!(is_not_listening(&error), "{error}");
    let began = Instant::now();
    let error = Client::lazy(path).execute(request("c1")).await.unwrap_err();
    assert_eq!(error.fate, RequestFate::NotStarted);
    assert!(connect_error(&error.status).is_some_and(is_not_listening), "{error:?}");
    assert_eq!(began.elapsed(), Duration::ZERO);
}

// Promises: CLI-37
#[tokio::test]
async fn a_supervisor_that_does_not_come_back_is_waited_for_no_longer_than_the_caller_would() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.sock");
    let world = Arc::new(World::default());
    let first = Supervisor::at(&path, Manner::Answers, &world);
    let client = Client::connect(path.clone()).await.unwrap();
    client.execute(request("c1")).await.unwrap();
    first.stop().await;
    std::fs::remove_file(&path).unwrap();
    let error = client.execute(ExecuteRequest { timeout_ms: 100, ..request("c2") }).await.unwrap_err();
    assert_eq!(error.fate, RequestFate::NotStarted, "{error}");
    assert!(error.to_string().contains("not begun"), "{error}");
}

// Promises: CLI-38
#[tokio::test]
async fn what_is_followed_begins_again_with_the_next_supervisor() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.sock");
    let world = Arc::new(World::default());
    let first = Supervisor::at(&path, Manner::Answers, &world);
    let client = Client::connect(path.clone()).await.unwrap();
    let mut events =
        client.subscribe(|mut host| async move { host.watch_events(WatchEventsRequest::default()).await });
    assert!(matches!(events.next().await, Ok(Some(StreamUpdate::Item(_)))));
    first.stop().await;
    let second = Supervisor::at(&path, Manner::Answers, &world);
    assert_eq!(events.next().await.unwrap(), Some(StreamUpdate::Reconnected));
    assert!(matches!(events.next().await, Ok(Some(StreamUpdate::Item(_)))));
    second.stop().await;
}
