//! A plugin that sends its host any notices that a test wants: progress of its own calls and of others',
//! floods, changed tools. Written without the SDK, which would prevent invalid ones.
//!
//! `talon-noticer [--echo DESCRIPTION]`

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use talon_proto::notices::notice::Kind;
use talon_proto::notices::notices_server::{Notices, NoticesServer};
use talon_proto::notices::{CallOutput, CapabilitiesChanged, ListenRequest, Notice, Progress};
use talon_proto::plugin::plugin_service_server::{PluginService, PluginServiceServer};
use talon_proto::plugin::{
    Action, HostMessage, Parameter, PluginCapabilities, PluginInitRequest, PluginMessage, ToolCallRequest,
    ToolResultResponse,
};
use tokio::net::UnixListener;
use tokio::sync::{Notify, broadcast};
use tokio_stream::wrappers::{BroadcastStream, UnixListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::codegen::{Service, http};
use tonic::{Request, Response, Status, Streaming};

/// Notices that are buffered for the host; a test must not send more without a pause.
const CHANNEL_CAPACITY: usize = 200_000;

#[derive(Clone)]
struct Noticer {
    notices: broadcast::Sender<Notice>,
    /// The description of `echo`.
    described: Arc<Mutex<String>>,
    /// Actions that were added later.
    grown: Arc<Mutex<Vec<String>>>,
    release: Arc<Notify>,
    /// A change that no listener has received yet.
    missed: Arc<AtomicBool>,
}

fn progress(call_id: &str, progress: f64, total: Option<f64>, message: &str) -> Notice {
    let message = message.to_owned();
    Notice { kind: Some(Kind::Progress(Progress { call_id: call_id.to_owned(), progress, total, message })) }
}

fn output(call_id: &str, lines: Vec<String>) -> Notice {
    let output = CallOutput { call_id: call_id.to_owned(), lines, left_out_lines: 0 };
    Notice { kind: Some(Kind::Output(output)) }
}

impl Noticer {
    fn send(&self, notice: Notice) {
        // An error only says that the host does not listen.
        let _ = self.notices.send(notice);
    }

    fn send_changed(&self) {
        let changed = Notice { kind: Some(Kind::CapabilitiesChanged(CapabilitiesChanged {})) };
        if self.notices.send(changed).is_err() {
            self.missed.store(true, Ordering::SeqCst);
        }
    }

    fn capabilities(&self) -> PluginCapabilities {
        let text = |name: &str| Parameter {
            name: name.to_owned(),
            r#type: "string".to_owned(),
            ..Parameter::default()
        };
        let action = |name: &str, takes: &[&str]| Action {
            name: name.to_owned(),
            description: format!("Does {name}."),
            parameters: takes.iter().map(|name| text(name)).collect(),
            ..Action::default()
        };
        let described = self.described.lock().clone();
        let mut actions = vec![
            Action { description: described, ..action("echo", &["text"]) },
            action("tell", &["steps", "message"]),
            action("print", &["texts"]),
            action("print_flood", &[]),
            action("hold", &[]),
            action("release", &[]),
            action("spy", &["id"]),
            action("flood", &[]),
            action("burst", &[]),
            action("swap", &["description"]),
            action("grow", &["name"]),
            Action { user_only: true, ..action("wipe", &[]) },
        ];
        let grown = self.grown.lock();
        actions.extend(grown.iter().map(|name| action(name, &[])));
        PluginCapabilities { name: "noticer".to_owned(), actions, ..PluginCapabilities::default() }
    }

    async fn run(&self, id: &str, action: &str, args: &BTreeMap<String, String>) -> String {
        let arg = |name: &str| args.get(name).cloned().unwrap_or_default();
        // It counts from now on: a release that is asked for because of what a call tells may come before the call waits for it.
        let released = self.release.notified();
        match action {
            "tell" => {
                let steps: u32 = arg("steps").parse().unwrap_or(3);
                for step in 1..=steps {
                    self.send(progress(id, step.into(), Some(steps.into()), &arg("message")));
                }
                // The answer may overtake notices on another stream; the test checks first, then releases it.
                released.await;
                format!("told {steps}")
            }
            "print" => {
                let texts: Vec<String> = serde_json::from_str(&arg("texts")).unwrap_or_default();
                for text in texts {
                    self.send(output(id, vec![text]));
                }
                released.await;
                "printed".to_owned()
            }
            "print_flood" => {
                for _ in 0..1_000 {
                    self.send(output(id, vec!["a line of a flood".to_owned(); 10]));
                    self.send(output("nobody", vec!["of nobody".to_owned()]));
                }
                self.send(output(id, vec!["x".repeat(1 << 20)]));
                released.await;
                "flooded".to_owned()
            }
            "hold" => {
                self.send(progress(id, 1.0, None, id));
                released.await;
                "held".to_owned()
            }
            "release" => {
                self.release.notify_waiters();
                "released".to_owned()
            }
            "spy" => {
                self.send(progress(&arg("id"), 66.0, None, "about a call of somebody else"));
                self.send(progress("", 66.0, None, "about nobody"));
                "spied".to_owned()
            }
            "flood" => {
                for step in 0..100_000 {
                    self.send(progress("nobody", step.into(), None, "x"));
                    if step % 10 == 0 {
                        self.send(progress(id, f64::NAN, None, "no amount"));
                        self.send(progress(id, -1.0, None, "no amount"));
                    }
                }
                "flooded".to_owned()
            }
            "burst" => {
                self.send(progress(id, 1.0, None, &"x".repeat(1 << 20)));
                "burst".to_owned()
            }
            "swap" => {
                *self.described.lock() = arg("description");
                self.send_changed();
                "swapped".to_owned()
            }
            "grow" => {
                self.grown.lock().push(arg("name"));
                self.send_changed();
                "grown".to_owned()
            }
            "wipe" => "wiped".to_owned(),
            _ => arg("text"),
        }
    }
}

#[tonic::async_trait]
impl PluginService for Noticer {
    async fn init(&self, _: Request<PluginInitRequest>) -> Result<Response<()>, Status> {
        Ok(Response::new(()))
    }

    async fn execute(
        &self,
        request: Request<ToolCallRequest>,
    ) -> Result<Response<ToolResultResponse>, Status> {
        let ToolCallRequest { id, action, args, .. } = request.into_inner();
        let content = self.run(&id, &action, &args).await;
        Ok(Response::new(ToolResultResponse { call_id: id, content, ..ToolResultResponse::default() }))
    }

    async fn capabilities(&self, _: Request<()>) -> Result<Response<PluginCapabilities>, Status> {
        Ok(Response::new(self.capabilities()))
    }

    async fn refresh_capabilities(&self, _: Request<()>) -> Result<Response<PluginCapabilities>, Status> {
        Ok(Response::new(self.capabilities()))
    }

    type ExecuteBidiStream = tokio_stream::Empty<Result<PluginMessage, Status>>;

    async fn execute_bidi(
        &self,
        _: Request<Streaming<HostMessage>>,
    ) -> Result<Response<Self::ExecuteBidiStream>, Status> {
        Err(Status::unimplemented("no callbacks"))
    }
}

#[tonic::async_trait]
impl Notices for Noticer {
    type ListenStream = std::pin::Pin<Box<dyn Stream<Item = Result<Notice, Status>> + Send>>;

    async fn listen(&self, _: Request<ListenRequest>) -> Result<Response<Self::ListenStream>, Status> {
        // First: who reads that somebody listens may have something told at once.
        let notices = BroadcastStream::new(self.notices.subscribe());
        eprintln!("somebody listens");
        if self.missed.swap(false, Ordering::SeqCst) {
            self.send_changed();
        }
        Ok(Response::new(Box::pin(notices.filter_map(|notice| notice.ok().map(Ok)))))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut described = "Does echo.".to_owned();
    if args.next().as_deref() == Some("--echo") {
        described = args.next().ok_or("--echo needs a description")?;
    }
    let noticer = Noticer {
        notices: broadcast::Sender::new(CHANNEL_CAPACITY),
        described: Arc::new(Mutex::new(described)),
        grown: Arc::default(),
        release: Arc::default(),
        missed: Arc::default(),
    };
    let dir = std::env::var("PLUGIN_UNIX_SOCKET_DIR").or_else(|_| std::env::var("TMPDIR"))?;
    let socket = Path::new(&dir).join("noticer.sock");
    let listener = UnixListener::bind(&socket)?;
    println!("1|1|unix|{}|grpc", socket.display());
    let (plugin, notices) = (PluginServiceServer::new(noticer.clone()), NoticesServer::new(noticer));
    let services = tower::service_fn(move |request: http::Request<tonic::body::Body>| {
        let (mut plugin, mut notices) = (plugin.clone(), notices.clone());
        async move {
            let answer: Result<_, Infallible> =
                if request.uri().path().starts_with("/talon.plugin.v1.Notices/") {
                    notices.call(request).await
                } else {
                    plugin.call(request).await
                };
            answer
        }
    });
    tonic::transport::Server::builder()
        .serve_with_incoming(services, UnixListenerStream::new(listener))
        .await?;
    Ok(())
}
