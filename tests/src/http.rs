//! One HTTP request over a unix socket, or TCP.

use std::net::SocketAddr;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// 200 and the like.
    pub status: u16,
    /// Status line and headers, as they came.
    pub head: String,
    /// What follows.
    pub body: String,
}

/// Gets a path.
///
/// # Panics
/// When no server answers.
pub async fn get(socket: &Path, path: &str) -> Answer {
    send(socket, &format!("GET {path} HTTP/1.1\r\nHost: talon\r\n\r\n")).await
}

/// Sends a request as it is and reads to the end of the connection.
///
/// # Panics
/// When that is no answer.
pub async fn send(socket: &Path, request: &str) -> Answer {
    exchange(UnixStream::connect(socket).await.expect("somebody listens"), request).await
}

/// The same over TCP. The request has to ask for the end of the connection.
///
/// # Panics
/// When that is no answer.
pub async fn send_tcp(address: SocketAddr, request: &str) -> Answer {
    exchange(TcpStream::connect(address).await.expect("somebody listens"), request).await
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> Answer {
    // A server that refuses a request early closes before all is sent.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).expect("answers are text");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Answer { status: status.expect("a status"), head: head.to_owned(), body: body.to_owned() }
}
