//! `host:port`, as written in an allow-list and requested by CONNECT. Both use the same parser, so that they
//! cannot disagree about the meaning of a text.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The longest DNS name, in characters without its trailing dot (RFC 1035, 255 bytes on the wire).
pub(crate) const MAX_NAME_CHARS: usize = 253;

/// The longest label of a name (RFC 1035).
const MAX_LABEL_CHARS: usize = 63;

/// One host and one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// The host.
    pub host: Host,
    /// The port, never 0.
    pub port: u16,
}

/// A host in canonical form: a name in lower case without its trailing dot, or an address that is not
/// IPv4-mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A name to resolve.
    Name(String),
    /// A literal address.
    Ip(IpAddr),
}

/// Why a text is no `host:port`. Each message says what to write instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostPortError {
    /// The port is missing.
    #[error("it names no port (write HOST:PORT)")]
    NoPort,
    /// The port is invalid.
    #[error("its port is no number from 1 to 65535 (write HOST:PORT, one entry for each port)")]
    BadPort,
    /// A wildcard for all ports.
    #[error(
        "every port of a host reaches whatever else runs there, its administration too (name the ports, one entry for each)"
    )]
    WildcardPort,
    /// An IPv6 address without brackets.
    #[error("an IPv6 address stands in brackets, without a zone (write [2001:db8::1]:443)")]
    BadV6,
    /// A number that resolvers would read as an address.
    #[error("it looks like an address and is none (write an IPv4 address as four decimal numbers)")]
    BadV4,
    /// Not ASCII.
    #[error("its name is not ASCII (write the form that DNS has, which begins with xn--)")]
    NotAscii,
    /// A wildcard that is not the first label.
    #[error(
        "a star stands only for the subdomains of a domain, which has two labels or more (write *.example.org:443)"
    )]
    BadWildcard,
    /// Not a host name.
    #[error(
        "its host is no name (use labels of 1 to 63 letters, digits, '-' and '_', 253 characters in all)"
    )]
    BadName,
}

impl HostPort {
    /// Parses `host:port`.
    ///
    /// # Errors
    /// [`HostPortError`], which says what to write instead.
    pub fn parse(text: &str) -> Result<Self, HostPortError> {
        let (host, port) = split_host_port(text)?;
        Ok(Self { host: Host::parse(host)?, port: parse_port(port)? })
    }
}

impl Host {
    fn parse(text: &str) -> Result<Self, HostPortError> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(HostPortError::BadV6)?;
            let ip: Ipv6Addr = inner.parse().map_err(|_| HostPortError::BadV6)?;
            // The kernel treats ::ffff:10.0.0.5 as 10.0.0.5, and so does the list.
            return Ok(Self::Ip(ip.to_canonical()));
        }
        let name = parse_name(text)?;
        match name.parse() {
            Ok(ip) => Ok(Self::Ip(IpAddr::V4(ip))),
            // Resolvers read 127.1, 0x7f.1 and 2130706433 as addresses; the last label of a name is never a
            // number.
            Err(_) if ends_in_a_number(&name) => Err(HostPortError::BadV4),
            Err(_) => Ok(Self::Name(name)),
        }
    }
}

/// Splits into host and port, without parsing them.
pub(crate) fn split_host_port(text: &str) -> Result<(&str, &str), HostPortError> {
    let (host, port) = text.rsplit_once(':').ok_or(HostPortError::NoPort)?;
    if host.contains(':') && !host.starts_with('[') {
        return Err(HostPortError::BadV6);
    }
    // `[::1]`: the last colon belongs to the address.
    if host.starts_with('[') && !host.ends_with(']') {
        return Err(if port.ends_with(']') { HostPortError::NoPort } else { HostPortError::BadV6 });
    }
    Ok((host, port))
}

/// Only digits: the standard parser would also accept a plus sign.
pub(crate) fn parse_port(text: &str) -> Result<u16, HostPortError> {
    if text == "*" {
        return Err(HostPortError::WildcardPort);
    }
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(HostPortError::BadPort);
    }
    text.parse().ok().filter(|port| *port != 0).ok_or(HostPortError::BadPort)
}

/// Parses a name into lower case without its trailing dot.
pub(crate) fn parse_name(text: &str) -> Result<String, HostPortError> {
    if !text.is_ascii() {
        return Err(HostPortError::NotAscii);
    }
    if text.contains('*') {
        return Err(HostPortError::BadWildcard);
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let label = |l: &str| (1..=MAX_LABEL_CHARS).contains(&l.len()) && l.bytes().all(plain);
    if name.len() > MAX_NAME_CHARS || !name.split('.').all(label) {
        return Err(HostPortError::BadName);
    }
    Ok(name.to_ascii_lowercase())
}

/// Whether a resolver may read the name as an address: its last label is decimal or hexadecimal.
pub(crate) fn ends_in_a_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            // `SocketAddr` adds the brackets.
            Host::Ip(ip) => SocketAddr::new(*ip, self.port).fmt(f),
        }
    }
}
