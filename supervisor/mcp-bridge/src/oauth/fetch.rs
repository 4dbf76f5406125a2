//! One request to a server of a login: bounded in size and time, over TLS, and without redirects.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde::de::DeserializeOwned;
use talon_bridge::text::cut;
use talon_error_chain::error_chain;
use url::{Host, Url};

use super::error::OauthError;
use crate::http::address::Address;
use crate::http::connect::Connector;

/// The largest answer: metadata has some KiB.
const MAX_BYTES: usize = 256 << 10;
/// How much of an answer is shown.
const MAX_SHOWN_BYTES: usize = 300;
/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// An answer with any status but a redirect.
pub(super) struct Reply {
    pub(super) url: String,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Reply {
    /// An error unless it was successful.
    pub(super) fn succeeded(&self) -> Result<(), OauthError> {
        if self.status.is_success() {
            return Ok(());
        }
        let text = cut(&String::from_utf8_lossy(&self.body), MAX_SHOWN_BYTES);
        Err(OauthError::Status { url: self.url.clone(), status: self.status.as_u16(), text })
    }

    /// The JSON of a successful answer.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, OauthError> {
        self.succeeded()?;
        serde_json::from_slice(&self.body).map_err(|error| OauthError::Answer {
            url: self.url.clone(),
            why: cut(&error.to_string(), MAX_SHOWN_BYTES),
        })
    }
}

/// A body with its type.
pub(super) type Body = (&'static str, String);

pub(super) async fn get(url: &Url) -> Result<Reply, OauthError> {
    fetch(Method::GET, url, None, None).await
}

pub(super) async fn post(url: &Url, body: Body) -> Result<Reply, OauthError> {
    post_as(url, body, None).await
}

/// The same, with an `Authorization` header.
pub(super) async fn post_as(
    url: &Url,
    body: Body,
    authorization: Option<HeaderValue>,
) -> Result<Reply, OauthError> {
    fetch(Method::POST, url, Some(body), authorization).await
}

/// An address of a login. Tokens and codes travel there, so it has TLS, or lies on this machine.
pub(super) fn address(text: &str) -> Result<Url, OauthError> {
    let refused = || OauthError::Address(cut(text, MAX_SHOWN_BYTES));
    let url = Url::parse(text).map_err(|_| refused())?;
    let local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => return Err(refused()),
    };
    let safe = url.scheme() == "https" || (url.scheme() == "http" && local);
    if safe && url.username().is_empty() && url.password().is_none() { Ok(url) } else { Err(refused()) }
}

async fn fetch(
    method: Method,
    url: &Url,
    body: Option<Body>,
    authorization: Option<HeaderValue>,
) -> Result<Reply, OauthError> {
    let shown = origin_and_path(url);
    let unreachable = |why: String| OauthError::Unreachable { url: shown.clone(), why };
    let mut target = address(url.as_str())?;
    target.set_fragment(None);
    let place = Address::parse(target.as_str()).map_err(|error| unreachable(error.to_string()))?;
    let connector = Connector::new(&place).map_err(|error| unreachable(error.to_string()))?;
    let client: Client<Connector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let mut request =
        Request::builder().method(method).uri(target.as_str()).header(ACCEPT, "application/json");
    if let Some(authorization) = authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    let mut sent = Bytes::new();
    if let Some((kind, text)) = body {
        request = request.header(CONTENT_TYPE, kind);
        sent = text.into();
    }
    let request = request.body(Full::from(sent)).map_err(|error| unreachable(error.to_string()))?;
    let exchange = async {
        let response = client.request(request).await.map_err(|error| unreachable(error_chain(&error)))?;
        let (parts, body) = response.into_parts();
        if parts.status.is_redirection() {
            let location = parts.headers.get(LOCATION).map(|to| to.as_bytes()).unwrap_or_default();
            let location = cut(&String::from_utf8_lossy(location), MAX_SHOWN_BYTES);
            return Err(OauthError::Redirect { url: shown.clone(), location });
        }
        let body = Limited::new(body, MAX_BYTES).collect().await;
        let body = body.map_err(|error| unreachable(error_chain(error.as_ref())))?.to_bytes();
        Ok(Reply { url: shown.clone(), status: parts.status, headers: parts.headers, body })
    };
    match tokio::time::timeout(TIMEOUT, exchange).await {
        Ok(reply) => reply,
        Err(_) => Err(unreachable(format!("no answer within {} s", TIMEOUT.as_secs()))),
    }
}

/// An address without its query, which may hold something secret.
pub(super) fn origin_and_path(url: &Url) -> String {
    cut(&format!("{}{}", url.origin().ascii_serialization(), url.path()), MAX_SHOWN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_travel_by_tls_or_stay_on_this_machine() {
        for good in
            ["https://auth.example/token", "http://127.0.0.1:1/x", "http://[::1]:1/", "http://localhost:9"]
        {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in ["http://auth.example/", "https://u:p@auth.example/", "ftp://127.0.0.1/", "/token", ""] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
