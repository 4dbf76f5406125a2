//! Which hosts may be fetched: the operator's list, and no private addresses unless the operator allows them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use serde::Deserialize;
use talon_public_address::is_public;
use talon_sdk::ToolError;

/// The plugin's settings.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The hosts that may be fetched: `example.org`, or `*.example.org` for all below it. Empty means every
    /// host.
    pub(crate) allow_hosts: Vec<String>,
    /// Whether loopback and private addresses, and this machine by any of its addresses, may be fetched. Off
    /// by default: otherwise any caller of the plugin could reach services that only this machine can reach.
    pub(crate) allow_private: bool,
}

/// The compiled settings.
#[derive(Debug)]
pub(crate) struct Policy {
    hosts: Vec<String>,
    allow_private: bool,
}

impl Policy {
    pub(crate) fn new(config: Config) -> Result<Self, ToolError> {
        let mut hosts = Vec::new();
        for host in config.allow_hosts {
            let name = host.strip_prefix("*.").unwrap_or(&host);
            if name.is_empty() || name.contains(['*', '/', ':', '@', ' ']) {
                return Err(ToolError::new(format!(
                    "config: allow_hosts: {host:?} is no host; write example.org or *.example.org"
                )));
            }
            hosts.push(host.to_ascii_lowercase());
        }
        Ok(Self { hosts, allow_private: config.allow_private })
    }

    /// Checks one URL, the first or a redirect's. The addresses of a name are checked when it is resolved.
    pub(crate) fn check(&self, url: &Url) -> Result<(), ToolError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ToolError::new(format!("only http and https can be fetched, not {}:", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ToolError::new("a URL with a user name or password is not fetched"));
        }
        let Some(host) = url.host_str() else { return Err(ToolError::new("the URL has no host")) };
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        if !self.lists(&host) {
            return Err(ToolError::new(format!("the operator does not allow fetching from {host}")));
        }
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match literal {
            Ok(address) if !self.allows(address) => Err(private(&host)),
            _ => Ok(()),
        }
    }

    fn lists(&self, host: &str) -> bool {
        let fits = |allowed: &String| match allowed.strip_prefix('*') {
            // The dot is part of the suffix, so that notexample.org is not below example.org.
            Some(suffix) => host.ends_with(suffix),
            None => host == allowed,
        };
        self.hosts.is_empty() || self.hosts.iter().any(fits)
    }

    /// Whether services of this machine and its networks may be fetched from.
    pub(crate) fn allows_private(&self) -> bool {
        self.allow_private
    }

    fn allows(&self, address: IpAddr) -> bool {
        self.allow_private || is_public(address)
    }
}

fn private(host: &str) -> ToolError {
    ToolError::new(format!("{host} is a private address; this plugin fetches from the public internet only"))
}

/// A name that has only private addresses.
#[derive(Debug, thiserror::Error)]
#[error("{0} has only private addresses; this plugin fetches from the public internet only")]
pub(crate) struct PrivateAddressesError(String);

/// Resolves names and drops private addresses. The connection is made to a checked address, not to a
/// name that is resolved again and may have changed.
#[derive(Debug, Clone)]
pub(crate) struct Resolver(pub(crate) Arc<Policy>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = Arc::clone(&self.0);
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> =
                found.into_iter().filter(|address| policy.allows(address.ip())).collect();
            if allowed.is_empty() {
                return Err(PrivateAddressesError(host).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(hosts: &[&str], allow_private: bool) -> Policy {
        let allow_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        Policy::new(Config { allow_hosts, allow_private }).expect("good")
    }

    fn refusal(policy: &Policy, url: &str) -> Option<String> {
        policy.check(&url.parse().expect("a URL")).err().map(|error| error.message().to_owned())
    }

    #[test]
    fn only_http_without_credentials_is_fetched() {
        let policy = policy(&[], false);
        assert_eq!(refusal(&policy, "https://example.org/x"), None);
        for (url, says) in [
            ("file:///etc/passwd", "only http and https"),
            ("ftp://example.org/", "only http and https"),
            ("data:text/plain,x", "only http and https"),
            ("http://user:pass@example.org/", "user name or password"),
        ] {
            assert!(refusal(&policy, url).expect(url).contains(says), "{url}");
        }
    }

    // Promises: EX-5
    #[test]
    fn private_addresses_are_refused_in_every_spelling() {
        let policy = policy(&[], false);
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://017700000001/",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://169.254.169.254/latest/",
            "http://10.0.0.1:8080/",
            "http://0/",
        ] {
            assert!(refusal(&policy, url).expect(url).contains("private address"), "{url}");
        }
        assert_eq!(refusal(&self::policy(&[], true), "http://127.0.0.1/"), None);
    }

    #[test]
    fn the_list_is_exact_but_for_its_star() {
        let policy = policy(&["Example.org", "*.docs.rs"], false);
        for url in
            ["http://example.org/", "http://EXAMPLE.org./", "https://a.docs.rs/", "https://a.b.docs.rs/"]
        {
            assert_eq!(refusal(&policy, url), None, "{url}");
        }
        for url in
            ["http://www.example.org/", "http://docs.rs/", "http://evildocs.rs/", "http://example.org.evil/"]
        {
            assert!(refusal(&policy, url).expect(url).contains("does not allow"), "{url}");
        }
    }

    #[test]
    fn a_list_that_cannot_work_is_refused() {
        for host in ["", "*", "*.", "https://example.org", "a*b.org", "example.org:80"] {
            let config = Config { allow_hosts: vec![host.to_owned()], allow_private: false };
            let error = Policy::new(config).expect_err(host);
            assert!(error.message().contains("allow_hosts"), "{error:?}");
        }
    }
}
