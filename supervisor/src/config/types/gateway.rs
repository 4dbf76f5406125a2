//! `gateway`: HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_extensions::Activation;
use talon_plugin_config::units::{ByteSize, Duration};

use super::host::Role;
use crate::config::overlay::DEFAULT_KEYS;

/// HTTP and WebSocket for browsers, channels and programs: a process of its own, with a uid of its own and no privileges.
///
/// All requests need a token (`talon token create`) or a session of a browser (`talon gateway open`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Gateway {
    /// Whether it runs. The agent runs then, too, unless `agent.enabled` is false.
    pub enabled: bool,
    /// Where it listens, as `IP:PORT`.
    ///
    /// On loopback, unless set. Another address needs `tls` or `behind_proxy`, and `tokens` or an auth provider. A socket that the
    /// service manager hands in (`FileDescriptorName=gateway`) is used instead.
    #[schemars(with = "String", extend("format" = "socket-address"), example = &"127.0.0.1:19789")]
    pub address: SocketAddr,
    /// The certificate for TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<GatewayTls>,
    /// A proxy in front of it that ends TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind_proxy: Option<BehindProxy>,
    /// The names by which clients may call it, beside its address and, on loopback, `localhost`; with or without a port.
    ///
    /// A request under another name is refused, so that a page which has its own name point here cannot reach it.
    #[schemars(example = serde_json::json!(["talon.example.org"]))]
    pub hosts: Vec<String>,
    /// Origins of other sites whose pages may send requests, with a token.
    #[schemars(example = serde_json::json!(["https://desk.example.org"]))]
    pub origins: Vec<String>,
    /// The most that any request through it may do, whatever its token says: a gateway that was taken over has exactly this role.
    ///
    /// `call` unless set, so that nobody on the network stops plugins or changes the configuration.
    pub max_role: Role,
    /// Whether bearer tokens are accepted.
    pub tokens: bool,
    /// The keys that administrators may change through the gateway while Talon runs, with all below them. `[]`: none.
    ///
    /// Their changes are in `overlay.yaml` in `state.data_dir`, above this file. What decides who may do what, what runs or where something is
    /// kept is never among them.
    #[schemars(example = serde_json::json!(["agent", "log.level", "guard.timeout"]))]
    pub config_keys: Vec<String>,
    /// Which messages of groups are for the agent.
    pub routing: GatewayRouting,
    /// What one client, and all of them, may use.
    pub limits: GatewayLimits,
    /// The program.
    ///
    /// Looked for beside `talon` itself, then in `../libexec/talon` and `../lib/talon` from there.
    #[schemars(extend("format" = "path"), example = &"/usr/libexec/talon/talon-gateway")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
}

/// The certificate of the gateway. Both files are read by the supervisor, also at each reload; the gateway itself sees no file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayTls {
    /// The certificate and those that signed it, as PEM.
    #[schemars(extend("format" = "path"), example = &"/etc/talon/gateway.pem")]
    pub certificate: PathBuf,
    /// Its private key, as PEM. A file that others may read is refused.
    #[schemars(extend("format" = "path"), example = &"/etc/talon/gateway.key")]
    pub key: PathBuf,
}

/// Which messages of groups are for the agent, of clients of the gateway and of `extensions.channels`. What is not for it becomes no turn,
/// and no model sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GatewayRouting {
    /// `mention`: those that the channel marks, or that have one of `names` as a word. `always`: all.
    pub activation: Activation,
    /// By which names the agent is mentioned, beside a channel's own mark; in any case, with or without `@`.
    #[schemars(example = ["talon"])]
    pub names: Vec<String>,
}

/// A proxy in front of the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BehindProxy {
    /// The networks of the proxies, as CIDR. Their `X-Forwarded-For` says whose a request is; everybody else's is ignored.
    #[schemars(example = serde_json::json!(["10.0.0.0/8"]))]
    pub addresses: Vec<String>,
}

/// What stands between the network and the memory of the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GatewayLimits {
    /// Connections in all. One more is closed at once.
    ///
    /// 4,096: each costs some tens of KiB.
    pub connections: u32,
    /// Connections of one client address (of IPv6 a /64 network); a proxy's count in the sum alone. One more is closed at once.
    ///
    /// 2,048: more than 1,000 people behind one address, or one machine with a connection for each of 1,000 sessions; the other half
    /// is left to other addresses.
    pub connections_per_address: u32,
    /// The longest time for the headers of a request, for the TLS handshake, and between two requests of a connection.
    pub header_timeout: Duration,
    /// The longest time for the body of a request as a whole. 408 after it.
    pub body_timeout: Duration,
    /// How long a client may take nothing of what is sent to it. Then it is cut off: a WebSocket is closed with 1013, and goes on from its
    /// cursor when it connects again.
    ///
    /// 30 s: a program that is slow takes something meanwhile, and one that hangs holds 64 KiB here for no longer.
    pub unread_timeout: Duration,
    /// The largest body of a request. 413 beyond it.
    ///
    /// 9 MiB: the largest message with its images that the agent takes.
    pub body: ByteSize,
    /// Requests within a minute of one token or browser session. 429 beyond it.
    pub requests_per_minute: u32,
    /// Requests within a minute of one client address, with or without a token. 429 beyond it.
    pub requests_per_minute_per_address: u32,
    /// WebSocket connections in all. One more is refused with 429; those that are open stay.
    ///
    /// 4,096: as many as there are connections. All of them, when none of them reads, hold 256 MiB.
    pub websockets: u32,
    /// WebSocket connections of one subject, whatever token or browser session opens them. One more is refused with 429.
    ///
    /// 128: the windows of one person, also behind a proxy, whose connections count for no address. Each takes two of
    /// `agent.limits.requests_per_user`.
    pub websockets_per_caller: u32,
    /// Messages of one WebSocket connection that wait for their turns, or are in them. One more gets an error, and the connection stays.
    ///
    /// 1,024: a channel has one connection for all its senders.
    pub messages_per_websocket: u32,
    /// Tokens and browser sessions in all. One more is refused until some are revoked or expire; those that are there stay, also where this is
    /// lowered. Takes effect when Talon is started.
    ///
    /// 4,096: two for each of 2,048 people. They are kept in memory, some hundred bytes each.
    pub credentials: u32,
    /// Turns in all that go on without a client that waits for them (`Prefer: respond-async`). One more is refused with 429.
    ///
    /// 2,048: as many turns as the agent makes at once (`agent.limits.turns`).
    pub background_turns: u32,
}

/// Where it listens unless set: the founding address.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 19_789);

impl Default for Gateway {
    fn default() -> Self {
        Self {
            enabled: false,
            address: DEFAULT_ADDRESS,
            tls: None,
            behind_proxy: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            max_role: Role::Call,
            tokens: true,
            config_keys: DEFAULT_KEYS.map(str::to_owned).into(),
            routing: GatewayRouting::default(),
            limits: GatewayLimits::default(),
            program: None,
        }
    }
}

impl Default for GatewayLimits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_per_address: 2048,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            unread_timeout: Duration::from_secs(30),
            body: ByteSize::mib(9),
            requests_per_minute: 1200,
            requests_per_minute_per_address: 3000,
            websockets: 4096,
            websockets_per_caller: 128,
            messages_per_websocket: 1024,
            credentials: 4096,
            background_turns: 2048,
        }
    }
}
