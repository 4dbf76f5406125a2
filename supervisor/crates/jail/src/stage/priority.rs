//! Gives the program a lower priority than the supervisor and all others when the machine is short of
//! something.

use std::fs::{self, File};
use std::io::{self, Write as _};

use nix::sys::prctl::set_thp_disable;
use rustix::process::{getpriority_process, setpriority_process};

use super::request::Plan;
use super::step_error::StepError;
use crate::report::Status;
use crate::spec::{Limits, Mode};
use crate::sys::scheduling;

/// What is added to the program's memory, in thousandths of the machine's, when the kernel selects a process
/// to kill: half a machine. Enough that a plugin is killed before any supervisor that does not use half the
/// machine itself, and less than 1,000, so that a service manager can still mark processes to be killed
/// before plugins.
const OOM_SCORE: i32 = 500;
const OOM_SCORE_FILE: &str = "/proc/self/oom_score_adj";

/// The highest nice value, as in nice(1).
const NICE_MAX: i32 = 19;

/// The niceness of a session, on kernels that divide the cores among sessions first (CONFIG_SCHED_AUTOGROUP):
/// nice values compare within one session only.
const AUTOGROUP_FILE: &str = "/proc/self/autogroup";
const AUTOGROUP_SWITCH: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// Policies that run before every ordinary one for as long as they like (linux/sched.h). Those that run
/// after, batch and idle, are inherited from a supervisor that has them.
const REAL_TIME_POLICIES: [i32; 3] = [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE];

/// An I/O class and the level in it (linux/ioprio.h): the class is in the bits above these.
const IO_CLASS_SHIFT: i32 = 13;
const IO_LEVELS: i32 = 8;
const IO_CLASS_REAL_TIME: i32 = 1;
const IO_CLASS_BEST_EFFORT: i32 = 2;
/// The default level; lower is better.
const IO_LEVEL_DEFAULT: i32 = 4;

/// Gives the whole session the lowest priorities, including its monitor. Runs in the stage, while its files
/// in `/proc` are still its own: after the step `undumpable` they are root's. Failures are detected by the
/// steps that report, [`spared`] and [`raise_niceness`].
///
/// A supervisor that was started with a real-time or I/O class, or without memory protections, keeps them for
/// itself.
///
/// The monitor is smaller than any program, so it is never killed before the program that it watches.
pub(super) fn lower_session_priority(plan: &Plan) -> Result<Option<Status>, StepError> {
    if plan.spec.mode == Mode::Off {
        return Ok(None);
    }
    if oom_score().is_some_and(|score| score < OOM_SCORE) {
        let _ = fs::write(OOM_SCORE_FILE, OOM_SCORE.to_string());
    }
    if session_niceness().is_some_and(|now| now < niceness(&plan.spec.limits))
        && let Ok(session) = File::options().write(true).open(AUTOGROUP_FILE)
    {
        let _ = plan.session.set(session);
    }
    if has_real_time_policy() {
        let _ = scheduling::reset_policy();
    }
    if preferred_io_class().is_some() {
        let _ = scheduling::set_io_priority(0);
    }
    if foreign_personality().is_some() {
        let _ = scheduling::reset_personality();
    }
    Ok(None)
}

/// Lowers the session's share of the cores. Done after the private root is built, which would take longer on
/// a busy machine. Uses a file that was opened before, since `/proc` is read-only by then.
pub(super) fn lower_session_share(plan: &Plan) -> Result<Option<Status>, StepError> {
    if let Some(mut session) = plan.session.get() {
        // The kernel allows ordinary users ten such changes a second in total, so this is not retried.
        let _ = session.write_all(niceness(&plan.spec.limits).to_string().as_bytes());
    }
    Ok(None)
}

/// Raises the nice value, also for all processes that the program starts. That needs no right, and a limit
/// forbids to lower it again. Done late, since building the jail would take longer on a busy machine.
pub(super) fn raise_niceness(plan: &Plan) -> Result<Option<Status>, StepError> {
    let failed = |error: io::Error| StepError::io("cannot yield to others", &error, "");
    if has_real_time_policy() {
        return Err(StepError::new(
            "it has the supervisor's real-time class, which could not be given up (start the supervisor without one)",
        ));
    }
    let now = getpriority_process(None).map_err(|errno| failed(errno.into()))?;
    let nice = now.saturating_add(niceness(&plan.spec.limits)).min(NICE_MAX);
    setpriority_process(None, nice).map_err(|errno| failed(errno.into()))?;
    if plan.shares_cpu.get() == Some(&true) {
        return Ok(Some(Status::Enforced));
    }
    let among = match session_niceness() {
        Some(session) if session < niceness(&plan.spec.limits) => {
            " in its own session alone, as sessions start too fast"
        }
        _ => "",
    };
    let each = if autogroup_enabled() { ", and each session that it begins has one more share" } else { "" };
    Ok(Some(Status::StandIn(format!(
        "nice {nice}{among}{each}; a share of the cores needs a delegated cgroup v2 with the cpu controller"
    ))))
}

