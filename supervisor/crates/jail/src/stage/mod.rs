//! The stage: a small process with one thread that builds the jail, and stays as the program's monitor.
//!
//! It is our own image again, started with posix_spawn: an empty environment, a socket as standard input. What is
//! executed is the zygote, and each stage is a clone of it (see [`zygote`]). Each step below has a name. A step that
//! fails is reported by that name with what to do about it, and the program does not run.
//!
//! # In the zygote, once
//!
//! | what | why |
//! |---|---|
//! | its socket off descriptor 0 and close-on-exec, `/dev/null` in its place, everything from 3 on closed | nothing inherited is around while anything else happens |
//! | every disposition of a signal is the default one, every signal is blocked | so are its clones': a monitor is deaf to SIGTERM, SIGINT and SIGHUP, its control socket alone tells it to end |
//! | own session | a ^C is the supervisor's to handle |
//! | nobody may trace it or read its memory | it may share a uid with programs |
//! | for each call a clone, as a child of the supervisor: into new mounts, process numbers, network, IPC and host name, and users too without CAP_SYS_ADMIN | all of them or none, so that no half is left where they are refused. One that is made ahead of its program ([`crate::spare`]) takes its mounts in its step `namespaces` |
//!
//! # In the stage, which becomes the monitor
//!
//! | step | what | why there |
//! |---|---|---|
//! | `request` | the spec and the program's descriptor are read from the control socket | |
//! | `session` | own session, away from the zygote's | |
//! | `memory-group` | the cgroup, if one was given | before the view of cgroups, so that its own is the root of what the program sees; everything below is in it from its first page |
//! | `last-place` | first to be killed when memory is short, for the whole session; no inherited real-time class, class for the disk, or personality | after `session`; while the files in `/proc` are our own |
//! | `namespaces` | own ids are mapped, if users are among them; mounts, if it was made ahead; the view of cgroups | before anything is built in them |
//! | `host-name` | the same for every program | |
//! | `memory-group` | without a cgroup: a view of the processes by which their memory is watched | before the private root hides the host's `/proc`, without which an unprivileged process may mount no other |
//! | `network` | the loopback interface, where it is granted | needs a right that is given up later |
//! | `filesystem` | the private root, see [`root`] | likewise |
//! | `last-share` | last to be given a core, for the whole session | late, so that it slows the program rather than us |
//! | `subreaper` | orphans below become our children | before the fork, so that none is missed |
//! | `undumpable` | nobody of our uid may trace us or read our memory | after what writes to `/proc/self`; holds for the child too, until it executes |
//! | `fork` | the child goes on below; the monitor watches it, see [`monitor`] | |
//!
//! # In the child
//!
//! [`STEPS`] is this list; it grows with the jail.
//!
//! | step | what | why there |
//! |---|---|---|
//! | `process-group` | a group of its own | so that it can be signalled whole from the start |
//! | `standard-input` | what was given as that | |
//! | `output` | its pipes become its own, so that it can open `/dev/stdout` | needs CAP_CHOWN, so before the uid change |
//! | `parent-death` | SIGKILL when the monitor dies | as early as can be; said again after the uid change, which clears it |
//! | `process-count` | RLIMIT_NPROC | before the uid change, at which the kernel compares |
//! | `bounding-set` | no capability can come back by executing something | needs CAP_SETPCAP, so before the uid change |
//! | `identity` | no groups, then gid, then uid, then no capability; then it is tried to go back, which must fail | gid first: the uid change takes the right to |
//! | `process-tree` | the parent-death signal again, and whether the monitor is still there | after the uid change |
//! | `no-new-privs` | set-uid files and file capabilities give nothing | after everything that needs privileges |
//! | `keyring` | a session keyring of its own | after the uid change, so that it is its own |
//! | `umask` | 077 | |
//! | `directory` | the working directory | after the uid change: its own rights decide |
//! | `capabilities` | all sets emptied, and read back | last of what could need one |
//! | `landlock` | what may be done with the files that it sees; ports, abstract sockets, signals | last of what opens files freely; the steps after it find `/proc` readable |
//! | `cpu-share` | nice | late, so that it slows the program rather than us |
//! | `huge-pages` | allowed again, where the supervisor forgoes them | its monitor needs none |
//! | `rlimits` | open files, file size, locked memory, data, stack, core, priorities; whether `last-place` was given | late, so that they bind the program rather than us |
//! | `system-calls` | only the profile's system calls from here on | last of what needs others than a program does |
//! | `learning` | only if asked: the filter's listener goes to the supervisor | |
//! | `report` | what holds, line by line, goes to the supervisor | once nothing can be added to it |
//! | `unblock` | no signal is blocked | last, so that nothing interrupts a step |
//! | `program` | executed by descriptor, or by path | |
//!
//! That it was executed is seen by the end of a close-on-exec pipe between child and monitor.

