//! What the operator set, as the supervisor sends it.

use std::net::{AddrParseError, SocketAddr};
use std::time::Duration;

use http::HeaderValue;
use ipnet::{AddrParseError as NetParseError, IpNet};
use talon_proto::gateway;

use crate::auth_providers::AuthProviders;
use crate::identity::Role;
use crate::route_table::PluginRoutes;

/// The settings of a running gateway. Replaced as a whole when the configuration changes.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it is bound.
    pub address: SocketAddr,
    /// Whether its clients speak TLS to it.
    pub tls: bool,
    /// The names by which clients may call it, beside its address: lower case, with or without a port.
    pub hosts: Vec<String>,
    /// The origins of other sites whose pages may send requests.
    pub origins: Vec<HeaderValue>,
    /// The networks of proxies that are believed about whom they forward for.
    pub proxies: Vec<IpNet>,
    /// The most that any request may do.
    pub max_role: Role,
    /// Whether bearer tokens are accepted.
    pub tokens: bool,
    /// The limits.
    pub limits: Limits,
    /// Whether every message of a group is for the agent.
    pub hears_all: bool,
    /// By which names messages of a group mention the agent.
    pub names: Vec<String>,
    /// The paths that plugins answer.
    pub routes: PluginRoutes,
    /// Who says whose a credential is that is none of ours.
    pub auth: AuthProviders,
}

/// What stands between the network and the memory of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all.
    pub connections: usize,
    /// Connections of one client address.
    pub connections_per_address: usize,
    /// The longest time for the headers of a request, for a TLS handshake, and between two requests.
    pub header_timeout: Duration,
    /// The longest time for a request's body.
    pub body_timeout: Duration,
    /// How long a client may take nothing of what is sent to it.
    pub unread_timeout: Duration,
    /// The largest body of a request.
    pub body_bytes: usize,
    /// Requests within a minute of one token or browser session.
    pub requests_per_minute: u32,
    /// Requests within a minute of one client address.
    pub requests_per_minute_per_address: u32,
    /// WebSocket connections in all.
    pub websockets: usize,
    /// WebSocket connections of one caller.
    pub websockets_per_caller: usize,
    /// Messages of one WebSocket connection that are not answered yet.
    pub messages_per_websocket: usize,
    /// Turns in all that nobody waits for.
    pub background_turns: usize,
}

/// Why settings were not taken over. The supervisor has checked them, so it is of another version.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The address is none.
    #[error("its address is none: {0}")]
    Address(#[from] AddrParseError),
    /// A network is none.
    #[error("a proxy's network is none: {0}")]
    Proxy(#[from] NetParseError),
    /// An origin cannot stand in a header.
    #[error("an origin is none: {0:?}")]
    Origin(String),
    /// The ceiling is no role.
    #[error("its max_role is none: {0:?}")]
    MaxRole(String),
    /// There are no limits.
    #[error("it has no limits")]
    NoLimits,
}

impl TryFrom<&gateway::Configure> for Settings {
    type Error = SettingsError;

    fn try_from(configure: &gateway::Configure) -> Result<Self, SettingsError> {
        let origin = |origin: &String| {
            HeaderValue::try_from(origin).map_err(|_| SettingsError::Origin(origin.clone()))
        };
        Ok(Self {
            address: configure.address.parse()?,
            tls: configure.tls.is_some(),
            hosts: configure.hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            origins: configure.origins.iter().map(origin).collect::<Result<_, _>>()?,
            proxies: configure.proxies.iter().map(|network| network.parse()).collect::<Result<_, _>>()?,
            max_role: Role::parse(&configure.max_role)
                .ok_or_else(|| SettingsError::MaxRole(configure.max_role.clone()))?,
            tokens: configure.tokens,
            limits: configure.limits.as_ref().ok_or(SettingsError::NoLimits)?.into(),
            hears_all: configure.activation == "always",
            names: configure.names.clone(),
            // They come beside it.
            routes: PluginRoutes::default(),
            auth: AuthProviders::default(),
        })
    }
}

impl From<&gateway::Limits> for Limits {
    fn from(limits: &gateway::Limits) -> Self {
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Self {
            connections: count(limits.connections),
            connections_per_address: count(limits.connections_per_address),
            header_timeout: Duration::from_millis(limits.header_timeout_ms),
            body_timeout: Duration::from_millis(limits.body_timeout_ms),
            unread_timeout: Duration::from_millis(limits.unread_timeout_ms),
            body_bytes: usize::try_from(limits.body_bytes).unwrap_or(usize::MAX),
            requests_per_minute: limits.requests_per_minute,
            requests_per_minute_per_address: limits.requests_per_minute_per_address,
            websockets: count(limits.websockets),
            websockets_per_caller: count(limits.websockets_per_caller),
            messages_per_websocket: count(limits.messages_per_websocket),
            background_turns: count(limits.background_turns),
        }
    }
}

impl Settings {
    /// The scheme of its own links.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configure() -> gateway::Configure {
        gateway::Configure {
            address: "127.0.0.1:19789".to_owned(),
            hosts: vec!["Talon.Example".to_owned()],
            proxies: vec!["10.0.0.0/8".to_owned()],
            max_role: "call".to_owned(),
            limits: Some(gateway::Limits::default()),
            ..gateway::Configure::default()
        }
    }

    #[test]
    fn what_the_supervisor_sends_is_read_whole_or_not_at_all() {
        let settings = Settings::try_from(&configure()).unwrap();
        assert_eq!((settings.hosts[0].as_str(), settings.scheme()), ("talon.example", "http"));
        for wrong in [
            gateway::Configure { address: "localhost:1".to_owned(), ..configure() },
            gateway::Configure { proxies: vec!["10.0.0.0/99".to_owned()], ..configure() },
            gateway::Configure { origins: vec!["https://a\nb".to_owned()], ..configure() },
            gateway::Configure { max_role: "root".to_owned(), ..configure() },
            gateway::Configure { limits: None, ..configure() },
        ] {
            assert!(Settings::try_from(&wrong).is_err(), "{wrong:?}");
        }
    }
}
