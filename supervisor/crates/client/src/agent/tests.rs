use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use talon_proto::agent::{AttachRequest, Chunk, Done, Started, Text, chunk};
use tokio::net::UnixListener;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::{Response, Status};

use super::*;

/// What an agent of these tests sends in answer to one request, before it hangs or ends.
#[derive(Clone)]
struct Says {
    chunks: Vec<chunk::Kind>,
    /// Sends nothing more and does not end.
    hangs: bool,
}

#[derive(Clone, Default)]
struct Script {
    asked: Arc<Mutex<VecDeque<Says>>>,
    attached: Arc<Mutex<VecDeque<Says>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Script {
    fn stream(&self, which: &Mutex<VecDeque<Says>>, request: String) -> Answer {
        self.requests.lock().push(request);
        let Some(says) = which.lock().pop_front() else {
            return Err(Status::not_found("the session is in no turn"));
        };
        let chunks = says.chunks.into_iter().map(|kind| Ok(Chunk { kind: Some(kind) }));
        let stream: Chunks = match says.hangs {
            true => Box::pin(tokio_stream::iter(chunks).chain(tokio_stream::pending())),
            false => Box::pin(tokio_stream::iter(chunks)),
        };
        Ok(Response::new(stream))
    }
}

type Chunks = std::pin::Pin<Box<dyn tokio_stream::Stream<Item = Result<Chunk, Status>> + Send>>;
type Answer = Result<Response<Chunks>, Status>;

impl tower::Service<http::Request<Body>> for Script {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let script = self.clone();
        Box::pin(async move {
            let path = request.uri().path().to_owned();
            let mut grpc = tonic::server::Grpc::new(tonic_prost::ProstCodec::default());
            Ok(match path.rsplit('/').next() {
                Some("Ask") => {
                    let ask = tower::service_fn(move |request: tonic::Request<AskRequest>| {
                        let said = format!("ask {}", request.into_inner().text);
                        std::future::ready(script.stream(&script.asked, said))
                    });
                    grpc.server_streaming(ask, request).await
                }
                Some("Attach") => {
                    let mut grpc = tonic::server::Grpc::new(tonic_prost::ProstCodec::default());
                    let attach = tower::service_fn(move |request: tonic::Request<AttachRequest>| {
                        let said = format!("attach {}", request.into_inner().session_id);
                        std::future::ready(script.stream(&script.attached, said))
                    });
                    grpc.server_streaming(attach, request).await
                }
                _ => Status::unimplemented("not in this test").into_http(),
            })
        })
    }
}

/// An agent in a separate runtime, so that its end ends all its connections, as with a process that is
/// killed.
fn agent(path: &Path, script: &Script) -> tokio::runtime::Runtime {
    let _ = std::fs::remove_file(path);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let inside = runtime.enter();
    let incoming = UnixListenerStream::new(UnixListener::bind(path).unwrap());
    let serving = tonic::transport::Server::builder().serve_with_incoming(script.clone(), incoming);
    runtime.spawn(serving);
    drop(inside);
    runtime
}

fn started() -> chunk::Kind {
    chunk::Kind::Started(Started {
        session_id: "s1".into(),
        turn: 1,
        correlation_id: "c".into(),
        ..Started::default()
    })
}

fn text(text: &str) -> chunk::Kind {
    chunk::Kind::Text(Text { text: text.into(), ..Text::default() })
}

fn done() -> chunk::Kind {
    chunk::Kind::Done(Done { text: "all of it".into(), ..Done::default() })
}

fn hello() -> AskRequest {
    AskRequest { text: "hello".into(), ..AskRequest::default() }
}

async fn heard(turn: &mut Turn) -> Result<Vec<String>, TurnError> {
    let mut all = Vec::new();
    while let Some(heard) = turn.next().await? {
        all.push(match heard {
            TurnEvent::Reconnected => "again".to_owned(),
            TurnEvent::Chunk(Chunk { kind: Some(chunk::Kind::Text(text)) }) => text.text,
            TurnEvent::Chunk(Chunk { kind: Some(chunk::Kind::Started(_)) }) => "started".to_owned(),
            TurnEvent::Chunk(Chunk { kind: Some(chunk::Kind::Done(_)) }) => "done".to_owned(),
            TurnEvent::Chunk(_) => "other".to_owned(),
        });
    }
    Ok(all)
}

