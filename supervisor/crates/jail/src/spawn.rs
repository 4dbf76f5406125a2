//! Starting one program: the supervisor's side.

use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::image::{SEALS, Stage};
use crate::monitor::Monitor;
use crate::report::{self, Report};
use crate::spec::{JailSpec, SPEC_MAX_BYTES};
use crate::wire::{self, Note, Order, Received};
use crate::{check, graveyard};

/// A program that runs in its jail.
#[derive(Debug)]
pub struct Jailed {
    /// Of the program, as the supervisor sees it.
    pub pid: u32,
    /// Read end of the program's standard output. Everything below the program may hold the other one.
    pub stdout: OwnedFd,
    /// Read end of the program's standard error.
    pub stderr: OwnedFd,
    /// What holds and what does not.
    pub report: Report,
    /// The handle that keeps it alive.
    pub monitor: Monitor,
}

/// Why a program was not started. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The spec contradicts itself.
    #[error("the jail's spec is wrong: {0}")]
    Spec(String),
    /// Arguments and environment are too long.
    #[error(
        "arguments and environment are too long: {bytes} bytes encoded, the most is {limit} (pass large input by file)"
    )]
    SpecTooLarge {
        /// How long the encoded spec is.
        bytes: u64,
        /// How long it may be.
        limit: u64,
    },
    /// A descriptor or a memory file could not be had.
    #[error(
        "cannot make the {what} for the jail's stage: {source} (check the open file limit and free memory)"
    )]
    Resource {
        /// Which one.
        what: &'static str,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The stage could not be started.
    #[error("cannot start the jail's stage: {0} (check the process and memory limits of the supervisor)")]
    Stage(#[source] io::Error),
    /// A step of the stage failed; the reason ends with what to do.
    #[error("{step}: {reason}")]
    Step {
        /// The step's name, as the stage's documentation lists it.
        step: String,
        /// What went wrong and what to do about it.
        reason: String,
    },
    /// The stage ended without a word.
    #[error(
        "the jail's stage ended during the step `{step}` without saying why (see the kernel log for an out-of-memory kill)"
    )]
    StageLost {
        /// The last step that began.
        step: String,
    },
    /// The stage sent what the protocol does not have.
    #[error("the jail's stage cannot be understood: {0} (is the running supervisor whole? reinstall it)")]
    Protocol(#[source] io::Error),
    /// The stage took too long.
    #[error("the step `{step}` of the jail did not end within {} ms (is a file system stuck, or the machine overloaded?)", after.as_millis())]
    TimedOut {
        /// The last step that began.
        step: String,
        /// How long was waited.
        after: Duration,
    },
}

/// The step before the stage has named one.
const FIRST_STEP: &str = "start";

/// How long a stage that has failed may take to end before it is killed, and to end when it was. It only has to
/// exit, so that one second is a thousand times what it needs; after it, it is left to be reaped later.
const STAGE_END: Duration = Duration::from_secs(1);

/// Starts the stage, hands it the spec (and the program's descriptor), and waits until the program runs.
///
/// Blocking, for `timeout` at most (and two seconds to clear up after one that timed out), so async callers use
/// `spawn_blocking`. On an error nothing is left behind.
pub fn spawn(
    stage: &Stage,
    spec: &JailSpec,
    program: Option<BorrowedFd<'_>>,
    timeout: Duration,
) -> Result<Jailed, SpawnError> {
    graveyard::sweep();
    check::spec(spec, program.is_some()).map_err(SpawnError::Spec)?;
    // A time that the clock cannot hold is one that nobody waits for.
    let deadline = Instant::now().checked_add(timeout);

    let request = request(spec)?;
    let resource = |what| move |source| SpawnError::Resource { what, source };
    let (control, stage_control) = wire::pair().map_err(resource("control socket"))?;
    let (stdout, stage_stdout) = io::pipe().map_err(resource("pipe for its output"))?;
    let (stderr, stage_stderr) = io::pipe().map_err(resource("pipe for its errors"))?;
    // The request waits in the socket until the stage is there to take it.
    let mut descriptors = vec![request.as_fd()];
    descriptors.extend(program);
    wire::send(control.as_fd(), &Order::Start, &descriptors).map_err(resource("request"))?;

    let mut child =
        stage.start(stage_control, stage_stdout.into(), stage_stderr.into()).map_err(SpawnError::Stage)?;
    // The child is not reaped before its pidfd is there, so that the number is still its own.
    let pidfd = match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(errno) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(SpawnError::Resource { what: "pidfd", source: errno.into() });
        }
    };
    match await_running(&control, deadline, timeout) {
        Ok(Running { pid, program, report }) => Ok(Jailed {
            pid,
            stdout: stdout.into(),
            stderr: stderr.into(),
            report,
            monitor: Monitor::new(child.id(), pidfd, control, program),
        }),
        Err(error) => {
            clear_up(pidfd, control);
            Err(error)
        }
    }
}

