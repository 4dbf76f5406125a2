//! One request of the Bot API (<https://core.telegram.org/bots/api#making-requests>), and what its answer means.

use std::time::Duration;

use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{Method, Request};
use http_body_util::Full;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use talon_sink::peer_text::{one_line, without_secrets};
use talon_sink::request::request;
use talon_sink::target::Target;
use talon_sink::trust::Trust;

/// The largest answer that is read. 4 MiB: 50 updates with the longest texts have less than a quarter of it.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// How long one request may take beside what it waits for.
const REQUEST_TIME: Duration = Duration::from_secs(20);
/// How long a download may take. 45 s: within what a file has together with the wait for its place (talon-sink's `FETCH_TIME`).
const DOWNLOAD_TIME: Duration = Duration::from_secs(45);
/// The longest wait that Telegram may ask for; the agent counts no more.
const MAX_RETRY_AFTER: u64 = 3600;

/// The Bot API, as one bot.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) base: String,
    pub(crate) allow_http: bool,
    pub(crate) trust: Option<Trust>,
    pub(crate) token: String,
}

/// Why a request was not done. The texts are one bounded line each, without the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApiError {
    /// It may work later; Telegram may say when.
    #[error("{reason}")]
    Later {
        /// Why.
        reason: String,
        /// The least time until then.
        after: Option<Duration>,
    },
    /// The token is nobody's (401, 404).
    #[error("{0}; see the credential `token` of this plugin")]
    Token(String),
    /// Somebody else polls as this bot, or a web hook is set (409).
    #[error("{0}; one bot has one listener")]
    Conflict(String),
    /// The group has another id now.
    #[error("the group has become a supergroup, and has the id {0} now")]
    Moved(i64),
    /// It will not work.
    #[error("{0}")]
    Refused(String),
}

