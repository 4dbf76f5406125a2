//! The stage's report: for each protection, whether it is in force.

use serde::{Deserialize, Serialize};

/// One protection and whether it is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// A stable word: `own-uid`, `no-new-privs`, `rlimits`, `process-tree`, …
    pub name: String,
    /// Whether it is in force.
    pub status: Status,
}

/// Whether a protection is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It is in force.
    Enforced,
    /// A weaker stand-in is in force; the text says which and why.
    StandIn(String),
    /// It is not in force; the text says why and how to get it.
    Missing(String),
}

/// All protections of one started program.
pub type Report = Vec<Protection>;

/// The program has a uid and gid that nothing else on the machine has, and no supplementary groups.
pub(crate) const OWN_UID: &str = "own-uid";
/// It cannot gain a capability, whatever it executes.
pub(crate) const BOUNDING_SET: &str = "bounding-set";
/// It holds no capability.
pub(crate) const CAPABILITIES: &str = "capabilities";
/// Set-uid files and file capabilities give it nothing.
pub(crate) const NO_NEW_PRIVS: &str = "no-new-privs";
/// Open files, file size, locked memory, data, core dumps.
pub(crate) const RLIMITS: &str = "rlimits";
/// How many processes and threads it may have.
pub(crate) const PROCESS_COUNT: &str = "process-count";
/// Nothing it started outlives it or its supervisor.
pub(crate) const PROCESS_TREE: &str = "process-tree";

/// It has its own process numbers, mounts, IPC, host name and cgroup view.
pub(crate) const NAMESPACES: &str = "namespaces";
/// It sees a private root and nothing else of the host's files.
pub(crate) const FILESYSTEM: &str = "filesystem";
/// What it may do with the files that it sees, enforced once more by Landlock.
pub(crate) const LANDLOCK: &str = "landlock";
/// It reaches the network that it was given, and nothing beyond.
pub(crate) const NETWORK: &str = "network";
/// It may make the system calls of its profile, and no others.
pub(crate) const SYSTEM_CALLS: &str = "system-calls";
/// Memory and processes of its whole tree together are bounded.
pub(crate) const MEMORY_GROUP: &str = "memory-group";
/// Others get their share of the cores.
pub(crate) const CPU_SHARE: &str = "cpu-share";
/// Keys that others put into a keyring are out of its reach.
pub(crate) const KEYRING: &str = "keyring";

impl Protection {
    pub(crate) fn new(name: &str, status: Status) -> Self {
        Self { name: name.to_owned(), status }
    }
}
