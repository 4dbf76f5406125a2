use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use talon_proto::goplugin::Empty;
use talon_proto::goplugin::grpc_controller_client::GrpcControllerClient;
use talon_proto::notices::notice::Kind;
use talon_proto::notices::notices_client::NoticesClient;
use talon_proto::notices::{ListenRequest, Notice};
use talon_proto::plugin::plugin_service_client::PluginServiceClient;
use talon_proto::plugin::{HostMessage, PluginInitRequest, ToolCallRequest};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::{ServeError, server};
use crate::{Context, Notifier, Plugin, Tool, ToolError};

struct Served {
    _dir: tempfile::TempDir,
    socket: PathBuf,
    stop: CancellationToken,
    server: JoinHandle<Result<(), ServeError>>,
    channel: Channel,
}

async fn dial(socket: &Path) -> Result<Channel, tonic::transport::Error> {
    let socket = socket.to_owned();
    Endpoint::from_static("http://localhost")
        .connect_with_connector(tower::service_fn(move |_| {
            let socket = socket.clone();
            async move { tokio::net::UnixStream::connect(socket).await.map(TokioIo::new) }
        }))
        .await
}

async fn serve(plugin: Plugin) -> Served {
    let dir = tempfile::tempdir().expect("dir");
    let socket = dir.path().join("p.sock");
    let listener = tokio::net::UnixListener::bind(&socket).expect("bound");
    let stop = CancellationToken::new();
    let server = tokio::spawn(server::run_until(plugin, listener, stop.clone()));
    let channel = dial(&socket).await.expect("connects");
    Served { _dir: dir, socket, stop, server, channel }
}

impl Served {
    fn plugin(&self) -> PluginServiceClient<Channel> {
        PluginServiceClient::new(self.channel.clone())
    }
}

fn call(action: &str) -> ToolCallRequest {
    ToolCallRequest {
        id: "c1".to_owned(),
        plugin: "p".to_owned(),
        action: action.to_owned(),
        ..Default::default()
    }
}

fn quick() -> Tool {
    Tool::new("quick", "Answers.", |(): (), _: Context| async { Ok::<_, ToolError>("quick") })
}

/// Reports that it started, waits until it is released, and reports on drop how it ended.
fn slow(started: mpsc::UnboundedSender<Context>, go: Arc<Notify>) -> Tool {
    Tool::new("slow", "Waits.", move |(): (), cx: Context| {
        let (started, go) = (started.clone(), Arc::clone(&go));
        async move {
            started.send(cx).expect("test listens");
            go.notified().await;
            Ok::<_, ToolError>("slow")
        }
    })
}

fn slow_plugin() -> (Plugin, mpsc::UnboundedReceiver<Context>, Arc<Notify>) {
    let (started, has_started) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let plugin = Plugin::new("p").tool(quick()).tool(slow(started, Arc::clone(&go)));
    (plugin, has_started, go)
}

// Promises: SDK-13
#[tokio::test]
async fn health_is_serving_for_the_plugin_and_for_the_server() {
    let served = serve(Plugin::new("p").tool(quick())).await;
    let mut health = HealthClient::new(served.channel.clone());
    for service in ["plugin", ""] {
        let request = HealthCheckRequest { service: service.to_owned() };
        assert_eq!(health.check(request).await.expect("answers").into_inner().status, 1, "{service:?}");
    }
    let request = HealthCheckRequest { service: "other".to_owned() };
    assert_eq!(health.check(request).await.expect_err("unknown").code(), Code::NotFound);
}

#[tokio::test]
async fn optional_methods_are_unimplemented() {
    let served = serve(Plugin::new("p").tool(quick())).await;
    let status = served.plugin().refresh_capabilities(()).await.expect_err("no hook");
    assert_eq!(status.code(), Code::Unimplemented);
    let nothing = tokio_stream::empty::<HostMessage>();
    assert_eq!(served.plugin().execute_bidi(nothing).await.expect_err("never").code(), Code::Unimplemented);
}

