//! A tunnel through the supervisor's proxy, on its unix socket. That one works in every jail with `network: proxy`; the
//! addresses that stand for hosts need privileges that a supervisor may lack.

use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::endpoint::{ConnectError, Endpoint};
use crate::peer_text::one_line;

/// The largest head of the proxy's answer; it is some hundred bytes.
const MAX_HEAD_BYTES: usize = 8 << 10;
/// How much is read of its text about a refusal, which names the entry that would allow the endpoint.
const MAX_REFUSAL_BYTES: u64 = 1000;

/// Asks the proxy for a connection to an endpoint.
pub(crate) async fn tunnel(socket: &Path, endpoint: &Endpoint) -> Result<UnixStream, ConnectError> {
    let unreachable = |source| ConnectError::Unreachable { endpoint: endpoint.clone(), source };
    let mut stream = UnixStream::connect(socket).await.map_err(unreachable)?;
    let asked = format!("CONNECT {endpoint} HTTP/1.1\r\nHost: {endpoint}\r\n\r\n");
    stream.write_all(asked.as_bytes()).await.map_err(unreachable)?;
    let mut head = Vec::new();
    // Byte by byte: what comes after the head belongs to the tunnel.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MAX_HEAD_BYTES {
            return Err(ConnectError::Refused("the answer of Talon's proxy has no end".to_owned()));
        }
        head.push(stream.read_u8().await.map_err(unreachable)?);
    }
    let head = String::from_utf8_lossy(&head);
    let status = head.lines().next().unwrap_or_default();
    if status.split_whitespace().nth(1) == Some("200") {
        return Ok(stream);
    }
    let mut text = Vec::new();
    stream.take(MAX_REFUSAL_BYTES).read_to_end(&mut text).await.map_err(unreachable)?;
    let text = String::from_utf8_lossy(&text);
    Err(ConnectError::Refused(one_line(if text.trim().is_empty() { status } else { &text })))
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::*;

    /// What a tunnel comes to when the proxy answers with this.
    async fn answered(answer: &'static str) -> Result<String, String> {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("proxy.sock");
        let listener = UnixListener::bind(&socket).expect("bound");
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("asked");
            let mut asked = vec![0; 500];
            let length = stream.read(&mut asked).await.expect("reads");
            // Whoever asked may be gone already.
            drop(stream.write_all(answer.as_bytes()).await);
            String::from_utf8_lossy(&asked[..length]).into_owned()
        });
        let endpoint = Endpoint { host: "example.org".to_owned(), port: 25 };
        let tunnel = tunnel(&socket, &endpoint).await.map_err(|error| error.to_string());
        assert_eq!(
            serving.await.expect("served"),
            "CONNECT example.org:25 HTTP/1.1\r\nHost: example.org:25\r\n\r\n"
        );
        let mut rest = String::new();
        tunnel?.read_to_string(&mut rest).await.expect("reads");
        Ok(rest)
    }

    #[tokio::test]
    async fn what_follows_the_head_is_the_hosts() {
        assert_eq!(answered("HTTP/1.1 200 OK\r\n\r\n220 ready\r\n").await, Ok("220 ready\r\n".to_owned()));
    }

    #[tokio::test]
    async fn a_refusal_is_the_proxys_text() {
        let refused = answered("HTTP/1.1 403 Forbidden\r\n\r\nnot on\nthe list").await;
        assert_eq!(refused, Err("not on the list".to_owned()));
        let refused = answered("HTTP/1.1 502 Bad Gateway\r\n\r\n").await;
        assert_eq!(refused, Err("HTTP/1.1 502 Bad Gateway".to_owned()));
        let refused = answered("HTTP/1.1 200 ").await.expect_err("no end");
        assert!(refused.starts_with("cannot connect to example.org:25: "), "{refused}");
    }
}
