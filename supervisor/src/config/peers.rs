//! The rights of peers by uid and groups.

use std::cell::LazyCell;
use std::io;
use std::sync::Arc;

use nix::unistd::{Group, User};
use talon_guard::Grant;
use talon_plugin_config::ActionPattern;
use talon_plugin_config::name::RESERVED_NAME;

use super::types::{Config, Host, Origin, Peer, Role};

/// Determines the role and origin of peers on `host.sock`.
///
/// The first matching entry decides: those of `host.peers` in their order, then root and our own user (admin,
/// person), then members of `host.group` (call, person). All others have no role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerPolicy {
    entries: Vec<(Principal, Rights)>,
}

/// The rights of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// The requests that it may send.
    pub role: Role,
    /// The origin of its calls.
    pub origin: talon_guard::Origin,
    /// The actions that it may call; `None` means all.
    pub allowed: Option<Arc<AllowedActions>>,
}

/// The actions that a peer may call. The supervisor's own are always included: they return what that peer
/// received before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedActions(Vec<ActionPattern>);

impl AllowedActions {
    /// Parses patterns. An invalid one grants nothing; `load` has reported it.
    pub(crate) fn new(patterns: &[String]) -> Self {
        Self(patterns.iter().filter_map(|pattern| pattern.parse().ok()).collect())
    }
}

impl Grant for AllowedActions {
    fn covers(&self, plugin: &str, action: &str) -> bool {
        plugin == RESERVED_NAME || self.0.iter().any(|pattern| pattern.matches(plugin, action))
    }

