//! The channel's action: texts are posted to the other program.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{CONTENT_TYPE, HOST, HeaderName, USER_AGENT};
use http::{Method, Request};
use http_body_util::Full;
use serde_json::json;
use talon_sdk::channel::{ChannelOp, ChannelReply, ChannelRequest};
use talon_sdk::{Context, EventSource, ToolError, tracing};
use talon_sink::answer::{self, MAX_REASON_BYTES};
use talon_sink::delivery::Delivery;
use talon_sink::held_files::HeldFiles;
use talon_sink::peer_text::one_line;
use talon_sink::request::request;
use talon_sink::signature::signature;
use talon_sink::target::Target;
use talon_sink::trust::Trust;

use crate::download::{FileLocation, download};
use crate::settings::Settings;

/// The credential with the URL, where that is a secret.
const URL: &str = "url";
/// The credential that bodies are signed with, in both directions; its header is the signature's.
pub(crate) const SECRET: &str = "secret";
/// What is left of the caller's time for the answer.
const ANSWER_TIME: Duration = Duration::from_millis(500);
/// The version of what is posted. It grows when a field changes its meaning; new fields do not change it.
const VERSION: u32 = 1;

/// What all calls share.
pub(crate) struct ChatWebhook {
    url: Option<String>,
    allow_http: bool,
    timeout: Duration,
    trust: Option<Trust>,
    /// How old a signature may be, in seconds.
    pub(crate) max_age: u64,
    pub(crate) events: EventSource,
    files: HeldFiles,
}

impl ChatWebhook {
    pub(crate) fn new(settings: Settings, events: EventSource) -> Result<Self, ToolError> {
        let (timeout, max_age) = (settings.timeout()?, settings.max_age()?);
        if let Some(url) = &settings.url {
            Target::parse(url, settings.allow_http)
                .map_err(|error| ToolError::new(format!("config: url: {error}")))?;
        }
        let trust = Trust::load();
        if let Err(error) = &trust {
            tracing::warn!("https cannot be used: {error}");
        }
        let Settings { url, allow_http, .. } = settings;
        let files = HeldFiles::default();
        Ok(Self { url, allow_http, timeout, trust: trust.ok(), max_age, events, files })
    }

    /// Where answers go.
    fn target(&self, cx: &Context) -> Result<Target, Delivery> {
        let given = cx.credential(URL);
        let Some(url) = given.as_ref().map(|url| url.value).or(self.url.as_deref()) else {
            return Err(Delivery::retry(
                "there is no URL: configure the credential `url` of this plugin, or `url` in its config",
            ));
        };
        Target::parse(url, self.allow_http)
            .map_err(|error| Delivery::retry(format!("credential url: {error}")))
    }

    async fn fetch(&self, asked: &ChannelRequest, cx: &Context) -> ChannelReply {
        let answers = match self.target(cx) {
            Ok(target) => target,
            Err(delivery) => return delivery.channel_reply(),
        };
        let Some(secret) = cx.credential(SECRET) else {
            return ChannelReply::retry(
                "there is no secret: configure the credential `secret` of this plugin",
            );
        };
        let file = FileLocation { answers: &answers, url: &asked.file, allow_http: self.allow_http };
        let signing = (secret.header, secret.value);
        let downloading = download(file, self.trust.as_ref(), signing, asked.max_bytes);
        self.files.piece(asked, downloading).await
    }

    async fn send(&self, asked: &ChannelRequest, cx: &Context) -> Delivery {
        let target = match self.target(cx) {
            Ok(target) => target,
            Err(delivery) => return delivery,
        };
        let Some(secret) = cx.credential(SECRET) else {
            return Delivery::retry("there is no secret: configure the credential `secret` of this plugin");
        };
        let post = match post(&target, asked, secret.header, secret.value) {
            Ok(post) => post,
            Err(reason) => return Delivery::retry(reason),
        };
        let timeout =
            cx.remaining().map_or(self.timeout, |left| self.timeout.min(left.saturating_sub(ANSWER_TIME)));
        match tokio::time::timeout(timeout, request(&target, self.trust.as_ref(), post, MAX_REASON_BYTES))
            .await
        {
            Ok(Ok(response)) => {
                let (head, hidden) = (&response.head, [target.path.as_str(), secret.value]);
                answer::delivery(head.status, &head.headers, &response.body, &hidden, SystemTime::now())
            }
            Ok(Err(error)) => Delivery::retry(error.to_string()),
            Err(_) => Delivery::retry(format!(
                "{} did not answer within {} s",
                one_line(&target.endpoint.to_string()),
                timeout.as_secs_f32()
            )),
        }
    }
}

/// The request, or why it cannot be made.
fn post(
    target: &Target,
    asked: &ChannelRequest,
    header: &str,
    secret: &str,
) -> Result<Request<Full<bytes::Bytes>>, String> {
    let body = json!({
        "version": VERSION, "id": asked.id, "conversation": asked.conversation, "text": asked.text,
        "buttons": asked.buttons, "attempt": asked.attempt,
    });
    let body = body.to_string().into_bytes();
    let header: HeaderName = header
        .parse()
        .map_err(|_| format!("credential {SECRET}: {:?} is no name of a header", one_line(header)))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Request::builder()
        .method(Method::POST)
        .uri(&target.path)
        .header(HOST, &target.authority)
        .header(USER_AGENT, concat!("talon-chat-webhook/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_TYPE, "application/json")
        .header("idempotency-key", &asked.id)
        .header(header, signature(secret, now.as_secs(), &body))
        .body(Full::new(body.into()))
        .map_err(|error| format!("the request cannot be made: {error}"))
}

/// Posts a text to the other program.
#[talon_sdk::channel]
pub(crate) async fn channel(asked: ChannelRequest, cx: Context) -> Result<ChannelReply, ToolError> {
    let shared = cx.shared::<ChatWebhook>()?;
    Ok(match asked.op {
        // It listens at the gateway's route, and shows nothing but answers.
        ChannelOp::Open | ChannelOp::Typing => ChannelReply::delivered(),
        ChannelOp::Send => shared.send(&asked, &cx).await.channel_reply(),
        ChannelOp::Fetch => shared.fetch(&asked, &cx).await,
    })
}