// Promises: SDK-13
#[tokio::test]
async fn an_unknown_service_is_unimplemented_and_reflection_is_one() {
    let served = serve(Plugin::new("p").tool(quick())).await;
    let mut grpc = tonic::client::Grpc::new(served.channel.clone());
    grpc.ready().await.expect("ready");
    let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo".parse().expect("a path");
    let codec = tonic_health_codec();
    let status = grpc.unary(Request::new(()), path, codec).await.expect_err("refused");
    assert_eq!(status.code(), Code::Unimplemented);
}

fn tonic_health_codec() -> tonic_prost::ProstCodec<(), ()> {
    tonic_prost::ProstCodec::default()
}

#[tokio::test]
async fn refreshed_tools_replace_the_old_ones_unless_they_are_defective() {
    let first = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let plugin = Plugin::new("p").tool(quick()).refresh(move || {
        let good = first.swap(false, std::sync::atomic::Ordering::SeqCst);
        async move {
            let fresh =
                Tool::new("fresh", "New.", |(): (), _: Context| async { Ok::<_, ToolError>("fresh") });
            Ok(if good { vec![fresh] } else { vec![quick(), quick()] })
        }
    });
    let served = serve(plugin).await;
    let told = served.plugin().refresh_capabilities(()).await.expect("refreshed").into_inner();
    assert_eq!(told.actions[0].name, "fresh");
    assert_eq!(served.plugin().execute(call("fresh")).await.expect("there").into_inner().content, "fresh");
    assert!(!served.plugin().execute(call("quick")).await.expect("answers").into_inner().error.is_empty());
    let status = served.plugin().refresh_capabilities(()).await.expect_err("defective");
    assert_eq!(status.code(), Code::Internal);
    assert_eq!(served.plugin().capabilities(()).await.expect("kept").into_inner().actions[0].name, "fresh");
}

