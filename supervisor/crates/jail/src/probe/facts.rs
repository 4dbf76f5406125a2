//! Facts about this machine and about what this process may do on it.

use std::fs;
use std::path::Path;

use rustix::process::{PidfdFlags, geteuid, getpid, pidfd_open};
use rustix::system::uname;
use rustix::thread::{CapabilitySet, capabilities};

use super::feature_probe::{self, FeatureProbe};
use crate::group;
use crate::image::Stage;
use crate::spec::Limits;
use crate::stage::limits;
use crate::sys;

/// Everything that determines the tier and the protections. Gathered once, so that a test can make up any machine.
#[derive(Debug, Clone)]
pub(crate) struct MachineFacts {
    pub(super) uid: u32,
    /// The capabilities that this process can use now.
    pub(super) held: CapabilitySet,
    /// As in `uname -r`.
    pub(super) kernel: String,
    /// Landlock's version, if it was tried successfully; otherwise why not.
    pub(super) landlock: Result<u32, String>,
    /// The actions that a seccomp filter may return: `errno`, `kill_process`, `user_notif`, …
    pub(super) actions: Vec<String>,
    /// The results of the feature probe; why it did not run otherwise.
    pub(super) features: Result<FeatureProbe, String>,
    /// The sysctl that forbids user namespaces to ordinary users, with the command that changes it.
    pub(super) userns_switch: Option<&'static str>,
    /// The controllers that our own part of the cgroup tree can delegate to programs.
    pub(super) cgroup_controllers: Result<Vec<&'static str>, CgroupsMissing>,
    /// Whether pidfds work; otherwise why not.
    pub(super) pidfd: Result<(), String>,
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
        let lowered = limits::requested(&limits).filter_map(|(name, resource, wanted)| {
            let given = limits::effective(resource, wanted);
            (given < wanted).then(|| format!("{name} {given} instead of {wanted}"))
        });
        Self {
            uid: geteuid().as_raw(),
            held: capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective),
            kernel: uname().release().to_string_lossy().into_owned(),
            landlock: landlock_abi(&features),
            actions: words("/proc/sys/kernel/seccomp/actions_avail"),
            features,
            userns_switch: disabled_userns_switch(&|path| fs::read_to_string(path).ok()),
            cgroup_controllers: group::available_controllers().map_err(|lacking| {
                let (why, remedy) = lacking.reason_and_fix();
                CgroupsMissing { why: why.into(), remedy: remedy.into() }
            }),
            pidfd: pidfd_open(getpid(), PidfdFlags::empty()).map(drop).map_err(|errno| errno.to_string()),
            lowered: lowered.collect(),
        }
    }
}

/// The kernel's Landlock version counts only if a rule set could be enforced.
fn landlock_abi(trial: &Result<FeatureProbe, String>) -> Result<u32, String> {
    let abi = sys::landlock_abi().map_err(|error| error.to_string())?;
    if let Ok(trial) = trial {
        trial.landlock.clone()?;
    }
    u32::try_from(abi).map_err(|error| error.to_string())
}

fn words(path: &str) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Distributions have three sysctls for user namespaces. Read only if making one failed.
fn disabled_userns_switch(read: &dyn Fn(&str) -> Option<String>) -> Option<&'static str> {
    let is = |path: &str, value: &str| read(path).is_some_and(|text| text.trim() == value);
    if is("/proc/sys/user/max_user_namespaces", "0") {
        Some("sysctl user.max_user_namespaces=10000")
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        Some("sysctl kernel.unprivileged_userns_clone=1")
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        Some("sysctl kernel.apparmor_restrict_unprivileged_userns=0")
    } else if !Path::new("/proc/self/ns/user").exists() {
        Some("boot a kernel with CONFIG_USER_NS")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_that_is_off_is_named() {
        let with = |set: &'static str, value: &'static str| {
            disabled_userns_switch(&move |path| path.ends_with(set).then(|| format!("{value}\n")))
        };
        assert!(with("max_user_namespaces", "0").is_some_and(|advice| advice.contains("=10000")));
        assert!(with("unprivileged_userns_clone", "0").is_some_and(|advice| advice.ends_with("clone=1")));
        assert!(with("apparmor_restrict_unprivileged_userns", "1").is_some_and(|s| s.ends_with("userns=0")));
        assert_eq!(with("max_user_namespaces", "96365"), None);
    }
}
