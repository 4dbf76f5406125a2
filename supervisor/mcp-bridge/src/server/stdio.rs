//! MCP over a child's standard input and output: one JSON-RPC message a line, in both directions.

use std::io;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, CustomResult, ErrorCode, ErrorData, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use serde_json::Value;
use talon_bridge::text::cut;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::child::Shutdown;
use super::lines::{Line, Lines};
use super::request_text::to_json;

/// Messages that were read but not taken yet. Few, because each may be large; the server waits meanwhile.
const INBOX_CAPACITY: usize = 4;
/// Messages that wait to be written.
const OUTBOX_CAPACITY: usize = 64;
/// How long writing one message may take. A server that reads nothing for that long never will, and all its
/// callers would wait until their deadlines; so it is ended.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long reading the last output of an ended server may take. Another process that holds its output, such
/// as a child that it left behind, would keep it open for ever.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// How many non-message lines are shown. A banner has a few; a server that logs there would fill the log.
const MAX_TEXT_LINES: u32 = 100;
/// How much is said of what is wrong with a message.
const MAX_REASON_BYTES: usize = 200;

/// The two pipes. The tasks behind them end with the pipes, or with the server.
pub(crate) struct Stdio {
    inbox: mpsc::Receiver<ServerJsonRpcMessage>,
    outbox: Option<mpsc::Sender<Vec<u8>>>,
}

/// Why a message cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The server is gone, or does not read.
    #[error("the MCP server takes no messages any more")]
    Closed,
    /// A bug of ours.
    #[error("a message cannot be written as JSON")]
    Json(#[source] serde_json::Error),
}

impl Stdio {
    /// Starts to read and write. `closing` closes the server's standard input, and ends a server that does
    /// not read it; `gone` resolves when its process ended.
    pub(crate) fn new<R, W>(
        output: R,
        input: W,
        closing: Shutdown,
        gone: impl Future<Output = ()> + Send + 'static,
    ) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (outbox, messages) = mpsc::channel(OUTBOX_CAPACITY);
        let (sender, inbox) = mpsc::channel(INBOX_CAPACITY);
        tokio::spawn(async move {
            tokio::select! {
                () = read(Lines::new(output), sender) => {}
                () = async { gone.await; sleep(OUTPUT_DRAIN_TIMEOUT).await } => {}
            }
        });
        tokio::spawn(async move {
            tokio::select! {
                written = write(input, messages) => {
                    if let Err(error) = written {
                        closing.give_up(format!("takes no messages ({error})"));
                    }
                }
                () = closing.closed() => {}
            }
        });
        Self { inbox, outbox: Some(outbox) }
    }
}

async fn read<R: AsyncRead + Unpin>(mut lines: Lines<R>, inbox: mpsc::Sender<ServerJsonRpcMessage>) {
    let mut texts = 0;
    while let Some(line) = lines.next().await {
        let message = match line {
            Line::Message(bytes) => message(&bytes),
            Line::TooLarge { bytes, scan } => {
                tracing::warn!(bytes, "a message of the MCP server is too large to be read");
                let why =
                    format!("the MCP server's answer is too large: {bytes} bytes; ask for less at once");
                scan.answered()
                    .map(|id| ServerJsonRpcMessage::error(ErrorData::internal_error(why, None), Some(id)))
            }
            Line::Text(text) => {
                texts += 1;
                if texts <= MAX_TEXT_LINES {
                    tracing::info!("not MCP, on standard output: {text}");
                }
                if texts == MAX_TEXT_LINES {
                    tracing::warn!("further lines on standard output that are not MCP are not shown");
                }
                None
            }
        };
        if let Some(message) = message
            && inbox.send(message).await.is_err()
        {
            return;
        }
    }
}

/// Decodes one message. Results are passed on undecoded: the requester knows their type, and reports errors
/// in them better than a decoder of all of MCP can.
pub(crate) fn message(bytes: &[u8]) -> Option<ServerJsonRpcMessage> {
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => {
            tracing::warn!("a line of the MCP server begins like JSON and is none: {error}");
            return None;
        }
    };
    match read_message(value) {
        Ok(message) => Some(message),
        Err(error) => {
            tracing::warn!("a message of the MCP server cannot be read: {error}");
            let id = error.id.clone();
            let error =
                ErrorData::internal_error(format!("the MCP server's answer is not MCP: {error}"), None);
            id.map(|id| ServerJsonRpcMessage::error(error, Some(id)))
        }
    }
}

/// A line is JSON, but not MCP.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
struct InvalidMessageError {
    /// The request that it answers.
    id: Option<rmcp::model::RequestId>,
    reason: String,
}

