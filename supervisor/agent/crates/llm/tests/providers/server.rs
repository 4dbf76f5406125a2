//! A server that sends prepared bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// A received request.
#[derive(Debug)]
pub(crate) struct ReceivedRequest {
    /// The request line and the headers.
    pub(crate) head: String,
    /// The body; `Null` without one.
    pub(crate) body: Value,
    /// The body's bytes.
    pub(crate) text: String,
    /// Whether the connection had an earlier request.
    pub(crate) again: bool,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// Completely.
    Whole,
    /// The connection breaks.
    Cut,
    /// Nothing more is sent, and the server reports when the client disconnects.
    Hang,
    /// The last piece is repeated until the client disconnects.
    Endless,
}

/// One answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// Each is a separate HTTP chunk.
    pub(crate) pieces: Vec<Vec<u8>>,
    pub(crate) end: BodyEnd,
    /// Not even headers are sent.
    pub(crate) mute: bool,
}

impl Reply {
    pub(crate) fn new(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        Self { status, headers, pieces: vec![body.into()], end: BodyEnd::Whole, mute: false }
    }

    pub(crate) fn events(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream; charset=utf-8", body)
    }

    pub(crate) fn lines(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "application/x-ndjson", body)
    }

    pub(crate) fn json(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::new(status, "application/json", body)
    }

    pub(crate) fn mute() -> Self {
        Self { mute: true, end: BodyEnd::Hang, ..Self::new(200, "", "") }
    }

    pub(crate) fn ends(self, end: BodyEnd) -> Self {
        Self { end, ..self }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn pieces(self, pieces: Vec<Vec<u8>>) -> Self {
        Self { pieces, ..self }
    }
}

/// A server on loopback; it ends on drop.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) port: u16,
    asked: UnboundedReceiver<ReceivedRequest>,
    gone: UnboundedReceiver<()>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// The first request gets the first reply, and so on; the last reply stays.
    pub(crate) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (asked_to, asked) = unbounded_channel();
        let (gone_to, gone) = unbounded_channel();
        let replies = Arc::new(replies);
        let next = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Otherwise each small piece waits for the acknowledgement of the previous one.
                stream.set_nodelay(true).expect("a socket");
                let (replies, next) = (Arc::clone(&replies), Arc::clone(&next));
                tokio::spawn(serve(stream, replies, next, asked_to.clone(), gone_to.clone()));
            }
        });
        Self { url: format!("http://127.0.0.1:{port}"), port, asked, gone, task }
    }

    /// The next received request.
    pub(crate) async fn asked(&mut self) -> ReceivedRequest {
        self.asked.recv().await.expect("the server runs")
    }

    /// The number of received requests that were not read by the test.
    pub(crate) fn unseen(&mut self) -> usize {
        std::iter::from_fn(|| self.asked.try_recv().ok()).count()
    }

    /// Waits until a client has closed its connection in the middle of an answer.
    pub(crate) async fn gone(&mut self) {
        self.gone.recv().await.expect("the server runs");
    }
}

/// One connection. A write error means that the client disconnected, as some tests expect.
pub(crate) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    replies: Arc<Vec<Reply>>,
    next: Arc<AtomicUsize>,
    asked: UnboundedSender<ReceivedRequest>,
    gone: UnboundedSender<()>,
) {
    let mut read = Vec::new();
    let mut again = false;
    while let Some(mut request) = request(&mut stream, &mut read).await {
        request.again = std::mem::replace(&mut again, true);
        let _seen = asked.send(request);
        let turn = next.fetch_add(1, Ordering::Relaxed).min(replies.len() - 1);
        let reply = &replies[turn];
        let written = if reply.mute { Ok(()) } else { write(&mut stream, reply).await };
        match reply.end {
            BodyEnd::Whole if written.is_ok() => {}
            BodyEnd::Whole | BodyEnd::Cut => return,
            BodyEnd::Hang | BodyEnd::Endless => {
                let mut last = reply.pieces.last().cloned().unwrap_or_default();
                last = chunk(&last);
                if reply.end == BodyEnd::Endless {
                    while stream.write_all(&last).await.is_ok() {}
                }
                let mut rest = [0];
                while matches!(stream.read(&mut rest).await, Ok(count) if count > 0) {}
                let _told = gone.send(());
                return;
            }
        }
    }
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), reply: &Reply) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Any\r\ntransfer-encoding: chunked\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    for piece in reply.pieces.iter().filter(|piece| !piece.is_empty()) {
        stream.write_all(&chunk(piece)).await?;
        stream.flush().await?;
    }
    if reply.end == BodyEnd::Whole {
        stream.write_all(b"0\r\n\r\n").await?;
    }
    stream.flush().await
}

fn chunk(piece: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
    chunk.extend_from_slice(piece);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

async fn request(stream: &mut (impl AsyncRead + Unpin), read: &mut Vec<u8>) -> Option<ReceivedRequest> {
    let head_end = loop {
        if let Some(at) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&read[..head_end]).into_owned();
    let mut asked = ReceivedRequest { head, body: Value::Null, text: String::new(), again: false };
    let length = asked.header("content-length").map_or(0, |value| value.parse().expect("a number"));
    while read.len() < head_end + length {
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
    asked.text = String::from_utf8_lossy(&read[head_end..head_end + length]).into_owned();
    asked.body = serde_json::from_str(&asked.text).unwrap_or_default();
    read.drain(..head_end + length);
    Some(asked)
}
