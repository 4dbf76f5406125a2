//! A model provider on loopback that implements OpenAI's API, gives scripted replies, and records every
//! request.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Only a limit for hangs, not an expectation of speed.
const WAIT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// How long a reply that is held back says nothing.
const SILENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// The reply to one request.
#[derive(Debug, Clone)]
pub enum ScriptedReply {
    /// This text.
    Text(String),
    /// Calls of these tools, each with its arguments.
    ToolCalls(Vec<(String, Value)>),
    /// What this function replies to the question.
    Computed(fn(&Value) -> ScriptedReply),
    /// This body, with this status and content type.
    Raw(u16, &'static str, String),
    /// Begins a reply and closes the connection.
    Truncated(String),
    /// A tool call that reaches the token limit in the middle of the arguments.
    TruncatedCall(String, String),
    /// No reply until the client disconnects.
    Hang,
    /// An error of this status whose head asks for so many seconds before the next request.
    RetryAfter(u16, u32),
    /// This text again and again until the client disconnects.
    Endless(String),
    /// This text once the gate is open.
    Gated(Gate, String),
    /// The first of these pieces of a text, and the others once the gate is open.
    Pieces(Gate, Vec<String>),
    /// The first text at once, and the second once the gate is open.
    Paused(Gate, String, String),
}

/// Holds replies back until it is opened.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// A closed one.
    #[must_use]
    pub fn closed() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Lets everything through.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Lets nothing through any more.
    pub fn close(&self) {
        self.0.send_replace(false);
    }

