//! The stage: a small process with one thread that builds the jail, and stays as the program's monitor.
//!
//! It is our own image again, started with posix_spawn: an empty environment, a socket as standard input. The executed
//! process is the zygote, and each stage is a clone of it (see [`zygote`]). Each step below has a name. A failed step
//! is reported by that name with advice, and the program does not run.
//!
//! # In the zygote, once
//!
//! | what | why |
//! |---|---|
//! | its socket off descriptor 0 and close-on-exec, `/dev/null` in its place, everything from 3 on closed | so that nothing inherited is open during the other steps |
//! | every signal has its default action and is blocked | also in its clones: a monitor ignores SIGTERM, SIGINT and SIGHUP, and only its control socket ends it |
//! | own session | a ^C is for the supervisor to handle |
//! | other processes may not trace it or read its memory | it may share a uid with programs |
//! | for each request a clone, as a child of the supervisor: into new mount, pid, network, IPC and UTS namespaces, without CAP_SYS_ADMIN also a user namespace | all of them or none, so that a refusal leaves nothing half done. A standby stage ([`crate::spare`]) makes its mount namespace in its step `namespaces` |
//!
//! # In the stage, which becomes the monitor
//!
//! | step | what | why there |
//! |---|---|---|
//! | `request` | the spec and the program's descriptor are read from the control socket | |
//! | `session` | own session, away from the zygote's | |
//! | `memory-group` | the cgroup, if one was given | before the cgroup namespace, so that its own cgroup is the root that the program sees; everything below is counted from its first page |
//! | `last-place` | first to be killed when memory is short, for the whole session; no inherited real-time policy, I/O class, or personality | after `session`; while the files in `/proc` are our own |
//! | `namespaces` | maps its own ids, in a user namespace; makes the mount namespace, for a standby stage; makes the cgroup namespace | before anything is built in them |
//! | `host-name` | the same for every program | |
//! | `memory-group` | without a cgroup: a `/proc` for watching the processes' memory | before the private root hides the host's `/proc`, without which an unprivileged process may mount no other |
//! | `network` | the loopback interface, where it is granted | needs a right that is given up later |
//! | `filesystem` | the private root, see [`root`] | likewise |
//! | `last-share` | lowest CPU share, for the whole session | late, so that it slows the program rather than us |
//! | `subreaper` | orphans below become our children | before the fork, so that none is missed |
//! | `undumpable` | other processes of our uid may not trace us or read our memory | after what writes to `/proc/self`; holds for the child too, until it executes |
//! | `fork` | the child continues below; the monitor watches it, see [`monitor`] | |
//!
//! # In the child
//!
//! [`STEPS`] is this list; it grows with the jail.
//!
//! | step | what | why there |
//! |---|---|---|
//! | `process-group` | a new process group | so that it can be signalled as a whole from the start |
//! | `standard-input` | the passed descriptor | |
//! | `output` | it becomes the owner of its pipes, so that it can open `/dev/stdout` | needs CAP_CHOWN, so before the uid change |
//! | `parent-death` | SIGKILL when the monitor dies | as early as possible; requested again after the uid change, which clears it |
//! | `process-count` | RLIMIT_NPROC | before the uid change, when the kernel checks it |
//! | `bounding-set` | no capability can be gained by executing a file | needs CAP_SETPCAP, so before the uid change |
//! | `identity` | no groups, then gid, then uid, then no capability; then it tries to undo this, which must fail | gid first: the uid change removes the right to do so |
//! | `process-tree` | the parent-death signal again, and whether the monitor is still there | after the uid change |
//! | `no-new-privs` | set-uid files and file capabilities give nothing | after everything that needs privileges |
//! | `keyring` | a new session keyring | after the uid change, so that the program owns it |
//! | `umask` | 077 | |
//! | `directory` | the working directory | after the uid change: the program's own rights decide |
//! | `capabilities` | all sets emptied, and read back | after everything that may need one |
//! | `landlock` | what may be done with the files that it sees; ports, abstract sockets, signals | after everything that opens files freely; later steps can still read `/proc` |
//! | `cpu-share` | nice | late, so that it slows the program rather than us |
//! | `huge-pages` | enabled again, where the supervisor disables them | its monitor needs none |
//! | `rlimits` | open files, file size, locked memory, data, stack, core, priorities; whether `last-place` succeeded | late, so that they bind the program rather than us |
//! | `system-calls` | only the profile's system calls from here on | after everything that needs other calls than a program |
//! | `learning` | only if requested: the filter's listener is sent to the supervisor | |
//! | `report` | the report is sent to the supervisor | once it is complete |
//! | `unblock` | no signal is blocked | last, so that nothing interrupts a step |
//! | `program` | executed by descriptor, or by path | |
//!
//! The end of a close-on-exec pipe between child and monitor shows that the program was executed.

