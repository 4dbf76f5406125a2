//! The handshake line, which a plugin prints once it listens. It is the only output of a plugin that is
//! parsed by hand.
//!
//! ```text
//! go-plugin   1|APP|unix|ADDRESS|grpc[|CERTIFICATE[|MUX]]
//! OpenTalon   1|unix|ADDRESS[|HTTP_ADDRESS]
//! ```
//!
//! The second field tells them apart: a number, or a network. This module is pure: it maps text to a value.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use talon_plugin_config::bridge::Bridge;
use talon_plugin_config::spec::Dialect;
use talon_sanitize::{Raw, SafeDisplay, Sanitized};

/// The longest handshake line, in bytes. 4 KiB is four times the longest valid one, which has a certificate.
pub const MAX_LINE_BYTES: usize = 4 << 10;

/// The version of the handshake format; there is only this one.
pub const CORE_VERSION: u32 = 1;

/// The longest part of a line in an error message, in bytes.
pub const QUOTED_BYTES: usize = 200;

/// The shortest text that counts as a certificate. Old programs put other short texts into this field, and
/// go-plugin's own host uses the same limit.
const MIN_CERTIFICATE_BYTES: usize = 51;

/// A parsed handshake line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    /// The dialect of the line; never [`Dialect::Auto`].
    pub dialect: Dialect,
    /// The application protocol version, in go-plugin's dialect.
    pub app_version: Option<u32>,
    /// Where it listens.
    pub address: Address,
    /// The server's certificate, base64 without padding, if it uses TLS.
    pub server_cert: Option<String>,
    /// Whether it multiplexes its listener with yamux.
    pub mux: bool,
    /// The address of the plugin's web server, for people only. Always on the loopback.
    pub http_addr: Option<SocketAddr>,
}

/// Where a plugin listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A unix socket: an absolute path without `.` or `..`.
    Unix(PathBuf),
    /// A TCP port of this machine. A plugin that listens on every interface is called through the loopback.
    Tcp(SocketAddr),
}

/// Why a line is no valid handshake. Lines of the plugin are bounded and sanitized.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// Not like a handshake at all: a banner, a warning. The plugin may still print its handshake.
    #[error("not a handshake line: {shown:?}")]
    Stray {
        /// The line.
        shown: Sanitized,
    },
    /// Longer than [`MAX_LINE_BYTES`].
    #[error("its handshake line is longer than {MAX_LINE_BYTES} bytes: {shown:?}")]
    TooLong {
        /// Its beginning.
        shown: Sanitized,
    },
    /// It begins like a handshake but is not valid.
    #[error(
        "its handshake line {shown:?} is malformed: {problem}; it should read \
         \"1|APP|unix|PATH|grpc\" (go-plugin) or \"1|unix|PATH\" (OpenTalon)"
    )]
    Malformed {
        /// The line.
        shown: Sanitized,
        /// What is wrong.
        problem: &'static str,
    },
    /// Another version of the handshake format.
    #[error(
        "it speaks version {theirs} of the handshake and Talon speaks version {CORE_VERSION}: \
         use a plugin built for version {CORE_VERSION}"
    )]
    CoreVersion {
        /// The plugin's, as it wrote it.
        theirs: Sanitized,
    },
    /// The application protocol version was not offered.
    #[error(
        "it speaks version {theirs} of the application protocol and Talon offered it {}: \
         rebuild it for one of those, or list {theirs} in its app_versions if it really serves opentalon.plugin.v1",
        list(ours)
    )]
    AppVersion {
        /// The plugin's.
        theirs: u32,
        /// The offered versions.
        ours: Vec<u32>,
    },
    /// go-plugin's older wire protocol.
    #[error("it speaks {shown:?}, and only grpc is supported: serve it with GRPCServer set")]
    Protocol {
        /// The protocol; if the line names none, "netrpc (the default)".
        shown: Sanitized,
    },
    /// The dialect differs from the configured one.
    #[error(
        "it speaks the {found} dialect and is configured for {expected}: correct its dialect, or set it to auto"
    )]
    WrongDialect {
        /// The line's.
        found: &'static str,
        /// The configured one.
        expected: &'static str,
    },
}

