//! `send`: one POST, bounded in time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request};
use http_body_util::Full;
use talon_sdk::{Context, Credential, Notification, Output, ToolError, tracing};
use talon_sink::answer::{self, MAX_REASON_BYTES};
use talon_sink::delivery::Delivery;
use talon_sink::peer_text::one_line;
use talon_sink::request::request;
use talon_sink::signature::signature;
use talon_sink::target::Target;
use talon_sink::trust::Trust;

use crate::body::body;
use crate::settings::{Format, Settings};

/// The credential with the URL, where that is a secret.
const URL: &str = "url";
/// The credential that bodies are signed with; its header is the signature's.
const SECRET: &str = "secret";
/// A credential that is sent as it is.
const AUTHORIZATION: &str = "authorization";
/// Which notification it is: the same for each attempt.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// What is left of the caller's time for the answer.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// What all calls share.
pub(crate) struct Webhook {
    format: Format,
    url: Option<String>,
    allow_http: bool,
    timeout: Duration,
    /// `None` where this machine trusts nothing; plain http works there all the same.
    trust: Option<Trust>,
}

impl Webhook {
    pub(crate) fn new(settings: Settings) -> Result<Self, ToolError> {
        let timeout = settings.timeout()?;
        if let Some(url) = &settings.url {
            Target::parse(url, settings.allow_http)
                .map_err(|error| ToolError::new(format!("config: url: {error}")))?;
        }
        let trust = match Trust::load() {
            Ok(trust) => Some(trust),
            Err(error) => {
                tracing::warn!("https cannot be used: {error}");
                None
            }
        };
        let Settings { format, url, allow_http, .. } = settings;
        Ok(Self { format, url, allow_http, timeout, trust })
    }

    async fn send(&self, asked: &Notification, cx: &Context) -> Result<Delivery, ToolError> {
        let given = cx.credential(URL);
        let Some(url) = given.as_ref().map(|url| url.value).or(self.url.as_deref()) else {
            return Ok(Delivery::retry(
                "there is no URL: configure the credential `url` of this plugin, or `url` in its config",
            ));
        };
        let target = match Target::parse(url, self.allow_http) {
            Ok(target) => target,
            Err(error) => return Ok(Delivery::retry(format!("credential url: {error}"))),
        };
        let body = body(self.format, asked)?;
        let secrets = [cx.credential(SECRET), cx.credential(AUTHORIZATION)];
        let post = match post(&target, body, &asked.event.id, &secrets) {
            Ok(post) => post,
            Err(reason) => return Ok(Delivery::retry(reason)),
        };
        let timeout =
            cx.remaining().map_or(self.timeout, |left| self.timeout.min(left.saturating_sub(ANSWER_TIME)));
        let requested = request(&target, self.trust.as_ref(), post, MAX_REASON_BYTES);
        let hidden: Vec<&str> = [target.path.as_str()]
            .into_iter()
            .chain(secrets.iter().flatten().map(|secret| secret.value))
            .collect();
        Ok(match tokio::time::timeout(timeout, requested).await {
            Ok(Ok(response)) => {
                let head = &response.head;
                answer::delivery(head.status, &head.headers, &response.body, &hidden, SystemTime::now())
            }
            Ok(Err(error)) => Delivery::retry(error.to_string()),
            Err(_) => Delivery::retry(format!(
                "{} did not answer within {} s",
                one_line(&target.endpoint.to_string()),
                timeout.as_secs_f32()
            )),
        })
    }
}

/// The request, or why it cannot be made.
fn post(
    target: &Target,
    body: Vec<u8>,
    id: &str,
    secrets: &[Option<Credential<'_>>; 2],
) -> Result<Request<Full<Bytes>>, String> {
    let [secret, authorization] = secrets;
    let mut post = Request::builder()
        .method(Method::POST)
        .uri(&target.path)
        .header(HOST, &target.authority)
        .header(USER_AGENT, concat!("talon-webhook/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_TYPE, "application/json")
        .header(IDEMPOTENCY_KEY, id);
    if let Some(secret) = secret {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        post = post.header(name(secret, SECRET)?, signature(secret.value, now.as_secs(), &body));
    }
    if let Some(authorization) = authorization {
        let mut value = HeaderValue::from_str(authorization.value)
            .map_err(|_| format!("credential {AUTHORIZATION}: its value cannot be sent in a header"))?;
        value.set_sensitive(true);
        post = post.header(name(authorization, AUTHORIZATION)?, value);
    }
    post.body(Full::new(body.into())).map_err(|error| format!("the request cannot be made: {error}"))
}

fn name(credential: &Credential<'_>, which: &str) -> Result<HeaderName, String> {
    credential
        .header
        .parse()
        .map_err(|_| format!("credential {which}: {:?} is no name of a header", one_line(credential.header)))
}

/// Sends a notification to the web hook.
#[talon_sdk::notification_sink]
pub(crate) async fn send(asked: Notification, cx: Context) -> Result<Output, ToolError> {
    let webhook = cx.shared::<Webhook>()?;
    let delivery = webhook.send(&asked, &cx).await?;
    tracing::debug!("event {}, attempt {}: {delivery:?}", one_line(&asked.event.id), asked.attempt);
    delivery.output()
}
