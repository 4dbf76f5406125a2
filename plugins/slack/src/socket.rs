//! One connection of Socket Mode, through the supervisor's proxy.

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use talon_sdk::tracing;
use talon_sink::connection::{Stream, connect};
use talon_sink::peer_text::{one_line, without_secrets};
use talon_sink::target::Target;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::api::{Api, REQUEST_TIME};
use crate::api_error::ApiError;
use crate::frame::Frame;
use crate::token_kind::TokenKind;

/// The largest message that is read. 1 MiB: the longest text, as text and as blocks, has less than a quarter of it. A larger one ends the
/// connection.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// A connection that has said hello.
pub(crate) struct Socket(WebSocketStream<Box<dyn Stream>>);

/// What came on a connection.
#[derive(Debug)]
pub(crate) enum SocketMessage {
    /// A message.
    Frame(Frame),
    /// A sign of life, or a message that is not understood.
    Sign,
}

/// Where the WebSocket is, for one use.
#[derive(Deserialize)]
struct OpenedConnection {
    url: String,
}

impl Socket {
    /// Asks for a connection, and makes it. It is ready: Slack has said hello.
    pub(crate) async fn open(api: &Api) -> Result<Self, ApiError> {
        let opened: OpenedConnection = api.call(TokenKind::App, "apps.connections.open", &[]).await?;
        match timeout(REQUEST_TIME, Self::connect(api, &opened.url)).await {
            Ok(Ok(socket)) => Ok(socket),
            Ok(Err(reason)) => Err(api.later(&without_secrets(&reason, &tickets(&opened.url)))),
            Err(_) => Err(api.later("Slack did not say hello on the WebSocket in time")),
        }
    }

    async fn connect(api: &Api, url: &str) -> Result<Self, String> {
        let target = target(url, api.allow_http)?;
        let mut stream = connect(&target.endpoint).await.map_err(|error| error.to_string())?;
        if target.tls {
            let trust = api.trust.as_ref().ok_or("this machine trusts no certificates")?;
            stream = trust.connect(&target.endpoint.host, stream).await.map_err(|error| error.to_string())?;
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let (stream, _) = client_async_with_config(url, stream, Some(config))
            .await
            .map_err(|error| format!("there is no WebSocket with {}: {error}", target.endpoint))?;
        let mut socket = Self(stream);
        loop {
            match socket.hear().await? {
                SocketMessage::Frame(Frame::Hello) => return Ok(socket),
                SocketMessage::Frame(Frame::Disconnect(reason)) => {
                    return Err(format!("Slack says disconnect ({reason}) in the place of hello"));
                }
                SocketMessage::Frame(_) => {
                    return Err("Slack says something else in the place of hello".to_owned());
                }
                SocketMessage::Sign => {}
            }
        }
    }

    /// What comes next; may be dropped without loss. An error is the connection's end.
    pub(crate) async fn hear(&mut self) -> Result<SocketMessage, String> {
        match self.0.next().await {
            None | Some(Ok(Message::Close(None))) => Err("Slack has closed the connection".to_owned()),
            Some(Ok(Message::Close(Some(close)))) => {
                Err(one_line(&format!("Slack has closed the connection: {} {}", close.code, close.reason)))
            }
            Some(Err(error)) => Err(one_line(&format!("the connection broke off: {error}"))),
            Some(Ok(Message::Text(text))) => match Frame::read(text.as_str()) {
                Some(frame) => Ok(SocketMessage::Frame(frame)),
                None => {
                    tracing::warn!("a message of Slack's is not understood, and is left out");
                    Ok(SocketMessage::Sign)
                }
            },
            // Pings are answered by the library when the next message is awaited.
            Some(Ok(_)) => Ok(SocketMessage::Sign),
        }
    }

    /// Sends a text.
    pub(crate) async fn say(&mut self, text: String) -> Result<(), String> {
        self.send(Message::text(text)).await
    }

    /// Asks for a sign of life.
    pub(crate) async fn ping(&mut self) -> Result<(), String> {
        self.send(Message::Ping(Bytes::new())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), String> {
        match timeout(REQUEST_TIME, self.0.send(message)).await {
            Ok(sent) => sent.map_err(|error| one_line(&format!("the connection broke off: {error}"))),
            Err(_) => Err("Slack does not read what it is sent".to_owned()),
        }
    }
}

/// What of a WebSocket's URL nobody else may know: it has a ticket in it.
fn tickets(url: &str) -> Vec<&str> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let values = query.split('&').filter_map(|pair| Some(pair.split_once('=')?.1));
    // The longest first, so that nothing is left of it.
    [url, query].into_iter().chain(values).collect()
}

/// Where a WebSocket is: its URL says as much as one of HTTP.
fn target(url: &str, allow_http: bool) -> Result<Target, String> {
    let plain = match url.split_once("://") {
        Some(("wss", rest)) => format!("https://{rest}"),
        Some(("ws", rest)) => format!("http://{rest}"),
        _ => return Err("what Slack names is no URL of a WebSocket".to_owned()),
    };
    Target::parse(&plain, allow_http).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-282
    #[test]
    fn a_ticket_is_hidden_whole_and_alone() {
        let url = "wss://wss-primary.slack.com/link/?ticket=1234-5678&app_id=0";
        for said in [url, "at /link/?ticket=1234-5678&app_id=0", "1234-5678 is not known"] {
            let hidden = without_secrets(said, &tickets(url));
            assert!(hidden.contains("[hidden]") && !hidden.contains("1234"), "{hidden}");
        }
    }

    #[test]
    fn a_websocket_is_reached_over_tls_but_on_this_machine() {
        let of =
            |url, allow_http| target(url, allow_http).map(|target| (target.endpoint.to_string(), target.tls));
        let wss = of("wss://wss-primary.slack.com/link/?ticket=1234-5678&app_id=0", false);
        assert_eq!(wss, Ok(("wss-primary.slack.com:443".to_owned(), true)));
        assert_eq!(of("ws://127.0.0.1:9/link/?ticket=1", false), Ok(("127.0.0.1:9".to_owned(), false)));
        assert!(of("ws://example.org/link/", false).is_err() && of("ws://example.org/link/", true).is_ok());
        for wrong in ["https://slack.com/", "wss", "wss://"] {
            assert!(of(wrong, true).is_err(), "{wrong}");
        }
    }
}
