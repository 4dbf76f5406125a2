//! A plugin that keeps answering a call after it was cancelled. Written frame by frame, since no library does
//! that.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;

use super::*;
use crate::handshake::Address;
use crate::socket_dir::testing::scratch;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A whole answer on a stream.
fn answer(stream: u32, text: &str) -> Vec<u8> {
    let mut message = vec![0];
    message.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
    message.extend(text.as_bytes());
    // `:status: 200` from the static table, and literals that are never indexed.
    let head = [b"\x88\x0f\x10\x10".as_slice(), b"application/grpc"].concat();
    let tail = b"\x00\x0bgrpc-status\x010";
    [
        frame(HEADERS, END_HEADERS, stream, &head),
        frame(DATA, 0, stream, &message),
        frame(HEADERS, END_HEADERS | END_STREAM, stream, tail),
    ]
    .concat()
}

/// Answers what was asked on stream 1 once that was cancelled, once more when the next call is there, and
/// then that one. Tells the frames that it reads.
async fn late(mut stream: UnixStream, told: mpsc::UnboundedSender<(u8, u32)>) -> std::io::Result<()> {
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    stream.read_exact(&mut [0; 24]).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let [a, b, c, kind, flags, id @ ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        stream.read_exact(&mut vec![0; length]).await?;
        let id = u32::from_be_bytes(id);
        let _ = told.send((kind, id));
        let reply = match (kind, id) {
            (SETTINGS, _) if flags & ACK == 0 => frame(SETTINGS, ACK, 0, &[]),
            (RST_STREAM, 1) => answer(1, "too late"),
            (HEADERS, 3) => [answer(1, "too late again"), answer(3, "in time")].concat(),
            _ => continue,
        };
        stream.write_all(&reply).await?;
    }
}

/// A client of a plugin that serves each connection so; `serve` gets its number.
async fn client<F>(serve: impl Fn(usize, UnixStream) -> F + Send + 'static) -> (tempfile::TempDir, Client)
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let dir = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
    let private = scratch(dir.path());
    let socket = private.path().join("s/plugin1");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        let mut number = 0;
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(number, stream));
            number += 1;
        }
    });
    let uid = rustix::process::geteuid().as_raw();
    let target = Target::new(&Address::Unix(socket), &private, uid, std::process::id(), false).unwrap();
    (dir, Client::connect(PluginName::new("late").unwrap(), Methods::default(), target, 1).await.unwrap())
}

fn call() -> ToolCallRequest {
    ToolCallRequest { id: "c1".to_owned(), ..Default::default() }
}

// Promises: GUARD-64
#[tokio::test]
async fn an_answer_on_the_stream_of_a_cancelled_call_reaches_no_other_call() {
    let (tells, mut told) = mpsc::unbounded_channel();
    let (_dir, client) = client(move |_, stream| late(stream, tells.clone())).await;
    let mut first = client.execute(&call(), MetadataMap::new(), None, 1024).answer;
    while told.try_recv().ok() != Some((HEADERS, 1)) {
        assert!(futures_util::poll!(&mut first).is_pending());
        tokio::task::yield_now().await;
    }
    drop(first);
    while told.recv().await != Some((RST_STREAM, 1)) {}
    let second = client.execute(&call(), MetadataMap::new(), None, 1024).answer.await;
    assert_eq!(second.unwrap(), "in time");
}

#[tokio::test]
async fn a_connection_that_broke_is_made_anew() {
    let (_dir, client) = client(|number, mut stream| async move {
        stream.read_exact(&mut [0; 24]).await?;
        if number == 0 {
            return Ok(());
        }
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
        stream.write_all(&frame(SETTINGS, ACK, 0, &[])).await?;
        let mut head = [0; 9];
        while head[3] != HEADERS {
            stream.read_exact(&mut head).await?;
            stream
                .read_exact(&mut vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize])
                .await?;
        }
        stream.write_all(&answer(1, "here again")).await?;
        std::future::pending().await
    })
    .await;
    // A call that goes out before the end of the first connection is noticed ends with it, and is not
    // repeated.
    loop {
        match client.execute(&call(), MetadataMap::new(), None, 1024).answer.await {
            Ok(answer) => return assert_eq!(answer, "here again"),
            Err(error) => assert!(matches!(error, ExecuteError::Transport(_)), "{error}"),
        }
    }
}
