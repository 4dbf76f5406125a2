//! `host`: access to `host.sock`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::frames::Frames;

/// Who may use `host.sock`, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Host {
    /// The group that owns `host.sock`, by name. Its members may call, as persons.
    ///
    /// Without it the socket belongs to the supervisor's own group, and only root, the supervisor's own user
    /// and who is named in `peers` may do anything.
    #[schemars(example = &"talon")]
    pub group: Option<String>,
    /// Further users and groups, or other roles for those above. The first entry that fits decides.
    ///
    /// Exactly one of `user`, `uid`, `group` and `gid` says who an entry is about.
    #[schemars(example = serde_json::json!([{ "user": "talon-agent", "role": "call", "origin": "model" }]))]
    pub peers: Vec<Peer>,
    /// What one client may send beside its requests. One that sends more is cut off, counted in
    /// `talon_connections_flooded_total`, and named in the log.
    pub frames: Frames,
    /// How much clients do at once. What is beyond a limit is refused, with its key, and may be tried again. Takes effect when Talon is
    /// started.
    pub limits: HostLimits,
}

/// How much clients of `host.sock`, and our own services, do at once. What requests hold that are not sent whole is limited beside it: 256 MiB
/// of one user, 512 MiB of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostLimits {
    /// The most connections to `host.sock`. One more is closed at once.
    ///
    /// 256: more than the users and agents of one machine. Each costs a task and, while something is sent, up to 2 MiB.
    #[schemars(range(min = 16, max = 100_000))]
    pub connections: u32,
    /// The most of one user of this machine, so that one cannot lock out others.
    ///
    /// 192: three quarters of all.
    #[schemars(range(min = 8, max = 100_000))]
    pub connections_per_user: u32,
    /// The most requests over `host.sock`, from their headers to the last byte of their answers.
    ///
    /// 2048: most are over in milliseconds, and a program that calls slow actions keeps a few hundred.
    #[schemars(range(min = 64, max = 100_000))]
    pub requests: u32,
    /// The most of one user of this machine, over all connections.
    ///
    /// 1024: half of all.
    #[schemars(range(min = 32, max = 100_000))]
    pub requests_per_user: u32,
    /// The most on one connection; further ones wait in the client.
    ///
    /// 128: an agent's parallel calls. Two times as many need two connections.
    #[schemars(range(min = 8, max = 100_000))]
    pub requests_per_connection: u32,
    /// The most of the agent, and of the gateway, each of which has one connection of its own for all whom it serves; further ones wait
    /// there. Of those for whom the gateway asks, one subject has half of them.
    ///
    /// 4096: a call of each of 2,048 turns, and as many that look something up.
    #[schemars(range(min = 128, max = 100_000))]
    pub service_requests: u32,
    /// The most streams of events and logs, over all connections.
    ///
    /// 256: each holds a position in a broadcast.
    #[schemars(range(min = 8, max = 100_000))]
    pub follows: u32,
    /// The most of one user of this machine, or of one subject of the gateway.
    ///
    /// 64: a quarter of all.
    #[schemars(range(min = 1, max = 100_000))]
    pub follows_per_user: u32,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            connections_per_user: 192,
            requests: 2048,
            requests_per_user: 1024,
            requests_per_connection: 128,
            service_requests: 4096,
            follows: 256,
            follows_per_user: 64,
        }
    }
}

/// One user or group that may use `host.sock`. Exactly one of `user`, `uid`, `group` and `gid` says who.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peer {
    /// A user, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// A user, by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// A group, by name. Supplementary groups count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// A group, by number. Supplementary groups count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// What it may do.
    pub role: Role,
    /// As what its calls count. An action that is for people only refuses a `model`.
    ///
    /// `program` unless said otherwise, because a person is the one thing a socket cannot recognise.
    #[serde(default)]
    pub origin: Origin,
    /// What it may call: patterns of actions such as `git` (all actions of that plugin), `git__status`,
    /// `fs__read_*` or `*`.
    ///
    /// Left out: everything. An empty list: nothing but `talon.read_more`. With the role `call`, other
    /// plugins and actions are not shown either; who operates plugins sees them all, and calls only these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
}

/// What a peer may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Call actions, and see which plugins there are.
    Call,
    /// Also start, stop, restart and refresh plugins, and read their events and logs.
    Operate,
    /// Everything.
    Admin,
}

/// As what a peer's calls count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A person at a command line or in a user interface.
    Person,
    /// A language model, through an agent.
    Model,
    /// Another program.
    #[default]
    Program,
}

impl From<Origin> for talon_guard::Origin {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Person => Self::Person,
            Origin::Model => Self::Model,
            Origin::Program => Self::Program,
        }
    }
}
