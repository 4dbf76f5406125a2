//! The peer of a connection, from kernel credentials.

use std::fmt;
use std::sync::Arc;

use talon_guard::Origin;
use talon_listen::delegation::{DelegatedOrigin, DelegatedRole, Delegation};
use talon_proto::host;
use tonic::Status;
use tonic::metadata::MetadataMap;

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
    /// For whom a request is, on the connection of a service that makes requests for others; `None` on all other connections.
    pub delegation: Option<Arc<Delegation>>,
}

/// A service of the supervisor's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnService {
    /// `talon-agent`. It must state for whom it calls, and that statement is trusted.
    Agent,
    /// `talon-state`. It calls the storage backend, and nothing else.
    State,
    /// `talon-gateway`. Each of its requests says for whom it is, within the ceiling of its connection.
    Gateway,
}

/// By what a request's limits, pages and fingerprints are kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// A user of this machine.
    Uid(u32),
    /// Somebody for whom the gateway asks.
    Subject(Arc<str>),
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uid(uid) => write!(f, "{uid}"),
            Self::Subject(subject) => f.write_str(subject),
        }
    }
}

impl Peer {
    /// Whether it is the agent.
    #[must_use]
    pub fn is_agent(&self) -> bool {
        self.service == Some(OwnService::Agent)
    }

    /// Whether it is the gateway.
    #[must_use]
    pub fn is_gateway(&self) -> bool {
        self.service == Some(OwnService::Gateway)
    }

    /// By what its limits, pages and fingerprints are kept.
    #[must_use]
    pub fn principal(&self) -> Principal {
        match &self.delegation {
            Some(delegation) => Principal::Subject(Arc::clone(&delegation.subject)),
            None => Principal::Uid(self.uid),
        }
    }

    /// The peer of one request of this connection: on the gateway's the one that the metadata names.
    ///
    /// # Errors
    /// `Unauthenticated` if the gateway does not say for whom it asks.
    pub(crate) fn of_request(&self, metadata: &MetadataMap) -> Result<Self, Status> {
        let (true, Some((ceiling, _))) = (self.is_gateway(), self.rights) else { return Ok(self.clone()) };
        let ceiling = match ceiling {
            Role::Call => DelegatedRole::Call,
            Role::Operate => DelegatedRole::Operate,
            Role::Admin => DelegatedRole::Admin,
        };
        let delegation = Delegation::of(metadata, ceiling)?;
        let role = match delegation.role {
            DelegatedRole::Call => Role::Call,
            DelegatedRole::Operate => Role::Operate,
            DelegatedRole::Admin => Role::Admin,
        };
        let origin = match delegation.origin {
            DelegatedOrigin::Person => Origin::Person,
            DelegatedOrigin::Model => Origin::Model,
            DelegatedOrigin::Program => Origin::Program,
        };
        Ok(Self { rights: Some((role, origin)), delegation: Some(Arc::new(delegation)), ..self.clone() })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> MetadataMap {
        let mut metadata = MetadataMap::new();
        for (name, value) in [
            ("talon-subject", "gw:telegram/42"),
            ("talon-channel", "telegram"),
            ("talon-role", "admin"),
            ("talon-origin", "program"),
        ] {
            metadata.insert(name, value.parse().unwrap());
        }
        metadata
    }

    fn peer(service: Option<OwnService>) -> Peer {
        let rights = Some((Role::Operate, Origin::Person));
        Peer { uid: 7, gid: 7, pid: 7, rights, allowed: None, service, delegation: None }
    }

    // Promises: GW-11, GW-12, GW-13
    #[test]
    fn only_the_gateway_asks_for_others_and_within_its_ceiling() {
        let gateway = peer(Some(OwnService::Gateway));
        let asked = gateway.of_request(&metadata()).unwrap();
        assert_eq!(asked.rights, Some((Role::Operate, Origin::Program)));
        assert_eq!(asked.principal().to_string(), "gw:telegram/42");
        assert_eq!(gateway.of_request(&MetadataMap::new()).unwrap_err().code(), tonic::Code::Unauthenticated);
        for service in [None, Some(OwnService::Agent), Some(OwnService::State)] {
            let other = peer(service);
            assert_eq!(other.of_request(&metadata()).unwrap(), other);
            assert_eq!(other.principal(), Principal::Uid(7));
        }
    }
}
