//! Extra filters beside the profile, depending on what else the program has or lacks. Libraries do without
//! such a call, or fall back to an older one, if the kernel does not seem to have it.

use super::bpf::{IF_EQUAL, LOAD, NUMBER, RETURN, argument};
use crate::sys::seccomp::Instruction;

/// Calls that make memory which belongs to no process, so that the memory watch cannot count it: memory
/// files, System V segments and queues, and sets of Landlock rules. Shared files can be made in `/dev/shm`
/// instead, which is counted; a program that restricts itself with Landlock goes on without it, as on an
/// older kernel.
const UNACCOUNTED_MEMORY: &[i64] =
    &[libc::SYS_memfd_create, libc::SYS_shmget, libc::SYS_msgget, libc::SYS_landlock_create_ruleset];

/// Enlarging a socket's buffers, which the memory watch counts at their default size. ENOBUFS is what POSIX
/// has for a lack of room; programs keep the default size then. The privileged forms (SO_SNDBUFFORCE,
/// SO_RCVBUFFORCE) need a capability.
const LARGER_BUFFERS: Uses = Uses {
    call: libc::SYS_setsockopt,
    conditions: &[(1, &[libc::SOL_SOCKET]), (2, &[libc::SO_SNDBUF, libc::SO_RCVBUF])],
    errno: libc::ENOBUFS,
};

/// Locks of the open file instead of the process. `/proc/locks` names no process for them, so that they
/// cannot be counted for one. EINVAL is the answer of kernels before 3.15, which do not have them.
const FILE_LOCKS: Uses = Uses {
    call: libc::SYS_fcntl,
    conditions: &[(1, &[libc::F_OFD_SETLK, libc::F_OFD_SETLKW])],
    errno: libc::EINVAL,
};

/// Sockets of the internet. EAFNOSUPPORT is the answer of a machine without IP, as in the profiles without a
/// network.
const INTERNET_SOCKETS: Uses = Uses {
    call: libc::SYS_socket,
    conditions: &[(0, &[libc::AF_INET, libc::AF_INET6])],
    errno: libc::EAFNOSUPPORT,
};

/// A call that passes a new file's mode in memory, where a filter cannot see the set-user-ID bit.
const HIDDEN_MODES: &[i64] = &[libc::SYS_openat2];

/// Some uses of one call, and the error that they get.
struct Uses {
    call: i64,
    /// Arguments, counted from 0, and the values of which each has one.
    conditions: &'static [(u32, &'static [i32])],
    errno: i32,
}

/// The filters for a program whose memory is not counted by a cgroup.
pub(crate) fn refuse_unaccounted_memory() -> Vec<Vec<Instruction>> {
    vec![answer_enosys(UNACCOUNTED_MEMORY), answer_uses(&LARGER_BUFFERS), answer_uses(&FILE_LOCKS)]
}

/// For a program that may write where other users find its files. Other programs keep the call: careful
/// programs use it to stay below a directory, and their files disappear when they end.
pub(crate) fn refuse_hidden_modes() -> Vec<Instruction> {
    answer_enosys(HIDDEN_MODES)
}

/// For a program that needed a separate network and has the host's.
pub(crate) fn refuse_internet_sockets() -> Vec<Instruction> {
    answer_uses(&INTERNET_SOCKETS)
}

