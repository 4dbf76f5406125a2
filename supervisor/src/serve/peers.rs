//! Classifies peers: from kernel credentials to configured rights.

use std::ffi::CString;
use std::sync::Arc;

use arc_swap::ArcSwap;
use nix::unistd::{Gid, Uid, User, getgrouplist};
use talon_plugin::Registry;

use super::process_tree;
use crate::admin::AdmissionPolicy;
use crate::config::PeerPolicy;
use crate::host::is_doctor;
use crate::peer::Peer;
use crate::socket::PeerClassifier;

/// Classifies peers by the policy at the time they connect.
///
/// The kernel reports a peer's uid and primary group. Its supplementary groups are those that the user
/// database assigns to that uid (a process cannot add to them), read when it connects. Descendants of a
/// monitor that `registry` has inherited count as plugins, as our own descendants do.
pub(super) fn peer_classifier(policy: Arc<ArcSwap<PeerPolicy>>, registry: Registry) -> PeerClassifier {
    let own_uid = Uid::effective().as_raw();
    Arc::new(move |credentials| {
        let (uid, gid) = (credentials.uid(), credentials.gid());
        // A plugin with a separate uid is unknown to the configuration; one with our uid would count as our
        // own user.
        if uid == own_uid && is_plugin(credentials.pid().unwrap_or_default(), &registry) {
            return None;
        }
        let policy = policy.load();
        let found = policy.classify_with(uid, gid, || groups_of(uid));
        let rights = found.map(|rights| (rights.role, rights.origin));
        let allowed = found.and_then(|rights| rights.allowed.clone());
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default();
        Some(Peer { uid, gid, pid, rights, allowed, service: None, delegation: None })
    })
}

/// Who may read health and metrics: root, this process's own user, and members of a group, but none of our
/// descendants.
pub(super) fn admission_policy(group: Option<u32>, registry: Registry) -> AdmissionPolicy {
    let own_uid = Uid::effective().as_raw();
    Arc::new(move |credentials| {
        let (uid, gid) = (credentials.uid(), credentials.gid());
        if uid == own_uid && is_plugin(credentials.pid().unwrap_or_default(), &registry) {
            return false;
        }
        let in_group = |group: u32| gid == group || groups_of(uid).contains(&group);
        uid == 0 || uid == own_uid || group.is_some_and(in_group)
    })
}

/// Whether a process of our user is a plugin, or was started by one: of what descends from us, only the doctor is none.
fn is_plugin(pid: i32, registry: &Registry) -> bool {
    let is_doctor = u32::try_from(pid).is_ok_and(is_doctor);
    !is_doctor && process_tree::is_ours(pid, &registry.adopted_monitors())
}

fn groups_of(uid: u32) -> Vec<u32> {
    let Ok(Some(user)) = User::from_uid(Uid::from_raw(uid)) else { return Vec::new() };
    let Ok(name) = CString::new(user.name) else { return Vec::new() };
    let groups = getgrouplist(&name, Gid::from_raw(user.gid.as_raw())).unwrap_or_default();
    groups.into_iter().map(Gid::as_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_in_its_own_group_and_a_stranger_in_none() {
        assert!(groups_of(0).contains(&0));
        assert!(groups_of(u32::MAX - 7).is_empty());
    }
}