mod capabilities;
mod cpu_usage;
mod descriptors;
mod filter;
mod group;
mod identity;
mod keyring;
mod landlock;
mod learn;
pub(crate) mod limits;
mod memory_watch;
mod monitor;
mod namespaces;
mod network;
mod priority;
mod process_tree;
mod program;
mod request;
mod root;
mod session;
mod step;
mod zygote;

use std::io::{self, PipeWriter, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::process::exit;

use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::getpid;

use self::namespaces::StageOrigin;
use self::request::Plan;
use self::step::{Step, StepError, base, protection};
use crate::image::STAGE_NAME;
use crate::probe::{FEATURE_PROBE_NAME, become_feature_probe};
use crate::report::{
    BOUNDING_SET, CAPABILITIES, CPU_SHARE, FILESYSTEM, KEYRING, LANDLOCK, MEMORY_GROUP, NAMESPACES, NETWORK,
    NO_NEW_PRIVS, OWN_UID, PROCESS_COUNT, PROCESS_TREE, RLIMITS, SYSTEM_CALLS,
};
use crate::sys::{self, ForkSide};
use crate::wire::{self, StageNote};

/// The exit code of a stage or its child when the program did not run. The supervisor has the reason by then;
/// sysexits.h calls this number "internal software error".
const NOT_RUN_EXIT_CODE: i32 = 70;

/// What the stage does before it forks the program.
const FIRST_STEPS: &[Step] = &[
    protection(MEMORY_GROUP, group::join),
    base("last-place", "", priority::lower_session_priority),
    protection(NAMESPACES, namespaces::finish),
    base("host-name", "", namespaces::set_host_name),
    protection(MEMORY_GROUP, group::start_memory_watch),
    protection(NETWORK, network::set_up),
    protection(FILESYSTEM, root::set_up),
    base("last-share", "", priority::lower_session_share),
    base("subreaper", "", session::adopt_orphans),
    base("undumpable", "", session::forbid_tracing),
];

/// What the child does, in this order.
const STEPS: &[Step] = &[
    base("process-group", "", session::new_process_group),
    base("standard-input", "", descriptors::set_standard_input),
    base("output", "", descriptors::chown_output),
    base("parent-death", "", session::die_with_monitor),
    protection(PROCESS_COUNT, limits::process_count),
    protection(BOUNDING_SET, capabilities::drop_bounding_set),
    base("identity", OWN_UID, identity::switch_ids),
    base(PROCESS_TREE, PROCESS_TREE, session::tie_to_monitor),
    protection(NO_NEW_PRIVS, session::no_new_privs),
    protection(KEYRING, keyring::join_new_session),
    base("umask", "", session::set_umask),
    base("directory", "", session::enter_directory),
    protection(CAPABILITIES, capabilities::drop_all),
    protection(LANDLOCK, landlock::restrict),
    protection(CPU_SHARE, priority::raise_niceness),
    base("huge-pages", "", priority::allow_huge_pages),
    protection(RLIMITS, limits::per_process),
    protection(SYSTEM_CALLS, filter::load),
];

/// To be the first line of `main()`: if this process was started as the stage (or as the feature probe), runs that and
/// never returns.
pub fn become_stage_if_asked() {
    match std::env::args_os().next() {
        Some(name) if name == STAGE_NAME => run(),
        Some(name) if name == FEATURE_PROBE_NAME => become_feature_probe(),
        _ => {}
    }
}

fn run() -> ! {
    let calls = match descriptors::take_socket() {
        Ok(calls) => calls,
        Err(error) => {
            // There is no supervisor to report to; only standard error is left.
            let text = format!("{STAGE_NAME}: descriptors: {} (only `talon` starts this)\n", error.reason);
            let _ = io::stderr().write_all(text.as_bytes());
            exit(NOT_RUN_EXIT_CODE);
        }
    };
    // A zygote with an error ends, and the supervisor starts another.
    let Ok((control, born)) = zygote::serve(calls) else { exit(NOT_RUN_EXIT_CODE) };
    if let Err((step, error)) = build(&control, born) {
        let _ = wire::send(control.as_fd(), &StageNote::failed(step, &error.reason), &[]);
    }
    exit(NOT_RUN_EXIT_CODE);
}

/// The stage's own steps; returns only when one fails.
fn build(control: &OwnedFd, born: StageOrigin) -> Result<(), (&'static str, StepError)> {
    let plan = request::receive(control, born).map_err(|error| ("request", error))?;
    zygote::become_dumpable().map_err(|error| ("request", error))?;

    plan.progress.begin("session");
    rustix::process::setsid()
        .map_err(|errno| ("session", StepError::errno("cannot begin a session", errno.raw_os_error(), "")))?;

    run_steps(FIRST_STEPS, &plan)?;

    plan.progress.begin("fork");
    let signals = child_signal_fd().map_err(|error| ("signals", error))?;
    fork(plan, control, signals).map_err(|error| ("fork", error))
}

/// Blocks every signal, here and in everything that is cloned from here.
fn block_signals() -> Result<(), StepError> {
    // An inherited "ignore" of SIGCHLD would lose the exit status.
    sys::reset_signals();
    SigSet::all()
        .thread_set_mask()
        .map_err(|errno| StepError::errno("cannot block signals", errno as i32, ""))
}

/// Opens the signalfd for ended children.
fn child_signal_fd() -> Result<SignalFd, StepError> {
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
        ForkSide::Child => {
            drop((executed, signals));
            child(&plan, control, executing)
        }
        ForkSide::Parent(program) => {
            drop(executing);
            monitor::run(program, control, executed, signals, plan)
        }
    }
}