/// Allows huge pages again, which the supervisor disables for itself.
pub(super) fn allow_huge_pages(_: &Plan) -> Result<Option<Status>, StepError> {
    // Without huge pages the kernel refuses nothing.
    let _ = set_thp_disable(false);
    Ok(None)
}

/// Advantages that it should not have: that the kernel might kill others before it when memory is short, that
/// it reads from the disk before others, and less protection of its memory.
pub(super) fn remaining_advantages() -> Option<String> {
    let killed_late = match oom_score() {
        Some(score) if score >= OOM_SCORE => None,
        Some(score) => Some(format!("oom_score_adj {score} instead of {OOM_SCORE}")),
        None => Some(format!("oom_score_adj unknown instead of {OOM_SCORE}")),
    };
    let reads_first =
        preferred_io_class().map(|class| format!("the supervisor's class for the disk ({class:#x})"));
    let odd = foreign_personality().map(|bits| format!("the supervisor's personality ({bits:#x})"));
    let all: Vec<_> = [killed_late, reads_first, odd].into_iter().flatten().collect();
    if all.is_empty() { None } else { Some(all.join("; ")) }
}

/// Whether it has a real-time policy. If the machine does not say, assumes none.
fn has_real_time_policy() -> bool {
    scheduling::policy().is_ok_and(|policy| REAL_TIME_POLICIES.contains(&policy))
}

/// The I/O class, if it is better than the default.
fn preferred_io_class() -> Option<i32> {
    scheduling::io_priority().ok().filter(|class| is_preferred(*class))
}

fn is_preferred(class: i32) -> bool {
    match class >> IO_CLASS_SHIFT {
        IO_CLASS_REAL_TIME => true,
        IO_CLASS_BEST_EFFORT => class % IO_LEVELS < IO_LEVEL_DEFAULT,
        _ => false,
    }
}

/// The personality, if it is not Linux's own.
fn foreign_personality() -> Option<i32> {
    scheduling::personality().ok().filter(|bits| *bits != 0)
}

fn niceness(limits: &Limits) -> i32 {
    i32::from(limits.nice).min(NICE_MAX)
}

fn oom_score() -> Option<i32> {
    fs::read_to_string(OOM_SCORE_FILE).ok()?.trim().parse().ok()
}

/// Whether the kernel divides the cores among sessions now.
fn autogroup_enabled() -> bool {
    fs::read_to_string(AUTOGROUP_SWITCH).is_ok_and(|text| text.trim() == "1") && session_niceness().is_some()
}

/// The session's niceness; `None` on a kernel that does not divide by session.
fn session_niceness() -> Option<i32> {
    parse_session(&fs::read_to_string(AUTOGROUP_FILE).ok()?)
}

/// "/autogroup-27 nice 0"
fn parse_session(text: &str) -> Option<i32> {
    text.trim().rsplit_once(" nice ")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_says_how_nice_it_is() {
        assert_eq!(parse_session("/autogroup-27 nice 0\n"), Some(0));
        assert_eq!(parse_session("/autogroup-1 nice -5"), Some(-5));
        assert_eq!(parse_session(""), None);
        assert_eq!(parse_session("/autogroup-1 nice x"), None);
    }

    #[test]
    fn a_class_for_the_disk_is_kept_only_if_it_comes_after_others() {
        // None, real-time 0, best-effort 0, 3, 4, 7, idle.
        let classes = [0, 0x2000, 0x4000, 0x4003, 0x4004, 0x4007, 0x6000];
        assert_eq!(classes.map(is_preferred), [false, true, true, true, false, false, false]);
    }

    #[test]
    fn no_limit_asks_for_more_than_there_is() {
        let nice = |nice| niceness(&Limits { nice, ..Limits::default() });
        assert_eq!((nice(0), nice(5), nice(255)), (0, 5, 19));
    }
}
