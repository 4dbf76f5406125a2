//! Endless HTTP/2 frames, written by hand because no library would send them.

use clap::ValueEnum;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

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
    /// Frames of a kind that does not exist.
    Unknown,
}

/// Frames in one write; a higher number only makes the writes larger.
const BATCH: usize = 1024;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
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
    let mut first = [0; 24];
    read.read_exact(&mut first).await?;
    tokio::spawn(async move { while read.read(&mut [0; 4096]).await.is_ok_and(|bytes| bytes > 0) {} });
    if flood == Flood::Continuation {
        // A status, and then endless headers of the same name: literal, never indexed.
        write.write_all(&frame(HEADERS, 0, 1, &[0x88])).await?;
    }
    let one = match flood {
        Flood::Settings => frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]),
        Flood::Ping => frame(PING, 0, 0, b"misbehav"),
        Flood::Reset => frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]),
        Flood::Continuation => {
            frame(CONTINUATION, 0, 1, &[b"\x10\x01a\x7f\x00".as_slice(), &[b'x'; 127]].concat())
        }
        Flood::Window => frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
        Flood::EmptyData => frame(DATA, 0, 1, &[]),
        Flood::Unknown => frame(UNKNOWN, 0, 0, &[b'x'; 64]),
    };
    let many = one.repeat(BATCH);
    loop {
        write.write_all(&many).await?;
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    // Frames here are small.
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}
