//! Finds the cgroup of this process, and checks whether it may divide that one. This file changes nothing.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::error::CgroupsUnavailableError;

/// The controllers that are used. The first two are the reason for having a cgroup and are required; the
/// others are used where they are available.
pub(super) const CONTROLLERS: [&str; 4] = ["memory", "pids", "cpu", "io"];
/// How many of [`CONTROLLERS`], from the front, are required.
const REQUIRED_CONTROLLERS: usize = 2;

/// The leaf for the supervisor itself.
pub(super) const SUPERVISOR: &str = "supervisor";

/// Where distributions mount cgroup v2; the second path is for machines that also have v1.
const USUAL_MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

const MOUNT_ADVICE: &str = "boot with systemd.unified_cgroup_hierarchy=1, or mount it on /sys/fs/cgroup";
pub(super) const DELEGATE_ADVICE: &str = "set Delegate=yes in the service; docs/operations.md has other ways";
const ENABLE_ADVICE: &str = "boot with cgroup_no_v1=all; or Delegate=yes in its unit: docs/operations.md";

/// Whether a cgroup without this controller is useless.
pub(super) fn is_needed(controller: &str) -> bool {
    CONTROLLERS[..REQUIRED_CONTROLLERS].contains(&controller)
}

/// The files that are read. Tests use other files.
pub(super) struct CgroupLookup {
    /// Our own process directory, `/proc/self`.
    pub(super) proc: PathBuf,
    /// Exists if systemd manages the machine.
    pub(super) systemd: PathBuf,
    /// Files of which container engines put one into each container.
    pub(super) container_marks: Vec<PathBuf>,
}

/// The cgroup below which cgroups can be created.
#[derive(Debug)]
pub(super) struct CgroupBase {
    /// The cgroup that we may divide.
    pub(super) base: PathBuf,
    /// Whether this process is in it, and must move to a leaf before it can be divided.
    pub(super) must_move: bool,
    /// Which of [`CONTROLLERS`] it can delegate.
    pub(super) controllers: Vec<&'static str>,
}

/// Which controllers this process could delegate to programs, for `talon doctor`. Changes nothing.
pub(crate) fn available_controllers() -> Result<Vec<&'static str>, CgroupsUnavailableError> {
    CgroupLookup::for_this_machine().find().map(|place| place.controllers)
}

impl CgroupLookup {
    pub(super) fn for_this_machine() -> Self {
        Self {
            proc: "/proc/self".into(),
            systemd: "/run/systemd/system".into(),
            container_marks: ["/run/.containerenv", "/.dockerenv"].map(PathBuf::from).to_vec(),
        }
    }

    /// Finds the base, or returns why there is none.
    pub(super) fn find(&self) -> Result<CgroupBase, CgroupsUnavailableError> {
        let own = self.own_cgroup()?;
        // A supervisor that was started in its leaf, by an earlier one or by DelegateSubgroup=, divides the
        // parent. If it may not, the leaf is a cgroup like any other.
        let above = own.parent().filter(|above| own.ends_with(SUPERVISOR) && !is_hierarchy_root(above));
        if let Some(place) = above.and_then(|above| self.check_usable(above, false).ok()) {
            return Ok(place);
        }
        let is_root = is_hierarchy_root(&own);
        self.check_usable(&own, !is_root)
    }

    /// The directory of the cgroup that we are in.
    fn own_cgroup(&self) -> Result<PathBuf, CgroupsUnavailableError> {
        let read = |name: &str| {
            fs::read_to_string(self.proc.join(name)).map_err(|error| {
                CgroupsUnavailableError::new(format!("cannot read /proc/self/{name}: {error}"), "mount /proc")
            })
        };
        let (root, at) = v2_mount(&read("mountinfo")?)
            .ok_or_else(|| CgroupsUnavailableError::new("no cgroup v2 is mounted", MOUNT_ADVICE))?;
        let groups = read("cgroup")?;
        let own = groups.lines().find_map(|line| line.strip_prefix("0::")).ok_or_else(|| {
            CgroupsUnavailableError::new("this process is in no cgroup of version 2", MOUNT_ADVICE)
        })?;
        let below = Path::new(own)
            .strip_prefix(&root)
            .ok()
            // A path that leads out of a cgroup namespace begins with "/..".
            .filter(|below| below.components().all(|part| matches!(part, std::path::Component::Normal(_))));
        match below {
            Some(below) if below.as_os_str().is_empty() => Ok(at),
            Some(below) => Ok(at.join(below)),
            None => {
                let why = format!("its cgroup {own} is outside of what is mounted on {}", at.display());
                Err(CgroupsUnavailableError::new(why, self.delegate_advice()))
            }
        }
    }

