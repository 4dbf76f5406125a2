//! Where notifications go: a URL, checked.

use std::net::IpAddr;

use crate::connection::Endpoint;
use url::{Host, Url};

/// The longest URL: what servers commonly take.
const MAX_URL_BYTES: usize = 8000;

/// A URL that can be posted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Host and port.
    pub endpoint: Endpoint,
    /// Whether over TLS.
    pub tls: bool,
    /// The value of `Host`.
    pub authority: String,
    /// Path and query, which are often secret.
    pub path: String,
}

/// Why a URL cannot be posted to. None of the texts has the URL in it, which may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TargetError(&'static str);

impl Target {
    /// Reads a URL. `http` leads to loopback addresses alone, unless `allow_http` is set.
    ///
    /// # Errors
    /// [`TargetError`], which does not have the URL in it.
    pub fn parse(url: &str, allow_http: bool) -> Result<Self, TargetError> {
        if url.len() > MAX_URL_BYTES {
            return Err(TargetError("the URL is longer than 8000 bytes"));
        }
        let url: Url = url
            .trim()
            .parse()
            .map_err(|_| TargetError("this is no URL; give a whole one, such as https://example.org/hook"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError(
                "the URL has a user name or password in it; name a credential `authorization` instead",
            ));
        }
        let Some(host) = url.host() else { return Err(TargetError("the URL has no host")) };
        let loopback = match host {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(address) => IpAddr::from(address).is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        let tls = match url.scheme() {
            "https" => true,
            "http" if allow_http || loopback => false,
            "http" => {
                return Err(TargetError(
                    "the URL is http, so that everybody on the way can read what is sent; use https, or set allow_http: true",
                ));
            }
            _ => return Err(TargetError("the URL is neither https nor http")),
        };
        let host = match host {
            Host::Domain(name) => name.trim_end_matches('.').to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let port = url.port_or_known_default().unwrap_or(if tls { 443 } else { 80 });
        let endpoint = Endpoint { host, port };
        let authority = if url.port().is_some() {
            endpoint.to_string()
        } else {
            endpoint.to_string().rsplit_once(':').map_or_else(String::new, |(host, _)| host.to_owned())
        };
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        Ok(Self { endpoint, tls, authority, path: format!("{}{query}", url.path()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_place_and_a_path() {
        let target = |url: &str| Target::parse(url, false).expect(url);
        let plain = target("https://hooks.example.org/services/T0/B0?x=y#part");
        assert_eq!((plain.endpoint.to_string().as_str(), plain.tls), ("hooks.example.org:443", true));
        assert_eq!(
            (plain.authority.as_str(), plain.path.as_str()),
            ("hooks.example.org", "/services/T0/B0?x=y")
        );
        assert_eq!(target("https://[2001:db8::1]:8443").authority, "[2001:db8::1]:8443");
        assert_eq!(target("https://[2001:db8::1]").authority, "[2001:db8::1]");
        assert_eq!(target("https://bücher.example./x").endpoint.host, "xn--bcher-kva.example");
        for url in ["http://127.0.0.1:80/", "http://localhost/", "http://[::1]:1/"] {
            assert!(!target(url).tls, "{url}");
        }
    }

    #[test]
    fn a_url_that_cannot_be_used_is_refused_without_being_named() {
        for (url, says) in [
            ("hooks.example.org/secret", "no URL"),
            ("https://", "no URL"),
            ("ftp://example.org/secret", "neither https nor http"),
            ("http://example.org/secret", "allow_http"),
            ("http://localhost.example.org/secret", "allow_http"),
            ("https://user:secret@example.org/", "credential"),
            (&format!("https://example.org/secret{}", "x".repeat(8000)), "8000"),
        ] {
            let error = Target::parse(url, false).expect_err(url).to_string();
            assert!(error.contains(says) && !error.contains("secret"), "{url}: {error}");
        }
        assert!(Target::parse("http://example.org/", true).is_ok());
    }
}
