//! The host client over real sockets, with a supervisor that answers three requests.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use talon_proto::host::{
    ExecuteUpdate, GetPluginResponse, ListPluginsResponse, Plugin, Progress as Told, execute_update,
};
use talon_proto::plugin::Action;
use tokio::sync::Notify;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::{Request, Response};
use tonic_prost::ProstCodec;

use super::*;

/// The state shared by all connections of a test.
#[derive(Default)]
struct HostState {
    asked: Mutex<Vec<ExecuteRequest>>,
    /// The next call ends its connection instead of being answered.
    breaks: Mutex<Option<Arc<Notify>>>,
    /// How often the plugins were listed.
    listed: AtomicU32,
    /// The number of requested connections.
    connected: AtomicU32,
    /// How many of them are refused, as between two supervisors.
    refused: AtomicU32,
}

#[derive(Clone)]
struct Supervisor(Arc<HostState>);

impl tower::Service<http::Request<Body>> for Supervisor {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let world = Arc::clone(&self.0);
        Box::pin(async move {
            let path = request.uri().path().to_owned();
            Ok(match path.rsplit('/').next() {
                Some("ListPlugins") => {
                    world.listed.fetch_add(1, Ordering::SeqCst);
                    let list = tower::service_fn(|_: Request<ListPluginsRequest>| async {
                        let plugin = |name: &str, desired: &str| Plugin {
                            name: name.to_owned(),
                            desired: desired.to_owned(),
                            ..Plugin::default()
                        };
                        let plugins =
                            vec![plugin("files", "up"), plugin("gone", "up"), plugin("off", "down")];
                        Ok::<_, Status>(Response::new(ListPluginsResponse { plugins }))
                    });
                    tonic::server::Grpc::new(ProstCodec::default()).unary(list, request).await
                }
                Some("GetPlugin") => {
                    let get = tower::service_fn(|asked: Request<GetPluginRequest>| async move {
                        let GetPluginRequest { name, for_model } = asked.into_inner();
                        assert!(for_model && name != "off", "{name}");
                        if name == "gone" {
                            return Err(Status::not_found("there is no such plugin"));
                        }
                        let action = Action { name: "read".to_owned(), ..Action::default() };
                        let capabilities =
                            PluginCapabilities { name, actions: vec![action], ..Default::default() };
                        let answer =
                            GetPluginResponse { capabilities: Some(capabilities), ..Default::default() };
                        Ok(Response::new(answer))
                    });
                    tonic::server::Grpc::new(ProstCodec::default()).unary(get, request).await
                }
                Some("ExecuteStreaming") => {
                    let execute = tower::service_fn(move |asked: Request<ExecuteRequest>| {
                        let world = Arc::clone(&world);
                        async move { execute(&world, asked.into_inner()).await }
                    });
                    tonic::server::Grpc::new(ProstCodec::default()).server_streaming(execute, request).await
                }
                _ => Status::unimplemented("not in this test").into_http(),
            })
        })
    }
}

type Updates = futures_util::stream::Iter<std::vec::IntoIter<Result<ExecuteUpdate, Status>>>;

async fn execute(world: &HostState, request: ExecuteRequest) -> Result<Response<Updates>, Status> {
    let breaks = {
        world.asked.lock().push(request.clone());
        world.breaks.lock().take()
    };
    if let Some(end) = breaks {
        end.notify_one();
        std::future::pending::<()>().await;
    }
    if let Some(code) = request.action.strip_prefix("code-") {
        return Err(Status::new(Code::from(code.parse::<i32>().expect("a code")), "no"));
    }
    let told = Told { progress: 1.0, total: None, message: "half".to_owned() };
    let done = ExecuteResponse { content: request.action, ..ExecuteResponse::default() };
    let updates = [execute_update::Kind::Progress(told), execute_update::Kind::Done(done)];
    let updates: Vec<_> = updates.into_iter().map(|kind| Ok(ExecuteUpdate { kind: Some(kind) })).collect();
    Ok(Response::new(futures_util::stream::iter(updates)))
}

/// Provides connections, each served until the test ends it.
struct FakeConnector(Arc<HostState>, Arc<Notify>);