/// The spec in a sealed memory file: a packet has not room for it.
fn request(spec: &JailSpec) -> Result<OwnedFd, SpawnError> {
    let text = serde_json::to_vec(spec).map_err(|error| SpawnError::Spec(error.to_string()))?;
    let bytes = text.len() as u64;
    if bytes > SPEC_MAX_BYTES {
        return Err(SpawnError::SpecTooLarge { bytes, limit: SPEC_MAX_BYTES });
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let written = match memfd_create("talon-jail-spec", flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3.
        Err(Errno::INVAL) => memfd_create("talon-jail-spec", flags),
        other => other,
    }
    .map_err(io::Error::from)
    .and_then(|file| {
        let mut file = std::fs::File::from(file);
        file.write_all(&text)?;
        fcntl_add_seals(&file, SEALS)?;
        Ok(OwnedFd::from(file))
    });
    written.map_err(|source| SpawnError::Resource { what: "request", source })
}

struct Running {
    pid: u32,
    program: OwnedFd,
    report: Report,
}

/// Follows the stage's notes until the program runs.
fn await_running(
    control: &OwnedFd,
    deadline: Option<Instant>,
    timeout: Duration,
) -> Result<Running, SpawnError> {
    let mut step = FIRST_STEP.to_owned();
    let mut report = Report::new();
    loop {
        match wire::receive::<Note>(control).map_err(SpawnError::Protocol)? {
            Received::Packet(Note::Begins(begins), _) => step = begins,
            Received::Packet(Note::Holds(line), _) => report.push(line),
            Received::Packet(Note::Failed { step, reason }, _) => {
                return Err(SpawnError::Step { step, reason });
            }
            Received::Packet(Note::Running { pid }, mut descriptors) => {
                let program = descriptors.pop().ok_or_else(|| {
                    SpawnError::Protocol(io::Error::other("the running program came without its pidfd"))
                })?;
                report.extend(report::not_built());
                return Ok(Running { pid, program, report });
            }
            Received::Packet(Note::Ended(_), _) => {
                return Err(SpawnError::Protocol(io::Error::other("the program ended before it ran")));
            }
            Received::Closed => return Err(SpawnError::StageLost { step }),
            Received::Nothing => {
                let left = deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
                if left.is_zero() || !readable(control.as_fd(), left).map_err(SpawnError::Protocol)? {
                    return Err(SpawnError::TimedOut { step, after: timeout });
                }
            }
        }
    }
}

/// Waits until a descriptor is readable, or closed at its other end; false when the time is over.
fn readable(descriptor: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    // A timeout that the kernel's type cannot hold is one that nobody waits for.
    let timeout = Timespec::try_from(timeout).ok();
    let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    match retry_on_intr(|| poll(&mut polled, timeout.as_ref())) {
        Ok(ready) => Ok(ready > 0),
        Err(errno) => Err(errno.into()),
    }
}

/// Ends a stage whose program will not run. The closed control socket is enough for one that works; one that
/// hangs is killed, and takes what it forked with it (parent-death signal).
fn clear_up(pidfd: OwnedFd, control: OwnedFd) {
    drop(control);
    if !readable(pidfd.as_fd(), STAGE_END).unwrap_or(false) {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
        let _ = readable(pidfd.as_fd(), STAGE_END);
    }
    graveyard::bury(pidfd);
}