    /// Checks whether a cgroup is ours to divide.
    fn check_usable(&self, base: &Path, must_move: bool) -> Result<CgroupBase, CgroupsUnavailableError> {
        let name = base.display();
        for file in ["", "cgroup.procs", "cgroup.subtree_control"] {
            let path = if file.is_empty() { base.to_owned() } else { base.join(file) };
            if let Err(errno) = rustix::fs::access(&path, rustix::fs::Access::WRITE_OK) {
                return Err(CgroupsUnavailableError::new(
                    format!("the cgroup {name} is not delegated: {}", io::Error::from(errno).kind()),
                    self.delegate_advice(),
                ));
            }
        }
        if !is_hierarchy_root(base) {
            self.is_delegated_to_root(base)?;
            let strangers = foreign_processes(base).map_err(|error| {
                CgroupsUnavailableError::new(
                    format!("cannot read who is in the cgroup {name}: {error}"),
                    self.delegate_advice(),
                )
            })?;
            if strangers > 0 {
                let why =
                    format!("{strangers} other processes are in the cgroup {name}, which stays as it is");
                return Err(CgroupsUnavailableError::new(why, self.delegate_advice()));
            }
        }
        let offered = fs::read_to_string(base.join("cgroup.controllers")).unwrap_or_default();
        let (controllers, missing): (Vec<_>, Vec<_>) = CONTROLLERS
            .into_iter()
            .partition(|known| offered.split_ascii_whitespace().any(|controller| controller == *known));
        let needed: Vec<_> = missing.into_iter().filter(|name| is_needed(name)).collect();
        if !needed.is_empty() {
            let why = format!("the cgroup {name} lacks the controllers {}", needed.join(" and "));
            return Err(CgroupsUnavailableError::new(why, ENABLE_ADVICE));
        }
        Ok(CgroupBase { base: base.to_owned(), must_move, controllers })
    }

    /// Root may write to every cgroup, so that proves nothing. systemd marks the cgroups that it does not
    /// manage itself, and would undo changes to others. Where systemd does not run, no other process manages
    /// cgroups.
    fn is_delegated_to_root(&self, base: &Path) -> Result<(), CgroupsUnavailableError> {
        if !rustix::process::geteuid().is_root() || !self.systemd.exists() {
            return Ok(());
        }
        // The first since systemd 251, the second before.
        let marked = ["user.delegate", "trusted.delegate"].into_iter().any(|attribute| {
            let mut value = [0_u8; 8];
            matches!(rustix::fs::getxattr(base, attribute, &mut value), Ok(1)) && value[0] == b'1'
        });
        if marked {
            return Ok(());
        }
        let why = format!("the cgroup {} belongs to systemd, which has not delegated it", base.display());
        Err(CgroupsUnavailableError::new(why, self.delegate_advice()))
    }

    /// How this machine delegates a cgroup to a supervisor, in one clause: reports end with it.
    fn delegate_advice(&self) -> String {
        let is_root = rustix::process::geteuid().is_root();
        let way = if self.systemd.exists() {
            let user = if is_root { "" } else { " --user" };
            return format!(
                "start it by `systemd-run{user} --scope -p Delegate=yes talon serve`, or set Delegate=yes in its unit"
            );
        } else if self.container_marks.iter().any(|mark| mark.exists()) {
            return "make it a container's first process, with a writable /sys/fs/cgroup".to_owned();
        } else if is_root {
            "start it in a group of its own: docs/operations.md, Cgroups"
        } else {
            "have root make a group for it: docs/operations.md, Cgroups"
        };
        format!("{way}; as a unit, Delegate=yes")
    }
}

/// Whether this is the root of the whole hierarchy, the only cgroup that may have processes and delegate
/// controllers at the same time. It has no `cgroup.type`; the root of a cgroup namespace has one.
fn is_hierarchy_root(group: &Path) -> bool {
    group.join("cgroup.controllers").exists() && !group.join("cgroup.type").exists()
}

/// How many processes other than ours are in a cgroup. Those outside of our pid namespace read as 0 and
/// count.
fn foreign_processes(group: &Path) -> io::Result<usize> {
    let own = std::process::id().to_string();
    let procs = fs::read_to_string(group.join("cgroup.procs"))?;
    Ok(procs.lines().filter(|pid| *pid != own).count())
}

/// Which part of the hierarchy is mounted, and where.
fn v2_mount(mountinfo: &str) -> Option<(PathBuf, PathBuf)> {
    let mut mounts: Vec<_> = mountinfo
        .lines()
        .filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let mut columns = before.split(' ').skip(3);
            let (root, at) = (unescape(columns.next()?), unescape(columns.next()?));
            (after.split(' ').next() == Some("cgroup2")).then_some((root, at))
        })
        .collect();
    let usual = |at: &Path| USUAL_MOUNTS.iter().position(|usual| at == Path::new(usual));
    mounts.sort_by_key(|(_, at)| usual(at).unwrap_or(USUAL_MOUNTS.len()));
    mounts.into_iter().next()
}

/// Decodes spaces and the like, which are written as a backslash and three octal digits.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| byte == b'\\');
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = &after[3..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
