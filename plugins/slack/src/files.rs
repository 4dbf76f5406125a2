//! Files that came with messages (<https://docs.slack.dev/reference/methods/files.info>).

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use talon_sink::delivery::Delivery;
use talon_sink::held_files::most_bytes;
use talon_sink::request::Response;
use talon_sink::target::Target;

use crate::api::Api;
use crate::api_error::ApiError;
use crate::token_kind::TokenKind;

/// The largest file that is fetched. 20 MB, as of the other channels; four of them are held at once.
const MAX_FILE_BYTES: u64 = 20_000_000;
/// Where Slack's files are. The bot's token goes there, and nowhere else.
const FILES_HOST: &str = "files.slack.com";

/// What `files.info` says.
#[derive(Deserialize)]
struct FileInfo {
    file: SharedFile,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SharedFile {
    size: Option<u64>,
    mimetype: Option<String>,
    is_external: bool,
    url_private_download: Option<String>,
    url_private: Option<String>,
}

/// Downloads a file of at most so many bytes.
pub(crate) async fn download(api: &Api, file: &str, max_bytes: u64) -> Result<Bytes, Delivery> {
    let most = most_bytes(max_bytes, MAX_FILE_BYTES);
    let info: Result<FileInfo, ApiError> = api.call(TokenKind::Bot, "files.info", &[("file", file)]).await;
    let file = info.map_err(ApiError::delivery)?.file;
    if file.is_external {
        return Err(Delivery::refused("it is kept by another service than Slack"));
    }
    if let Some(bytes) = file.size.filter(|bytes| *bytes > most) {
        return Err(Delivery::refused(format!("it has {bytes} bytes, and may have {most}")));
    }
    let url = file.url_private_download.or(file.url_private).unwrap_or_default();
    let target = file_target(&url, &api.base, api.allow_http).map_err(Delivery::refused)?;
    let response = api.download(&target, most).await?;
    content(response, most, file.mimetype.as_deref().unwrap_or_default()).map(Bytes::from)
}

/// Where a file is, if that is a place that may have the token.
fn file_target(url: &str, base: &str, allow_http: bool) -> Result<Target, String> {
    let target = Target::parse(url, allow_http).map_err(|_| "Slack names no URL of the file".to_owned())?;
    let is_slack = target.tls && target.endpoint.host == FILES_HOST && target.endpoint.port == 443;
    // Another server that speaks as Slack does, by `api`.
    let is_own = Target::parse(base, allow_http)
        .is_ok_and(|own| own.endpoint == target.endpoint && own.tls == target.tls);
    if is_slack || is_own {
        Ok(target)
    } else {
        Err(format!("the file is at {}, which does not get the token", target.endpoint))
    }
}

/// The bytes of a file. Without the right to it Slack answers with a page to log in, or leads there.
fn content(response: Response, most: u64, mimetype: &str) -> Result<Vec<u8>, Delivery> {
    let status = response.head.status;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let kind =
        response.head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_login =
        status.is_redirection() || (kind.starts_with("text/html") && !mimetype.starts_with("text/html"));
    match status.as_u16() {
        200 | 300..400 if is_login => Err(Delivery::refused(
            "Slack asks for a login in the place of the file: does the app have the scope files:read?",
        )),
        200 if response.body.len() > most => Err(Delivery::refused(format!("it has more than {most} bytes"))),
        200 if !response.is_whole => Err(Delivery::retry("Slack broke off while it gave the file")),
        200 => Ok(response.body),
        408 | 429 | 500.. => Err(Delivery::retry(format!("Slack answers {status} for the file"))),
        _ => Err(Delivery::refused(format!("Slack answers {status} for the file"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-286
    #[test]
    fn the_token_goes_to_slacks_files_and_nowhere_else() {
        let slack = "https://slack.com/api";
        assert!(
            file_target("https://files.slack.com/files-pri/T024-F1/download/plan.pdf", slack, false).is_ok()
        );
        for wrong in [
            "https://files.slack.com.example.org/x",
            "https://example.org/files-pri/x",
            "http://files.slack.com/x",
            "https://files.slack.com:8443/x",
            "https://evil@files.slack.com/x",
            "",
        ] {
            assert!(file_target(wrong, slack, true).is_err(), "{wrong}");
        }
        let own = "http://127.0.0.1:80/api";
        assert!(file_target("http://127.0.0.1:80/files/x", own, false).is_ok());
        assert!(file_target("http://127.0.0.1:81/files/x", own, false).is_err());
    }

    // Promises: GW-286
    #[test]
    fn a_page_to_log_in_is_no_file() {
        let answered = |status: u16, kind: &str, bytes: usize| {
            let head =
                http::Response::builder().status(status).header(CONTENT_TYPE, kind).body(()).expect("a head");
            Response { head: head.into_parts().0, body: vec![0; bytes], is_whole: true }
        };
        let of = |status, kind, bytes, mimetype| content(answered(status, kind, bytes), 10, mimetype);
        assert_eq!(of(200, "application/pdf", 10, "application/pdf"), Ok(vec![0; 10]));
        assert!(of(200, "text/html; charset=utf-8", 9, "text/html").is_ok());
        for (status, kind, bytes) in
            [(200, "text/html; charset=utf-8", 9), (302, "", 0), (200, "application/pdf", 11), (404, "", 0)]
        {
            let refused = of(status, kind, bytes, "application/pdf");
            assert!(matches!(refused, Err(Delivery::Refused(_))), "{status} {kind}");
        }
        assert!(matches!(of(503, "", 0, ""), Err(Delivery::Retry(..))));
    }
}
