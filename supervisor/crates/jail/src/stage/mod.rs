//! The stage: a small process with one thread that builds the jail, and stays as the program's monitor.
//!
//! It is our own image again, started with posix_spawn: an empty environment, the control socket as standard
//! input, the program's pipes as output and errors. Each step below has a name. A step that fails is reported by
//! that name with what to do about it, and the program does not run.
//!
//! # In the stage
//!
//! | step | what | why there |
//! |---|---|---|
//! | `descriptors` | control socket off descriptor 0 and close-on-exec, `/dev/null` in its place, everything from 3 on closed | first, so that nothing inherited is around while anything else happens |
//! | `request` | the spec and the program's descriptor are read from the control socket | |
//! | `signals` | every disposition is the default one, every signal is blocked | the monitor is deaf to SIGTERM, SIGINT and SIGHUP: its control socket alone tells it to end |
//! | `session` | own session, away from the supervisor's terminal and group | a ^C is the supervisor's to handle |
//! | `subreaper` | orphans below become our children | before the fork, so that none is missed |
//! | `undumpable` | nobody of our uid may trace us or read our memory | holds for the child too, until it executes |
//! | `fork` | the child goes on below; the stage becomes the monitor, see [`monitor`] | |
//!
//! # In the child
//!
//! [`STEPS`] is this list; it grows with the jail.
//!
//! | step | what | why there |
//! |---|---|---|
//! | `process-group` | a group of its own | so that it can be signalled whole from the start |
//! | `parent-death` | SIGKILL when the monitor dies | as early as can be; said again after the uid change, which clears it |
//! | `process-count` | RLIMIT_NPROC | before the uid change, at which the kernel compares |
//! | `bounding-set` | no capability can come back by executing something | needs CAP_SETPCAP, so before the uid change |
//! | `identity` | no groups, then gid, then uid; then it is tried to go back, which must fail | gid first: the uid change takes the right to |
//! | `process-tree` | the parent-death signal again, and whether the monitor is still there | after the uid change |
//! | `no-new-privs` | set-uid files and file capabilities give nothing | after everything that needs privileges |
//! | `umask` | 077 | |
//! | `directory` | the working directory | after the uid change: its own rights decide |
//! | `rlimits` | open files, file size, locked memory, data, core | late, so that they bind the program rather than us |
//! | `capabilities` | all sets emptied, and read back | last of what could need one |
//! | `unblock` | no signal is blocked | last, so that nothing interrupts a step |
//! | `program` | executed by descriptor, or by path | |
//!
//! That it was executed is seen by the end of a close-on-exec pipe between child and monitor.

mod capabilities;
mod descriptors;
mod identity;
pub(crate) mod limits;
mod monitor;
mod program;
mod request;
mod session;
mod step;
mod tree;

