//! The URL of an MCP server, as written in the configuration.

use http::Uri;

use crate::allow_list::AllowList;

/// The longest URL, in bytes. Host and port take 260 of them, and some servers put keys into their paths.
const MAX_URL_BYTES: usize = 2048;

/// Why a text is no URL of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {help}")]
pub(crate) struct UrlError {
    /// The problem. The URL is not repeated, because it may contain secrets.
    pub(crate) what: &'static str,
    /// What to write.
    pub(crate) help: &'static str,
}

/// The `host:port` of a server's URL, in the form of `sandbox.allow`.
pub(crate) fn host_port(url: &str) -> Result<String, UrlError> {
    let problem = |what, help| Err(UrlError { what, help });
    if url.len() > MAX_URL_BYTES {
        return problem("is longer than 2048 bytes", "put keys into config.headers");
    }
    if url.contains('#') {
        return problem("holds a fragment, which no server is ever sent", "remove it");
    }
    let Ok(uri) = url.parse::<Uri>() else { return problem("is no URL", "write https://HOST/PATH") };
    let usual_port = match uri.scheme_str() {
        Some("https") => 443,
        Some("http") => 80,
        _ => return problem("does not begin with http:// or https://", "write https://HOST/PATH"),
    };
    let Some(authority) = uri.authority() else { return problem("names no host", "write https://HOST/PATH") };
    if authority.as_str().contains('@') {
        return problem("holds credentials", "put them into config.headers, with ${VARIABLE} for secrets");
    }
    let port = match authority.port_u16() {
        Some(port) => port,
        None if authority.as_str() == authority.host() => usual_port,
        None => return problem("names no port from 1 to 65535", "write https://HOST:PORT/PATH"),
    };
    let place = format!("{}:{port}", authority.host());
    match AllowList::parse(std::slice::from_ref(&place)) {
        Ok(_) if !place.starts_with('*') => Ok(place),
        _ => problem(
            "names no host that could be connected to",
            "write a name in the form that DNS has, or an address",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_place() {
        for (url, expected) in [
            ("https://mcp.example.org/mcp", "mcp.example.org:443"),
            ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
            ("http://localhost", "localhost:80"),
            ("https://[2001:db8::1]:8443/a?b=c", "[2001:db8::1]:8443"),
            ("https://xn--bcher-kva.example/", "xn--bcher-kva.example:443"),
        ] {
            assert_eq!(host_port(url).as_deref(), Ok(expected), "{url}");
        }
    }

    #[test]
    fn what_is_none_is_refused_without_being_repeated() {
        let long = format!("https://a.example/{}", "x".repeat(3000));
        for (url, says) in [
            ("ftp://s3cret.example/", "https://HOST/PATH"),
            ("s3cret.example/mcp", "https://HOST/PATH"),
            ("/mcp", "https://HOST/PATH"),
            ("", "is no URL"),
            ("https://user:s3cret@a.example/", "config.headers"),
            ("https://a.example/#s3cret", "fragment"),
            ("https://a.example:0/s3cret", "host"),
            ("https://a.example:99999/s3cret", "port"),
            ("https://a.example:/s3cret", "port"),
            ("https://*.example.org/s3cret", "host"),
            ("https://127.1/s3cret", "host"),
            ("https://a b/s3cret", "is no URL"),
            (&long, "2048"),
        ] {
            let problem = host_port(url).expect_err(url).to_string();
            assert!(problem.contains(says), "{url}: {problem}");
            assert!(!problem.contains("s3cret"), "{problem}");
        }
    }
}
