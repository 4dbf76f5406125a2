//! A local imitation of the services that servers call: HTTP, with fixed answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The largest request that is read. Servers send a few hundred bytes.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// How long a request may take. It comes from this machine.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// An answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// What the path begins with.
    pub path: String,
    /// The media type.
    #[serde(rename = "type")]
    pub media_type: String,
    /// The body. `{service}` stands for the imitation's address.
    pub body: String,
}

/// Serves while it lives.
#[derive(Debug)]
pub struct Service {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Service {
    /// Serves the first route whose path fits, and 404 elsewhere.
    ///
    /// # Errors
    /// When no port is to be had.
    pub async fn start(routes: Vec<Route>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let routes = Arc::new(routes);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let routes = Arc::clone(&routes);
                tokio::spawn(async move {
                    let answered = tokio::time::timeout(REQUEST_TIMEOUT, answer(stream, &routes, address));
                    // A client that goes away, or stays silent, gets no answer.
                    let _ = answered.await;
                });
            }
        });
        Ok(Self { address, task })
    }

    /// Host and port.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut stream: TcpStream, routes: &[Route], address: SocketAddr) -> Result<()> {
    let request = request(&mut stream).await?;
    let path = request.split(' ').nth(1).unwrap_or("/");
    let found = routes.iter().find(|route| path.starts_with(&route.path));
    let (status, media_type, body) = found.map_or(("404 Not Found", "text/plain", String::new()), |route| {
        ("200 OK", route.media_type.as_str(), route.body.replace("{service}", &address.to_string()))
    });
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // Nothing is sent after the head where only it was asked for.
    let body = if request.starts_with("HEAD ") { "" } else { &body };
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    stream.shutdown().await?;
    Ok(())
}

/// The head of a request; its body is read and dropped.
async fn request(stream: &mut TcpStream) -> Result<String> {
    let mut read = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let size = stream.read(&mut chunk).await?;
        read.extend_from_slice(&chunk[..size]);
        if size == 0 || read.len() > MAX_REQUEST_BYTES {
            bail!("the request has no end");
        }
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            let body: usize = length.unwrap_or(0);
            if read.len() >= head.len() + 4 + body {
                return Ok(head.to_owned());
            }
        }
    }
}
