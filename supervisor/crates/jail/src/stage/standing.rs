//! Where the program stands when the machine is short of something: behind the supervisor and everybody else.

use std::fs::{self, File};
use std::io::{self, Write as _};

use nix::sys::prctl::set_thp_disable;
use rustix::process::{getpriority_process, setpriority_process};

use super::request::Plan;
use super::step::StepError;
use crate::report::Status;
use crate::spec::{Limits, Mode};
use crate::sys::scheduling;

/// What is added to the program's memory, in thousandths of the machine's, when the kernel looks for somebody to
/// kill: half a machine. Enough that a plugin goes before any supervisor that is not itself half a machine large,
/// and less than the 1,000 of which a service manager would have to make something that goes before plugins.
const OOM_SCORE: i32 = 500;
const OOM_SCORE_FILE: &str = "/proc/self/oom_score_adj";

/// The least that others can be preferred by, as in nice(1); there is no more than this.
const NICEST: i32 = 19;

/// The share of a session, on kernels that divide the cores among sessions first (CONFIG_SCHED_AUTOGROUP): nice
/// values compare within one session only.
const SESSION_FILE: &str = "/proc/self/autogroup";
const SESSION_SWITCH: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// Policies that come before every ordinary one for as long as they like (linux/sched.h). Those that come after,
/// batch and idle, are left as a supervisor that has them wants them.
const REAL_TIME: [i32; 3] = [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE];

/// A class for the disk and the place in it (linux/ioprio.h): the class stands above these bits.
const DISK_CLASS_SHIFT: i32 = 13;
const DISK_PLACES: i32 = 8;
const DISK_REAL_TIME: i32 = 1;
const DISK_BEST_EFFORT: i32 = 2;
/// The place of who never asked for one; lower is better.
const DISK_PLACE: i32 = 4;

/// Takes the last place for the whole session, its monitor's included. In the stage, whose files in `/proc` are
/// still its own: they are root's for all of our kind after the step `undumpable`. What does not work is seen by
/// the steps that report, [`spared`] and [`yield_to_others`].
///
/// A supervisor that was started with a real-time class, or one for the disk, or without protections of memory,
/// keeps them for itself.
///
/// The monitor is smaller than any program, so that it never goes before the one that it watches.
pub(super) fn take_last_place(plan: &Plan) -> Result<Option<Status>, StepError> {
    if plan.spec.mode == Mode::Off {
        return Ok(None);
    }
    if oom_score().is_some_and(|score| score < OOM_SCORE) {
        let _ = fs::write(OOM_SCORE_FILE, OOM_SCORE.to_string());
    }
    if session_niceness().is_some_and(|now| now < niceness(&plan.spec.limits))
        && let Ok(session) = File::options().write(true).open(SESSION_FILE)
    {
        let _ = plan.session.set(session);
    }
    if runs_first() {
        let _ = scheduling::become_ordinary();
    }
    if reads_first().is_some() {
        let _ = scheduling::set_disk(0);
    }
    if odd_personality().is_some() {
        let _ = scheduling::plain_personality();
    }
    Ok(None)
}

/// Makes room for others on the cores, for the whole session. Once the private root is built, so that a busy machine
/// does not build it more slowly; through what was opened before, as `/proc` is closed to writing by then.
pub(super) fn take_last_share(plan: &Plan) -> Result<Option<Status>, StepError> {
    if let Some(mut session) = plan.session.get() {
        // The kernel allows ordinary users ten such changes a second, all together, and is not asked twice.
        let _ = session.write_all(niceness(&plan.spec.limits).to_string().as_bytes());
    }
    Ok(None)
}

/// Makes room for others on the cores, for what the program starts as well. Raising the value needs no right, and
/// a limit keeps it from being lowered again. Late, so that a busy machine does not build the jail more slowly.
pub(super) fn yield_to_others(plan: &Plan) -> Result<Option<Status>, StepError> {
    let failed = |error: io::Error| StepError::io("cannot yield to others", &error, "");
    if runs_first() {
        return Err(StepError::new(
            "it has the supervisor's real-time class, which could not be given up (start the supervisor without one)",
        ));
    }
    let now = getpriority_process(None).map_err(|errno| failed(errno.into()))?;
    let nice = now.saturating_add(niceness(&plan.spec.limits)).min(NICEST);
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
    let each = if divides_by_session() { ", and each session that it begins has one more share" } else { "" };
    Ok(Some(Status::StandIn(format!(
        "nice {nice}{among}{each}; a share of the cores needs a delegated cgroup v2 with the cpu controller"
    ))))
}

/// Lets it have huge pages again, which the supervisor forgoes for itself.
pub(super) fn allow_huge_pages(_: &Plan) -> Result<Option<Status>, StepError> {
    // A kernel that has none refuses nothing.
    let _ = set_thp_disable(false);
    Ok(None)
}

/// What it has that it should not: that the kernel might kill others before it, when it is out of memory, that it
/// reads from the disk before others, and less protection of its memory.
pub(super) fn spared() -> Option<String> {
    let killed_late = match oom_score() {
        Some(score) if score >= OOM_SCORE => None,
        Some(score) => Some(format!("oom_score_adj {score} instead of {OOM_SCORE}")),
        None => Some(format!("oom_score_adj unknown instead of {OOM_SCORE}")),
    };
    let reads_first = reads_first().map(|class| format!("the supervisor's class for the disk ({class:#x})"));
    let odd = odd_personality().map(|bits| format!("the supervisor's personality ({bits:#x})"));
    let all: Vec<_> = [killed_late, reads_first, odd].into_iter().flatten().collect();
    if all.is_empty() { None } else { Some(all.join("; ")) }
}

/// Whether it has a real-time class. A machine that does not tell gives none.
fn runs_first() -> bool {
    scheduling::policy().is_ok_and(|policy| REAL_TIME.contains(&policy))
}

/// The class for the disk, if it is better than that of who never asked for one.
fn reads_first() -> Option<i32> {
    scheduling::disk().ok().filter(|class| is_preferred(*class))
}

fn is_preferred(class: i32) -> bool {
    match class >> DISK_CLASS_SHIFT {
        DISK_REAL_TIME => true,
        DISK_BEST_EFFORT => class % DISK_PLACES < DISK_PLACE,
        _ => false,
    }
}

/// The personality, if it is another than Linux's own.
fn odd_personality() -> Option<i32> {
    scheduling::personality().ok().filter(|bits| *bits != 0)
}

fn niceness(limits: &Limits) -> i32 {
    i32::from(limits.nice).min(NICEST)
}

fn oom_score() -> Option<i32> {
    fs::read_to_string(OOM_SCORE_FILE).ok()?.trim().parse().ok()
}

/// Whether the cores are divided among sessions now.
fn divides_by_session() -> bool {
    fs::read_to_string(SESSION_SWITCH).is_ok_and(|text| text.trim() == "1") && session_niceness().is_some()
}

/// `None` on a kernel that cannot divide by session.
fn session_niceness() -> Option<i32> {
    parse_session(&fs::read_to_string(SESSION_FILE).ok()?)
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