    fn covers_any_action(&self, plugin: &str) -> bool {
        plugin == RESERVED_NAME || self.0.iter().any(|pattern| pattern.matches_plugin(plugin))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Principal {
    User(u32),
    Group(u32),
}

impl PeerPolicy {
    /// The policy of a configuration, for a supervisor that runs as `own_uid`. Unknown user and group names
    /// match no peer; `load` has reported them.
    #[must_use]
    pub fn new(host: &Host, own_uid: u32) -> Self {
        let rights = |role, origin: Origin| Rights { role, origin: origin.into(), allowed: None };
        let named = host.peers.iter().filter_map(|peer| {
            let allowed = peer.allow.as_deref().map(|patterns| Arc::new(AllowedActions::new(patterns)));
            Some((principal(peer)?, Rights { allowed, ..rights(peer.role, peer.origin) }))
        });
        let administrators =
            [0, own_uid].map(|uid| (Principal::User(uid), rights(Role::Admin, Origin::Person)));
        let group = host.group.as_deref().and_then(gid_of);
        let callers = group.map(|gid| (Principal::Group(gid), rights(Role::Call, Origin::Person)));
        Self { entries: named.chain(administrators).chain(callers).collect() }
    }

    /// The rights of a peer with this uid, primary group and supplementary groups. `None`: it is refused.
    #[must_use]
    pub fn classify(&self, uid: u32, gid: u32, groups: &[u32]) -> Option<&Rights> {
        self.classify_with(uid, gid, || groups.to_vec())
    }

    /// The same; the supplementary groups are looked up only if an entry before the one that decides names a
    /// group. The lookup may take long, and all other peers wait meanwhile.
    #[must_use]
    pub fn classify_with(&self, uid: u32, gid: u32, groups: impl FnOnce() -> Vec<u32>) -> Option<&Rights> {
        let groups = LazyCell::new(groups);
        let fits = |who: &Principal| match *who {
            Principal::User(wanted) => wanted == uid,
            Principal::Group(wanted) => wanted == gid || groups.contains(&wanted),
        };
        self.entries.iter().find(|(who, _)| fits(who)).map(|(_, rights)| rights)
    }
}

impl Config {
    /// The policy for peers of this supervisor.
    #[must_use]
    pub fn peers(&self) -> PeerPolicy {
        PeerPolicy::new(&self.host, nix::unistd::Uid::effective().as_raw())
    }

    /// The uids and gids of `host.peers`, without those that may connect anyway: root and this process's own
    /// user.
    #[must_use]
    pub fn named_peers(&self) -> (Vec<u32>, Vec<u32>) {
        let own = nix::unistd::Uid::effective().as_raw();
        let (mut users, mut groups) = (Vec::new(), Vec::new());
        for named in self.host.peers.iter().filter_map(principal) {
            match named {
                Principal::User(uid) if uid == 0 || uid == own => {}
                Principal::User(uid) => users.push(uid),
                Principal::Group(gid) => groups.push(gid),
            }
        }
        (users, groups)
    }

    /// The group that owns `host.sock`, if one is configured and known to the system.
    #[must_use]
    pub fn host_gid(&self) -> Option<u32> {
        self.host.group.as_deref().and_then(gid_of)
    }

    /// The group that owns `admin.sock`: its own, or else that of `host.sock`.
    #[must_use]
    pub fn admin_gid(&self) -> Option<u32> {
        self.admin.group.as_deref().map_or_else(|| self.host_gid(), gid_of)
    }
}

fn principal(peer: &Peer) -> Option<Principal> {
    let by_user = peer.uid.or_else(|| peer.user.as_deref().and_then(uid_of)).map(Principal::User);
    by_user.or_else(|| peer.gid.or_else(|| peer.group.as_deref().and_then(gid_of)).map(Principal::Group))
}

/// The uid of a user, by name.
pub(crate) fn uid_of(name: &str) -> Option<u32> {
    User::from_name(name).ok().flatten().map(|user| user.uid.as_raw())
}

/// The name of a user, by uid; `None` if the system knows of no such user.
///
/// # Errors
/// When the lookup failed, so that it is unknown whether there is one.
pub(crate) fn name_of(uid: u32) -> io::Result<Option<String>> {
    Ok(User::from_uid(nix::unistd::Uid::from_raw(uid))?.map(|user| user.name))
}

/// The gid of a group, by name.
pub(crate) fn gid_of(name: &str) -> Option<u32> {
    Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 4242;

    fn peer() -> Peer {
        Peer {
            user: None,
            uid: None,
            group: None,
            gid: None,
            role: Role::Call,
            origin: Origin::Program,
            allow: None,
        }
    }

    fn classify(
        policy: &PeerPolicy,
        uid: u32,
        gid: u32,
        groups: &[u32],
    ) -> Option<(Role, talon_guard::Origin)> {
        policy.classify(uid, gid, groups).map(|rights| (rights.role, rights.origin))
    }

    // Promises: HOST-3
    #[test]
    fn without_a_word_only_root_and_our_own_user_may() {
        let policy = PeerPolicy::new(&Host::default(), OWN);
        let admin = Some((Role::Admin, talon_guard::Origin::Person));
        assert_eq!(classify(&policy, 0, 0, &[]), admin);
        assert_eq!(classify(&policy, OWN, 1, &[]), admin);
        assert_eq!(classify(&policy, 1000, 1000, &[0, OWN]), None);
    }

    // Promises: HOST-3
    #[test]
    fn members_of_the_group_call_as_persons() {
        let host = Host { group: Some("root".to_owned()), peers: Vec::new(), ..Host::default() };
        let policy = PeerPolicy::new(&host, OWN);
        let caller = Some((Role::Call, talon_guard::Origin::Person));
        assert_eq!(classify(&policy, 1000, 0, &[]), caller);
        assert_eq!(classify(&policy, 1000, 1000, &[7, 0]), caller);
        assert_eq!(classify(&policy, 1000, 1000, &[7]), None);
    }

    // Promises: GUARD-34
    #[test]
    fn the_first_entry_that_fits_decides() {
        let agent = Peer { uid: Some(1001), origin: Origin::Model, ..peer() };
        let operators = Peer { gid: Some(50), role: Role::Operate, ..peer() };
        let host = Host { group: Some("root".to_owned()), peers: vec![agent, operators], ..Host::default() };
        let policy = PeerPolicy::new(&host, OWN);
        assert_eq!(classify(&policy, 1001, 0, &[50]), Some((Role::Call, talon_guard::Origin::Model)));
        assert_eq!(classify(&policy, 1002, 0, &[50]), Some((Role::Operate, talon_guard::Origin::Program)));
    }

    #[test]
    fn a_name_that_nobody_has_fits_nobody() {
        let host = Host {
            group: Some("no-such-group-here".to_owned()),
            peers: vec![Peer { user: Some("no-such-user-here".to_owned()), role: Role::Admin, ..peer() }],
            ..Host::default()
        };
        let policy = PeerPolicy::new(&host, OWN);
        assert_eq!(classify(&policy, 1000, 1000, &[]), None);
    }

    #[test]
    fn what_an_entry_allows_is_all_its_peer_may_call() {
        let allow = Some(vec!["git__status".to_owned(), "fs".to_owned(), "no pattern".to_owned()]);
        let host =
            Host { group: None, peers: vec![Peer { uid: Some(1001), allow, ..peer() }], ..Host::default() };
        let policy = PeerPolicy::new(&host, OWN);
        let allowed = policy.classify(1001, 1, &[]).unwrap().allowed.clone().unwrap();
        for (plugin, action, covered) in [
            ("git", "status", true),
            ("git", "push", false),
            ("fs", "anything", true),
            ("web", "fetch", false),
            ("talon", "read_more", true),
        ] {
            assert_eq!(allowed.covers(plugin, action), covered, "{plugin}.{action}");
        }
        assert!(
            allowed.covers_any_action("git")
                && allowed.covers_any_action("talon")
                && !allowed.covers_any_action("web")
        );
        assert_eq!(policy.classify(0, 0, &[]).unwrap().allowed, None);
    }
}
