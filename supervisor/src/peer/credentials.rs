//! The peer of a connection, from kernel credentials.

use std::sync::Arc;

use talon_guard::Origin;
use talon_proto::host;

use crate::config::{AllowedActions, Role};

/// The process that connected. Its rights are determined when it connects and hold for the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its effective uid when it connected.
    pub uid: u32,
    /// Its effective gid when it connected.
    pub gid: u32,
    /// Its process id; 0 if the kernel does not report it. For the log only: pids are reused.
    pub pid: u32,
    /// Its role, and the origin of its calls; `None` if the configuration does not list it.
    pub rights: Option<(Role, Origin)>,
    /// The actions that it may call; `None` means all.
    pub allowed: Option<Arc<AllowedActions>>,
    /// Which service of the supervisor's own it is, on the connection that the supervisor gave it.
    pub service: Option<OwnService>,
}

/// A service of the supervisor's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnService {
    /// `talon-agent`. It must state for whom it calls, and that statement is trusted.
    Agent,
    /// `talon-state`. It calls the storage backend, and nothing else.
    State,
}

impl Peer {
    /// Whether it is the agent.
    #[must_use]
    pub fn is_agent(&self) -> bool {
        self.service == Some(OwnService::Agent)
    }

    /// The role's name.
    #[must_use]
    pub fn role_name(&self) -> &'static str {
        self.rights.map_or("none", |(role, _)| role_name(role))
    }

    /// The name of the origin of its calls.
    pub(crate) fn origin_name(&self) -> &'static str {
        self.rights.map_or("unknown", |(_, origin)| origin.as_str())
    }
}

impl From<&Peer> for host::Peer {
    fn from(peer: &Peer) -> Self {
        Self {
            uid: peer.uid,
            gid: peer.gid,
            pid: peer.pid,
            role: peer.role_name().to_owned(),
            origin: peer.origin_name().to_owned(),
        }
    }
}

/// The name of a role, as in the configuration.
pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Call => "call",
        Role::Operate => "operate",
        Role::Admin => "admin",
    }
}
