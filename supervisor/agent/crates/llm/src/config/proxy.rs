//! Selects the proxy of a provider.

use reqwest::{NoProxy, Proxy, Url};

use super::Environment;
use crate::key::Secret;

/// The value in an entry for a provider without a proxy.
const DIRECT: &str = "direct";

/// The configured value is no URL of a proxy. It is not repeated, since it may contain a password.
#[derive(Debug, thiserror::Error)]
#[error("{place} is no URL of a proxy: write it like \"http://proxy.example.org:3128\"")]
pub(crate) struct ProxyError {
    place: &'static str,
}

/// The proxy to a provider at `base`, from its entry or else from the environment.
///
/// # Errors
/// [`ProxyError`]
pub(crate) fn proxy(
    entry: Option<&Secret>,
    base: &Url,
    environment: &dyn Environment,
) -> Result<Option<Proxy>, ProxyError> {
    if let Some(entry) = entry {
        if entry.reveal() == DIRECT {
            return Ok(None);
        }
        return read(entry.reveal(), "proxy").map(Some);
    }
    // A proxy cannot reach this machine's loopback, so local models are reached directly, as other clients
    // do.
    if is_loopback(base) {
        return Ok(None);
    }
    let own = match base.scheme() {
        "https" => ["HTTPS_PROXY", "https_proxy"],
        _ => ["HTTP_PROXY", "http_proxy"],
    };
    let found = own
        .into_iter()
        .chain(["ALL_PROXY", "all_proxy"])
        .find_map(|name| Some((name, value(environment, name)?)));
    let Some((name, url)) = found else { return Ok(None) };
    let except = value(environment, "NO_PROXY").or_else(|| value(environment, "no_proxy"));
    let except = except.and_then(|names| NoProxy::from_string(&names));
    Ok(Some(read(&url, name)?.no_proxy(except)))
}

fn value(environment: &dyn Environment, name: &str) -> Option<String> {
    environment.variable(name).filter(|value| !value.trim().is_empty())
}

fn read(text: &str, place: &'static str) -> Result<Proxy, ProxyError> {
    let bad = || ProxyError { place };
    // A host without a scheme means HTTP, as in other programs.
    let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&text).map_err(|_| bad())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(bad());
    }
    Proxy::all(url).map_err(|_| bad())
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|address| address.is_loopback())
}