use std::io::{self, PipeWriter, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::process::exit;

use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use self::request::Plan;
use self::step::{Step, StepError, base, protection};
use crate::image::STAGE_NAME;
use crate::report::{
    BOUNDING_SET, CAPABILITIES, NO_NEW_PRIVS, OWN_UID, PROCESS_COUNT, PROCESS_TREE, RLIMITS,
};
use crate::sys::{self, Side};
use crate::wire::{self, Note};

/// What a stage or its child exits with when the program did not run. The supervisor has the reason by then;
/// sysexits.h calls this number "internal software error".
const NOT_RUN: i32 = 70;

/// What the child does, in this order.
const STEPS: &[Step] = &[
    base("process-group", "", session::own_group),
    base("parent-death", "", session::die_with_monitor),
    protection(PROCESS_COUNT, limits::process_count),
    protection(BOUNDING_SET, capabilities::drop_bounding_set),
    base("identity", OWN_UID, identity::become_own),
    base(PROCESS_TREE, PROCESS_TREE, session::tie_to_monitor),
    protection(NO_NEW_PRIVS, session::no_new_privs),
    base("umask", "", session::private_umask),
    base("directory", "", session::directory),
    protection(RLIMITS, limits::per_process),
    protection(CAPABILITIES, capabilities::drop_all),
];

/// First line of `main()`: if this process was started as the stage, runs it and never returns.
pub fn become_stage_if_asked() {
    if std::env::args_os().next().is_some_and(|name| name == STAGE_NAME) {
        run();
    }
}

fn run() -> ! {
    let control = match descriptors::take_control() {
        Ok(control) => control,
        Err(error) => {
            // There is nobody to report to but whoever reads the program's errors.
            let text = format!("{STAGE_NAME}: descriptors: {} (only `talon` starts this)\n", error.reason);
            let _ = io::stderr().write_all(text.as_bytes());
            exit(NOT_RUN);
        }
    };
    if let Err((step, error)) = build(&control) {
        let _ = wire::send(control.as_fd(), &Note::failed(step, &error.reason), &[]);
    }
    exit(NOT_RUN);
}

/// The stage's own steps; returns only when one fails.
fn build(control: &OwnedFd) -> Result<(), (&'static str, StepError)> {
    let begin = |step| step::begin(control.as_fd(), step);

    begin("request");
    let plan = request::receive(control).map_err(|error| ("request", error))?;

    begin("signals");
    let signals = block_signals().map_err(|error| ("signals", error))?;

    begin("session");
    rustix::process::setsid()
        .map_err(|errno| ("session", StepError::errno("cannot begin a session", errno.raw_os_error(), "")))?;

    begin("subreaper");
    session::adopt_orphans().map_err(|error| ("subreaper", error))?;

    begin("undumpable");
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|errno| {
        ("undumpable", StepError::errno("cannot forbid tracing", errno.raw_os_error(), ""))
    })?;

    begin("fork");
    fork(plan, control, signals).map_err(|error| ("fork", error))
}

/// Blocks every signal, and opens the descriptor that tells of ended children.
fn block_signals() -> Result<SignalFd, StepError> {
    // An inherited "ignore" of SIGCHLD would lose the exit status.
    sys::reset_signals();
    SigSet::all()
        .thread_set_mask()
        .map_err(|errno| StepError::errno("cannot block signals", errno as i32, ""))?;
    let mut children = SigSet::empty();
    children.add(nix::sys::signal::Signal::SIGCHLD);
    SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(|errno| StepError::errno("cannot watch for ended children", errno as i32, ""))
}

fn fork(plan: Plan, control: &OwnedFd, signals: SignalFd) -> Result<(), StepError> {
    const ADVICE: &str = "raise the supervisor's process and open file limits";
    let (executed, executing) =
        io::pipe().map_err(|error| StepError::io("cannot make a pipe", &error, ADVICE))?;
    match sys::fork().map_err(|error| StepError::io("cannot fork", &error, ADVICE))? {
        Side::Child => {
            drop((executed, signals));
            child(&plan, control, executing)
        }
        Side::Parent(program) => {
            drop((executing, plan));
            monitor::run(program, control, executed, signals)
        }
    }
}

/// What the child says to the monitor over the pipe whose end means that it has executed…
const EXECUTING: u8 = b'x';
/// … or has not, and has told the supervisor why.
const REPORTED: u8 = b'f';

fn child(plan: &Plan, control: &OwnedFd, mut executing: PipeWriter) -> ! {
    let (step, error) = match take_steps(plan, control) {
        Ok(()) => {
            step::begin(control.as_fd(), "program");
            // A pipe that nobody reads means a monitor that is dead, and so are we.
            let _ = executing.write_all(&[EXECUTING]);
            ("program", program::execute(plan))
        }
        Err(failed) => failed,
    };
    let _ = wire::send(control.as_fd(), &Note::failed(step, &error.reason), &[]);
    let _ = executing.write_all(&[REPORTED]);
    exit(NOT_RUN);
}

fn take_steps(plan: &Plan, control: &OwnedFd) -> Result<(), (&'static str, StepError)> {
    for step in STEPS {
        step.take(plan, control.as_fd()).map_err(|error| (step.name, error))?;
    }
    step::begin(control.as_fd(), "unblock");
    SigSet::empty()
        .thread_set_mask()
        .map_err(|errno| ("unblock", StepError::errno("cannot unblock signals", errno as i32, "")))
}
