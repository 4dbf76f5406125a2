//! `GET /open/CODE`, `GET /api/session`: a browser's way in.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::header::SET_COOKIE;
use http::{HeaderMap, HeaderValue};
use serde::Serialize;
use talon_proto::host::{RedeemLinkRequest, RedeemLinkResponse};
use tonic::Code;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::{Caller, Credential, session_cookie};
use crate::problem::{Problem, ProblemKind};
use crate::settings::Settings;

/// How long the browser keeps the cookie: as long as the supervisor keeps the session, which decides.
const MAX_AGE_S: u32 = 12 * 60 * 60;

pub(super) fn open_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(open))
}

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(session))
}

/// Who the caller is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CallerSession {
    subject: String,
    scopes: Vec<&'static str>,
    channel: String,
    /// What writes of a browser's session carry in the header `X-Talon-Session`.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_token: Option<String>,
}

/// Opens the session of a link (`talon gateway open`): once, within a minute. The browser gets a cookie, and is sent to the pages.
#[utoipa::path(
    get, path = "/open/{code}", tag = "operation", params(("code" = String, Path)), security(()),
    responses((
        status = SEE_OTHER, description = "the session is open",
        headers(("location" = String), ("set-cookie" = String)),
    ))
)]
async fn open(State(app): State<App>, Path(code): Path<String>) -> Result<Response, Problem> {
    let spent = || {
        let detail = "the link is used up, too old or none: get another with `talon gateway open`";
        Problem::new(ProblemKind::Unauthenticated, detail)
    };
    let code = Credential::parse(&code).map_err(|_| spent())?;
    let request = RedeemLinkRequest { id: code.id().to_owned(), digest: code.digest().to_vec() };
    let answer = app.backends.host(&Caller::gateway()).redeem_link(request).await;
    let RedeemLinkResponse { token, .. } = match answer {
        Ok(answer) => answer.into_inner(),
        Err(status) if status.code() == Code::Unauthenticated => return Err(spent()),
        Err(status) => return Err(status.into()),
    };
    let mut response = Redirect::to("/").into_response();
    response.headers_mut().insert(SET_COOKIE, cookie(&app.settings(), &token)?);
    Ok(response)
}

/// Not for scripts, and not for requests that another site causes; under a name that has the port.
fn cookie(settings: &Settings, token: &str) -> Result<HeaderValue, Problem> {
    let name = session_cookie(settings.address.port());
    let is_secure = settings.tls || !settings.proxies.is_empty();
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!("{name}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age={MAX_AGE_S}{secure}");
    HeaderValue::try_from(text).map_err(|error| Problem::defect(&error))
}

/// For whom the request counts, and what it may.
#[utoipa::path(get, path = "/api/session", tag = "operation", responses((status = OK, body = CallerSession)))]
async fn session(State(app): State<App>, caller: Caller, headers: HeaderMap) -> Json<CallerSession> {
    let is_browser = matches!(caller.via, crate::identity::Via::BrowserSession(_));
    let cookie = Credential::cookie(&headers, app.settings().address.port()).filter(|_| is_browser);
    Json(CallerSession {
        subject: caller.subject.to_string(),
        scopes: caller.scopes.names().collect(),
        channel: caller.channel.to_string(),
        session_token: cookie.map(|cookie| cookie.session_token()),
    })
}