#[tokio::test]
async fn a_refused_config_is_an_invalid_argument_and_the_old_one_stays() {
    #[derive(serde::Deserialize)]
    struct Config {
        word: String,
    }
    let tool = Tool::new("word", "Tells.", |(): (), cx: Context| async move {
        Ok::<_, ToolError>(cx.config::<Config>()?.word.clone())
    });
    let served = serve(Plugin::new("p").config::<Config>().tool(tool)).await;
    let init = |text: &str| PluginInitRequest { config_json: text.to_owned() };
    let status = served.plugin().init(init("{}")).await.expect_err("refused");
    assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "config: missing field `word`"));
    let early = served.plugin().execute(call("word")).await.expect("answers").into_inner();
    assert!(early.error.contains("the plugin's log says why"), "{}", early.error);
    served.plugin().init(init(r#"{"word":"a"}"#)).await.expect("accepted");
    served.plugin().init(init("[]")).await.expect_err("refused");
    assert_eq!(served.plugin().execute(call("word")).await.expect("answers").into_inner().content, "a");
}

#[tokio::test]
async fn a_client_that_gives_up_cancels_the_tool() {
    let (plugin, mut started, _go) = slow_plugin();
    let served = serve(plugin).await;
    let mut client = served.plugin();
    let waiting = tokio::spawn(async move { client.execute(call("slow")).await });
    let cx = started.recv().await.expect("started");
    waiting.abort();
    cx.token().cancelled().await;
    assert_eq!(served.plugin().execute(call("quick")).await.expect("lives").into_inner().content, "quick");
}

// Promises: WIRE-7
#[tokio::test]
async fn the_deadline_travels_and_ends_the_call() {
    let (plugin, mut started, _go) = slow_plugin();
    let served = serve(plugin).await;
    let mut request = Request::new(call("slow"));
    request.set_timeout(Duration::from_millis(50));
    let mut client = served.plugin();
    let waiting = tokio::spawn(async move { client.execute(request).await });
    let cx = started.recv().await.expect("started");
    assert!(cx.remaining().expect("has a deadline") <= Duration::from_millis(50));
    cx.token().cancelled().await;
    waiting.await.expect("joined").expect_err("timed out");
}

// Promises: SDK-14
#[tokio::test]
async fn shutdown_lets_calls_in_flight_finish_and_takes_no_new_ones() {
    let (plugin, mut started, go) = slow_plugin();
    let served = serve(plugin).await;
    let mut client = served.plugin();
    let waiting = tokio::spawn(async move { client.execute(call("slow")).await });
    started.recv().await.expect("started");
    let shutdown = GrpcControllerClient::new(served.channel.clone()).shutdown(Empty {}).await;
    shutdown.expect("the answer goes out before the end");
    served.stop.cancelled().await;
    assert!(!served.server.is_finished(), "a call is in flight");
    go.notify_one();
    let answer = waiting.await.expect("joined").expect("finished").into_inner();
    assert_eq!(answer.content, "slow");
    drop(served.channel);
    served.server.await.expect("joined").expect("ended well");
    assert!(dial(&served.socket).await.is_err(), "nobody listens any more");
}

// Promises: SDK-14
#[tokio::test]
async fn a_call_that_outlives_the_grace_is_dropped() {
    let (plugin, mut started, _go) = slow_plugin();
    let served = serve(plugin.grace(Duration::ZERO)).await;
    let mut client = served.plugin();
    tokio::spawn(async move { client.execute(call("slow")).await });
    started.recv().await.expect("started");
    served.stop.cancel();
    served.server.await.expect("joined").expect("ends all the same");
}

// Promises: SDK-8
#[tokio::test]
async fn a_panic_leaves_other_calls_and_the_connection_alone() {
    let (started, mut has_started) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let bad = Tool::new("bad", "Panics.", |(): (), _: Context| async move {
        if true {
            panic!("on purpose");
        }
        Ok::<_, ToolError>("")
    });
    let served = serve(Plugin::new("p").tool(bad).tool(slow(started, Arc::clone(&go)))).await;
    let mut client = served.plugin();
    let waiting = tokio::spawn(async move { client.execute(call("slow")).await });
    has_started.recv().await.expect("started");
    assert_eq!(served.plugin().execute(call("bad")).await.expect_err("a fault").code(), Code::Internal);
    go.notify_one();
    assert_eq!(waiting.await.expect("joined").expect("unharmed").into_inner().content, "slow");
}

#[tokio::test]
async fn requests_of_many_megabytes_arrive() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Big {
        text: String,
    }
    let tool = Tool::new("len", "Counts.", |args: Big, _: Context| async move {
        Ok::<_, ToolError>(args.text.len().to_string())
    });
    let served = serve(Plugin::new("p").tool(tool)).await;
    let mut request = call("len");
    request.args.insert("text".to_owned(), "x".repeat(20 << 20));
    assert_eq!(
        served.plugin().execute(request).await.expect("fits").into_inner().content,
        (20 << 20).to_string()
    );
    let mut request = call("len");
    request.args.insert("text".to_owned(), "x".repeat(33 << 20));
    assert_eq!(served.plugin().execute(request).await.expect_err("too large").code(), Code::OutOfRange);
}

async fn listen(served: &Served) -> Streaming<Notice> {
    let listening = NoticesClient::new(served.channel.clone()).listen(ListenRequest {}).await;
    listening.expect("listens").into_inner()
}

