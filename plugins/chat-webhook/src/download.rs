//! Files of messages, which the other program has where its answers go.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::Request;
use http::header::{HOST, HeaderName, USER_AGENT};
use http_body_util::Full;
use talon_sink::delivery::Delivery;
use talon_sink::held_files::most_bytes;
use talon_sink::peer_text::one_line;
use talon_sink::request::request;
use talon_sink::signature::signature;
use talon_sink::target::Target;
use talon_sink::trust::Trust;

/// The largest file. 20 MB, as of other channels; the agent asks for less.
const MAX_FILE_BYTES: u64 = 20_000_000;
/// How long a download may take. 45 s: within what a file has together with the wait for its place (talon-sink's `FETCH_TIME`).
const DOWNLOAD_TIME: Duration = Duration::from_secs(45);

/// Where a file is.
pub(crate) struct FileLocation<'f> {
    /// Where answers go: files are there alone.
    pub(crate) answers: &'f Target,
    pub(crate) url: &'f str,
    pub(crate) allow_http: bool,
}

impl FileLocation<'_> {
    /// The file's URL. Whoever posts a message chooses it, so it leads to no other host.
    fn target(&self) -> Result<Target, Delivery> {
        let target = Target::parse(self.url, self.allow_http)
            .map_err(|error| Delivery::refused(format!("the URL of the file: {error}")))?;
        if (&target.endpoint, target.tls) != (&self.answers.endpoint, self.answers.tls) {
            return Err(Delivery::refused("the URL of the file is of another host than where answers go"));
        }
        Ok(target)
    }
}

/// Downloads a file of at most so many bytes. The request is signed as answers are: its path by the secret.
pub(crate) async fn download(
    file: FileLocation<'_>,
    trust: Option<&Trust>,
    (header, secret): (&str, &str),
    max_bytes: u64,
) -> Result<Bytes, Delivery> {
    let target = file.target()?;
    let most = most_bytes(max_bytes, MAX_FILE_BYTES);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let header: HeaderName = header
        .parse()
        .map_err(|_| Delivery::retry(format!("{:?} is no name of a header", one_line(header))))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let get = Request::builder()
        .uri(&target.path)
        .header(HOST, &target.authority)
        .header(USER_AGENT, concat!("talon-chat-webhook/", env!("CARGO_PKG_VERSION")))
        .header(header, signature(secret, now, target.path.as_bytes()))
        .body(Full::default())
        .map_err(|error| Delivery::refused(format!("the request cannot be made: {error}")))?;
    let answered = request(&target, trust, get, most.saturating_add(1));
    let response = match tokio::time::timeout(DOWNLOAD_TIME, answered).await {
        Err(_) => return Err(Delivery::retry("the file did not come in time")),
        Ok(Err(error)) => return Err(Delivery::retry(error.to_string())),
        Ok(Ok(response)) => response,
    };
    match response.head.status.as_u16() {
        200 if response.body.len() > most => Err(Delivery::refused(format!("it has more than {most} bytes"))),
        200 if !response.is_whole => Err(Delivery::retry("the file broke off")),
        200 => Ok(response.body.into()),
        status @ (408 | 425 | 429 | 500..) => Err(Delivery::retry(format!("the server answers {status}"))),
        status => Err(Delivery::refused(format!("the server answers {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-237
    #[test]
    fn a_file_is_where_answers_go_and_nowhere_else() {
        let answers = Target::parse("https://desk.example.org/talon", false).expect("a URL");
        let of = |url: &str| FileLocation { answers: &answers, url, allow_http: true }.target();
        assert_eq!(of("https://desk.example.org/files/7?x=1").expect("a file").path, "/files/7?x=1");
        for wrong in [
            "https://other.example.org/files/7",
            "https://desk.example.org:8443/files/7",
            "http://desk.example.org/files/7",
            "https://user@desk.example.org/files/7",
            "file:///etc/passwd",
            "files/7",
            "",
        ] {
            assert!(matches!(of(wrong), Err(Delivery::Refused(_))), "{wrong}");
        }
    }
}
