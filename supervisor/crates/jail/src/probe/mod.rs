//! Finds out which protections this machine supports.
//!
//! | protection | how it is determined |
//! |---|---|
//! | own uid, capabilities | the capabilities that this process holds |
//! | namespaces, private root, network | tried in a child, see [`trial`]; the sysctls only explain a failure |
//! | Landlock, seccomp | tried in the same child, since a filter or a container may block what the kernel has |
//! | cgroup | the controllers of our own part of the tree, and whether we may write there |
//! | limits | this process's own hard limits |
//!
//! All of this is gathered in [`MachineFacts`]; the tier and the protections are derived from these alone.

mod facts;
mod feature_probe;
mod protection_support;
mod protections;
mod tier;

use self::facts::MachineFacts;
use crate::image::Stage;
use crate::report::{Protection, Report, Status};

pub(crate) use self::feature_probe::{FEATURE_PROBE_NAME, become_feature_probe};
pub use self::protection_support::ProtectionSupport;
pub use self::tier::{Tier, can_assign_uids};

/// The protections that this machine supports for programs that this process starts.
#[derive(Debug, Clone)]
pub struct Machine {
    /// A summary in one word.
    pub tier: Tier,
    /// The kernel's release, as in `uname -r`.
    pub kernel: String,
    /// Each protection, in the order and by the names of a program's [`Report`].
    pub protections: Vec<ProtectionSupport>,
    /// Whether a program's TCP ports can be limited to a list.
    pub limits_ports: bool,
}

/// Probes this machine; what only an attempt can show is tried in a child of `stage`. Blocks for some
/// milliseconds, and for five seconds on a machine that is stuck. Changes nothing and leaves nothing behind.
pub fn probe(stage: &Stage) -> Machine {
    Machine::from_facts(&MachineFacts::gather(stage))
}

impl Machine {
    fn from_facts(facts: &MachineFacts) -> Self {
        let tier = Tier::of(facts);
        let limits_ports =
            facts.landlock.as_ref().is_ok_and(|abi| *abi >= crate::network::PORTS_LANDLOCK_ABI);
        Self {
            tier,
            kernel: facts.kernel.clone(),
            protections: protections::for_machine(facts, tier),
            limits_ports,
        }
    }

    /// Whether `sandbox.mode: enforce` starts plugins here.
    pub fn accepted_by_enforce(&self) -> bool {
        self.tier.accepted_by_enforce() && self.missing().next().is_none()
    }

    /// The missing protections, because of which `sandbox.mode: enforce` refuses a plugin.
    pub fn missing(&self) -> impl Iterator<Item = &ProtectionSupport> {
        self.protections.iter().filter(|line| matches!(line.status, Status::Missing(_)))
    }

    /// The same as a program's own report, each reason with its remedy.
    pub fn report(&self) -> Report {
        let with_remedy = |line: &ProtectionSupport, text: &str| match line.remedy.as_str() {
            "" => text.to_owned(),
            remedy => format!("{text} ({remedy})"),
        };
        let line = |line: &ProtectionSupport| {
            let status = match &line.status {
                Status::Enforced => Status::Enforced,
                Status::StandIn(how) => Status::StandIn(with_remedy(line, how)),
                Status::Missing(why) => Status::Missing(with_remedy(line, why)),
            };
            Protection::new(line.name, status)
        };
        self.protections.iter().map(line).collect()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