#[tokio::test]
async fn who_listens_hears_progress_and_changes() {
    let notifier = Notifier::new();
    let tool = Tool::new("long", "Tells how far it is.", |(): (), cx: Context| async move {
        for step in 1..=1000 {
            cx.progress(f64::from(step), Some(1000.0), "a step");
        }
        cx.progress(f64::NAN, None, "no amount");
        Ok::<_, ToolError>("done")
    });
    let served = serve(Plugin::new("p").tool(tool).notifier(notifier.clone())).await;
    assert_eq!(
        served.plugin().execute(call("long")).await.expect("nobody has to listen").into_inner().content,
        "done"
    );
    notifier.capabilities_changed();
    let mut notices = listen(&served).await;
    let changed = notices.message().await.expect("tells").expect("a notice").kind;
    assert!(matches!(changed, Some(Kind::CapabilitiesChanged(_))), "{changed:?}");
    served.plugin().execute(call("long")).await.expect("answers");
    let last = loop {
        match notices.message().await.expect("tells").expect("a notice").kind {
            Some(Kind::Progress(progress)) if progress.progress == 1000.0 => break progress,
            Some(Kind::Progress(_)) => {}
            other => panic!("no progress: {other:?}"),
        }
    };
    assert_eq!((last.call_id.as_str(), last.total, last.message.as_str()), ("c1", Some(1000.0), "a step"));
}

#[tokio::test]
async fn a_listener_does_not_keep_a_plugin_from_ending() {
    let served = serve(Plugin::new("p").tool(quick())).await;
    let mut notices = listen(&served).await;
    served.stop.cancel();
    assert_eq!(notices.message().await.expect("ends well"), None);
    drop(served.channel);
    served.server.await.expect("joined").expect("ended well");
}

// Promises: TRACE-10
#[tokio::test]
async fn a_tool_sees_the_trace_it_is_a_part_of() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let tool = Tool::new("trace", "Answers with its trace.", |(): (), cx: Context| async move {
        Ok::<_, ToolError>(format!("{:?} {:?}", cx.trace_parent(), cx.trace_state()))
    });
    let served = serve(Plugin::new("p").tool(tool)).await;
    let mut request = Request::new(call("trace"));
    request.metadata_mut().insert("traceparent", PARENT.parse().expect("a value"));
    request.metadata_mut().insert("tracestate", "rojo=1".parse().expect("a value"));
    let answer = served.plugin().execute(request).await.expect("answers").into_inner();
    assert_eq!(answer.content, format!("Some({PARENT:?}) Some(\"rojo=1\")"));
    let answer = served.plugin().execute(call("trace")).await.expect("answers").into_inner();
    assert_eq!(answer.content, "None None");
}

/// Half of the calls are answered where they are read, half need a task.
async fn all_are_answered() {
    let patient = Tool::new("patient", "Waits a turn.", |(): (), _: Context| async {
        tokio::task::yield_now().await;
        Ok::<_, ToolError>("patient")
    });
    let served = serve(Plugin::new("p").tool(quick()).tool(patient)).await;
    let calls: Vec<_> = (0..200)
        .map(|number| {
            let (mut client, action) = (served.plugin(), ["quick", "patient"][number % 2]);
            tokio::spawn(async move {
                let request = ToolCallRequest { id: format!("c{number}"), ..call(action) };
                let answer = client.execute(request).await.expect("answers").into_inner();
                assert_eq!((answer.call_id, answer.content.as_str()), (format!("c{number}"), action));
            })
        })
        .collect();
    for call in calls {
        call.await.expect("answered");
    }
}

#[tokio::test]
async fn calls_at_once_are_all_answered_on_one_thread() {
    all_are_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_once_are_all_answered_on_several_threads() {
    all_are_answered().await;
}

#[tokio::test]
async fn a_compressed_request_is_refused() {
    let served = serve(Plugin::new("p").tool(quick())).await;
    let mut compressed = Request::new(call("quick"));
    compressed.metadata_mut().insert("grpc-encoding", "gzip".parse().expect("a value"));
    let status = served.plugin().execute(compressed).await.expect_err("refused");
    assert_eq!(status.code(), Code::Unimplemented);
    assert_eq!(served.plugin().execute(call("quick")).await.expect("lives").into_inner().content, "quick");
}
