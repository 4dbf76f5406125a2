//! What holds: the stage's own account, one line a protection.

use serde::{Deserialize, Serialize};

/// One protection and whether it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// A stable word: `own-uid`, `no-new-privs`, `rlimits`, `process-tree`, …
    pub name: String,
    /// Whether it holds.
    pub status: Status,
}

/// Whether a protection holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It holds.
    Enforced,
    /// A weaker stand-in holds; the text says which and why.
    StandIn(String),
    /// It does not hold; the text says why and how to get it.
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

/// The isolation that this version does not build at all, so that no report deceives by leaving it out.
pub(crate) const NOT_BUILT: &[(&str, &str)] = &[
    ("filesystem", "it sees every file that its uid may see"),
    ("network", "it shares the host's network"),
    ("system-calls", "no filter"),
    ("memory-group", "memory is limited for each process, not for all of them together"),
    ("namespaces", "it sees the host's processes and shares its IPC"),
];

/// How the texts of [`NOT_BUILT`] begin.
pub(crate) const NOT_BUILT_TEXT: &str = "not built into this version";

impl Protection {
    pub(crate) fn new(name: &str, status: Status) -> Self {
        Self { name: name.to_owned(), status }
    }
}

/// The lines of a started program that say what it has not got in this version.
pub(crate) fn not_built() -> impl Iterator<Item = Protection> {
    NOT_BUILT
        .iter()
        .map(|(name, means)| Protection::new(name, Status::Missing(format!("{NOT_BUILT_TEXT}: {means}"))))
}
