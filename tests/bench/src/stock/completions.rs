//! A client of OpenAI's dialect, or of the gateway's sessions: HTTP/1.1, one connection for each caller.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::model::LAST_WORD;
use crate::load::Caller;

/// What everybody is asked.
pub(crate) const QUESTION: &str = "Does the build pass?";
/// The model's name at everybody's: theirs for the instant model.
pub(crate) const MODEL: &str = "local/test";
/// The largest answer. A bound for what is held, far above what comes.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// How something is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Question {
    /// A chat completion, as one answer.
    Whole,
    /// A chat completion, in pieces.
    Streamed,
    /// A message to a new session of the gateway, which is stored.
    Stored,
}

impl Question {
    /// The request, as it is sent.
    fn request(self, address: SocketAddr, token: &str) -> Vec<u8> {
        let (path, body) = match self {
            Self::Whole | Self::Streamed => {
                let messages = [json!({"role": "user", "content": QUESTION})];
                let mut body = json!({"model": MODEL, "messages": messages});
                if self == Self::Streamed {
                    body["stream"] = json!(true);
                }
                ("/v1/chat/completions", body)
            }
            Self::Stored => ("/api/sessions/new/send", json!({"text": QUESTION})),
        };
        let body = body.to_string();
        format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}

/// A caller; each clone has a connection of its own.
pub(crate) struct Completions {
    address: SocketAddr,
    request: Arc<[u8]>,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Completions {
    pub(crate) fn new(address: SocketAddr, token: &str, question: Question) -> Self {
        let request = question.request(address, token).into();
        Self { address, request, stream: None, buffer: Vec::new() }
    }
}

impl Clone for Completions {
    fn clone(&self) -> Self {
        Self { address: self.address, request: Arc::clone(&self.request), stream: None, buffer: Vec::new() }
    }
}

impl Caller for Completions {
    /// The answer's length is the model's choice.
    async fn call(&mut self, _: usize) -> Result<()> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            self.stream = Some(stream);
        }
        let stream = self.stream.as_mut().context("it was just connected")?;
        stream.write_all(&self.request).await?;
        self.buffer.clear();
        let mut end = None;
        loop {
            ensure!(
                stream.read_buf(&mut self.buffer).await? > 0,
                "the connection ended: {}",
                said(&self.buffer)
            );
            ensure!(self.buffer.len() <= MAX_ANSWER_BYTES, "an answer without an end");
            if end.is_none() {
                end = AnswerEnd::of(&self.buffer)?;
            }
            if end.is_some_and(|end| end.is_reached(&self.buffer)) {
                break;
            }
        }
        let said = said(&self.buffer);
        ensure!(said.contains(LAST_WORD), "that is not the model's answer: {said}");
        Ok(())
    }

    /// Connects and asks once: of connections that come at once, one of several workers that share a listener may take all, and the others
    /// would have nothing to do.
    async fn prepare(&mut self) -> Result<u64> {
        self.call(0).await?;
        Ok(1)
    }
}

fn said(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// What ends an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerEnd {
    /// It has so many bytes with its head.
    Length(usize),
    /// An empty chunk.
    Chunk,
}

impl AnswerEnd {
    /// Read from a head; `None` while that is not complete.
    fn of(bytes: &[u8]) -> Result<Option<Self>> {
        const END: &[u8] = b"\r\n\r\n";
        let Some(found) = bytes.windows(END.len()).position(|window| window == END) else { return Ok(None) };
        let head = said(&bytes[..found]).to_ascii_lowercase();
        ensure!(head.starts_with("http/1.1 200"), "refused: {}", said(bytes));
        let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if let Some(length) = value("content-length:") {
            return Ok(Some(Self::Length(found + END.len() + length.parse::<usize>()?)));
        }
        if value("transfer-encoding:") == Some("chunked") {
            return Ok(Some(Self::Chunk));
        }
        bail!("an answer without a length: {head}")
    }

    fn is_reached(self, bytes: &[u8]) -> bool {
        match self {
            Self::Length(length) => bytes.len() >= length,
            // Nothing of the model's answers looks like it.
            Self::Chunk => bytes.ends_with(b"\r\n0\r\n\r\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_where_its_head_says() {
        let sized = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
        assert!(AnswerEnd::of(&sized[..20]).expect("no head yet").is_none());
        let end = AnswerEnd::of(sized).expect("a head").expect("complete");
        assert!(end.is_reached(sized) && !end.is_reached(&sized[..sized.len() - 1]));
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
        let end = AnswerEnd::of(chunked).expect("a head").expect("complete");
        assert!(end.is_reached(chunked) && !end.is_reached(&chunked[..chunked.len() - 5]));
        assert!(AnswerEnd::of(b"HTTP/1.1 429 X\r\n\r\n").is_err());
    }
}