/// A filter that reports `socket` for IPv4 and IPv6 to its listener, and leaves all other calls to the
/// profile.
pub(crate) fn report_internet_sockets() -> Vec<Instruction> {
    vec![
        (LOAD, 0, 0, NUMBER),
        (IF_EQUAL, 0, 3, call_number(libc::SYS_socket)),
        (LOAD, 0, 0, argument(0)),
        (IF_EQUAL, 2, 0, libc::AF_INET.cast_unsigned()),
        (IF_EQUAL, 1, 0, libc::AF_INET6.cast_unsigned()),
        ALLOW,
        (RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
    ]
}

const ALLOW: Instruction = (RETURN, 0, 0, libc::SECCOMP_RET_ALLOW);

/// A filter that answers these calls with ENOSYS, and leaves all others to the profile.
fn answer_enosys(calls: &[i64]) -> Vec<Instruction> {
    let mut filter = vec![(LOAD, 0, 0, NUMBER)];
    for call in calls {
        filter.push((IF_EQUAL, 0, 1, call_number(*call)));
        filter.push(refusal(libc::ENOSYS));
    }
    filter.push(ALLOW);
    filter
}

/// A filter that answers these uses of a call, and leaves all others to the profile.
fn answer_uses(uses: &Uses) -> Vec<Instruction> {
    let mut filter = vec![(LOAD, 0, 0, NUMBER), (IF_EQUAL, 1, 0, call_number(uses.call)), ALLOW];
    for (place, values) in uses.conditions {
        filter.push((LOAD, 0, 0, argument(*place)));
        for (index, value) in values.iter().enumerate() {
            // Over the remaining comparisons and the instruction that allows the call.
            let to_next = u8::try_from(values.len() - index).expect("a list has a few values");
            filter.push((IF_EQUAL, to_next, 0, value.cast_unsigned()));
        }
        filter.push(ALLOW);
    }
    filter.push(refusal(uses.errno));
    filter
}

fn refusal(errno: i32) -> Instruction {
    (RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | errno.unsigned_abs())
}

fn call_number(call: i64) -> u32 {
    u32::try_from(call).expect("the kernel's numbers are small and positive")
}

#[cfg(test)]
mod tests {
    use super::super::simulate::{SimulatedCall, verdict};
    use super::*;

    fn errno(filters: &[Vec<Instruction>], call: i64, arguments: [u64; 6]) -> Option<i32> {
        let call = SimulatedCall { number: call_number(call), audit: 0, arguments };
        let answer = verdict(filters, &call);
        (answer != libc::SECCOMP_RET_ALLOW).then_some((answer & libc::SECCOMP_RET_DATA).cast_signed())
    }

    // Promises: JAIL-45
    #[test]
    fn sockets_of_the_internet_are_reported() {
        let of = |call: i64, domain: i32| {
            let arguments = [domain as u64, 1, 0, 0, 0, 0];
            let call = SimulatedCall { number: call_number(call), audit: 0, arguments };
            verdict(&[report_internet_sockets()], &call)
        };
        assert_eq!(of(libc::SYS_socket, libc::AF_INET), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(of(libc::SYS_socket, libc::AF_INET6), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(of(libc::SYS_socket, libc::AF_UNIX), libc::SECCOMP_RET_ALLOW);
        assert_eq!(of(libc::SYS_socketpair, libc::AF_INET), libc::SECCOMP_RET_ALLOW);
    }

    #[test]
    fn sockets_of_the_internet_are_refused_and_no_others() {
        let filter = [refuse_internet_sockets()];
        let of = |call: i64, domain: i32| errno(&filter, call, [domain as u64, 1, 0, 0, 0, 0]);
        for domain in [libc::AF_INET, libc::AF_INET6] {
            assert_eq!(of(libc::SYS_socket, domain), Some(libc::EAFNOSUPPORT));
        }
        assert_eq!(of(libc::SYS_socket, libc::AF_UNIX), None);
        assert_eq!(of(libc::SYS_socketpair, libc::AF_INET), None);
    }

    // Promises: JAIL-42
    #[test]
    fn what_no_cgroup_counts_is_refused_and_nothing_else() {
        let filters = refuse_unaccounted_memory();
        let option = |level: i32, name: i32| {
            errno(&filters, libc::SYS_setsockopt, [3, level as u64, name as u64, 0, 0, 0])
        };
        assert_eq!(option(libc::SOL_SOCKET, libc::SO_SNDBUF), Some(libc::ENOBUFS));
        assert_eq!(option(libc::SOL_SOCKET, libc::SO_RCVBUF), Some(libc::ENOBUFS));
        assert_eq!(option(libc::SOL_SOCKET, libc::SO_REUSEADDR), None);
        assert_eq!(option(libc::IPPROTO_TCP, libc::SO_SNDBUF), None);
        let lock = |command: i32| errno(&filters, libc::SYS_fcntl, [3, command as u64, 0, 0, 0, 0]);
        assert_eq!(lock(libc::F_OFD_SETLK), Some(libc::EINVAL));
        assert_eq!(lock(libc::F_OFD_SETLKW), Some(libc::EINVAL));
        for open in [libc::F_SETLK, libc::F_GETFL, libc::F_OFD_GETLK] {
            assert_eq!(lock(open), None);
        }
        // The upper half of an argument is ignored, as the kernel ignores it.
        let wide = 1 << 40 | libc::F_OFD_SETLK as u64;
        assert_eq!(errno(&filters, libc::SYS_fcntl, [3, wide, 0, 0, 0, 0]), Some(libc::EINVAL));
        for call in UNACCOUNTED_MEMORY {
            assert_eq!(errno(&filters, *call, [0; 6]), Some(libc::ENOSYS));
        }
        assert_eq!(errno(&filters, libc::SYS_read, [0; 6]), None);
    }
}