#[derive(Deserialize)]
struct Answer {
    ok: bool,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error_code: u16,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Parameters,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Parameters {
    retry_after: Option<u64>,
    migrate_to_chat_id: Option<i64>,
}

/// Whether a text has the form of a bot's token, so that it can stand in a path.
pub(crate) fn is_token(token: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    token.split_once(':').is_some_and(|(bot, secret)| {
        !bot.is_empty()
            && bot.chars().all(|c| c.is_ascii_digit())
            && secret.len() >= 20
            && secret.chars().all(plain)
    })
}

impl Api {
    /// Calls a method; `waits` is how long Telegram itself may wait.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        arguments: &impl Serialize,
        waits: Duration,
    ) -> Result<T, ApiError> {
        let later = |reason: &str| ApiError::Later { reason: one_line(&self.hidden(reason)), after: None };
        let target = Target::parse(&format!("{}/bot{}/{method}", self.base, self.token), self.allow_http)
            .map_err(|error| later(&format!("config: api: {error}")))?;
        let body = serde_json::to_vec(arguments).map_err(|error| ApiError::Refused(error.to_string()))?;
        let post = Request::builder()
            .method(Method::POST)
            .uri(&target.path)
            .header(HOST, &target.authority)
            .header(USER_AGENT, concat!("talon-telegram/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body.into()))
            .map_err(|error| later(&error.to_string()))?;
        let answered = request(&target, self.trust.as_ref(), post, MAX_ANSWER_BYTES);
        let response = match tokio::time::timeout(waits + REQUEST_TIME, answered).await {
            Err(_) => return Err(later("Telegram did not answer in time")),
            Ok(Err(error)) => return Err(later(&error.to_string())),
            Ok(Ok(response)) => response,
        };
        let status = response.head.status.as_u16();
        // A proxy or a server that is overloaded answers with a page.
        let answer: Answer = serde_json::from_slice(&response.body)
            .map_err(|_| later(&format!("the answer to {method} is none of the Bot API: status {status}")))?;
        if answer.ok {
            return serde_json::from_value(answer.result)
                .map_err(|error| later(&format!("the answer to {method} is not understood: {error}")));
        }
        Err(self.error(if answer.error_code == 0 { status } else { answer.error_code }, &answer))
    }

    /// Downloads a file of at most so many bytes, by the path that `getFile` said.
    pub(crate) async fn download(&self, path: &str, most: u64) -> Result<Vec<u8>, ApiError> {
        let later = |reason: &str| ApiError::Later { reason: one_line(&self.hidden(reason)), after: None };
        let target = Target::parse(&format!("{}/file/bot{}/{path}", self.base, self.token), self.allow_http)
            .map_err(|error| later(&format!("config: api: {error}")))?;
        let get = Request::builder()
            .uri(&target.path)
            .header(HOST, &target.authority)
            .header(USER_AGENT, concat!("talon-telegram/", env!("CARGO_PKG_VERSION")))
            .body(Full::default())
            .map_err(|error| later(&error.to_string()))?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let answered = request(&target, self.trust.as_ref(), get, most.saturating_add(1));
        let response = match tokio::time::timeout(DOWNLOAD_TIME, answered).await {
            Err(_) => return Err(later("Telegram did not give the file in time")),
            Ok(Err(error)) => return Err(later(&error.to_string())),
            Ok(Ok(response)) => response,
        };
        match response.head.status.as_u16() {
            200 if response.body.len() > most => {
                Err(ApiError::Refused(format!("it has more than {most} bytes")))
            }
            200 if !response.is_whole => Err(later("Telegram broke off while it gave the file")),
            200 => Ok(response.body),
            status @ (408 | 429 | 500..) => Err(later(&format!("Telegram answers {status} for the file"))),
            status => Err(ApiError::Refused(format!("Telegram answers {status} for the file"))),
        }
    }

    fn error(&self, code: u16, answer: &Answer) -> ApiError {
        let said = one_line(&format!("Telegram says {code}: {}", self.hidden(&answer.description)));
        if let Some(chat) = answer.parameters.migrate_to_chat_id {
            return ApiError::Moved(chat);
        }
        match code {
            401 | 404 => ApiError::Token(said),
            409 => ApiError::Conflict(said),
            429 | 500.. => {
                let after = answer
                    .parameters
                    .retry_after
                    .map(|after| Duration::from_secs(after.min(MAX_RETRY_AFTER)));
                ApiError::Later { reason: said, after }
            }
            _ => ApiError::Refused(said),
        }
    }

    /// A text without the token, which stands in every path.
    fn hidden(&self, text: &str) -> String {
        without_secrets(text, &[&self.token])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-210
    #[test]
    fn an_error_says_whether_it_may_work_later_and_never_the_token() {
        let token = "123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11";
        assert!(
            is_token(token)
                && !is_token("123456:short")
                && !is_token("x:ABC-DEF1234ghIkl-zyx57W2v1u")
                && !is_token("1:a/../b-DEF1234ghIkl-zyx57W2v1u")
        );
        let api = Api { base: String::new(), allow_http: false, trust: None, token: token.to_owned() };
        let error = |json: &str| {
            let answer: Answer = serde_json::from_str(json).expect("an answer");
            api.error(answer.error_code, &answer)
        };
        let flood = error(
            r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 7","parameters":{"retry_after":7}}"#,
        );
        assert!(matches!(flood, ApiError::Later { after: Some(after), .. } if after.as_secs() == 7));
        let blocked =
            error(r#"{"ok":false,"error_code":403,"description":"Forbidden: bot was blocked by the user"}"#);
        assert!(matches!(&blocked, ApiError::Refused(why) if why.contains("blocked")));
        let moved = error(
            r#"{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1001}}"#,
        );
        assert_eq!(moved, ApiError::Moved(-1001));
        assert!(matches!(
            error(r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#),
            ApiError::Token(_)
        ));
        let conflict = r#"{"ok":false,"error_code":409,"description":"Conflict: terminated by other getUpdates request"}"#;
        assert!(matches!(error(conflict), ApiError::Conflict(_)));
        let told = error(&format!(r#"{{"ok":false,"error_code":502,"description":"at /bot{token}/x"}}"#));
        assert!(!told.to_string().contains(token), "{told}");
    }
}