mod capabilities;
mod descriptors;
mod filter;
mod group;
mod identity;
mod keyring;
mod landlock;
mod learn;
pub(crate) mod limits;
mod monitor;
mod namespaces;
mod network;
mod program;
mod request;
mod root;
mod session;
mod spent;
mod standing;
mod step;
mod tree;
mod watch;
mod zygote;

use std::io::{self, PipeWriter, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::process::exit;

use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::getpid;

use self::namespaces::Born;
use self::request::Plan;
use self::step::{Step, StepError, base, protection};
use crate::image::STAGE_NAME;
use crate::probe::{TRIAL_NAME, become_trial};
use crate::report::{
    BOUNDING_SET, CAPABILITIES, CPU_SHARE, FILESYSTEM, KEYRING, LANDLOCK, MEMORY_GROUP, NAMESPACES, NETWORK,
    NO_NEW_PRIVS, OWN_UID, PROCESS_COUNT, PROCESS_TREE, RLIMITS, SYSTEM_CALLS,
};
use crate::sys::{self, Side};
use crate::wire::{self, Note};

/// What a stage or its child exits with when the program did not run. The supervisor has the reason by then;
/// sysexits.h calls this number "internal software error".
const NOT_RUN: i32 = 70;

/// What the stage does before it forks the program.
const FIRST_STEPS: &[Step] = &[
    protection(MEMORY_GROUP, group::join),
    base("last-place", "", standing::take_last_place),
    protection(NAMESPACES, namespaces::take),
    base("host-name", "", namespaces::name_host),
    protection(MEMORY_GROUP, group::stand_in),
    protection(NETWORK, network::give),
    protection(FILESYSTEM, root::give),
    base("last-share", "", standing::take_last_share),
    base("subreaper", "", session::adopt_orphans),
    base("undumpable", "", session::undumpable),
];

/// What the child does, in this order.
const STEPS: &[Step] = &[
    base("process-group", "", session::own_group),
    base("standard-input", "", descriptors::standard_input),
    base("output", "", descriptors::own_output),
    base("parent-death", "", session::die_with_monitor),
    protection(PROCESS_COUNT, limits::process_count),
    protection(BOUNDING_SET, capabilities::drop_bounding_set),
    base("identity", OWN_UID, identity::become_own),
    base(PROCESS_TREE, PROCESS_TREE, session::tie_to_monitor),
    protection(NO_NEW_PRIVS, session::no_new_privs),
    protection(KEYRING, keyring::own),
    base("umask", "", session::private_umask),
    base("directory", "", session::directory),
    protection(CAPABILITIES, capabilities::drop_all),
    protection(LANDLOCK, landlock::restrict),
    protection(CPU_SHARE, standing::yield_to_others),
    base("huge-pages", "", standing::allow_huge_pages),
    protection(RLIMITS, limits::per_process),
    protection(SYSTEM_CALLS, filter::load),
];

/// First line of `main()`: if this process was started as the stage (or to try what the machine gives), does that
/// and never returns.
pub fn become_stage_if_asked() {
    match std::env::args_os().next() {
        Some(name) if name == STAGE_NAME => run(),
        Some(name) if name == TRIAL_NAME => become_trial(),
        _ => {}
    }
}

fn run() -> ! {
    let calls = match descriptors::take_socket() {
        Ok(calls) => calls,
        Err(error) => {
            // There is nobody to report to but whoever reads the program's errors.
            let text = format!("{STAGE_NAME}: descriptors: {} (only `talon` starts this)\n", error.reason);
            let _ = io::stderr().write_all(text.as_bytes());
            exit(NOT_RUN);
        }
    };
    // A zygote that cannot go on ends, and the supervisor starts another.
    let Ok((control, born)) = zygote::serve(calls) else { exit(NOT_RUN) };
    if let Err((step, error)) = build(&control, born) {
        let _ = wire::send(control.as_fd(), &Note::failed(step, &error.reason), &[]);
    }
    exit(NOT_RUN);
}

/// The stage's own steps; returns only when one fails.
fn build(control: &OwnedFd, born: Born) -> Result<(), (&'static str, StepError)> {
    let plan = request::receive(control, born).map_err(|error| ("request", error))?;
    zygote::be_open_to_ourselves().map_err(|error| ("request", error))?;

    plan.progress.begin("session");
    rustix::process::setsid()
        .map_err(|errno| ("session", StepError::errno("cannot begin a session", errno.raw_os_error(), "")))?;

    take(FIRST_STEPS, &plan)?;

    plan.progress.begin("fork");
    let signals = children_signals().map_err(|error| ("signals", error))?;
    fork(plan, control, signals).map_err(|error| ("fork", error))
}

/// Blocks every signal, here and in all that is cloned from here.
fn block_signals() -> Result<(), StepError> {
    // An inherited "ignore" of SIGCHLD would lose the exit status.
    sys::reset_signals();
    SigSet::all()
        .thread_set_mask()
        .map_err(|errno| StepError::errno("cannot block signals", errno as i32, ""))
}

/// Opens the descriptor that tells of ended children.
fn children_signals() -> Result<SignalFd, StepError> {
    let mut children = SigSet::empty();
    children.add(nix::sys::signal::Signal::SIGCHLD);
    SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(|errno| StepError::errno("cannot watch for ended children", errno as i32, ""))
}

const FORK_ADVICE: &str = "raise the supervisor's process and open file limits";

fn fork(mut plan: Plan, control: &OwnedFd, signals: SignalFd) -> Result<(), StepError> {
    plan.monitor = getpid();
    let (executed, executing) =
        io::pipe().map_err(|error| StepError::io("cannot make a pipe", &error, FORK_ADVICE))?;
    match sys::fork().map_err(|error| StepError::io("cannot fork", &error, FORK_ADVICE))? {
        Side::Child => {
            drop((executed, signals));
            child(&plan, control, executing)
        }
        Side::Parent(program) => {
            drop(executing);
            monitor::run(program, control, executed, signals, plan)
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
            plan.progress.begin("program");
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

fn take(steps: &[Step], plan: &Plan) -> Result<(), (&'static str, StepError)> {
    for step in steps {
        step.take(plan).map_err(|error| (step.name, error))?;
    }
    Ok(())
}

fn take_steps(plan: &Plan, control: &OwnedFd) -> Result<(), (&'static str, StepError)> {
    take(STEPS, plan)?;
    plan.progress.begin("report");
    // A line that is lost would claim a protection by silence.
    wire::send_report(control.as_fd(), plan.report.take())
        .map_err(|error| ("report", StepError::io("cannot report", &error, "")))?;
    learn::hand_over(plan, control.as_fd()).map_err(|error| ("learning", error))?;
    plan.progress.begin("unblock");
    SigSet::empty()
        .thread_set_mask()
        .map_err(|errno| ("unblock", StepError::errno("cannot unblock signals", errno as i32, "")))
}
