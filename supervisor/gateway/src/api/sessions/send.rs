//! `POST /api/sessions/{id}/send`: a message, and what comes of it: awaited, streamed, or in the background.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, HeaderMap, HeaderName};
use http::{HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use talon_proto::agent::{AskRequest, Done, Media, Started};
use utoipa::ToSchema;

use crate::access::session;
use crate::app::App;
use crate::background::BackgroundPlace;
use crate::events::agent::TokenUsage;
use crate::events::client_message::MediaFile;
use crate::events::ids::session_id;
use crate::events::{Envelope, ThinkingLevel};
use crate::identity::Caller;
use crate::input::{JsonBody, Path};
use crate::problem::{Problem, ProblemKind};
use crate::sse;
use crate::turn::{Turn, TurnEnd, failed, needed_chunks};

/// How a client wants an answer (RFC 7240), and which of it was heard.
const PREFER: HeaderName = HeaderName::from_static("prefer");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// A message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Sent {
    /// At most 256 KiB.
    text: String,
    /// Files that belong to it.
    #[serde(default)]
    media: Vec<MediaFile>,
    /// For this turn alone: provider/name or alias.
    #[serde(default)]
    model: String,
    /// For this turn alone.
    #[serde(default)]
    thinking_level: ThinkingLevel,
    /// A JSON Schema that the answer has to fit.
    schema: Option<Value>,
}

/// What came of a message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Answer {
    session_id: String,
    /// The turn's number in the session.
    turn: u64,
    content: String,
    usage: TokenUsage,
    provider_id: String,
    model: String,
    iteration: u32,
    tool_calls: u32,
}

/// A turn goes on.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Accepted {
    session_id: String,
    /// The turn's number in the session.
    turn: u64,
}

/// How an answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    /// When it is complete; letting go of the request cancels the turn.
    Whole,
    /// When it is complete, if it is by then; otherwise it goes on in the background.
    Within(Duration),
    /// Not at all: the turn goes on in the background.
    Background,
    /// As server-sent events.
    Stream,
}

impl Delivery {
    fn of(headers: &HeaderMap) -> Self {
        let listed = |name: HeaderName| {
            let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
            values.flat_map(|value| value.split([',', ';'])).map(|part| part.trim().to_ascii_lowercase())
        };
        if listed(ACCEPT).any(|kind| kind == "text/event-stream") {
            return Self::Stream;
        }
        let mut background = false;
        let mut wait = None;
        for preference in listed(PREFER) {
            background |= preference == "respond-async";
            let seconds =
                preference.strip_prefix("wait=").and_then(|seconds| seconds.trim_matches('"').parse().ok());
            wait = seconds.map(Duration::from_secs).or(wait);
        }
        // Together they mean, by RFC 7240: within that time, and after it in the background.
        match (wait, background) {
            (Some(wait), _) => Self::Within(wait),
            (None, true) => Self::Background,
            (None, false) => Self::Whole,
        }
    }
}

/// Sends a message, and answers with what comes of it. `Prefer: respond-async` answers at once with 202, `Prefer: wait=SECONDS` does so
/// after that time, and `Accept: text/event-stream` streams the turn's events. `new` in place of an id makes a session.
#[utoipa::path(
    post, path = "/api/sessions/{id}/send", tag = "sessions", params(("id" = String, Path)), request_body = Sent,
    responses(
        (status = OK, content((Answer = "application/json"), (Envelope = "text/event-stream"))),
        (status = ACCEPTED, body = Accepted, description = "the turn goes on"),
    )
)]
pub(super) async fn send(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    JsonBody(sent): JsonBody<Sent>,
) -> Result<Response, Problem> {
    let session_id = match id.as_str() {
        "new" if caller.session.is_none() => String::new(),
        _ => session(&caller, &id)?.to_owned(),
    };
    crate::access::require_chat(&caller)?;
    let delivery = Delivery::of(&headers);
    // A stream tells all that happens.
    let chunks = if delivery == Delivery::Stream { String::new() } else { needed_chunks(false) };
    let request = AskRequest {
        session_id,
        text: sent.text,
        model: sent.model,
        thinking: sent.thinking_level.word(),
        schema: sent.schema.map(|schema| schema.to_string()).unwrap_or_default(),
        channel: caller.channel.to_string(),
        media: media(sent.media)?,
        chunks,
        ..AskRequest::default()
    };
    match delivery {
        Delivery::Whole => Ok(answer(&mut Turn::begin(&app, &caller, request).await?).await?.into_response()),
        Delivery::Stream => {
            Ok(sse::turn(&app, &caller, Turn::begin(&app, &caller, request).await?).into_response())
        }
        Delivery::Background => {
            let place = place(&app)?;
            let turn = Turn::begin(&app, &caller, request).await?;
            Ok(in_background(turn, place, "respond-async"))
        }
        Delivery::Within(wait) => {
            let place = place(&app)?;
            let mut turn = Turn::begin(&app, &caller, request).await?;
            match tokio::time::timeout(wait, answer(&mut turn)).await {
                Ok(answered) => Ok(answered?.into_response()),
                Err(_) => Ok(in_background(turn, place, &format!("wait={}", wait.as_secs()))),
            }
        }
    }
}

