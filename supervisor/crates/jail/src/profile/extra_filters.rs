//! Extra filters beside the profile, depending on what else the program has or lacks. Libraries do without such a call,
//! or fall back to an older one, if the kernel does not seem to have it.

use super::bpf::{IF_EQUAL, LOAD, NUMBER, RETURN};
use crate::sys::seccomp::Instruction;

/// Calls that make memory which belongs to no process until it is mapped, so that the memory watch cannot count it:
/// memory files, and System V segments and queues. Shared files can be made in `/dev/shm` instead, which is counted.
const UNACCOUNTED_MEMORY: &[i64] = &[libc::SYS_memfd_create, libc::SYS_shmget, libc::SYS_msgget];

/// A call that passes a new file's mode in memory, where a filter cannot see the set-user-ID bit.
const HIDDEN_MODES: &[i64] = &[libc::SYS_openat2];

/// For a program whose memory is not counted by a cgroup.
pub(crate) fn refuse_unaccounted_memory() -> Vec<Instruction> {
    answer_enosys(UNACCOUNTED_MEMORY)
}

/// For a program that may write where other users find its files. Other programs keep the call: careful programs use it
/// to stay below a directory, and their files disappear when they end.
pub(crate) fn refuse_hidden_modes() -> Vec<Instruction> {
    answer_enosys(HIDDEN_MODES)
}

/// A filter that answers these calls with ENOSYS, and leaves all others to the profile.
fn answer_enosys(calls: &[i64]) -> Vec<Instruction> {
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