fn read_message(mut value: Value) -> Result<ServerJsonRpcMessage, InvalidMessageError> {
    let invalid = |id, reason: &dyn std::fmt::Display| InvalidMessageError {
        id,
        reason: cut(&reason.to_string(), MAX_REASON_BYTES),
    };
    if value.get("method").is_some() {
        return serde_json::from_value(value).map_err(|error| invalid(None, &error));
    }
    let id = value.get("id").cloned().and_then(|id| serde_json::from_value(id).ok());
    if let Some(error) = value.get_mut("error").map(Value::take)
        && !error.is_null()
    {
        return Ok(ServerJsonRpcMessage::error(error_data(&error), id));
    }
    let Some(mut result) = value.get_mut("result").map(Value::take) else {
        return Err(invalid(id, &"it has neither a method, a result nor an error"));
    };
    let Some(id) = id else { return Err(invalid(None, &"it answers nothing: its id is missing")) };
    if let Value::Object(fields) = &mut result
        && fields.contains_key("supportedVersions")
    {
        // Fields that a server leaves out get the default of the revision; the library requires them.
        fields.entry("resultType").or_insert_with(|| "complete".into());
    }
    let known = ["serverInfo", "supportedVersions", "protocolVersion"];
    let result = if known.iter().any(|field| result.get(field).is_some()) || is_subscription(&result) {
        serde_json::from_value(result).map_err(|error| invalid(Some(id.clone()), &error))?
    } else {
        ServerResult::CustomResult(CustomResult(result))
    };
    Ok(ServerJsonRpcMessage::response(result, id))
}

/// The end of a subscription, which rmcp needs as this type.
fn is_subscription(result: &Value) -> bool {
    result.get("_meta").is_some_and(|meta| meta.get("io.modelcontextprotocol/subscriptionId").is_some())
}

/// A server's error, even if it is slightly malformed.
fn error_data(error: &Value) -> ErrorData {
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = match error.get("message").and_then(Value::as_str) {
        Some(message) => message.to_owned(),
        None => error.to_string(),
    };
    ErrorData::new(code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode), message, error.get("data").cloned())
}

async fn write<W: AsyncWrite + Unpin>(mut input: W, mut messages: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(bytes) = messages.recv().await {
        let written = async {
            input.write_all(&bytes).await?;
            input.flush().await
        };
        tokio::time::timeout(WRITE_TIMEOUT, written)
            .await
            .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "it reads nothing for 30 s")))?;
    }
    Ok(())
}

impl Transport<RoleClient> for Stdio {
    type Error = SendError;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        let outbox = self.outbox.clone();
        async move {
            let mut bytes = to_json(&message).map_err(SendError::Json)?.into_bytes();
            bytes.push(b'\n');
            let outbox = outbox.ok_or(SendError::Closed)?;
            outbox.send(bytes).await.map_err(|_| SendError::Closed)
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.inbox.recv().await
    }

    async fn close(&mut self) -> Result<(), SendError> {
        self.outbox = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use serde_json::json;

    use super::*;

    #[test]
    fn results_are_handed_on_as_they_are() {
        let odd = json!({"jsonrpc": "2.0", "id": "3", "result": {"tools": [{"no": "name"}]}});
        let message = read_message(odd).expect("an answer");
        let ServerJsonRpcMessage::Response(answer) = message else { panic!("{message:?}") };
        assert!(matches!(answer.result, ServerResult::CustomResult(_)), "{answer:?}");
    }

    #[test]
    fn errors_that_are_not_quite_right_are_errors() {
        for (error, code, text) in [
            (json!({"code": -32601, "message": "no"}), -32601, "no"),
            (json!("broken"), -32603, "\"broken\""),
            (json!({"code": "x", "message": 3}), -32603, "{\"code\":\"x\",\"message\":3}"),
        ] {
            let read = error_data(&error);
            assert_eq!((read.code.0, read.message.as_ref()), (code, text));
        }
    }

    #[test]
    fn what_is_no_message_is_told() {
        for (value, says) in
            [(json!({"jsonrpc": "2.0", "id": 1}), "neither"), (json!({"result": {}}), "id is missing")]
        {
            let why = read_message(value).expect_err("no message").reason;
            assert!(why.contains(says), "{why}");
        }
    }

    #[tokio::test]
    async fn messages_go_in_both_directions() {
        let (ours, theirs) = tokio::io::duplex(1024);
        let (reader, writer) = tokio::io::split(ours);
        let mut stdio = Stdio::new(reader, writer, Shutdown::default(), pending());
        let (their_reader, mut their_writer) = tokio::io::split(theirs);
        their_writer.write_all(b"hello\n{\"id\":1,\"result\":{}}\n").await.expect("open");
        assert!(matches!(stdio.receive().await, Some(ServerJsonRpcMessage::Response(_))));
        let message: ClientJsonRpcMessage =
            serde_json::from_value(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).expect("a message");
        stdio.send(message).await.expect("sent");
        let mut lines = Lines::new(their_reader);
        assert!(matches!(lines.next().await, Some(Line::Message(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stops_to_read_is_ended() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let (reader, writer) = tokio::io::split(ours);
        let closing = Shutdown::default();
        let mut stdio = Stdio::new(reader, writer, closing.clone(), pending());
        let message: ClientJsonRpcMessage =
            serde_json::from_value(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).expect("a message");
        stdio.send(message).await.expect("it waits to be written");
        closing.closed().await;
        assert!(!closing.is_expected());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_server_is_that_of_its_output_whoever_else_holds_it() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let (reader, writer) = tokio::io::split(ours);
        let (ended, end) = tokio::sync::oneshot::channel::<()>();
        let gone = async { drop(end.await) };
        let mut stdio = Stdio::new(reader, writer, Shutdown::default(), gone);
        theirs.write_all(b"{\"id\":1,\"result\":{}}\n").await.expect("open");
        ended.send(()).expect("it is waited for");
        assert!(matches!(stdio.receive().await, Some(ServerJsonRpcMessage::Response(_))));
        assert!(stdio.receive().await.is_none());
    }
}
