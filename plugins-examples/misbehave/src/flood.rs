//! Endless HTTP/2 frames, written by hand because no library would send them.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use clap::ValueEnum;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What is sent for ever, instead of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Flood {
    /// SETTINGS, each of which has to be acknowledged.
    Settings,
    /// PING, each of which has to be answered.
    Ping,
    /// RST_STREAM of the call in flight, again and again.
    Reset,
    /// Endless header blocks (CONTINUATION).
    Continuation,
    /// WINDOW_UPDATE of one byte.
    Window,
    /// Empty DATA frames.
    EmptyData,
    /// PRIORITY of the first stream.
    Priority,
    /// Heads of an answer with the status 103, which more have to follow. Only for a call in flight.
    EarlyHints,
    /// DATA frames of one byte. Only for a call in flight.
    TinyData,
    /// Frames of a kind that does not exist.
    Unknown,
}

/// The length of a client's preface, and of a frame's head.
const PREFACE_BYTES: usize = 24;
const HEAD_BYTES: usize = 9;
/// The flag of a head without CONTINUATION.
const END_HEADERS: u8 = 4;

/// Frames in one write; a higher number only makes the writes larger.
const BATCH: usize = 1024;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const UNKNOWN: u8 = 0xfa;

/// Serves every connection in this way.
pub(crate) async fn serve(listener: UnixListener, flood: Flood) -> anyhow::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            if let Err(error) = write_forever(stream, flood).await {
                eprintln!("misbehave: the flood ended: {error}");
            }
        });
    }
}

async fn write_forever(stream: UnixStream, flood: Flood) -> std::io::Result<()> {
    let (mut read, mut write) = stream.into_split();
    write.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    // The preface, the client's settings and its first call; everything after that is read and ignored.
    let mut first = [0; PREFACE_BYTES];
    read.read_exact(&mut first).await?;
    tokio::spawn(async move { while read.read(&mut [0; 4096]).await.is_ok_and(|bytes| bytes > 0) {} });
    if flood == Flood::Continuation {
        // A status, and then endless headers of the same name: literal, never indexed.
        write.write_all(&frame(HEADERS, 0, 1, &[0x88])).await?;
    }
    let many = endless(flood, 1);
    loop {
        write.write_all(&many).await?;
    }
}

/// A batch of frames, for this stream if they need one.
fn endless(flood: Flood, stream: u32) -> Vec<u8> {
    let one = match flood {
        Flood::Settings => frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]),
        Flood::Ping => frame(PING, 0, 0, b"misbehav"),
        Flood::Reset => frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]),
        Flood::Continuation => {
            frame(CONTINUATION, 0, stream, &[b"\x10\x01a\x7f\x00".as_slice(), &[b'x'; 127]].concat())
        }
        Flood::Window => frame(WINDOW_UPDATE, 0, stream, &[0, 0, 0, 1]),
        Flood::EmptyData => frame(DATA, 0, stream, &[]),
        Flood::Priority => frame(PRIORITY, 0, stream, &[0, 0, 0, 0, 16]),
        // The field `:status` by its index in HTTP/2's own table, not to be indexed again.
        Flood::EarlyHints => frame(HEADERS, END_HEADERS, stream, b"\x08\x03103"),
        Flood::TinyData => frame(DATA, 0, stream, b"\0"),
        Flood::Unknown => frame(UNKNOWN, 0, 0, &[b'x'; 64]),
    };
    one.repeat(BATCH)
}

/// Passes a connection on to a server, the returned end, frame by frame; from the first call on the host gets
/// the flood.
pub(crate) fn serve_until(
    host: UnixStream,
    flood: Flood,
    called: Arc<Notify>,
) -> std::io::Result<UnixStream> {
    let (server, ours) = UnixStream::pair()?;
    let (mut from_host, mut to_host) = host.into_split();
    let (mut from_server, mut to_server) = ours.into_split();
    let last_stream = Arc::new(AtomicU32::new(1));
    let seen = Arc::clone(&last_stream);
    let _copying: JoinHandle<std::io::Result<()>> = tokio::spawn(async move {
        let mut preface = [0; PREFACE_BYTES];
        from_host.read_exact(&mut preface).await?;
        to_server.write_all(&preface).await?;
        loop {
            let frame = read_frame(&mut from_host).await?;
            if frame[3] == HEADERS {
                seen.store(u32::from_be_bytes([frame[5], frame[6], frame[7], frame[8]]), Ordering::Relaxed);
            }
            to_server.write_all(&frame).await?;
        }
    });
    let _flooding: JoinHandle<std::io::Result<()>> = tokio::spawn(async move {
        let mut call = pin!(called.notified());
        loop {
            // Only reading is given up: half a frame would hide the flood.
            let frame = tokio::select! {
                biased;
                () = &mut call => break,
                frame = read_frame(&mut from_server) => frame?,
            };
            to_host.write_all(&frame).await?;
        }
        let mut many = endless(flood, last_stream.load(Ordering::Relaxed));
        if matches!(flood, Flood::TinyData | Flood::EmptyData) {
            let head = frame(HEADERS, END_HEADERS, last_stream.load(Ordering::Relaxed), &[0x88]);
            to_host.write_all(&head).await?;
        }
        if flood == Flood::Continuation {
            many.splice(0..0, frame(HEADERS, 0, last_stream.load(Ordering::Relaxed), &[0x88]));
        }
        loop {
            to_host.write_all(&many).await?;
        }
    });
    Ok(server)
}

async fn read_frame(from: &mut OwnedReadHalf) -> std::io::Result<Vec<u8>> {
    let mut frame = vec![0; HEAD_BYTES];
    from.read_exact(&mut frame).await?;
    let length = u32::from_be_bytes([0, frame[0], frame[1], frame[2]]);
    frame.resize(HEAD_BYTES + length as usize, 0);
    from.read_exact(&mut frame[HEAD_BYTES..]).await?;
    Ok(frame)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    // Frames here are small.
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}
