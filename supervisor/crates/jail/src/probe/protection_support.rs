//! How this machine supports one protection.

use crate::report::Status;

/// How this machine supports one protection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectionSupport {
    /// The stable word, as in a program's [`Report`](crate::Report).
    pub name: &'static str,
    /// Whether it can be provided. With a [`Status::Missing`], `sandbox.mode: enforce` refuses to start
    /// plugins.
    pub status: Status,
    /// What provides it: "Landlock ABI 7".
    pub provided_by: String,
    /// How to get what is missing; empty if nothing is, or nothing helps.
    pub remedy: String,
}

impl ProtectionSupport {
    /// What provides it, what stands in for it, or why it is missing.
    pub fn detail(&self) -> &str {
        match &self.status {
            Status::Enforced => &self.provided_by,
            Status::StandIn(text) | Status::Missing(text) => text,
        }
    }
}
