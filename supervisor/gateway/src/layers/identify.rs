//! Who a request is for: a bearer token, a browser's session, or a credential that a provider of the operator's knows.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{HeaderName, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method};
use subtle::ConstantTimeEq as _;

use crate::app::App;
use crate::auth_providers::PresentedCredential;
use crate::identity::{Caller, ConnectedFrom, Credential, SESSION_TOKEN, sender};
use crate::problem::{Problem, ProblemKind};
use crate::settings::Settings;

/// A layer: the request has its [`Caller`] as an extension. Without a credential it has none; one that does not hold ends it.
pub(crate) async fn identify(State(app): State<App>, mut request: Request, next: Next) -> Response {
    // The request itself cannot be held while somebody is asked: its body is of one thread.
    let presented = for_providers(&request, &app.settings());
    match caller(&app, request.method(), request.headers(), presented).await {
        Ok(None) => {}
        Ok(Some(caller)) => {
            let key = caller.via.credential_id().unwrap_or_else(|| caller.subject.as_str());
            if let Err(wait) = app.rates.take_credential(key, app.settings().limits.requests_per_minute) {
                let detail =
                    "this credential sends too many requests (gateway.limits.requests_per_minute): wait";
                return Problem::new(ProblemKind::TooManyRequests, detail)
                    .with_retry_after(wait)
                    .into_response();
            }
            request.extensions_mut().insert(caller);
        }
        Err(problem) => return challenged(problem),
    }
    next.run(request).await
}

/// A layer: a route below it is for callers alone.
pub(crate) async fn require_caller(
    caller: Result<Caller, Problem>,
    request: Request,
    next: Next,
) -> Response {
    match caller {
        Ok(_) => next.run(request).await,
        Err(problem) => challenged(problem),
    }
}

async fn caller(
    app: &App,
    method: &Method,
    headers: &HeaderMap,
    presented: Option<PresentedCredential>,
) -> Result<Option<Caller>, Problem> {
    let settings = app.settings();
    let malformed = |error: crate::identity::MalformedCredentialError| {
        Problem::new(ProblemKind::Unauthenticated, error.to_string())
    };
    if let Some(presented) = presented {
        return Ok(Some(settings.auth.caller(&app.backends, &presented).await?));
    }
    // A token counts before a cookie: a program says what it means, a browser sends a cookie unasked.
    if let Some(token) = Credential::bearer(headers).map_err(malformed)? {
        if !settings.tokens {
            let detail =
                "tokens are switched off (gateway.tokens: false): open a session (`talon gateway open`)";
            return Err(Problem::new(ProblemKind::Unauthenticated, detail));
        }
        return Ok(Some(app.credentials.caller(&token).await?));
    }
    let Some(session) = Credential::cookie(headers, settings.address.port()) else { return Ok(None) };
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
    if !reads && !has_session_token(headers, &session) {
        let detail = format!(
            "a write of a browser's session carries the header {SESSION_TOKEN}: see GET /api/session"
        );
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    }
    Ok(Some(app.credentials.caller(&session).await?))
}

/// A credential that is none of ours, if a provider of the operator's takes its scheme.
fn for_providers(request: &Request, settings: &Settings) -> Option<PresentedCredential> {
    let connected = request.extensions().get::<ConnectedFrom>()?;
    let headers = request.headers();
    if Credential::bearer(headers).is_ok_and(|ours| ours.is_some()) {
        return None;
    }
    let presented = PresentedCredential::of_request(headers, sender(*connected, headers, &settings.proxies))?;
    settings.auth.take(&presented).then_some(presented)
}

fn has_session_token(headers: &HeaderMap, session: &Credential) -> bool {
    let shown = headers.get(HeaderName::from_static(SESSION_TOKEN)).map(HeaderValue::as_bytes);
    shown.is_some_and(|shown| shown.ct_eq(session.session_token().as_bytes()).into())
}

/// A 401 says which scheme it wants, as HTTP has it.
fn challenged(problem: Problem) -> Response {
    let mut response = problem.into_response();
    if response.status() == ProblemKind::Unauthenticated.status() {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"talon\""));
    }
    response
}
