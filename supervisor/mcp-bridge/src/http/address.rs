//! The URL of a server.

use http::Uri;

/// `http` or `https`, a host, a port and a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    uri: String,
    host: String,
    port: u16,
    tls: bool,
}

/// Why a text is not a valid URL of a server. The supervisor checks the same before.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum AddressError {
    #[error("it is no URL: write https://HOST/PATH")]
    NoUrl,
    #[error("its scheme is neither http nor https")]
    Scheme,
    #[error("it holds credentials: put them into config.headers")]
    Credentials,
    #[error("it holds a fragment, which no server is ever sent: remove it")]
    Fragment,
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self, AddressError> {
        if text.contains('#') {
            return Err(AddressError::Fragment);
        }
        let uri: Uri = text.parse().map_err(|_| AddressError::NoUrl)?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) => return Err(AddressError::Scheme),
            None => return Err(AddressError::NoUrl),
        };
        let authority = uri.authority().ok_or(AddressError::NoUrl)?;
        if authority.as_str().contains('@') {
            return Err(AddressError::Credentials);
        }
        let host = authority.host().to_owned();
        if host.is_empty() {
            return Err(AddressError::NoUrl);
        }
        let port = match authority.port_u16() {
            Some(port) => port,
            None if authority.as_str() == authority.host() => {
                if tls {
                    443
                } else {
                    80
                }
            }
            None => return Err(AddressError::NoUrl),
        };
        Ok(Self { uri: text.to_owned(), host, port, tls })
    }

    /// Another address of the same server: a reference from it, absolute or by path, as servers of the
    /// HTTP+SSE transport name where messages go. `None` if it leads to another origin, or is none.
    pub(crate) fn same_origin(&self, reference: &str) -> Option<Self> {
        let origin = format!("{}://{}", if self.tls { "https" } else { "http" }, self.authority());
        let absolute = if reference.starts_with("//") {
            // A host without a scheme.
            return None;
        } else if reference.starts_with('/') {
            format!("{origin}{reference}")
        } else if reference.contains("://") {
            reference.to_owned()
        } else {
            let path = self.uri.parse::<Uri>().ok()?.path().to_owned();
            let (directory, _) = path.rsplit_once('/').unwrap_or_default();
            if reference.starts_with('?') {
                format!("{origin}{path}{reference}")
            } else {
                format!("{origin}{directory}/{reference}")
            }
        };
        let address = Self::parse(&absolute).ok()?;
        let same = (address.tls, &address.host, address.port) == (self.tls, &self.host, self.port);
        same.then_some(address)
    }

    /// As it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.uri
    }

    /// `host:port`, for the proxy and the resolver.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The host as in certificates.
    pub(crate) fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Whether it uses TLS.
    pub(crate) fn tls(&self) -> bool {
        self.tls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_place() {
        for (text, place, host, tls) in [
            ("https://mcp.example.org/mcp", "mcp.example.org:443", "mcp.example.org", true),
            ("http://127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1", false),
            ("http://[::1]/x?y=1", "[::1]:80", "::1", false),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!((address.authority().as_str(), address.host(), address.tls()), (place, host, tls));
        }
        let sse = Address::parse("https://a.example/mcp/sse?x=1").unwrap();
        for (reference, whole) in [
            ("/messages/?session_id=7", "https://a.example:443/messages/?session_id=7"),
            ("messages?s=7", "https://a.example:443/mcp/messages?s=7"),
            ("?s=7", "https://a.example:443/mcp/sse?s=7"),
            ("https://a.example/m", "https://a.example/m"),
        ] {
            assert_eq!(sse.same_origin(reference).expect(reference).as_str(), whole);
        }
        for elsewhere in [
            "https://b.example/m",
            "http://a.example/m",
            "https://a.example:444/m",
            "//b.example/m",
            "https://u@a.example/m",
            "file:///etc/passwd",
            "/m#x",
        ] {
            assert_eq!(sse.same_origin(elsewhere), None, "{elsewhere}");
        }
        for (text, why) in [
            ("ftp://a/", AddressError::Scheme),
            ("a/b", AddressError::NoUrl),
            ("https://user:secret@a/", AddressError::Credentials),
            ("https://a/#b", AddressError::Fragment),
            ("", AddressError::NoUrl),
            ("http://a:99999/", AddressError::NoUrl),
        ] {
            assert_eq!(Address::parse(text), Err(why), "{text}");
        }
    }
}
