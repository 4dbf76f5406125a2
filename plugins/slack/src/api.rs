//! One request of the Web API (<https://docs.slack.dev/apis/web-api/>), and what its answer means.

use std::time::{Duration, SystemTime};

use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use serde::de::DeserializeOwned;
use serde_json::Value;
use talon_sink::answer::retry_after;
use talon_sink::delivery::Delivery;
use talon_sink::peer_text::{one_line, without_secrets};
use talon_sink::request::{Response, request};
use talon_sink::target::Target;
use talon_sink::trust::Trust;
use url::form_urlencoded;

use crate::api_error::ApiError;
use crate::inbound::AppUser;
use crate::token_kind::TokenKind;

/// The largest answer that is read. 4 MiB: a page of messages with the longest texts has less.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// How long one request may take. 15 s: what opens the channel makes two and a connection, within the minute of a call.
pub(crate) const REQUEST_TIME: Duration = Duration::from_secs(15);
/// How long a download may take. 40 s: within what a file has together with the question for its place (talon-sink's `FETCH_TIME`).
const DOWNLOAD_TIME: Duration = Duration::from_secs(40);

/// The Web API, as one app.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) base: String,
    pub(crate) allow_http: bool,
    pub(crate) trust: Option<Trust>,
    pub(crate) bot_token: String,
    pub(crate) app_token: String,
}

impl Api {
    /// Calls a method, with arguments as a form: the methods that read take no JSON.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        kind: TokenKind,
        method: &str,
        arguments: &[(&str, &str)],
    ) -> Result<T, ApiError> {
        let response = self.post(kind, method, arguments).await?;
        let answer = self.answer(kind, method, &response)?;
        serde_json::from_value(answer)
            .map_err(|error| self.later(&format!("the answer to {method} is not understood: {error}")))
    }

    /// Who the app is, and which of the scopes that it needs its token lacks, if Slack says which it has.
    pub(crate) async fn app_user(&self) -> Result<(AppUser, Vec<&'static str>), ApiError> {
        const METHOD: &str = "auth.test";
        let response = self.post(TokenKind::Bot, METHOD, &[]).await?;
        let answer = self.answer(TokenKind::Bot, METHOD, &response)?;
        let own: AppUser = serde_json::from_value(answer)
            .map_err(|error| self.later(&format!("the answer to {METHOD} is not understood: {error}")))?;
        let scopes = response.head.headers.get(SCOPES_HEADER).and_then(|scopes| scopes.to_str().ok());
        Ok((own, scopes.map(lacking_scopes).unwrap_or_default()))
    }

    async fn post(
        &self,
        kind: TokenKind,
        method: &str,
        arguments: &[(&str, &str)],
    ) -> Result<Response, ApiError> {
        let target = Target::parse(&format!("{}/{method}", self.base), self.allow_http)
            .map_err(|error| self.later(&format!("config: api: {error}")))?;
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(arguments).finish();
        let post = Request::builder()
            .method(Method::POST)
            .uri(&target.path)
            .header(HOST, &target.authority)
            .header(USER_AGENT, USER_AGENT_TEXT)
            .header(AUTHORIZATION, self.bearer(kind))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Full::new(body.into()))
            .map_err(|error| self.later(&error.to_string()))?;
        let answered = request(&target, self.trust.as_ref(), post, MAX_ANSWER_BYTES);
        match tokio::time::timeout(REQUEST_TIME, answered).await {
            Err(_) => Err(self.later("Slack did not answer in time")),
            Ok(Err(error)) => Err(self.later(&error.to_string())),
            Ok(Ok(response)) => Ok(response),
        }
    }

    /// What Slack answers, if it says that it is well: most errors come with status 200.
    fn answer(&self, kind: TokenKind, method: &str, response: &Response) -> Result<Value, ApiError> {
        let status = response.head.status;
        if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
            return Err(ApiError::Later {
                reason: format!("Slack answers {method} with {status}"),
                after: retry_after(&response.head.headers, SystemTime::now()),
                // Behind any other status it may have been done, whether or not Slack says when to ask again.
                is_undone: status == StatusCode::TOO_MANY_REQUESTS,
            });
        }
        // A proxy, or a server that is overloaded, answers with a page.
        let answer: Value = serde_json::from_slice(&response.body).map_err(|_| {
            self.later(&format!("the answer to {method} is none of Slack's: status {status}"))
        })?;
        if answer["ok"] == true {
            return Ok(answer);
        }
        let of = |name: &str| self.hidden(answer[name].as_str().unwrap_or_default());
        Err(ApiError::of_word(kind, method, &of("error"), &of("needed")))
    }

    /// Downloads a file of at most so many bytes, with the bot's token: only to be asked of Slack's own hosts.
    pub(crate) async fn download(&self, target: &Target, most: u64) -> Result<Response, Delivery> {
        let later = |reason: &str| Delivery::retry(self.hidden(reason));
        let get = Request::builder()
            .uri(&target.path)
            .header(HOST, &target.authority)
            .header(USER_AGENT, USER_AGENT_TEXT)
            .header(AUTHORIZATION, self.bearer(TokenKind::Bot))
            .body(Full::default())
            .map_err(|error| later(&error.to_string()))?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let answered = request(target, self.trust.as_ref(), get, most.saturating_add(1));
        match tokio::time::timeout(DOWNLOAD_TIME, answered).await {
            Err(_) => Err(later("Slack did not give the file in time")),
            Ok(Err(error)) => Err(later(&error.to_string())),
            Ok(Ok(response)) => Ok(response),
        }
    }

    fn bearer(&self, kind: TokenKind) -> String {
        let token = match kind {
            TokenKind::Bot => &self.bot_token,
            TokenKind::App => &self.app_token,
        };
        format!("Bearer {token}")
    }

    /// Something that may work later, in one line without the tokens.
    pub(crate) fn later(&self, reason: &str) -> ApiError {
        ApiError::Later { reason: one_line(&self.hidden(reason)), after: None, is_undone: false }
    }

    /// A text without the tokens.
    fn hidden(&self, text: &str) -> String {
        without_secrets(text, &[&self.bot_token, &self.app_token])
    }
}

