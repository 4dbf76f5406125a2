//! Clients that send a supervisor HTTP/2 control frames without end, one thread for each kind, and connect
//! again as soon as they are cut off.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::worker;

/// The client's preface.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Frames in one write; a higher number only makes the writes larger.
const BATCH: usize = 1024;

/// SETTINGS, PING, an answer to a PING that was never sent, WINDOW_UPDATE, PRIORITY, and a kind that does not
/// exist: kind, flags, stream, payload.
const KINDS: [(u8, u8, u8, &[u8]); 6] = [
    (4, 0, 0, &[]),
    (6, 0, 0, b"answer-m"),
    (6, 1, 0, b"unasked!"),
    (8, 0, 0, &[0, 0, 0, 1]),
    (2, 0, 1, &[0, 0, 0, 0, 16]),
    (0xfa, 0, 0, &[0; 64]),
];

/// How many floods run at once.
pub const FLOODS: usize = KINDS.len();

/// Floods the socket with every kind at once until standard input ends.
pub(super) fn run(socket: &Path) -> Result<()> {
    for (kind, flags, stream, payload) in KINDS {
        let socket = socket.to_owned();
        let frames = frame(kind, flags, stream, payload)?.repeat(BATCH);
        std::thread::spawn(move || {
            loop {
                // An error is how a flood ends: the connection was closed, or refused at accept.
                let _ = flood(&socket, &frames);
            }
        });
    }
    worker::ready()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Sends these frames until the connection ends, and reads the answers, so that the server can send them.
fn flood(socket: &Path, frames: &[u8]) -> Result<()> {
    let mut connection = UnixStream::connect(socket)?;
    connection.write_all(PREFACE)?;
    connection.write_all(&frame(4, 0, 0, &[])?)?;
    let mut answers = connection.try_clone()?;
    let reading = std::thread::spawn(move || {
        let mut buffer = [0; 64 << 10];
        while answers.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    while connection.write_all(frames).is_ok() {}
    reading.join().ok().context("the reader only reads")
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Result<Vec<u8>> {
    let length = u8::try_from(payload.len())?;
    Ok([&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat())
}
