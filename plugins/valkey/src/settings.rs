//! What an operator writes under `config`, checked.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use talon_sdk::ToolError;
use talon_sink::connection::Endpoint;
use talon_sink::peer_text::one_line;

/// Where such servers listen.
const DEFAULT_PORT: u16 = 6379;
/// The longest name of a host, as DNS has it.
const MAX_HOST_BYTES: usize = 253;
/// How all keys in the server begin unless configured.
const DEFAULT_PREFIX: &str = "talon";
/// The longest prefix: it stands in every key.
const MAX_PREFIX_BYTES: usize = 64;
/// How long one operation takes at most unless configured: below the 5 s after which talon-state tries again.
const DEFAULT_TIMEOUT_MS: u64 = 4_000;
/// The shortest and the longest timeout.
const TIMEOUTS_MS: std::ops::RangeInclusive<u64> = 100..=30_000;

/// The plugin's settings, as they are read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// The server: a name or an address.
    host: Option<String>,
    /// Its port: 6379 unless given.
    port: Option<u16>,
    /// In place of `host`: the path of its unix socket, which `sandbox.fs.write` has to grant, or the directory that it lies in.
    socket: Option<PathBuf>,
    /// Whether the connection is encrypted with TLS.
    tls: bool,
    /// Whether a server of another machine may be used without TLS. Off by default.
    allow_plaintext: bool,
    /// The user of the server's ACL; the password is the credential `password`.
    username: Option<String>,
    /// The number of the database: 0 unless given.
    database: i64,
    /// How all keys in the server begin: `talon` unless given.
    prefix: Option<String>,
    /// What the server has to promise.
    durability: Durability,
    /// How long one operation may take, in milliseconds: 4000 unless given, 100 to 30000.
    timeout_ms: Option<u64>,
}

/// What a server has to promise of a write that it acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Durability {
    /// It is on the disk. A server that does not promise it is refused.
    #[default]
    Strict,
    /// Whatever the server is configured for. The last writes may be lost with a crash.
    Relaxed,
}

/// Where the server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerAddress {
    Socket(PathBuf),
    Host(Endpoint),
}

impl std::fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(f),
            Self::Host(endpoint) => endpoint.fmt(f),
        }
    }
}

/// A server, and how it is used.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) address: ServerAddress,
    pub(crate) tls: bool,
    pub(crate) username: Option<String>,
    pub(crate) database: i64,
    pub(crate) prefix: String,
    pub(crate) durability: Durability,
    pub(crate) timeout: Duration,
}

impl Server {
    /// Checks settings.
    pub(crate) fn new(settings: Settings) -> Result<Self, ToolError> {
        let address = match (settings.host, settings.socket) {
            (Some(host), None) => ServerAddress::Host(Endpoint {
                host: checked_host(host)?,
                port: settings.port.unwrap_or(DEFAULT_PORT),
            }),
            (None, Some(socket)) if socket.is_absolute() => ServerAddress::Socket(socket),
            (None, Some(_)) => return Err(wrong("socket: write an absolute path")),
            _ => return Err(wrong("name the server with `host`, or its unix socket with `socket`")),
        };
        if let ServerAddress::Host(Endpoint { host, .. }) = &address
            && !settings.tls
            && !settings.allow_plaintext
            && !is_loopback(host)
        {
            return Err(wrong(
                "without TLS everybody on the way reads the state of all plugins: set tls: true, or allow_plaintext: true",
            ));
        }
        if matches!(address, ServerAddress::Socket(_)) && settings.tls {
            return Err(wrong("tls: a unix socket needs none, remove it"));
        }
        let prefix = settings.prefix.unwrap_or_else(|| DEFAULT_PREFIX.to_owned());
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if prefix.is_empty() || prefix.len() > MAX_PREFIX_BYTES || !prefix.chars().all(plain) {
            return Err(wrong("prefix: write 1 to 64 letters, digits, '-', '_' and '.'"));
        }
        let timeout_ms = settings.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
        if !TIMEOUTS_MS.contains(&timeout_ms) {
            return Err(wrong(format!(
                "timeout_ms is a number from {} to {}, not {timeout_ms}",
                TIMEOUTS_MS.start(),
                TIMEOUTS_MS.end()
            )));
        }
        if settings.database < 0 {
            return Err(wrong("database is the number of one, from 0"));
        }
        Ok(Self {
            address,
            tls: settings.tls,
            username: settings.username,
            database: settings.database,
            prefix,
            durability: settings.durability,
            timeout: Duration::from_millis(timeout_ms),
        })
    }
}

fn wrong(text: impl std::fmt::Display) -> ToolError {
    ToolError::new(format!("config: {text}"))
}

fn checked_host(host: String) -> Result<String, ToolError> {
    let plain = host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    if (plain && !host.is_empty() && host.len() <= MAX_HOST_BYTES) || host.parse::<IpAddr>().is_ok() {
        return Ok(host);
    }
    Err(wrong(format!("host: {:?} is no host; write valkey.example.org", one_line(&host))))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn server(settings: Value) -> Result<Server, String> {
        let settings: Settings = serde_json::from_value(settings).map_err(|error| error.to_string())?;
        Server::new(settings).map_err(|error| error.to_string())
    }

    #[test]
    fn a_server_is_a_host_or_a_socket() {
        let local = server(json!({"host": "127.0.0.1"})).expect("a server");
        assert_eq!(local.address.to_string(), "127.0.0.1:6379");
        assert_eq!((local.durability, local.prefix.as_str()), (Durability::Strict, "talon"));
        assert!(server(json!({"socket": "/run/valkey.sock", "durability": "relaxed"})).is_ok());
        assert!(server(json!({"host": "db.example.org", "tls": true})).is_ok());
        for (wrong, says) in [
            (json!({}), "name the server"),
            (json!({"host": "localhost", "socket": "/x"}), "name the server"),
            (json!({"socket": "x"}), "absolute"),
            (json!({"host": "db.example.org"}), "TLS"),
            (json!({"host": "a b"}), "is no host"),
            (json!({"host": "localhost", "prefix": "a:b"}), "prefix"),
            (json!({"host": "localhost", "timeout_ms": 5}), "timeout_ms"),
            (json!({"host": "localhost", "durability": "none"}), "strict"),
            (json!({"host": "localhost", "hosts": 1}), "unknown field"),
        ] {
            let error = server(wrong.clone()).expect_err(says);
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }
}
