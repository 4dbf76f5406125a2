//! Checks of the running supervisor's process: its user, capabilities, open files and cgroup.

use std::fs;
use std::path::{Path, PathBuf};

use talon_proto::host::GetStatusResponse;

use super::check::{Check, CheckBuilder, Section};

/// Capabilities that the jail needs if the supervisor is not root: the kernel's numbers, and their purpose.
const CAPABILITIES: [(u8, &str); 6] =
    [(0, "CHOWN"), (5, "KILL"), (6, "SETGID"), (7, "SETUID"), (8, "SETPCAP"), (21, "SYS_ADMIN")];
/// With fewer open files than this, a supervisor runs out of them with some hundred clients and plugins.
const FEW_FILES: u64 = 4096;
/// The cgroup controllers that limit plugins.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];
/// Where cgroup v2 is mounted, alone or next to v1.
const CGROUP_ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

const fn check_named(what: &'static str) -> CheckBuilder {
    CheckBuilder(Section::Supervisor, what)
}

pub(super) fn checks(status: &GetStatusResponse) -> Vec<Check> {
    let proc = PathBuf::from("/proc").join(status.pid.to_string());
    let mut checks = Vec::new();
    match fs::read_to_string(proc.join("status")) {
        Ok(text) => checks.extend(user(&text)),
        Err(error) => {
            checks.push(check_named("user").warn(format!("cannot look at process {}: {error}", status.pid)));
            return checks;
        }
    }
    match fs::read_to_string(proc.join("limits")) {
        Ok(text) => checks.extend(files(&text)),
        // Only root can read the files of another user's process.
        Err(error) => checks.push(
            check_named("open files").warn(format!("not looked at: {error}")).with_fix("sudo talon doctor"),
        ),
    }
    if let Ok(text) = fs::read_to_string(proc.join("cgroup")) {
        checks.push(cgroup(&text));
    }
    checks
}

/// A line of `/proc/PID/status`.
fn field<'t>(status: &'t str, name: &str) -> Option<&'t str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn user(status: &str) -> Option<Check> {
    let of = check_named("user");
    // Real, effective, saved, file system.
    let uid: u32 = field(status, "Uid:")?.split_whitespace().nth(1)?.parse().ok()?;
    let held = u64::from_str_radix(field(status, "CapEff:")?, 16).ok()?;
    let missing: Vec<&str> =
        CAPABILITIES.iter().filter(|(number, _)| held & (1 << number) == 0).map(|(_, name)| *name).collect();
    let name = nix::unistd::User::from_uid(uid.into()).ok().flatten();
    let name = name.map_or_else(|| format!("uid {uid}"), |user| format!("{} (uid {uid})", user.name));
    Some(if missing.is_empty() {
        of.ok(format!("{name}, with the capabilities that the jail needs"))
    } else if missing.len() == CAPABILITIES.len() {
        of.warn(format!("{name}, without capabilities"))
            .with_reason("its plugins share its uid, or have one in a user namespace; see SANDBOX")
            .with_fix("run it by the unit of the package, which gives it those that it needs and no others")
    } else {
        of.fail(format!("{name}, without {}", missing.join(", ")))
            .with_reason("it has only some of the capabilities that the jail needs: plugins with their own uids cannot start")
            .with_fix("give it all (AmbientCapabilities= and CapabilityBoundingSet= as in the unit of the package), or none")
    })
}

fn files(limits: &str) -> Option<Check> {
    let of = check_named("open files");
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let soft = line.split_whitespace().next()?;
    Some(match soft.parse::<u64>() {
        Ok(count) if count < FEW_FILES => of
            .warn(format!("{count} at most"))
            .with_reason("every client, plugin and log file takes some; past the limit clients are refused")
            .with_fix("LimitNOFILE=524288 in the unit, as the package has it; ulimit -n without systemd"),
        _ => of.ok(format!("{soft} at most")),
    })
}

/// The controllers of the service's cgroup.
fn cgroup(text: &str) -> Check {
    let of = check_named("cgroup");
    let unlimited =
        "memory, processor time and processes of plugins are watched and not limited by the kernel";
    let Some(path) = text.lines().find_map(|line| line.strip_prefix("0::/")) else {
        return of
            .warn("this machine has no cgroup v2")
            .with_reason(unlimited)
            .with_fix("boot with systemd.unified_cgroup_hierarchy=1");
    };
    let root = CGROUP_ROOTS.map(PathBuf::from).into_iter().find(|root| root.join("cgroup.procs").exists());
    let Some(root) = root else {
        return of
            .warn("cgroup v2 is not mounted where it usually is")
            .with_reason(unlimited)
            .with_fix("mount it at /sys/fs/cgroup");
    };
    let own = root.join(path);
    // If the supervisor has moved itself into a leaf, its parent group is the one that is divided among
    // plugins.
    let base = if own.ends_with("supervisor") { own.parent().unwrap_or(&own).to_owned() } else { own };
    let has = controllers(&base);
    let missing: Vec<&str> =
        CONTROLLERS.into_iter().filter(|one| !has.iter().any(|has| has == one)).collect();
    if missing.is_empty() {
        return of.ok(format!("{} has cpu, memory and pids", base.display()));
    }
    of.warn(format!("{} lacks {}", base.display(), missing.join(", ")))
        .with_reason(unlimited)
        .with_fix("Delegate=yes in the unit; what cgroup v1 uses of the controllers is missing in v2")
}

fn controllers(group: &Path) -> Vec<String> {
    let text = fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn capabilities_are_all_there_or_none_or_it_is_wrong() {
        let verdict = |effective: &str| {
            let text = format!("Name:\ttalon\nUid:\t0\t0\t0\t0\nCapEff:\t{effective}\n");
            user(&text).unwrap().verdict
        };
        assert_eq!(verdict("000001ffffffffff"), Verdict::Ok);
        assert_eq!(verdict("00000000002001e1"), Verdict::Ok, "those of the unit and no others");
        assert_eq!(verdict("0000000000000000"), Verdict::Warn);
        assert_eq!(verdict("00000000000001e1"), Verdict::Fail, "without SYS_ADMIN");
    }

    #[test]
    fn few_open_files_are_told() {
        let line = |soft: &str| {
            format!("Limit  Soft Limit  Hard Limit  Units\nMax open files            {soft}   4096   files\n")
        };
        assert_eq!(files(&line("1024")).unwrap().verdict, Verdict::Warn);
        assert_eq!(files(&line("524288")).unwrap().verdict, Verdict::Ok);
        assert_eq!(files(&line("unlimited")).unwrap().verdict, Verdict::Ok);
        assert!(files("").is_none());
    }

    #[test]
    fn a_machine_without_cgroup_v2_says_what_that_means() {
        let check = cgroup("4:memory:/user\n");
        assert_eq!(check.verdict, Verdict::Warn);
        assert!(check.fix.contains("unified"));
    }
}
