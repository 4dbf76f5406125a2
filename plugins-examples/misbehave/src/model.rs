//! Correct and incorrect uses of the socket for completions. Every attempt reports its result, so that a test can compare
//! it with the expected one.

use std::error::Error as _;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::join_all;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use talon_proto::model::model_client::ModelClient;
use talon_proto::model::{CompleteRequest, ListRequest, Message, Refusal};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

/// Longer than any completion that is answered, so that a missing answer differs from a refusal.
const TIMEOUT: Duration = Duration::from_secs(50);

/// What a client of HTTP/2 says first: the preface, and settings without a change.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Lets go of calls that are held.
static RELEASED: Notify = Notify::const_new();

/// The results of completions that their calls did not wait for.
static LEFT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What to ask.
#[derive(Debug, Clone)]
pub(crate) struct Completion {
    pub(crate) prompt: String,
    pub(crate) model: String,
    /// The call that it names.
    pub(crate) call_id: String,
}

fn socket() -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("TALON_MODEL_SOCKET").map(PathBuf::from);
    path.ok_or_else(|| anyhow::anyhow!("TALON_MODEL_SOCKET is not set"))
}

async fn client() -> anyhow::Result<ModelClient<Channel>> {
    let socket = socket()?;
    let connect = tower::service_fn(move |_| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    let channel = Endpoint::from_static("http://localhost").connect_with_connector(connect).await?;
    Ok(ModelClient::new(channel))
}

fn described(status: &Status) -> String {
    let reason = Refusal::of(status).map(|refusal| refusal.reason).unwrap_or_default();
    let cause = status.source().map(|cause| format!(" ({cause})")).unwrap_or_default();
    format!("{:?} {reason}: {}{cause}", status.code(), status.message())
}

async fn one(mut client: ModelClient<Channel>, asked: Completion) -> String {
    let Completion { prompt, model, call_id } = asked;
    let messages = vec![Message { role: "user".to_owned(), text: prompt }];
    let request = CompleteRequest { model, messages, call_id, ..CompleteRequest::default() };
    match tokio::time::timeout(TIMEOUT, client.complete(request)).await {
        Ok(Ok(answer)) => {
            let answer = answer.into_inner();
            format!("said {} by {}", answer.text, answer.model)
        }
        Ok(Err(status)) => described(&status),
        Err(_) => "no answer".to_owned(),
    }
}

/// Asks so many times at once; one result a line.
pub(crate) async fn complete(asked: Completion, times: usize) -> anyhow::Result<String> {
    let client = client().await?;
    let all = join_all((0..times.max(1)).map(|_| one(client.clone(), asked.clone()))).await;
    Ok(all.join("\n"))
}

/// Asks once, and gives the model's text alone.
pub(crate) async fn text(asked: Completion) -> anyhow::Result<String> {
    let result = one(client().await?, asked).await;
    let said = result.strip_prefix("said ").and_then(|said| said.rsplit_once(" by "));
    said.map(|(text, _)| text.to_owned()).ok_or_else(|| anyhow::anyhow!("{result}"))
}

/// Asks so many times at once, and does not wait for the answers.
pub(crate) async fn leave(asked: Completion, times: usize) -> anyhow::Result<String> {
    let client = client().await?;
    for _ in 0..times.max(1) {
        let (client, asked) = (client.clone(), asked.clone());
        tokio::spawn(async move {
            let result = one(client, asked).await;
            LEFT.lock().push(result);
        });
    }
    Ok("left".to_owned())
}

/// The results of what was left.
pub(crate) fn left() -> String {
    LEFT.lock().join("\n")
}

/// Logs the call's id, and answers once it is let go.
pub(crate) async fn hold(call_id: &str) -> anyhow::Result<String> {
    eprintln!("misbehave: held {call_id}");
    RELEASED.notified().await;
    Ok("let go".to_owned())
}

/// Lets a held call go.
pub(crate) fn release() -> anyhow::Result<String> {
    RELEASED.notify_one();
    Ok("released".to_owned())
}

/// What is granted.
pub(crate) async fn list() -> anyhow::Result<String> {
    match client().await?.list(ListRequest {}).await {
        Ok(granted) => {
            let granted = granted.into_inner();
            let names: Vec<String> = granted.models.into_iter().map(|model| model.alias).collect();
            Ok(format!("{} calls {} tokens {}", names.join(" "), granted.max_calls, granted.max_tokens))
        }
        Err(status) => Ok(described(&status)),
    }
}

/// Connects so many times at once, and says how many connections were served and how many were closed at once. Some attempts
/// find the socket's queue full.
pub(crate) async fn connect(times: usize) -> anyhow::Result<String> {
    let path = socket()?;
    let mut open = Vec::new();
    for _ in 0..times {
        if let Ok(mut stream) = UnixStream::connect(&path).await {
            // The begin of a request, so that a server that serves it answers.
            let _ = stream.write_all(PREFACE).await;
            open.push(stream);
        }
    }
    let answers = join_all(open.iter_mut().map(async |stream| {
        let answer = tokio::time::timeout(TIMEOUT, stream.read_u8()).await;
        matches!(answer, Ok(Ok(_)))
    }));
    let answers = answers.await;
    let served = answers.iter().filter(|served| **served).count();
    Ok(format!("served {served} closed {}", answers.len() - served))
}