fn list(versions: &[u32]) -> String {
    versions.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// The beginning of a line for an error message, sanitized.
pub fn excerpt(line: &str) -> Sanitized {
    Raw::from(line).line_within(QUOTED_BYTES)
}

/// Parses one line that a plugin printed.
///
/// # Errors
/// [`HandshakeError::Stray`] if it is no handshake at all, so that the next line may be one. Every other
/// error ends the start.
pub fn parse(line: &str, expected: Dialect, offered: &[u32]) -> Result<Handshake, HandshakeError> {
    let trimmed = line.trim();
    let stray = || HandshakeError::Stray { shown: excerpt(line) };
    let (core, rest) = trimmed.split_once('|').ok_or_else(stray)?;
    if core.is_empty() || !core.bytes().all(|b| b.is_ascii_digit()) {
        return Err(stray());
    }
    if trimmed.len() > MAX_LINE_BYTES {
        return Err(HandshakeError::TooLong { shown: excerpt(line) });
    }
    if core.parse() != Ok(CORE_VERSION) {
        return Err(HandshakeError::CoreVersion { theirs: excerpt(core) });
    }
    let second = rest.split('|').next().unwrap_or_default();
    let malformed = |problem| HandshakeError::Malformed { shown: excerpt(line), problem };
    let found = match second {
        "unix" | "tcp" => Dialect::OpenTalon,
        number if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => Dialect::GoPlugin,
        _ => return Err(malformed("its second field is neither a version nor unix or tcp")),
    };
    // A bridge is built with our SDK, whatever program is behind it.
    let expected = if Bridge::for_dialect(expected).is_some() { Dialect::GoPlugin } else { expected };
    if expected != Dialect::Auto && expected != found {
        let (found, expected) = (found.as_str(), expected.as_str());
        return Err(HandshakeError::WrongDialect { found, expected });
    }
    if found == Dialect::OpenTalon {
        parse_opentalon(rest, malformed)
    } else {
        parse_go_plugin(rest, offered, malformed)
    }
}

/// `APP|unix|ADDRESS|grpc[|CERTIFICATE[|MUX]]`. Further fields belong to a later go-plugin and are ignored.
fn parse_go_plugin(
    rest: &str,
    offered: &[u32],
    malformed: impl Fn(&'static str) -> HandshakeError,
) -> Result<Handshake, HandshakeError> {
    let mut fields = rest.split('|');
    let mut next = || fields.next();
    let app_version = next()
        .unwrap_or_default()
        .parse()
        .map_err(|_| malformed("its application protocol version is too large"))?;
    // Checked first: if no version fits, go-plugin prints one that was not offered.
    if !offered.contains(&app_version) {
        return Err(HandshakeError::AppVersion { theirs: app_version, ours: offered.to_vec() });
    }
    let network = next().ok_or_else(|| malformed("it ends before the network"))?;
    let location = next().ok_or_else(|| malformed("it ends before the address"))?;
    match next() {
        Some("grpc") => {}
        None | Some("") => {
            return Err(HandshakeError::Protocol { shown: "netrpc (the default)".into() });
        }
        Some(other) => return Err(HandshakeError::Protocol { shown: excerpt(other) }),
    }
    let server_cert = next().filter(|cert| cert.len() >= MIN_CERTIFICATE_BYTES).map(str::to_owned);
    let mux = next() == Some("true");
    Ok(Handshake {
        dialect: Dialect::GoPlugin,
        app_version: Some(app_version),
        address: parse_address(network, location, malformed)?,
        server_cert,
        mux,
        http_addr: None,
    })
}

/// `unix|ADDRESS[|HTTP_ADDRESS]`.
fn parse_opentalon(
    rest: &str,
    malformed: impl Fn(&'static str) -> HandshakeError,
) -> Result<Handshake, HandshakeError> {
    let mut fields = rest.splitn(3, '|');
    let network = fields.next().unwrap_or_default();
    let location = fields.next().ok_or_else(|| malformed("it ends before the address"))?;
    let http_addr = match fields.next() {
        None | Some("") => None,
        Some(text) => {
            let addr: SocketAddr = text
                .parse()
                .map_err(|_| malformed("its HTTP address is not host:port with a literal address"))?;
            if !addr.ip().is_loopback() {
                return Err(malformed("its HTTP address is not on the loopback"));
            }
            Some(addr)
        }
    };
    Ok(Handshake {
        dialect: Dialect::OpenTalon,
        app_version: None,
        address: parse_address(network, location, malformed)?,
        server_cert: None,
        mux: false,
        http_addr,
    })
}

fn parse_address(
    network: &str,
    text: &str,
    malformed: impl Fn(&'static str) -> HandshakeError,
) -> Result<Address, HandshakeError> {
    match network {
        "unix" => {
            if !text.starts_with('/') {
                return Err(malformed("its socket is not an absolute path"));
            }
            if text.contains('\0') || text.split('/').skip(1).any(|part| matches!(part, "" | "." | "..")) {
                return Err(malformed("its socket's path is not plain"));
            }
            Ok(Address::Unix(text.into()))
        }
        "tcp" => {
            let addr: SocketAddr =
                text.parse().map_err(|_| malformed("its address is not host:port with a literal address"))?;
            let ip = match addr.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
                ip if ip.is_loopback() => ip,
                _ => return Err(malformed("its TCP address is not on the loopback")),
            };
            if addr.port() == 0 {
                return Err(malformed("its TCP port is 0"));
            }
            Ok(Address::Tcp(SocketAddr::new(ip, addr.port())))
        }
        _ => Err(malformed("its network is neither unix nor tcp")),
    }
}

/// For logs: `go-plugin, app version 1, unix:/…/plugin123`.
impl std::fmt::Display for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.dialect.as_str())?;
        if let Some(version) = self.app_version {
            write!(f, ", application protocol {version}")?;
        }
        match &self.address {
            Address::Unix(path) => write!(f, ", {}", excerpt(&path.display().to_string()))?,
            Address::Tcp(addr) => write!(f, ", {addr}")?,
        }
        f.write_char('.')
    }
}

/// Safe to show: lines of the plugin are bounded and sanitized.
impl SafeDisplay for Handshake {}
impl SafeDisplay for HandshakeError {}

#[cfg(test)]
mod tests;