#[tokio::test]
async fn a_turn_is_heard_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = Agent::socket_beside(&dir.path().join("host.sock"));
    let script = Script::default();
    script
        .asked
        .lock()
        .push_back(Says { chunks: vec![started(), text("all"), text(" of it"), done()], hangs: false });
    let running = agent(&path, &script);
    let client = Agent::connect(path).await.unwrap();
    let mut turn = client.turn(hello());
    assert_eq!(heard(&mut turn).await.unwrap(), ["started", "all", " of it", "done"]);
    assert_eq!(turn.session_id(), Some("s1"));
    assert_eq!(turn.next().await.unwrap(), None, "it stays over");
    assert_eq!(*script.requests.lock(), ["ask hello"]);
    running.shutdown_background();
}

// Promises: CLI-48
#[tokio::test]
async fn a_turn_is_found_again_when_the_agent_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(AGENT_SOCKET);
    let script = Script::default();
    script.asked.lock().push_back(Says { chunks: vec![started(), text("al")], hangs: true });
    script.attached.lock().push_back(Says { chunks: vec![text("all of it"), done()], hangs: false });
    let first = agent(&path, &script);
    let client = Agent::connect(path.clone()).await.unwrap();
    let mut turn = client.turn(hello());
    for _ in 0..2 {
        turn.next().await.unwrap().unwrap();
    }
    first.shutdown_background();
    let second = agent(&path, &script);
    assert_eq!(heard(&mut turn).await.unwrap(), ["again", "all of it", "done"]);
    assert_eq!(*script.requests.lock(), ["ask hello", "attach s1"], "it is not asked twice");
    second.shutdown_background();
}

// Promises: CLI-48
#[tokio::test]
async fn a_turn_that_ended_unheard_says_where_its_answer_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(AGENT_SOCKET);
    let script = Script::default();
    script.asked.lock().push_back(Says { chunks: vec![started()], hangs: true });
    let first = agent(&path, &script);
    let client = Agent::connect(path.clone()).await.unwrap();
    let mut turn = client.turn(hello());
    turn.next().await.unwrap().unwrap();
    first.shutdown_background();
    let second = agent(&path, &script);
    let error = heard(&mut turn).await.unwrap_err();
    assert!(matches!(&error, TurnError::Missed { session_id } if session_id == "s1"), "{error:?}");
    assert!(error.to_string().contains("talon session show s1"), "{error}");
    second.shutdown_background();
}

// Promises: CLI-48
#[tokio::test]
async fn what_the_agent_refuses_is_not_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(AGENT_SOCKET);
    let script = Script::default();
    let running = agent(&path, &script);
    let client = Agent::connect(path).await.unwrap();
    for mut turn in [client.turn(hello()), client.attach("s9".into())] {
        let error = heard(&mut turn).await.unwrap_err();
        assert!(
            matches!(&error, TurnError::Refused(status) if status.code() == tonic::Code::NotFound),
            "{error:?}"
        );
    }
    assert_eq!(*script.requests.lock(), ["ask hello", "attach s9"]);
    running.shutdown_background();
}

// Promises: CLI-48
#[tokio::test]
async fn a_turn_of_which_nothing_was_heard_is_not_asked_twice() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(AGENT_SOCKET);
    let script = Script::default();
    script.asked.lock().push_back(Says { chunks: vec![], hangs: false });
    let running = agent(&path, &script);
    let client = Agent::connect(path).await.unwrap();
    let error = heard(&mut client.turn(hello())).await.unwrap_err();
    assert!(matches!(error, TurnError::Unknown(_)), "{error:?}");
    assert_eq!(*script.requests.lock(), ["ask hello"]);
    running.shutdown_background();
}