    async fn passed(&self) {
        // The sender is this value's own.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

/// Chooses the reply to a request by what it asks.
pub type Respond = dyn Fn(&Value) -> ScriptedReply + Send + Sync;

/// A provider that listens until it is dropped.
pub struct Provider {
    state: Arc<ScriptState>,
    port: u16,
    task: JoinHandle<()>,
}

struct ScriptState {
    script: Mutex<VecDeque<ScriptedReply>>,
    /// Replies once the script is over; `done` without it.
    respond: Option<Box<Respond>>,
    bodies: Mutex<Vec<String>>,
    asked: watch::Sender<usize>,
}

impl Provider {
    /// A provider with these replies, one for each request; then it replies `done`.
    ///
    /// # Panics
    /// When no port can be bound.
    pub async fn start(script: impl IntoIterator<Item = ScriptedReply>) -> Self {
        Self::listen(script.into_iter().collect(), None).await
    }

    /// A provider whose replies depend on what it is asked.
    ///
    /// # Panics
    /// When no port can be bound.
    pub async fn responding(respond: impl Fn(&Value) -> ScriptedReply + Send + Sync + 'static) -> Self {
        Self::listen(VecDeque::new(), Some(Box::new(respond))).await
    }

    async fn listen(script: VecDeque<ScriptedReply>, respond: Option<Box<Respond>>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let kept = Arc::new(ScriptState {
            script: Mutex::new(script),
            respond,
            bodies: Mutex::default(),
            asked: watch::Sender::new(0),
        });
        let task = tokio::spawn(serve(listener, Arc::clone(&kept)));
        Self { state: kept, port, task }
    }

    /// Its `base_url`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The bytes of every request so far.
    #[must_use]
    pub fn bodies(&self) -> Vec<String> {
        self.state.bodies.lock().clone()
    }

    /// The same as JSON.
    ///
    /// # Panics
    /// When one is not JSON.
    #[must_use]
    pub fn questions(&self) -> Vec<Value> {
        self.bodies().iter().map(|body| serde_json::from_str(body).expect("a question is JSON")).collect()
    }

    /// Adds replies.
    pub fn extend_script(&self, more: impl IntoIterator<Item = ScriptedReply>) {
        self.state.script.lock().extend(more);
    }

    /// Waits for this number of requests.
    ///
    /// # Panics
    /// When they do not come for a long time.
    pub async fn wait_questions(&self, times: usize) {
        let mut asked = self.state.asked.subscribe();
        let enough = asked.wait_for(|count| *count >= times);
        timeout(WAIT_TIMEOUT, enough).await.expect("the provider is asked").expect("it listens");
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, kept: Arc<ScriptState>) {
    while let Ok((stream, _)) = listener.accept().await {
        let kept = Arc::clone(&kept);
        // A client that disconnects early must not affect the others.
        tokio::spawn(async move { answer(stream, &kept).await });
    }
}

/// Answers one request; the connection is closed after it, which every client has to support.
async fn answer(mut stream: TcpStream, kept: &ScriptState) -> std::io::Result<()> {
    let Some((head, body)) = read(&mut stream).await? else { return Ok(()) };
    if !head.starts_with("POST ") {
        // A probe: the list of models.
        let models = json!({"object": "list", "data": []}).to_string();
        return stream.write_all(http(200, "application/json", &models).as_bytes()).await;
    }
    let question: Value = serde_json::from_str(&body).unwrap_or_default();
    let says = kept.script.lock().pop_front();
    let says = match says {
        Some(ScriptedReply::Computed(reply)) => Some(reply(&question)),
        says => says,
    };
    kept.bodies.lock().push(body);
    let says = says.or_else(|| Some((kept.respond.as_ref()?)(&question)));
    kept.asked.send_modify(|count| *count += 1);
    let says = says.unwrap_or_else(|| ScriptedReply::Text("done".to_owned()));
    match says {
        ScriptedReply::Raw(status, kind, body) => {
            stream.write_all(http(status, kind, &body).as_bytes()).await
        }
        ScriptedReply::Hang => {
            // Waits until the client disconnects.
            let mut rest = [0; 64];
            while stream.read(&mut rest).await? > 0 {}
            Ok(())
        }
        ScriptedReply::RetryAfter(status, seconds) => {
            let body = r#"{"error": {"message": "later"}}"#;
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nretry-after: {seconds}\r\n"
            );
            let length = body.len();
            stream
                .write_all(
                    format!("{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}").as_bytes(),
                )
                .await
        }
        ScriptedReply::Endless(text) => {
            let delta = event(&json!({"content": text}), Value::Null);
            stream.write_all(EVENTS.as_bytes()).await?;
            loop {
                stream.write_all(delta.as_bytes()).await?;
            }
        }
        ScriptedReply::Truncated(text) => {
            let delta = event(&json!({"content": text}), Value::Null);
            stream.write_all(format!("{EVENTS}{delta}").as_bytes()).await
        }
        ScriptedReply::Gated(gate, text) => {
            gate.passed().await;
            let whole = events(&ScriptedReply::Text(text));
            stream.write_all(format!("{EVENTS}{whole}").as_bytes()).await
        }
        ScriptedReply::Paused(gate, first, second) => {
            let begin = event(&json!({"content": first}), Value::Null);
            stream.write_all(format!("{EVENTS}{begin}").as_bytes()).await?;
            gate.passed().await;
            stream.write_all(events(&ScriptedReply::Text(second)).as_bytes()).await
        }
        ScriptedReply::Pieces(gate, pieces) => {
            stream.write_all(EVENTS.as_bytes()).await?;
            for (place, piece) in pieces.iter().enumerate() {
                // A model that says nothing for a minute is given up.
                while place == 1 && timeout(SILENCE, gate.passed()).await.is_err() {
                    let nothing = event(&json!({"content": ""}), Value::Null);
                    stream.write_all(nothing.as_bytes()).await?;
                }
                let delta = event(&json!({"content": piece}), Value::Null);
                stream.write_all(delta.as_bytes()).await?;
            }
            let end = events(&ScriptedReply::Text(String::new()));
            stream.write_all(end.as_bytes()).await
        }
        whole => stream.write_all(format!("{EVENTS}{}", events(&whole)).as_bytes()).await,
    }
}

const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn events(says: &ScriptedReply) -> String {
    let calls = |calls: Vec<(&str, String)>| {
        let each = calls.iter().enumerate().map(|(index, (name, arguments))| {
            json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": {"name": name, "arguments": arguments}})
        });
        json!({"tool_calls": each.collect::<Vec<_>>()})
    };
    let (delta, finish) = match says {
        ScriptedReply::ToolCalls(made) => {
            let made = made.iter().map(|(name, arguments)| (name.as_str(), arguments.to_string()));
            (calls(made.collect()), "tool_calls")
        }
        ScriptedReply::TruncatedCall(name, arguments) => (calls(vec![(name, arguments.clone())]), "length"),
        ScriptedReply::Text(text) => (json!({"content": text}), "stop"),
        ScriptedReply::Raw(..)
        | ScriptedReply::Truncated(_)
        | ScriptedReply::Hang
        | ScriptedReply::Computed(_)
        | ScriptedReply::RetryAfter(..)
        | ScriptedReply::Endless(_)
        | ScriptedReply::Gated(..)
        | ScriptedReply::Paused(..)
        | ScriptedReply::Pieces(..) => (json!({}), "stop"),
    };
    let usage = json!({"id": "x", "model": "test", "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}});
    let first = event(&delta, Value::Null);
    let last = event(&json!({}), json!(finish));
    format!("{first}{last}data: {usage}\n\ndata: [DONE]\n\n")
}

fn event(delta: &Value, finish: Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    format!("data: {}\n\n", json!({"id": "x", "model": "test", "choices": [choice]}))
}

fn http(status: u16, kind: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// Head and body of a request; `None` if the client disconnected.
async fn read(stream: &mut TcpStream) -> std::io::Result<Option<(String, String)>> {
    const END: &[u8] = b"\r\n\r\n";
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(END.len()).position(|window| window == END) {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .and_then(|(_, value)| value.trim().parse::<usize>().ok())
                .unwrap_or(0);
            let body_at = end + END.len();
            while bytes.len() < body_at + length {
                if stream.read_buf(&mut bytes).await? == 0 {
                    return Ok(None);
                }
            }
            let body = String::from_utf8_lossy(&bytes[body_at..body_at + length]).into_owned();
            return Ok(Some((head, body)));
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
}
