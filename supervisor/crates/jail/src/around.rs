//! What a supervisor does to itself, before it has threads.
//!
//! A service manager's hardening is inherited by everything that the service starts. What programs could not live with, the
//! supervisor takes for itself alone; and what it cannot live with, it undoes for itself alone.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_thp_disable;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{CapabilitySet, capabilities};

use crate::sys;

/// From now on nothing that was written can be executed by this process. What it starts is not bound by it: a Java or a
/// JavaScript program makes code as it runs.
///
/// # Errors
/// The kernel's; before Linux 6.6 it cannot be kept from children, and nothing is changed.
pub fn forbid_new_code() -> io::Result<()> {
    sys::memory::forbid_new_code()
}

/// From now on this process gets its memory in pages of the ordinary size alone. An allocator that asks for huge ones has each
/// thread hold some of 2 MiB for the little that it uses of them, which was most of a supervisor's memory. What is started in a
/// jail is not bound by it.
///
/// # Errors
/// The kernel's.
pub fn forgo_huge_pages() -> io::Result<()> {
    Ok(set_thp_disable(true)?)
}

/// Sees to it that `/proc` shows the processes of others, which programs with uids of their own are: where it hides them
/// (`ProtectProc=`, `ProcSubset=`, `hidepid=`) and this process may mount, it gets a `/proc` of its own, in a mount namespace of
/// its own. Programs never see it, as each has one of its own processes alone. Gives whether that was done.
///
/// The process must have a single thread: others would keep the old one.
///
/// # Errors
/// The kernel's, or that there are threads. It goes on with what it has then, and finds processes of programs missing.
pub fn see_all_processes() -> io::Result<bool> {
    let may_mount = capabilities(None).is_ok_and(|held| held.effective.contains(CapabilitySet::SYS_ADMIN));
    if !may_mount || !hides(&fs::read_to_string("/proc/self/mountinfo")?) {
        return Ok(false);
    }
    sys::single_thread()?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    // What is mounted later on the machine still arrives; nothing of ours goes there.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)?;
    Ok(true)
}

/// Whether the `/proc` on top of a process's mounts leaves something out.
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