/// Sent by the child to the monitor just before it executes the program. The end of that pipe means that it has
/// executed…
const EXECUTING: u8 = b'x';
/// … or has not, and has sent the supervisor the reason.
const REPORTED: u8 = b'f';

fn child(plan: &Plan, control: &OwnedFd, mut executing: PipeWriter) -> ! {
    let (step, error) = match run_child_steps(plan, control) {
        Ok(()) => {
            plan.progress.begin("program");
            // A closed pipe means that the monitor is dead, and then this process is killed too.
            let _ = executing.write_all(&[EXECUTING]);
            ("program", program::execute(plan))
        }
        Err(failed) => failed,
    };
    let _ = wire::send(control.as_fd(), &StageNote::failed(step, &error.reason), &[]);
    let _ = executing.write_all(&[REPORTED]);
    exit(NOT_RUN_EXIT_CODE);
}

fn run_steps(steps: &[Step], plan: &Plan) -> Result<(), (&'static str, StepError)> {
    for step in steps {
        step.execute(plan).map_err(|error| (step.name, error))?;
    }
    Ok(())
}

fn run_child_steps(plan: &Plan, control: &OwnedFd) -> Result<(), (&'static str, StepError)> {
    run_steps(STEPS, plan)?;
    plan.progress.begin("report");
    // A lost line would hide that a protection is missing.
    wire::send_report(control.as_fd(), plan.report.take())
        .map_err(|error| ("report", StepError::io("cannot report", &error, "")))?;
    learn::send_listener(plan, control.as_fd()).map_err(|error| ("learning", error))?;
    plan.progress.begin("unblock");
    SigSet::empty()
        .thread_set_mask()
        .map_err(|errno| ("unblock", StepError::errno("cannot unblock signals", errno as i32, "")))
}
