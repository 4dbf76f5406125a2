//! Waits for the browser to come back with a code: to a listener on this machine, or by the address that a
//! person pastes, because the browser runs on another one.

use std::time::Duration;

use talon_bridge::text::cut;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use url::Url;

use super::error::OauthError;
use super::token::refused;

/// How long a person has.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// How long a connection may take to send its request, and how much of it is read.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_REQUEST_BYTES: u64 = 16 << 10;
/// The longest line that is pasted.
const MAX_LINE_BYTES: u64 = 16 << 10;
/// Where the browser comes back to.
const PATH: &str = "/callback";
const DONE: &str = "Logged in. You may close this window.";

/// A listener on the loopback interface alone.
pub(super) struct Redirect {
    listener: TcpListener,
    uri: String,
}

impl Redirect {
    pub(super) async fn listen() -> Result<Self, OauthError> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(OauthError::Listen)?;
        let port = listener.local_addr().map_err(OauthError::Listen)?.port();
        Ok(Self { listener, uri: format!("http://127.0.0.1:{port}{PATH}") })
    }

    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    /// The code, once one comes that belongs to this login: with its `state`, and from its issuer.
    pub(super) async fn code(
        self,
        state: &str,
        issuer: &str,
        names_issuer: bool,
    ) -> Result<String, OauthError> {
        let minutes = LOGIN_TIMEOUT.as_secs() / 60;
        let came = async {
            tokio::select! {
                came = self.browser() => came,
                Some(came) = pasted() => Ok(came),
            }
        };
        let came = timeout(LOGIN_TIMEOUT, came).await.map_err(|_| OauthError::Timeout(minutes))??;
        code_of(&came, state, issuer, names_issuer)
    }

    async fn browser(&self) -> Result<Url, OauthError> {
        loop {
            let (stream, _) = self.listener.accept().await.map_err(OauthError::Listen)?;
            // One at a time: a browser asks once, and what else connects has five seconds.
            if let Ok(Some(url)) = timeout(REQUEST_TIMEOUT, request(stream)).await {
                return Ok(url);
            }
        }
    }
}

/// Reads one request, and answers it; its address, if that is ours.
async fn request(mut stream: TcpStream) -> Option<Url> {
    let (reader, mut writer) = stream.split();
    let mut lines = BufReader::new(reader.take(MAX_REQUEST_BYTES)).lines();
    let first = lines.next_line().await.ok()??;
    while lines.next_line().await.ok()?.is_some_and(|line| !line.is_empty()) {}
    let path = first.strip_prefix("GET ")?.split(' ').next()?;
    let url = Url::parse("http://127.0.0.1").ok()?.join(path).ok()?;
    let ours = url.path() == PATH && url.host_str() == Some("127.0.0.1") && url.query().is_some();
    let (status, text) = if ours { ("200 OK", DONE) } else { ("404 Not Found", "Not here.") };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    // If the browser is gone, it needs no answer.
    let _ = writer.write_all(answer.as_bytes()).await;
    ours.then_some(url)
}

/// The address that a person pastes; never if there is no input.
async fn pasted() -> Option<Url> {
    let mut lines = BufReader::new(tokio::io::stdin().take(MAX_LINE_BYTES)).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match Url::parse(line.trim()) {
            Ok(url) if url.path() == PATH => return Some(url),
            _ => eprintln!("that is not the address: it begins with http://127.0.0.1 and holds {PATH}"),
        }
    }
    std::future::pending().await
}

fn code_of(came: &Url, state: &str, issuer: &str, names_issuer: bool) -> Result<String, OauthError> {
    let parameter = |name: &str| came.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value);
    let from = parameter("iss");
    if parameter("state").as_deref() != Some(state)
        || from.as_deref().map_or(names_issuer, |from| from != issuer)
    {
        return Err(OauthError::ForeignAnswer);
    }
    if let Some(error) = parameter("error") {
        return Err(refused(&error, &parameter("error_description").unwrap_or_default()));
    }
    parameter("code").map(std::borrow::Cow::into_owned).ok_or_else(|| OauthError::Answer {
        url: cut(issuer, 200),
        why: "the browser came back without a code".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_belongs_to_its_login_and_its_issuer() {
        let code = |query: &str, names_issuer| {
            let url = Url::parse(&format!("http://127.0.0.1:1/callback?{query}")).unwrap();
            code_of(&url, "s1", "https://a.example", names_issuer)
        };
        assert_eq!(code("code=c&state=s1", false).unwrap(), "c");
        assert_eq!(code("code=c&state=s1&iss=https%3A%2F%2Fa.example", true).unwrap(), "c");
        for foreign in ["code=c", "code=c&state=s2", "code=c&state=s1&iss=https%3A%2F%2Fb.example"] {
            assert!(matches!(code(foreign, false), Err(OauthError::ForeignAnswer)), "{foreign}");
        }
        assert!(matches!(code("code=c&state=s1", true), Err(OauthError::ForeignAnswer)));
        assert!(matches!(code("error=access_denied&state=s1", false), Err(OauthError::Refused { .. })));
    }
}
