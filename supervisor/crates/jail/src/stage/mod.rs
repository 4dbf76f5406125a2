//! The stage: a small process with one thread that builds the jail, and stays as the program's monitor.
//!
//! It is our own image again, started with posix_spawn: an empty environment, a socket as standard input. The
//! executed process is the zygote, and each stage is a clone of it (see [`zygote`]). Each step below has a
//! name. A failed step is reported by that name with advice, and the program does not run.
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
//! | `network` | the loopback interface, where it is granted, and the supervisor's sockets on it; without a cgroup, smaller TCP buffers | needs a right that is given up later |
//! | `filesystem` | the private root, see [`root`] | likewise |
//! | `last-share` | lowest CPU share, for the whole session | late, so that it slows the program rather than us |
//! | `subreaper` | orphans below become our children | before the fork, so that none is missed |
//! | `undumpable` | other processes of our uid may not trace us or read our memory | after what writes to `/proc/self`; holds for the child too, until it executes |
//! | `fork` | the child continues below; the monitor watches it, see [`monitor`] | |
//!
//! # In the child
//!
//! `STEPS` in `child.rs` is this list; it grows with the jail.
//!
//! | step | what | why there |
//! |---|---|---|
//! | `process-group` | a new process group | so that it can be signalled as a whole from the start |
//! | `standard-input` | the passed descriptor | |
//! | `output` | it becomes the owner of its pipes, so that it can open `/dev/stdout` | needs CAP_CHOWN, so before the uid change |
//! | `parent-death` | SIGKILL when the monitor dies | as early as possible; requested again after the uid change, which clears it |
//! | `network` | with a list of ports, an empty network namespace; the monitor makes TCP sockets of the host's network for it, see [`socket_broker`] | needs CAP_SYS_ADMIN |
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
//! | `network` | whether the monitor's sockets cover everything | without capabilities, as the monitor makes them |
//! | `system-calls` | only the profile's system calls from here on | after everything that needs other calls than a program |
//! | `learning` | only if requested: the filter's listener is sent to the supervisor | |
//! | `report` | the report is sent to the supervisor | once it is complete |
//! | `unblock` | no signal is blocked | last, so that nothing interrupts a step |
//! | `program` | executed by descriptor, or by path | |
//!
//! The end of a close-on-exec pipe between child and monitor shows that the program was executed.

mod capabilities;
mod child;
mod cpu_usage;
mod descriptors;
mod filter;
mod group;
mod identity;
mod kernel_memory;
mod keyring;
mod landlock;
mod learn;
pub(crate) mod limits;
mod memory_watch;
mod monitor;
mod namespaces;
mod network;
mod origin;
mod priority;
mod process_tree;
mod program;
mod request;
mod root;
mod session;
mod signals;
mod socket_broker;
mod step;
mod step_error;
mod zygote;

use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::exit;

use nix::sys::signalfd::SignalFd;
use rustix::process::getpid;

use self::origin::StageOrigin;
use self::request::Plan;
use self::socket_broker::SocketBroker;
use self::step::{NOT_RUN_EXIT_CODE, Step, base, protection, run_steps};
use self::step_error::StepError;
use self::zygote::FORK_ADVICE;
use crate::image::STAGE_NAME;
use crate::report::{FILESYSTEM, MEMORY_GROUP, NAMESPACES, NETWORK};
use crate::sys::{self, ForkSide};
use crate::wire::{self, StageNote};

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

/// Runs as the zygote, and in its clones as the stage.
pub(crate) fn run() -> ! {
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
    let mut plan = request::receive(control, born).map_err(|error| ("request", error))?;
    zygote::become_dumpable().map_err(|error| ("request", error))?;

    plan.progress.begin("session");
    rustix::process::setsid()
        .map_err(|errno| ("session", StepError::errno("cannot begin a session", errno.raw_os_error(), "")))?;

    run_steps(FIRST_STEPS, &plan)?;
    network::hand_over_listeners(&mut plan, control).map_err(|error| (NETWORK, error))?;

    plan.progress.begin("fork");
    let signals = signals::child_signal_fd().map_err(|error| ("signals", error))?;
    fork(plan, control, signals).map_err(|error| ("fork", error))
}

fn fork(mut plan: Plan, control: &OwnedFd, signals: SignalFd) -> Result<(), StepError> {
    plan.monitor = getpid();
    let (executed, executing) =
        io::pipe().map_err(|error| StepError::io("cannot make a pipe", &error, FORK_ADVICE))?;
    let mut channel = None;
    if socket_broker::is_used(&plan) {
        let (child, monitor) = socket_broker::channel()
            .map_err(|error| StepError::io("cannot make the channel for its sockets", &error, FORK_ADVICE))?;
        plan.broker_channel = Some(child);
        channel = Some(monitor);
    }
    match sys::fork().map_err(|error| StepError::io("cannot fork", &error, FORK_ADVICE))? {
        ForkSide::Child => {
            drop((executed, signals, channel));
            child::run(&plan, control, executing)
        }
        ForkSide::Parent(program) => {
            drop((executing, plan.broker_channel.take()));
            let broker = channel.map(|channel| SocketBroker::new(channel, &plan));
            monitor::run(program, control, executed, signals, broker, plan)
        }
    }
}
