//! Machines that forbid something, made with a filter around the thread that starts the program.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch, apply_filter};

/// Does something where a system call always gives this answer, 0 being success.
pub(crate) fn where_call_gives<T: Send>(call: i64, errno: i32, what: impl FnOnce() -> T + Send) -> T {
    let calls: BTreeMap<i64, Vec<SeccompRule>> = [(call, Vec::new())].into();
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
