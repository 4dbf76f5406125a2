//! `GET /api/openapi.json`: the description of the routes, from the same types as the routes.

use std::sync::LazyLock;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::CONTENT_TYPE;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

use crate::app::App;
use crate::events::Envelope;
use crate::events::client_message::{
    ChannelMessage, ClarificationAnswer, ConfirmationAnswer, Resume, TurnCancel,
};

/// What stands in the description beside the routes.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "Talon's gateway", description = "Sessions, events and plugins of one Talon, over HTTP."),
    components(schemas(Envelope, ChannelMessage, ConfirmationAnswer, ClarificationAnswer, Resume, TurnCancel)),
    security(("token" = []))
)]
struct Frame;

static DOCUMENT: LazyLock<String> =
    LazyLock::new(|| openapi().to_json().expect("a description is texts and numbers"));

pub(super) fn routes() -> Router<App> {
    Router::new().route("/api/openapi.json", get(document))
}

/// The description of all routes.
pub(crate) fn openapi() -> OpenApi {
    let mut openapi = Frame::openapi();
    openapi.merge(super::described().into_openapi());
    openapi.info.version = env!("CARGO_PKG_VERSION").to_owned();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    openapi.components.get_or_insert_default().add_security_scheme("token", bearer);
    openapi
}

async fn document() -> Response {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}
