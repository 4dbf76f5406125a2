//! A model that answers at once, in OpenAI's dialect over HTTP/1.1: whatever stands before it is what is measured.
//!
//! The last message may say `pieces=N`: the answer then has that many pieces. If it says `slowly`, one of them comes each second.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{interval, sleep};

/// The pieces of an answer that nobody says a number of: a sentence or two.
pub(crate) const PIECES: usize = 20;
/// The last word of every answer.
pub(crate) const LAST_WORD: &str = "finally.";
/// What asks for an answer that comes slowly.
pub(crate) const SLOWLY: &str = "slowly";
/// The time between two pieces of a slow answer.
const SLOW: Duration = Duration::from_secs(1);
/// The largest request. A bound for what is held, far above what is sent.
const MAX_REQUEST_BYTES: usize = 64 << 20;
/// Pieces of a long answer that are written at once, and the time until the next ones: 1,600 a second, which no follower of a turn is too
/// slow for. One that is gets the rest as a whole instead (`supervisor/agent/src/turns/hub.rs`).
const PIECES_AT_ONCE: usize = 32;
const BETWEEN_BURSTS: Duration = Duration::from_millis(20);

/// Serves a port of the kernel's choice, which is told to the parent.
pub(super) async fn serve() -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    crate::worker::write_line(&listener.local_addr()?.to_string())?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        // Ends with its connection.
        tokio::spawn(async move { drop(answer(stream).await) });
    }
}

async fn answer(mut stream: TcpStream) -> Result<()> {
    let mut bytes = Vec::new();
    loop {
        let Some((head, end)) = read(&mut stream, &mut bytes).await? else { return Ok(()) };
        let asked = Asked::of(&bytes[head..end])?;
        bytes.drain(..end);
        if asked.is_streamed {
            asked.stream(&mut stream).await?;
        } else {
            stream.write_all(asked.whole().as_bytes()).await?;
        }
    }
}

/// Where the body of the next request begins and ends; `None` at the end of the connection.
async fn read(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Result<Option<(usize, usize)>> {
    const END: &[u8] = b"\r\n\r\n";
    let mut looked = 0_usize;
    loop {
        let found = bytes[looked..].windows(END.len()).position(|window| window == END);
        if let Some(found) = found {
            let begin = looked + found + END.len();
            let head = String::from_utf8_lossy(&bytes[..begin]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(Ok(0), |length| length.trim().parse())?;
            ensure!(length <= MAX_REQUEST_BYTES, "a request of {length} bytes");
            while bytes.len() < begin + length {
                ensure!(stream.read_buf(bytes).await? > 0, "a request was cut off");
            }
            return Ok(Some((begin, begin + length)));
        }
        looked = bytes.len().saturating_sub(END.len());
        if stream.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
        if bytes.len() > MAX_REQUEST_BYTES {
            bail!("the head of a request has no end");
        }
    }
}

/// A request, as far as it counts.
#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    stream: bool,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    /// A text, or parts.
    #[serde(default)]
    content: serde_json::Value,
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    is_streamed: bool,
    pieces: usize,
    is_slow: bool,
}

impl Asked {
    fn of(request: &[u8]) -> Result<Self> {
        // A probe of the provider has no body; what it gets is an answer.
        let request = if request.is_empty() { br#"{"messages":[]}"# } else { request };
        let Request { stream, messages } = serde_json::from_slice(request).context("that is no request")?;
        // The last message counts: those before it are repeated in each request.
        let last = messages.last().map(|message| message.content.to_string()).unwrap_or_default();
        let number = last.split_once("pieces=").map(|(_, rest)| {
            rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(PIECES)
        });
        let pieces = number.unwrap_or(PIECES).max(1);
        Ok(Self { is_streamed: stream, pieces, is_slow: last.contains(SLOWLY) })
    }

    fn whole(&self) -> String {
        let text: String = (0..self.pieces).map(|place| piece(place, self.pieces)).collect();
        let body = serde_json::json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1_760_000_000, "model": "test",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": usage(self.pieces),
        })
        .to_string();
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    /// An answer of usual length is one write.
    async fn stream(&self, stream: &mut TcpStream) -> Result<()> {
        let mut ticks = self.is_slow.then(|| interval(SLOW));
        let mut out =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                .to_owned();
        for place in 0..self.pieces {
            if let Some(ticks) = &mut ticks {
                stream.write_all(out.as_bytes()).await?;
                out.clear();
                ticks.tick().await;
            }
            let delta = serde_json::json!({"content": piece(place, self.pieces)});
            chunk(&mut out, &event(&delta, None));
            if place % PIECES_AT_ONCE == PIECES_AT_ONCE - 1 {
                stream.write_all(out.as_bytes()).await?;
                out.clear();
                sleep(BETWEEN_BURSTS).await;
            }
        }
        let used = serde_json::json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_760_000_000,
            "model": "test", "choices": [], "usage": usage(self.pieces)});
        let end = event(&serde_json::json!({}), Some("stop"));
        chunk(&mut out, &format!("{end}data: {used}\n\ndata: [DONE]\n\n"));
        out.push_str("0\r\n\r\n");
        stream.write_all(out.as_bytes()).await.context("the client is gone")
    }
}

fn usage(pieces: usize) -> serde_json::Value {
    serde_json::json!({"prompt_tokens": 10, "completion_tokens": pieces, "total_tokens": pieces + 10})
}

/// A word; every thirtieth ends a paragraph.
fn piece(place: usize, of: usize) -> String {
    const WORDS: [&str; 8] = ["the ", "build ", "passes ", "again, ", "and ", "every ", "test ", "runs "];
    match place {
        last if last + 1 == of => LAST_WORD.to_owned(),
        place if place % 30 == 29 => "well.\n\n".to_owned(),
        place => WORDS[place % WORDS.len()].to_owned(),
    }
}

fn event(delta: &serde_json::Value, finish: Option<&str>) -> String {
    let event = serde_json::json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_760_000_000,
        "model": "test", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    format!("data: {event}\n\n")
}

fn chunk(out: &mut String, text: &str) {
    // Writing to a String does not fail.
    let _ = write!(out, "{:x}\r\n{text}\r\n", text.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_says_how_much() {
        let request = |stream: &str, text: &str| {
            format!(
                r#"{{"stream":{stream},"messages":[{{"role":"user","content":"pieces=9"}},{{"role":"user","content":"{text}"}}],"tools":[{{"content":"pieces=8"}}]}}"#
            )
        };
        let plain = Asked { is_streamed: false, pieces: PIECES, is_slow: false };
        assert_eq!(Asked::of(request("false", "Hi").as_bytes()).expect("a request"), plain);
        assert_eq!(Asked::of(b"").expect("a probe"), plain);
        let asked = Asked::of(request("true", "slowly, pieces=1000, please").as_bytes());
        assert_eq!(asked.expect("a request"), Asked { is_streamed: true, pieces: 1000, is_slow: true });
    }

    #[tokio::test]
    async fn both_kinds_of_answers_are_whole() {
        use crate::load::Caller as _;
        use crate::stock::completions::{Completions, Question};

        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move { drop(answer(stream).await) });
            }
        });
        for question in [Question::Whole, Question::Streamed] {
            let mut caller = Completions::new(address, "none", question);
            for _ in 0..3 {
                caller.call(0).await.expect("an answer on the same connection");
            }
        }
    }
}
