//! The endpoint of a collector, which must be on this machine.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// The longest path that a unix socket's address holds.
const MAX_PATH_BYTES: usize = 107;

/// The address where a collector accepts OTLP over gRPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A unix socket: `unix:/run/otelcol/otlp.sock`.
    Unix(PathBuf),
    /// A port of this machine: `http://127.0.0.1:4317`.
    Loopback(SocketAddr),
}

/// The text is no endpoint on this machine. The message ends with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseEndpointError {
    /// It has neither of the two schemes.
    #[error("is neither unix: nor http://; write unix:/run/otelcol/otlp.sock or http://127.0.0.1:4317")]
    Scheme,
    /// Traces would be sent over a network.
    #[error(
        "is not on this machine; let a collector here send them on, and write its unix: path or http://127.0.0.1:4317"
    )]
    NotLoopback,
    /// The path is relative, too long or has a NUL.
    #[error("is no path of a unix socket; write unix: and an absolute path of at most 107 bytes")]
    Path,
    /// The port is missing, or something follows it.
    #[error("is no address and port; write it like http://127.0.0.1:4317, without a path")]
    Address,
}

impl FromStr for Endpoint {
    type Err = ParseEndpointError;

    fn from_str(text: &str) -> Result<Self, ParseEndpointError> {
        if let Some(path) = text.strip_prefix("unix:") {
            let good = path.starts_with('/') && path.len() <= MAX_PATH_BYTES && !path.contains('\0');
            return if good { Ok(Self::Unix(path.into())) } else { Err(ParseEndpointError::Path) };
        }
        let address = text.strip_prefix("http://").ok_or(ParseEndpointError::Scheme)?;
        let address = address.strip_suffix('/').unwrap_or(address);
        let (host, port) = address.rsplit_once(':').ok_or(ParseEndpointError::Address)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let ip = match bare.unwrap_or(host) {
            // Not resolved: the name could lead to another machine.
            "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            // A name, unless it is another kind of mistake.
            host => host.parse().map_err(|_| match host.contains(['/', ':', '@']) || host.is_empty() {
                true => ParseEndpointError::Address,
                false => ParseEndpointError::NotLoopback,
            })?,
        };
        let port = port.parse().ok().filter(|port| *port > 0).ok_or(ParseEndpointError::Address)?;
        if ip.is_loopback() {
            Ok(Self::Loopback((ip, port).into()))
        } else {
            Err(ParseEndpointError::NotLoopback)
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Loopback(address) => write!(f, "http://{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sockets_and_ports_of_this_machine_are_taken() {
        assert_eq!("unix:/run/o.sock".parse(), Ok(Endpoint::Unix("/run/o.sock".into())));
        for (text, address) in [
            ("http://127.0.0.1:4317", "127.0.0.1:4317"),
            ("http://127.8.0.1:4317/", "127.8.0.1:4317"),
            ("http://[::1]:4317", "[::1]:4317"),
            ("http://localhost:1", "127.0.0.1:1"),
        ] {
            assert_eq!(text.parse(), Ok(Endpoint::Loopback(address.parse().unwrap())), "{text}");
        }
    }

    // Promises: TRACE-14
    #[test]
    fn everything_else_is_refused_with_what_to_write() {
        let long = format!("unix:/{}", "x".repeat(MAX_PATH_BYTES));
        for (text, error) in [
            ("", ParseEndpointError::Scheme),
            ("https://127.0.0.1:4317", ParseEndpointError::Scheme),
            ("/run/o.sock", ParseEndpointError::Scheme),
            ("unix:run/o.sock", ParseEndpointError::Path),
            (long.as_str(), ParseEndpointError::Path),
            ("http://10.0.0.1:4317", ParseEndpointError::NotLoopback),
            ("http://0.0.0.0:4317", ParseEndpointError::NotLoopback),
            ("http://collector.example:4317", ParseEndpointError::NotLoopback),
            ("http://127.0.0.1", ParseEndpointError::Address),
            ("http://127.0.0.1:0", ParseEndpointError::Address),
            ("http://127.0.0.1:4317/v1/traces", ParseEndpointError::Address),
            ("http://user@127.0.0.1:4317", ParseEndpointError::Address),
        ] {
            assert_eq!(text.parse::<Endpoint>(), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_taken_comes_back(text in "(unix:|http://)?[ -~]{0,30}") {
            if let Ok(endpoint) = text.parse::<Endpoint>() {
                prop_assert_eq!(endpoint.to_string().parse(), Ok(endpoint));
            }
        }
    }
}
