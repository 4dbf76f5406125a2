//! What is closed beside the profile, by what else the program has or lacks. Libraries go without such a call, or
//! back to an older one, when they hear that a kernel has it not.

use super::Instruction;
use super::compile::{IF_EQUAL, LOAD, NUMBER, RETURN};

/// Calls that make memory which belongs to no process until it maps it, so that the watch on a tree's memory cannot
/// see it: files in memory, and segments and queues of System V. Files for sharing lie in `/dev/shm` without them,
/// which is counted.
const UNCOUNTED: &[i64] = &[libc::SYS_memfd_create, libc::SYS_shmget, libc::SYS_msgget];

/// A call that has a new file's mode in memory, where a filter cannot see the set-user-ID bit.
const HIDDEN_MODES: &[i64] = &[libc::SYS_openat2];

/// For a program whose memory no cgroup counts.
pub(crate) fn refuse_uncounted() -> Vec<Instruction> {
    unknown(UNCOUNTED)
}

/// For a program that may write where others find its files. The others keep the call: it is how a careful program
/// stays below a directory, and what they write ends with them.
pub(crate) fn refuse_hidden_modes() -> Vec<Instruction> {
    unknown(HIDDEN_MODES)
}

/// A filter that answers calls with ENOSYS, and lets all others through to the profile's.
fn unknown(calls: &[i64]) -> Vec<Instruction> {
    let enosys = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let mut filter = vec![(LOAD, 0, 0, NUMBER)];
    for call in calls {
        let number = u32::try_from(*call).expect("the kernel's numbers are small and positive");
        filter.push((IF_EQUAL, 0, 1, number));
        filter.push((RETURN, 0, 0, enosys));
    }
    filter.push((RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    filter
}
