//! Machines that forbid something, made with a filter around the thread that starts the program.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

/// Does something where a system call always gives this answer, 0 being success.
pub(crate) fn where_call_gives<T: Send>(call: i64, errno: i32, what: impl FnOnce() -> T + Send) -> T {
    behind([(call, Vec::new())].into(), errno, what)
}

/// Does something where namespaces are refused, as containers' filters do it: by either call that makes them.
pub(crate) fn where_namespaces_are_refused<T: Send>(what: impl FnOnce() -> T + Send) -> T {
    let of_processes = u64::try_from(libc::CLONE_NEWPID).unwrap();
    let asks = SeccompCmpOp::MaskedEq(of_processes);
    let asks = SeccompCondition::new(0, SeccompCmpArgLen::Qword, asks, of_processes).unwrap();
    let clone = vec![SeccompRule::new(vec![asks]).unwrap()];
    behind([(libc::SYS_unshare, Vec::new()), (libc::SYS_clone, clone)].into(), libc::EPERM, what)
}

fn behind<T: Send>(calls: BTreeMap<i64, Vec<SeccompRule>>, errno: i32, what: impl FnOnce() -> T + Send) -> T {
    let answer = SeccompAction::Errno(errno.unsigned_abs());
    let architecture = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, answer, architecture).unwrap();
    let filter = BpfProgram::try_from(filter).unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            apply_filter(&filter).unwrap();
            what()
        });
        thread.join().unwrap()
    })
}
