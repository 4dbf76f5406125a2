//! How a stage was made, and in which namespaces.

use rustix::process::{getegid, geteuid};

use super::step_error::StepError;

/// The namespaces for the stage's next child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeldNamespaces {
    /// Whether a user namespace is among them. Then the program has its own capabilities and limits, and the
    /// supervisor's uid.
    pub(super) user: bool,
}

/// A uid and a gid.
#[derive(Debug, Clone, Copy)]
pub(super) struct UserIds(pub(super) u32, pub(super) u32);

impl UserIds {
    /// Our own ids, read before there is a user namespace.
    pub(super) fn own() -> Self {
        Self(geteuid().as_raw(), getegid().as_raw())
    }
}

/// How a stage was made in its namespaces.
#[derive(Debug)]
pub(super) struct NamespaceOrigin {
    pub(super) namespaces: HeldNamespaces,
    /// The ids of the process that cloned it: inside it has none until they are mapped.
    pub(super) ids: UserIds,
    /// Whether the mount namespace is still to be made.
    pub(super) ahead: bool,
}

/// How a stage was made.
#[derive(Debug, Default)]
pub(super) enum StageOrigin {
    /// Without namespaces, since none were requested.
    #[default]
    HostNamespaces,
    /// As the first process of new namespaces.
    NewNamespaces(NamespaceOrigin),
    /// Without namespaces, for this reason.
    Refused(StepError),
}
