//! Facts about this machine and about what this process may do on it.

use std::fs;
use std::path::Path;

use rustix::process::{PidfdFlags, geteuid, getpid, pidfd_open};
use rustix::system::uname;
use rustix::thread::{CapabilitySet, capabilities};

use super::feature_probe::{self, FeatureError, FeatureProbe};
use crate::group;
use crate::image::Stage;
use crate::spec::Limits;
use crate::stage::limits;
use crate::sys;
use crate::userns_switch::disabled_userns_switch;

/// Everything that determines the tier and the protections. Gathered once, so that a test can make up any
/// machine.
#[derive(Debug, Clone)]
pub(crate) struct MachineFacts {
    pub(super) uid: u32,
    /// The capabilities that this process can use now.
    pub(super) held: CapabilitySet,
    /// As in `uname -r`.
    pub(super) kernel: String,
    /// Landlock's version, if it was tried successfully; otherwise why not.
    pub(super) landlock: Result<u32, FeatureError>,
    /// The actions that a seccomp filter may return: `errno`, `kill_process`, `user_notif`, …
    pub(super) actions: Vec<String>,
    /// The results of the feature probe; why it did not run otherwise.
    pub(super) features: Result<FeatureProbe, FeatureError>,
    /// The sysctl that forbids user namespaces to ordinary users, with the command that changes it.
    pub(super) userns_switch: Option<&'static str>,
    /// The controllers that our own part of the cgroup tree can delegate to programs.
    pub(super) cgroup_controllers: Result<Vec<&'static str>, CgroupsMissing>,
    /// Whether pidfds work; otherwise why not.
    pub(super) pidfd: Result<(), FeatureError>,
    /// Limits that are lowered by this process's own hard limits.
    pub(super) lowered: Vec<String>,
}

/// Why there are no cgroups for programs.
#[derive(Debug, Clone)]
pub(super) struct CgroupsMissing {
    pub(super) why: String,
    pub(super) remedy: String,
}

impl MachineFacts {
    /// Gathers the facts, and runs the feature probe in a child. Changes nothing in this process.
    pub(super) fn gather(stage: &Stage) -> Self {
        let features = feature_probe::run(stage);
        let limits = Limits::default();
        let lowered = limits::requested(&limits).filter_map(|(name, resource, requested)| {
            let given = limits::effective(resource, requested);
            (given < requested).then(|| format!("{name} {given} instead of {requested}"))
        });
        Self {
            uid: geteuid().as_raw(),
            held: capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective),
            kernel: uname().release().to_string_lossy().into_owned(),
            landlock: landlock_abi(&features),
            actions: words("/proc/sys/kernel/seccomp/actions_avail"),
            features,
            userns_switch: user_namespace_advice(),
            cgroup_controllers: group::available_controllers().map_err(|lacking| {
                let (why, remedy) = lacking.reason_and_fix();
                CgroupsMissing { why: why.into(), remedy: remedy.into() }
            }),
            pidfd: pidfd_open(getpid(), PidfdFlags::empty()).map(drop).map_err(FeatureError::new),
            lowered: lowered.collect(),
        }
    }
}

/// The kernel's Landlock version counts only if a rule set could be enforced.
fn landlock_abi(trial: &Result<FeatureProbe, FeatureError>) -> Result<u32, FeatureError> {
    let abi = sys::landlock_abi().map_err(FeatureError::new)?;
    if let Ok(trial) = trial {
        trial.landlock.clone()?;
    }
    u32::try_from(abi).map_err(FeatureError::new)
}

fn words(path: &str) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// What forbids user namespaces to ordinary users here, with the way to change it.
fn user_namespace_advice() -> Option<&'static str> {
    let without =
        || (!Path::new("/proc/self/ns/user").exists()).then_some("boot a kernel with CONFIG_USER_NS");
    disabled_userns_switch(&|path| fs::read_to_string(path).ok()).or_else(without)
}
