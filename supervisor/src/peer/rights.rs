//! The rights of a request: the peer of its connection and the role that it needs.

use talon_guard::Grant as _;
use talon_guard::Origin;
use talon_listen::LogThrottle;
use tonic::codegen::http;
use tonic::{Request, Status};

use super::credentials::{Peer, role_name};
use crate::config::{AllowedActions, Role};

static DENIED: LogThrottle = LogThrottle::new();

/// A peer that has the required role, with the origin of its calls.
pub(crate) struct AuthorizedPeer {
    pub(crate) peer: Peer,
    pub(crate) origin: Origin,
}

impl AuthorizedPeer {
    /// A peer sees only what it may call, unless it operates plugins.
    pub(crate) fn visibility(&self) -> Visibility<'_> {
        let operates = self.peer.rights.is_some_and(|(role, _)| role >= Role::Operate);
        Visibility { only: self.peer.allowed.as_deref().filter(|_| !operates), is_operator: operates }
    }
}

/// Which plugins and actions a peer sees.
#[derive(Clone, Copy)]
pub(crate) struct Visibility<'p> {
    only: Option<&'p AllowedActions>,
    /// Whether it decides about plugins, and so has to see them.
    pub(crate) is_operator: bool,
}

impl Visibility<'_> {
    /// Whether it sees this plugin.
    pub(crate) fn can_see_plugin(&self, name: &str) -> bool {
        self.only.is_none_or(|allowed| allowed.covers_any_action(name))
    }

    /// Whether it sees this action.
    pub(crate) fn can_see_action(&self, plugin: &str, action: &str) -> bool {
        self.only.is_none_or(|allowed| allowed.covers(plugin, action))
    }

    /// Whether it sees everything.
    pub(crate) fn sees_all(&self) -> bool {
        self.only.is_none()
    }
}

/// Accepts a request if its peer has at least this role. Otherwise the error states the required role and the
/// peer's identity.
pub(crate) fn require<T>(request: &Request<T>, needed: Role) -> Result<AuthorizedPeer, Status> {
    let peer = request.extensions().get::<Peer>();
    check(peer, needed)
}

/// Like [`require`], for a request whose message was not read yet.
pub(crate) fn authorize(extensions: &http::Extensions, needed: Role) -> Result<AuthorizedPeer, Status> {
    check(extensions.get::<Peer>(), needed)
}

fn check(peer: Option<&Peer>, needed: Role) -> Result<AuthorizedPeer, Status> {
    // Every connection carries its peer; a request without one did not come through `host.sock`.
    let peer = peer.ok_or_else(|| Status::internal("a request without a peer"))?;
    match peer.rights {
        Some((role, origin)) if role >= needed => Ok(AuthorizedPeer { peer: peer.clone(), origin }),
        _ => {
            if let Some(unsaid) = DENIED.permit() {
                tracing::warn!(
                    peer.uid,
                    peer.gid,
                    peer.pid,
                    role = peer.role_name(),
                    unsaid,
                    "a request was denied"
                );
            }
            Err(Status::permission_denied(format!(
                "this needs the role {}; you are seen as uid {}, gid {}, which has {}: ask the operator for an entry \
                 under host.peers",
                role_name(needed),
                peer.uid,
                peer.gid,
                peer.rights.map_or("no role".to_owned(), |(role, _)| format!("the role {}", role_name(role))),
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(rights: Option<(Role, Origin)>) -> Request<()> {
        let mut request = Request::new(());
        request.extensions_mut().insert(Peer {
            uid: 1000,
            gid: 1001,
            pid: 7,
            rights,
            allowed: None,
            service: None,
            delegation: None,
        });
        request
    }

    // Promises: HOST-4
    #[test]
    fn a_higher_role_includes_the_lower_ones() {
        let admin = request(Some((Role::Admin, Origin::Person)));
        assert!([Role::Call, Role::Operate, Role::Admin].iter().all(|role| require(&admin, *role).is_ok()));
        let caller = request(Some((Role::Call, Origin::Model)));
        assert_eq!(require(&caller, Role::Call).ok().unwrap().origin, Origin::Model);
        assert!(require(&caller, Role::Operate).is_err());
    }

    // Promises: HOST-4
    #[test]
    fn a_denial_says_what_is_needed_and_who_asked() {
        for (rights, said) in [(None, "no role"), (Some((Role::Call, Origin::Person)), "the role call")] {
            let status = require(&request(rights), Role::Operate).err().unwrap();
            assert_eq!(status.code(), tonic::Code::PermissionDenied);
            for part in ["needs the role operate", "uid 1000", said, "host.peers"] {
                assert!(status.message().contains(part), "{}", status.message());
            }
        }
    }

    #[test]
    fn a_request_from_elsewhere_is_no_request() {
        assert_eq!(require(&Request::new(()), Role::Call).err().unwrap().code(), tonic::Code::Internal);
    }
}
