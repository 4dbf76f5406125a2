//! Server-sent events, with limits that apply before an event is assembled.

use std::io;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, Stream};
use rmcp::model::{ErrorData, ServerJsonRpcMessage};
use sse_stream::{Error, Sse, SseStream};

use crate::server::scan::Scan;

/// The events of a body. One event may have `max_bytes`; an event that would be costly to decode becomes an
/// error of the call that it answers.
pub(crate) fn events<S, E>(body: S, max_bytes: usize) -> BoxStream<'static, Result<Sse, Error>>
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    let mut meter = EventSizeMeter::new(max_bytes);
    let mut over = false;
    let bounded = body.map(move |chunk| -> io::Result<Bytes> {
        let chunk = chunk.map_err(io::Error::other)?;
        over |= !meter.fits(&chunk);
        if over {
            return Err(io::Error::other(format!(
                "an event of the MCP server is larger than {max_bytes} bytes"
            )));
        }
        Ok(chunk)
    });
    SseStream::from_bytes_stream(bounded).map(|event| event.map(limit_cost)).boxed()
}

fn limit_cost(mut event: Sse) -> Sse {
    let Some(data) = &event.data else { return event };
    let mut scan = Scan::default();
    scan.feed(data.as_bytes());
    if scan.is_costly() {
        let why = format!("the MCP server's answer is too large: {} bytes; ask for less at once", data.len());
        let message = ServerJsonRpcMessage::error(ErrorData::internal_error(why, None), scan.answered());
        // If it answers no call it becomes an event without data, which is skipped.
        event.data = scan.answered().and_then(|_| serde_json::to_string(&message).ok());
    }
    event
}

/// Counts the bytes of the current event.
struct EventSizeMeter {
    max_bytes: usize,
    event: usize,
    line: usize,
    comment: bool,
    /// `\r\n` is two bytes but one line break.
    after_cr: bool,
}

impl EventSizeMeter {
    fn new(max_bytes: usize) -> Self {
        Self { max_bytes, event: 0, line: 0, comment: false, after_cr: false }
    }

    fn fits(&mut self, chunk: &[u8]) -> bool {
        for &byte in chunk {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => {
                    // An empty line ends an event; comments are not stored.
                    if self.line == 0 {
                        self.event = 0;
                    } else if !self.comment {
                        self.event += self.line + 1;
                    }
                    self.line = 0;
                    self.comment = false;
                }
                _ => {
                    self.comment |= self.line == 0 && byte == b':';
                    self.line += 1;
                }
            }
            if self.event + self.line > self.max_bytes {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    async fn read(chunks: &[&str], max_bytes: usize) -> Vec<Result<String, String>> {
        let chunks: Vec<_> =
            chunks.iter().map(|chunk| Ok::<_, io::Error>(Bytes::from((*chunk).to_owned()))).collect();
        let data = |event: Result<Sse, Error>| match event {
            Ok(event) => Ok(event.data.unwrap_or_default()),
            Err(error) => Err(talon_error_chain::error_chain(&error)),
        };
        events(stream::iter(chunks), max_bytes).map(data).take(1000).collect().await
    }

    #[tokio::test]
    async fn events_are_bounded_each_for_itself() {
        let small = read(
            &["data: one\n\nda", "ta: two\r\n\r\n", ": a comment that is long enough\n\ndata: three\n\n"],
            32,
        )
        .await;
        let texts: Vec<_> =
            small.into_iter().map(|event| event.expect("small")).filter(|data| !data.is_empty()).collect();
        assert_eq!(texts, ["one", "two", "three"]);
        let many: Vec<&str> = vec!["data: x\n\n"; 500];
        assert_eq!(read(&many, 32).await.len(), 500);
    }

    #[tokio::test]
    async fn an_event_without_end_is_an_error() {
        for endless in
            ["data: xxxxxxxxxxxxxxxxxxxxxxxxxxxx", "data: x\n", "data: x\r\n", ": xxxxxxxxxxxxxxxxxxx"]
        {
            let chunks = vec![endless; 20];
            let last = read(&chunks, 64).await.into_iter().find_map(Result::err);
            assert!(
                last.as_ref().is_some_and(|error| error.contains("larger than 64 bytes")),
                "{endless}: {last:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_costly_event_becomes_an_error_of_its_call() {
        let text = format!("data: {{\"id\":4,\"result\":[{}1]}}\n\n", "[],".repeat(600_000));
        let read = read(&[&text], 16 << 20).await;
        let [Ok(data)] = read.as_slice() else { panic!("{} events", read.len()) };
        assert!(data.contains("too large") && data.contains("\"id\":4"), "{data}");
    }
}
