//! Endpoints to connect to, and why there is no connection to one.

use std::fmt;
use std::io;

use crate::peer_text::one_line;

/// Where to connect to. It is shown as `host:port`, an IPv6 address in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// A name or an address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Why there is no connection. The texts are one bounded line each, and may be shown.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The supervisor's proxy said no, in its words: the endpoint is not on the list, or does not answer.
    #[error("{0}")]
    Refused(String),
    /// There is nothing at the other end.
    #[error("cannot connect to {endpoint}: {}", one_line(&source.to_string()))]
    Unreachable {
        /// Where.
        endpoint: Endpoint,
        /// Why.
        source: io::Error,
    },
}
