//! A client of the gateway before a real agent.

use std::net::SocketAddr;

use crate::ask::with_agent;
use crate::http::{Answer, send_tcp};
use crate::provider::{Provider, ScriptedReply};
use crate::{Builder, Supervisor, program};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async};

/// Only a limit for hangs.
pub const WAIT: std::time::Duration = std::time::Duration::from_secs(60);

/// A gateway before an agent.
pub struct Setting {
    /// What runs both.
    pub supervisor: Supervisor,
    /// The model that the agent asks.
    pub provider: Provider,
    /// Where the gateway serves.
    pub address: SocketAddr,
}

/// A gateway before an agent whose model says this.
pub async fn start(script: Vec<ScriptedReply>, agent: &str) -> Setting {
    start_before(Provider::start(script).await, agent).await
}

/// A gateway with these further keys before an agent whose model says this.
pub async fn start_with_gateway(script: Vec<ScriptedReply>, gateway: &str) -> Setting {
    start_all(Provider::start(script).await, "", gateway).await
}

/// A gateway before an agent with this provider.
pub async fn start_before(provider: Provider, agent: &str) -> Setting {
    start_all(provider, agent, "max_role: operate").await
}

/// A gateway with these further keys before an agent with these and this provider.
pub async fn start_all(provider: Provider, agent: &str, gateway: &str) -> Setting {
    let builder = Builder::new().plugin("liar", &program("misbehave"), &[], "");
    let role = if gateway.contains("max_role") { "" } else { "max_role: operate, " };
    let builder =
        builder.config(&format!("gateway: {{ enabled: true, address: '127.0.0.1:0', {role}{gateway} }}"));
    let supervisor = with_agent(builder, &provider, agent, "").start().await;
    let status = supervisor.wait_gateway("the gateway serves", |status| status.state == "serving").await;
    let address = status.url.trim_start_matches("http://").parse().expect("an address");
    Setting { supervisor, provider, address }
}

/// An answer of the model that is only text.
pub fn says(text: &str) -> ScriptedReply {
    ScriptedReply::Text(text.to_owned())
}

impl Setting {
    /// A new token, by the command line with these arguments.
    pub async fn token(&self, args: &[&str]) -> String {
        let output = self.supervisor.cli(&[&["token", "create", "--output", "json"], args].concat()).await;
        assert!(output.status.success(), "{output:?}");
        let issued: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        issued["token"].as_str().expect("a token").to_owned()
    }

    /// Sends a request with this token; a body is JSON.
    pub async fn send(&self, token: &str, method: &str, path: &str, headers: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let (address, length) = (self.address, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{kind}{headers}\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        send_tcp(address, &request).await
    }

    /// Status and body of an answer that is JSON.
    pub async fn json(&self, token: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let answer = self.send(token, method, path, "", body).await;
        let read = serde_json::from_str(&answer.body);
        (answer.status, read.unwrap_or_else(|error| panic!("{error}: {answer:?}\n{}", self.supervisor.log())))
    }

    /// Opens a WebSocket.
    pub async fn socket(&self, token: &str) -> Socket {
        let stream = TcpStream::connect(self.address).await.expect("it listens");
        self.socket_over(stream, token).await
    }

    /// The same over a connection that is there.
    pub async fn socket_over(&self, stream: TcpStream, token: &str) -> Socket {
        let mut request = format!("ws://{}/", self.address).into_client_request().expect("a request");
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().expect("a header"));
        let connecting = client_async(request, MaybeTlsStream::Plain(stream));
        let connected = timeout(WAIT, connecting).await.expect("it answers");
        let (socket, _) = connected.unwrap_or_else(|error| panic!("{error}\n{}", self.supervisor.log()));
        Socket(socket)
    }
}

/// A WebSocket of a client.
pub struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    /// Sends a text.
    pub async fn send(&mut self, text: &str) {
        self.send_raw(Message::text(text)).await;
    }

    /// Sends any message.
    pub async fn send_raw(&mut self, message: Message) {
        self.0.send(message).await.expect("it is open");
    }

    /// Sends an envelope.
    pub async fn say(&mut self, id: &str, kind: &str, payload: Value) {
        self.send(&json!({"id": id, "type": kind, "timestamp": 1, "payload": payload}).to_string()).await;
    }

    /// The next event; `None` at the end of the connection.
    pub async fn next(&mut self) -> Option<Value> {
        self.next_within(WAIT).await
    }

    /// The same where many clients share the machine.
    pub async fn next_within(&mut self, wait: std::time::Duration) -> Option<Value> {
        loop {
            match timeout(wait, self.0.next()).await.expect("something comes")? {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).expect("JSON")),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Events up to one of this type.
    pub async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("it ended before {kind}: {events:#?}"));
            let is_last = event["type"] == kind;
            events.push(event);
            if is_last {
                return events;
            }
        }
    }

    /// The next event of this type.
    pub async fn one(&mut self, kind: &str) -> Value {
        self.until(kind).await.pop().expect("an event")
    }
}

/// The events of a type.
pub fn of_type<'e>(events: &'e [Value], kind: &'e str) -> impl Iterator<Item = &'e Value> {
    events.iter().filter(move |event| event["type"] == kind)
}

/// What was said: pieces in their order, until the whole takes their place. What is taken back are pieces alone.
pub fn text_of(events: &[Value]) -> String {
    let (mut whole, mut text) = (String::new(), String::new());
    for event in events {
        let payload = &event["payload"];
        match event["type"].as_str() {
            Some("agent.response.discard") => text.clear(),
            Some("agent.response") => {
                let content = payload["content"].as_str().expect("a text");
                if payload["whole"] == true {
                    text.clear();
                    content.clone_into(&mut whole);
                } else {
                    text.push_str(content);
                }
            }
            _ => {}
        }
    }
    whole + &text
}
