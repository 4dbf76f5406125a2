//! What this machine can give.

use std::fs;
use std::path::Path;

use rustix::process::{PidfdFlags, getpid, pidfd_open};
use rustix::thread::{CapabilitySet, capabilities};

use crate::report::{
    BOUNDING_SET, CAPABILITIES, NO_NEW_PRIVS, NOT_BUILT_TEXT, OWN_UID, PROCESS_COUNT, PROCESS_TREE,
    Protection, RLIMITS, Report, Status,
};
use crate::spec::Limits;
use crate::stage::limits;
use crate::sys;

/// What this machine can give to a program that this process starts, for `talon doctor` and `talon status`. It
/// only looks: nothing is started or changed.
pub fn probe() -> Report {
    let held = capabilities(None).map(|sets| sets.effective).unwrap_or(CapabilitySet::empty());
    let change_uid = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::KILL;
    let own_uid = held.contains(change_uid);
    let missing = |text: &str| Status::Missing(text.to_owned());
    let stand_in = |text: &str| Status::StandIn(text.to_owned());
    let either = |holds: bool, otherwise: Status| if holds { Status::Enforced } else { otherwise };

    let lowered: Vec<_> = limits::wanted(&Limits::default())
        .filter(|(_, resource, wanted)| limits::given(*resource, *wanted) < *wanted)
        .map(|(name, resource, wanted)| {
            format!("{name} {} instead of {wanted}", limits::given(resource, wanted))
        })
        .collect();

    let mut report = Report::new();
    let mut line = |name: &str, status| report.push(Protection::new(name, status));
    line(
        OWN_UID,
        either(
            own_uid,
            missing(
                "plugins share the supervisor's uid (run as root, or with CAP_SETUID, CAP_SETGID and CAP_KILL)",
            ),
        ),
    );
    line(NO_NEW_PRIVS, Status::Enforced);
    line(CAPABILITIES, Status::Enforced);
    line(
        BOUNDING_SET,
        either(
            held.contains(CapabilitySet::SETPCAP),
            stand_in("kept without CAP_SETPCAP; no-new-privs keeps it from being of use"),
        ),
    );
    line(RLIMITS, limits::status(&lowered));
    line(PROCESS_COUNT, either(own_uid, Status::Missing(limits::uncounted())));
    line(
        PROCESS_TREE,
        match pidfd_open(getpid(), PidfdFlags::empty()) {
            Err(errno) => {
                Status::Missing(format!("no process descriptors: {errno} (Linux 5.9 or newer is needed)"))
            }
            Ok(_) => either(own_uid, stand_in("a plugin of the same uid could kill its monitor")),
        },
    );
    for (name, machine) in [
        ("namespaces", user_namespaces()),
        ("filesystem", landlock()),
        ("network", kernel_has("network namespaces", "/proc/self/ns/net")),
        ("system-calls", kernel_has("seccomp filters", "/proc/sys/kernel/seccomp/actions_avail")),
        ("memory-group", cgroup()),
    ] {
        line(name, Status::Missing(format!("{NOT_BUILT_TEXT}; {machine}")));
    }
    report
}

/// A feature that is there if a file is.
fn kernel_has(feature: &str, file: &str) -> String {
    let verb = if Path::new(file).exists() { "has" } else { "lacks" };
    format!("the kernel {verb} {feature}")
}

/// Whether an ordinary user may make user namespaces. Distributions have three switches for it.
fn user_namespaces() -> String {
    let setting = |path: &str| fs::read_to_string(path).ok().map(|value| value.trim().to_owned());
    let is = |path: &str, value: &str| setting(path).as_deref() == Some(value);
    if !Path::new("/proc/self/ns/user").exists() || is("/proc/sys/user/max_user_namespaces", "0") {
        "the kernel has no user namespaces".into()
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0")
        || is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1")
    {
        "the kernel keeps user namespaces for root".into()
    } else {
        "the kernel offers user namespaces".into()
    }
}

fn landlock() -> String {
    match sys::landlock_abi() {
        Ok(abi) => format!("the kernel has Landlock ABI {abi}"),
        Err(error) => format!("the kernel has no Landlock: {error}"),
    }
}

/// The part of the cgroup v2 tree that this process is in, and whether it may manage it.
fn cgroup() -> String {
    let root = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        .into_iter()
        .find(|root| Path::new(root).join("cgroup.controllers").exists());
    let Some(root) = root else { return "the machine has no cgroup v2".into() };
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let group = Path::new(root).join(own);
    let controllers = fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
    let lacking: Vec<_> = ["memory", "pids", "cpu"]
        .into_iter()
        .filter(|wanted| !controllers.split_ascii_whitespace().any(|controller| controller == *wanted))
        .collect();
    if !lacking.is_empty() {
        return format!("the cgroup lacks the controllers {}", lacking.join(", "));
    }
    match rustix::fs::access(&group, rustix::fs::Access::WRITE_OK) {
        Ok(()) => "the cgroup is delegated to us".into(),
        Err(_) => "the cgroup is not delegated to us (Delegate=yes in the service)".into(),
    }
}
