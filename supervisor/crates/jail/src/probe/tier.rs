//! Summarizes the protections of a machine in one word.

use rustix::thread::{CapabilitySet, capabilities};

use super::facts::MachineFacts;

/// The capabilities that a supervisor needs to give each plugin a private uid, and files owned by that uid.
pub(super) const OWN_UID_CAPABILITIES: CapabilitySet =
    CapabilitySet::SETUID.union(CapabilitySet::SETGID).union(CapabilitySet::KILL).union(CapabilitySet::CHOWN);

/// Whether this process may give each program its own uid and namespaces, by the capabilities in effect now.
/// Root may, and so may an ordinary user whose service manager grants just these capabilities.
pub fn can_assign_uids() -> bool {
    let needed = OWN_UID_CAPABILITIES | CapabilitySet::SYS_ADMIN;
    capabilities(None).is_ok_and(|held| held.effective.contains(needed))
}

/// The level of protection on this machine, from everything to nothing.
///
/// `sandbox.mode: enforce` accepts the first three: what they lack has a stand-in, which is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Root, or its capabilities, and a cgroup v2 tree of our own with its controllers.
    RootCgroup,
    /// Root without the controllers: limits for each process and a memory watch stand in.
    Root,
    /// An ordinary user that may make user namespaces: plugins share the supervisor's uid.
    UserNamespaces,
    /// No namespaces: only restrictions that a process can put on itself.
    Bare,
    /// Neither a file filter nor a system call filter.
    None,
}

impl Tier {
    /// The stable word: `root+cgroup`, `root`, `user-namespaces`, `bare`, `none`.
    pub fn name(self) -> &'static str {
        match self {
            Self::RootCgroup => "root+cgroup",
            Self::Root => "root",
            Self::UserNamespaces => "user-namespaces",
            Self::Bare => "bare",
            Self::None => "none",
        }
    }

    /// A description in one sentence.
    pub fn describe(self) -> &'static str {
        match self {
            Self::RootCgroup => {
                "every plugin gets a uid, namespaces, a private root, filters and a cgroup of its own"
            }
            Self::Root => {
                "every plugin gets a uid, namespaces, a private root and filters of its own; limits for each \
                 process and a watch on memory stand in for the cgroup"
            }
            Self::UserNamespaces => {
                "every plugin gets namespaces, a private root and filters of its own, but all share the \
                 supervisor's uid"
            }
            Self::Bare => {
                "filters and limits only: plugins see the host's files and processes as far as their uid may"
            }
            Self::None => "limits for each process only: nothing keeps plugins from each other or the host",
        }
    }

    /// Whether `sandbox.mode: enforce` starts plugins here.
    pub fn accepted_by_enforce(self) -> bool {
        self <= Self::UserNamespaces
    }

    /// Determined by the facts alone, so that tests can cover every machine.
    pub(super) fn of(facts: &MachineFacts) -> Self {
        let trial = facts.features.as_ref().ok();
        match trial.filter(|trial| trial.isolates()) {
            Some(trial) if !trial.in_user_namespace && facts.held.contains(OWN_UID_CAPABILITIES) => {
                if facts.cgroup_controllers.is_ok() { Self::RootCgroup } else { Self::Root }
            }
            // Root that may make namespaces and may not change its uid isolates no worse than an ordinary
            // user.
            Some(_) => Self::UserNamespaces,
            None if facts.landlock.is_ok() || trial.is_some_and(|trial| trial.filter.is_ok()) => Self::Bare,
            None => Self::None,
        }
    }
}