#[async_trait]
impl HostConnector for FakeConnector {
    async fn connect(&self) -> io::Result<UnixStream> {
        self.0.connected.fetch_add(1, Ordering::SeqCst);
        if self.0.refused.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
        {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        let (world, end, held) = (Arc::clone(&self.0), Arc::clone(&self.1), ours.try_clone()?);
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        let (ours, theirs) = (UnixStream::from_std(ours)?, UnixStream::from_std(theirs)?);
        let incoming = tokio_stream::once(Ok::<_, io::Error>(ours)).chain(futures_util::stream::pending());
        tokio::spawn(tonic::transport::Server::builder().serve_with_incoming(Supervisor(world), incoming));
        tokio::spawn(async move {
            end.notified().await;
            held.shutdown(std::net::Shutdown::Both).expect("it was connected");
        });
        Ok(theirs)
    }
}

fn door() -> (HostClient, Arc<HostState>, Arc<Notify>) {
    let (world, end) = (Arc::new(HostState::default()), Arc::new(Notify::new()));
    (HostClient::new(Arc::new(FakeConnector(Arc::clone(&world), Arc::clone(&end)))), world, end)
}

fn call(action: &str) -> HostCall {
    HostCall {
        plugin: "files".to_owned(),
        action: action.to_owned(),
        args: BTreeMap::from([("path".to_owned(), "a".to_owned())]),
        arguments_json: String::new(),
        context: BTreeMap::from([("session_id".to_owned(), "s".to_owned())]),
        within: vec!["files.*".to_owned()],
        takes_input_requests: false,
        input_response: None,
        trace: None,
        call_id: String::new(),
        measured: false,
    }
}

#[tokio::test]
async fn tools_are_those_of_plugins_that_are_up_and_there() {
    let (door, _, _) = door();
    let tools = door.tools().await.expect("told");
    assert_eq!(tools.len(), 1);
    assert_eq!((tools[0].0.as_str(), tools[0].1.actions[0].name.as_str()), ("files", "read"));
}

// Promises: GW-292
#[tokio::test]
async fn turns_that_begin_at_once_ask_for_the_tools_twice() {
    let (door, world, _) = door();
    let told = futures_util::future::join_all((0..50).map(|_| door.tools())).await;
    assert!(told.iter().all(|tools| tools.as_ref().is_ok_and(|tools| tools.len() == 1)), "{told:?}");
    assert_eq!(world.listed.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_call_goes_out_for_a_model_within_its_patterns_and_tells_how_far_it_is() {
    let (door, world, _) = door();
    let mut heard = Vec::new();
    let answer = door.execute(&call("read"), &mut |progress| heard.push(progress)).await.expect("answered");
    assert_eq!(answer.content, "read");
    let half = Progress { progress: 1.0, total: None, message: "half".to_owned() };
    assert_eq!(heard, [CallUpdate::Progress(half)]);
    let asked = world.asked.lock()[0].clone();
    assert!(asked.for_model);
    assert_eq!((asked.within, asked.context["session_id"].as_str()), (vec!["files.*".to_owned()], "s"));
    assert_eq!(asked.args["path"], "a");
}

#[tokio::test]
async fn a_call_whose_connection_breaks_is_not_repeated_and_the_next_one_has_another() {
    let (door, world, end) = door();
    *world.breaks.lock() = Some(Arc::clone(&end));
    let error = door.execute(&call("write"), &mut |_| {}).await.expect_err("broken");
    assert!(error.to_string().contains("whether the call took effect is not known"), "{error}");
    assert_eq!(door.execute(&call("read"), &mut |_| {}).await.expect("answered").content, "read");
    let asked = world.asked.lock().len();
    assert_eq!((asked, world.connected.load(Ordering::SeqCst)), (2, 2));
}

#[tokio::test]
async fn what_the_supervisor_refuses_was_not_made_and_of_the_rest_that_is_not_known() {
    let (door, _, _) = door();
    let refused = [Code::InvalidArgument, Code::PermissionDenied, Code::FailedPrecondition];
    for code in refused.into_iter().chain([Code::Internal, Code::DeadlineExceeded, Code::Unknown]) {
        let asked = call(&format!("code-{}", i32::from(code)));
        let error = door.execute(&asked, &mut |_| {}).await.expect_err("it is refused");
        assert_eq!(matches!(error, HostError::NotMade { .. }), refused.contains(&code), "{code:?}: {error}");
    }
}

#[tokio::test]
async fn who_is_just_being_replaced_is_waited_for() {
    let (door, world, _) = door();
    world.refused.store(3, Ordering::SeqCst);
    assert_eq!(door.tools().await.expect("told").len(), 1);
    assert!(world.connected.load(Ordering::SeqCst) > 3);
}
