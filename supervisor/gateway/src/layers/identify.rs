//! Who a request is for: a bearer token, or a browser's session.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{HeaderName, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method};
use subtle::ConstantTimeEq as _;

use crate::app::App;
use crate::identity::{Caller, Credential, SESSION_TOKEN};
use crate::problem::{Problem, ProblemKind};

/// A layer: the request has its [`Caller`] as an extension. Without a credential it has none; one that does not hold ends it.
pub(crate) async fn identify(State(app): State<App>, mut request: Request, next: Next) -> Response {
    match caller(&app, request.method(), request.headers()).await {
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

async fn caller(app: &App, method: &Method, headers: &HeaderMap) -> Result<Option<Caller>, Problem> {
    let settings = app.settings();
    let malformed = |error: crate::identity::MalformedCredentialError| {
        Problem::new(ProblemKind::Unauthenticated, error.to_string())
    };
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
