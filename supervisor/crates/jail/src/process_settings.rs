//! Settings of the supervisor's own process, made before it has threads.
//!
//! A service manager's hardening is inherited by everything that the service starts. Hardening that plugins
//! could not live with, the supervisor applies to itself only. Hardening that it cannot live with itself, it
//! undoes for itself only.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_thp_disable;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{CapabilitySet, capabilities};

use crate::sys;

/// From now on this process cannot execute memory that was writable. Processes that it starts are not bound
/// by this: a Java or a JavaScript program generates code as it runs.
///
/// # Errors
/// The kernel's. Before Linux 6.6 the setting cannot be kept from children, and nothing is changed.
pub fn forbid_new_code() -> io::Result<()> {
    sys::memory::forbid_new_code()
}

/// From now on this process uses memory pages of the ordinary size only. With huge pages, an allocator holds
/// some 2 MiB pages for each thread, however little it uses of them; that was most of a supervisor's memory.
/// Processes started in a jail are not bound by this.
///
/// # Errors
/// The kernel's.
pub fn forgo_huge_pages() -> io::Result<()> {
    Ok(set_thp_disable(true)?)
}

/// Makes sure that `/proc` shows the processes of other uids, which programs with their own uid run as. If
/// `/proc` hides them (`ProtectProc=`, `ProcSubset=`, `hidepid=`) and this process may mount, it gets its own
/// `/proc` in its own mount namespace. Programs never see that one, since each has a `/proc` of its own
/// processes only. Returns whether this was done.
///
/// The process must have a single thread: others would keep the old `/proc`.
///
/// # Errors
/// The kernel's, or that there are threads. The process can continue with the `/proc` that it has, but does
/// not find programs.
pub fn see_all_processes() -> io::Result<bool> {
    let may_mount = capabilities(None).is_ok_and(|held| held.effective.contains(CapabilitySet::SYS_ADMIN));
    if !may_mount || !hides(&fs::read_to_string("/proc/self/mountinfo")?) {
        return Ok(false);
    }
    sys::single_thread()?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    // Later mounts on the machine still propagate to us; none of ours propagate back.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)?;
    Ok(true)
}

/// Whether the topmost `/proc` among a process's mounts hides something.
fn hides(mountinfo: &str) -> bool {
    let of_proc = |line: &&str| line.split(' ').nth(4) == Some("/proc");
    let Some((_, options)) = mountinfo.lines().rfind(of_proc).and_then(|line| line.split_once(" - ")) else {
        return false;
    };
    options.split([' ', ',']).any(|option| {
        option.starts_with("subset=")
            || option.starts_with("hidepid=") && !matches!(option, "hidepid=0" | "hidepid=off")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proc_that_hides_is_known_by_its_options() {
        let mounts = |proc: &str| {
            format!("24 30 0:22 / /sys rw - sysfs sysfs rw\n25 30 0:23 / /proc rw - proc {proc}\n")
        };
        assert!(!hides(&mounts("proc rw")));
        assert!(!hides(&mounts("proc rw,hidepid=off")));
        assert!(hides(&mounts("proc rw,hidepid=invisible")));
        assert!(hides(&mounts("proc rw,hidepid=2,gid=5")));
        assert!(hides(&mounts("proc rw,subset=pid")));
        assert!(!hides(""));
        // The last one is on top.
        assert!(!hides(&(mounts("proc rw,subset=pid") + &mounts("proc rw"))));
    }
}