/// The header in which Slack says what a token may do.
const SCOPES_HEADER: &str = "x-oauth-scopes";
/// What the bot's token has to be allowed, as docs/extensions/channels.md has it.
const SCOPES: [&str; 7] = [
    "channels:history",
    "chat:write",
    "files:read",
    "groups:history",
    "im:history",
    "mpim:history",
    "users:read",
];

/// Which scopes are not in this list of Slack's.
fn lacking_scopes(scopes: &str) -> Vec<&'static str> {
    let had: Vec<&str> = scopes.split(',').map(str::trim).collect();
    SCOPES.into_iter().filter(|scope| !had.contains(scope)).collect()
}

/// Who asks.
const USER_AGENT_TEXT: &str = concat!("talon-slack/", env!("CARGO_PKG_VERSION"));

/// Of tests that ask it nothing.
#[cfg(test)]
pub(crate) fn unreachable_api() -> Api {
    Api {
        base: String::new(),
        allow_http: false,
        trust: None,
        bot_token: "xoxb-17653672481-secret".to_owned(),
        app_token: "xapp-1-A123ABC456-secret".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_that_a_token_lacks_are_known() {
        assert_eq!(lacking_scopes(&SCOPES.join(", ")), Vec::<&str>::new());
        let some = "chat:write,files:read,channels:history,groups:history,mpim:history,users:read,team:read";
        assert_eq!(lacking_scopes(some), ["im:history"]);
    }

    // Promises: GW-282
    #[test]
    fn what_is_said_has_no_token_in_it() {
        let api = unreachable_api();
        let said = api.later("at xoxb-17653672481-secret and xapp-1-A123ABC456-secret").to_string();
        assert_eq!(said, "at [hidden] and [hidden]");
    }
}
