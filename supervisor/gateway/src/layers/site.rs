//! Under which name a request came, and from which site's page: a page of another site must not use the browser of somebody who
//! has access (CSRF), nor reach us under a name of its own (DNS rebinding).

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{HOST, HeaderName, ORIGIN, UPGRADE};
use http::{HeaderMap, HeaderValue, Uri};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::app::App;
use crate::problem::{Problem, ProblemKind};
use crate::settings::Settings;

/// What a browser says about where a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A layer: refuses requests under a foreign name, and those of other sites' pages.
pub(crate) async fn own_site(State(app): State<App>, request: Request, next: Next) -> Response {
    let settings = app.settings();
    match check(&settings, request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(detail) => {
            tracing::debug!(detail, "a request from elsewhere was refused");
            Problem::new(ProblemKind::ForeignSite, detail).into_response()
        }
    }
}

/// Answers for browsers on pages of the origins that the operator names. Such a page sends a token; cookies are not sent for it.
pub(crate) fn cross_origin(app: &App) -> CorsLayer {
    use http::Method;
    use http::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, IF_MATCH, RETRY_AFTER};
    let app = app.clone();
    let named = move |origin: &HeaderValue, _: &http::request::Parts| app.settings().origins.contains(origin);
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(named))
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
        .allow_headers([
            AUTHORIZATION,
            CONTENT_TYPE,
            IF_MATCH,
            HeaderName::from_static("last-event-id"),
            HeaderName::from_static("prefer"),
        ])
        .expose_headers([ETAG, RETRY_AFTER, HeaderName::from_static("x-request-id")])
}

fn check(settings: &Settings, uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
    let host = single(headers, &HOST).ok_or("a request needs one Host header")?;
    let target = uri.authority().is_none_or(|authority| authority.as_str().eq_ignore_ascii_case(host));
    if !target || !is_own_host(settings, host) {
        return Err(
            "this is not the gateway's name: call it by its address, or add the name to gateway.hosts",
        );
    }
    let origin = match headers.get_all(ORIGIN).iter().count() {
        0 => None,
        _ => Some(single(headers, &ORIGIN).ok_or("a request has one Origin header")?),
    };
    let is_named = |origin: &str| settings.origins.iter().any(|named| named == origin);
    match origin {
        Some(origin) if is_named(origin) => return Ok(()),
        Some(origin) if !is_own_origin(settings, origin, host) => {
            return Err("this page's site may not send requests: add it to gateway.origins");
        }
        // A browser's WebSocket always says where it comes from.
        None if headers.contains_key(UPGRADE) && headers.contains_key(FETCH_SITE) => {
            return Err("an upgrade by a browser needs an Origin header");
        }
        _ => {}
    }
    match headers.get(FETCH_SITE).map(HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err("the request comes from a page of another site: open the gateway's own address"),
    }
}

/// The header's value, if there is exactly one.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Whether a `Host` is ours: the bound address, `localhost` if that is loopback, or a name that the operator lists.
fn is_own_host(settings: &Settings, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let port = settings.address.port();
    let (name, given) = split_port(&host);
    let is_port = given.is_none_or(|given| given == port);
    let listed = |entry: &String| match split_port(entry) {
        (_, Some(_)) => *entry == host,
        // A proxy has a port of its own.
        (entry, None) => entry == name,
    };
    if settings.hosts.iter().any(listed) {
        return true;
    }
    let is_default = given.is_some() || port == if settings.tls { 443 } else { 80 };
    let ip = settings.address.ip();
    let is_address = name.trim_matches(['[', ']']).parse() == Ok(ip);
    let is_loopback = ip.is_loopback() && matches!(name, "localhost" | "127.0.0.1" | "[::1]");
    is_port && is_default && (is_address || is_loopback)
}

/// Whether an origin is that of our own pages: the scheme, and exactly the `Host` of this request.
fn is_own_origin(settings: &Settings, origin: &str, host: &str) -> bool {
    let rest = origin.strip_prefix(settings.scheme()).and_then(|rest| rest.strip_prefix("://"));
    // Behind a proxy, TLS ends there.
    let behind = || origin.strip_prefix("https://").filter(|_| !settings.proxies.is_empty());
    rest.or_else(behind).is_some_and(|rest| rest.eq_ignore_ascii_case(host))
}

/// A name and its port, if it has one.
fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.is_empty() && (!name.contains(':') || name.ends_with(']')) => {
            match port.parse() {
                Ok(port) => (name, Some(port)),
                Err(_) => (host, None),
            }
        }
        _ => (host, None),
    }
}

#[cfg(test)]
#[path = "site_tests.rs"]
mod tests;