async fn answer(turn: &mut Turn) -> Result<Json<Answer>, Problem> {
    match turn.end().await? {
        TurnEnd::Done(done) => Ok(Json(whole(&turn.started, done))),
        TurnEnd::Failed(error) => Err(failed(&error)),
    }
}

fn whole(started: &Started, done: Done) -> Answer {
    Answer {
        session_id: session_id(&started.session_id),
        turn: started.turn,
        usage: crate::events::translate::usage(done.usage.as_ref()),
        content: done.text,
        provider_id: done.provider,
        model: done.model,
        iteration: done.iteration,
        tool_calls: done.tool_calls,
    }
}

fn place(app: &App) -> Result<BackgroundPlace, Problem> {
    let most = app.settings().limits.background_turns;
    app.background_turns.place(most).ok_or_else(|| {
        let detail = format!(
            "{most} turns go on in the background (gateway.limits.background_turns): wait, or send without Prefer"
        );
        Problem::new(ProblemKind::TooManyRequests, detail).with_retry_after(Duration::from_secs(1))
    })
}

/// Follows a turn to its end, so that it is not cancelled, and says where it can be seen.
fn in_background(mut turn: Turn, place: BackgroundPlace, applied: &str) -> Response {
    let accepted = Accepted { session_id: session_id(&turn.started.session_id), turn: turn.started.turn };
    let location = format!("/api/sessions/{}", accepted.session_id);
    tokio::spawn(async move {
        if let Err(problem) = turn.end().await {
            tracing::warn!(detail = problem.detail(), "a turn in the background was lost");
        }
        drop(place);
    });
    let mut response = (StatusCode::ACCEPTED, Json(accepted)).into_response();
    let headers = response.headers_mut();
    for (name, value) in [(http::header::LOCATION, location.as_str()), (PREFERENCE_APPLIED, applied)] {
        headers.insert(name, HeaderValue::try_from(value).expect("it is of letters and digits"));
    }
    response
}

/// Files as the agent takes them.
///
/// # Errors
/// One of them is no base64.
pub(crate) fn media(files: Vec<MediaFile>) -> Result<Vec<Media>, Problem> {
    let one = |file: MediaFile| match STANDARD.decode(&file.data) {
        Ok(data) => Ok(Media { data, name: file.name }),
        Err(_) => {
            let problem =
                Problem::new(ProblemKind::Unprocessable, "a file's data is no base64: encode its bytes");
            Err(problem.with_fields(["media"]))
        }
    };
    files.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-103
    #[test]
    fn a_client_says_how_it_wants_the_answer() {
        for (name, value, delivery) in [
            ("accept", "*/*", Delivery::Whole),
            ("accept", "application/json, text/event-stream;q=0.5", Delivery::Stream),
            ("prefer", "respond-async", Delivery::Background),
            ("prefer", "wait=10", Delivery::Within(Duration::from_secs(10))),
            ("prefer", "respond-async, wait=3", Delivery::Within(Duration::from_secs(3))),
            ("prefer", "wait=soon", Delivery::Whole),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            assert_eq!(Delivery::of(&headers), delivery, "{name}: {value}");
        }
    }
}
