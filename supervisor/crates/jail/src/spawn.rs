//! Starts one program: the supervisor's side.

use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use crate::check::SpecError;
use crate::image::{SEALS, Stage};
use crate::monitor::Monitor;
use crate::network::{LISTENERS_MAX, Network};
use crate::process_identity::pid_of;
use crate::profile::Learner;
use crate::progress::Progress;
use crate::report::Report;
use crate::spec::{JailSpec, Mode, SPEC_MAX_BYTES};
use crate::standby::{StageEndpoints, StartedStage};
use crate::wire::{
    self, DescriptorRole, NamespaceRequest, ReceiveOutcome, StageCommand, StageNote, StageRequest,
};
use crate::zygote::{is_disconnected, remaining, wait_ready};
use crate::{check, reaper};

/// A program that runs in its jail.
#[derive(Debug)]
pub struct JailedProgram {
    /// The program's pid as the supervisor sees it; 0 if it has ended already.
    pub pid: u32,
    /// Read end of the program's standard output. Any process of the program may hold the write end.
    pub stdout: OwnedFd,
    /// Read end of the program's standard error.
    pub stderr: OwnedFd,
    /// For a learning profile: records the calls outside the profile.
    pub learner: Option<Learner>,
    /// The program's private directory ([`View::private`](crate::View)), which exists only in its namespaces.
    pub private: Option<OwnedFd>,
    /// The sockets of its [`LoopbackListeners`](crate::LoopbackListeners), in their order; none if they could
    /// not be made.
    pub listeners: Vec<OwnedFd>,
    /// Which protections are in force.
    pub report: Report,
    /// The handle that keeps it alive.
    pub monitor: Monitor,
}

/// Why a program was not started. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The spec contradicts itself.
    #[error("the jail's spec is wrong: {0}")]
    Spec(#[source] SpecError),
    /// The spec cannot be encoded for the stage.
    #[error("the jail's spec cannot be encoded: {0} (please report this)")]
    Encode(#[source] serde_json::Error),
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
    /// A descriptor or a memory file could not be made.
    #[error(
        "cannot make the {what} for the jail's stage: {source} ({})", descriptor_help(source).unwrap_or("check the open file limit and free memory")
    )]
    Resource {
        /// Its name.
        what: &'static str,
        /// The kernel's error.
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
    /// The stage ended without a report.
    #[error(
        "the jail's stage ended during the step `{step}` without saying why (see the kernel log for an out-of-memory kill)"
    )]
    StageLost {
        /// The last step that began.
        step: String,
    },
    /// The stage violated the protocol.
    #[error("the jail's stage cannot be understood: {0} (is the running supervisor whole? reinstall it)")]
    Protocol(#[source] io::Error),
    /// The stage took too long.
    #[error("the step `{step}` of the jail did not end within {} ms (is a file system stuck, or the machine overloaded?)", after.as_millis())]
    TimedOut {
        /// The last step that began.
        step: String,
        /// The timeout.
        after: Duration,
    },
}

/// What to do if this error says that the process, or the machine, has no descriptor left.
#[must_use]
pub fn descriptor_help(error: &io::Error) -> Option<&'static str> {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE)).then_some(
        "no descriptor is left: raise LimitNOFILE= in the supervisor's service, or `ulimit -n` where it is started",
    )
}

/// How long a failed stage may take to exit before it is killed, and again after that. It only has to exit,
/// so one second is a thousand times what it needs. After that, it is left to be reaped later.
const STAGE_EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Descriptors that are passed along with a spec.
#[derive(Debug, Clone, Copy, Default)]
pub struct InheritedFds<'fd> {
    /// The program's file, for [`Program::Descriptor`](crate::Program::Descriptor).
    pub program: Option<BorrowedFd<'fd>>,
    /// The program's standard input; `/dev/null` if absent.
    pub stdin: Option<BorrowedFd<'fd>>,
    /// The `cgroup.procs` of its cgroup, open for writing.
    pub group: Option<BorrowedFd<'fd>>,
}

impl<'fd> InheritedFds<'fd> {
    fn roles(&self) -> impl Iterator<Item = (DescriptorRole, BorrowedFd<'fd>)> {
        [
            (DescriptorRole::Program, self.program),
            (DescriptorRole::Stdin, self.stdin),
            (DescriptorRole::Group, self.group),
        ]
        .into_iter()
        .filter_map(|(role, descriptor)| Some((role, descriptor?)))
    }
}

/// Starts the stage, passes it the spec (and the program's descriptor), and waits until the program runs.
///
/// Blocks for `timeout` at most (and two seconds to clean up after one that timed out), so async callers use
/// `spawn_blocking`. On an error nothing is left behind.
pub fn spawn(
    stage: &Stage,
    spec: &JailSpec,
    given: &InheritedFds<'_>,
    timeout: Duration,
) -> Result<JailedProgram, SpawnError> {
    reaper::reap_ended();
    check::spec(spec, given.program.is_some()).map_err(SpawnError::Spec)?;
    // A deadline that the clock cannot represent means no deadline.
    let deadline = Instant::now().checked_add(timeout);

    let resolved = resolve_paths(spec)?;
    let spec = resolved.as_ref().unwrap_or(spec);
    let request = encode_spec(spec)?;
    let resource = |what| move |source| SpawnError::Resource { what, source };
    let progress = Progress::new().map_err(resource("memory file for its progress"))?;
    let (mut roles, mut descriptors): (Vec<_>, Vec<_>) = given.roles().unzip();
    roles.insert(0, DescriptorRole::Progress);
    descriptors.splice(0..0, [request.as_fd(), progress.as_fd()]);
    let order = StageCommand::Start(roles);
    let send = |ends: &StageEndpoints| wire::send(ends.control.as_fd(), &order, &descriptors);

    let call = stage_request(spec);
    let ahead = stage.take_standby(&call).and_then(|spare| match send(&spare.endpoints) {
        Ok(()) => Some(spare),
        // The stage was killed.
        Err(_) => {
            spare.discard();
            None
        }
    });
    let StartedStage { endpoints: ends, zygote } = match ahead {
        Some(newborn) => newborn,
        None => {
            let (ends, theirs) =
                StageEndpoints::create().map_err(|(what, source)| SpawnError::Resource { what, source })?;
            // The request waits in the socket until the stage reads it.
            send(&ends).map_err(resource("request"))?;
            let zygote = stage.start(&call, theirs, deadline).map_err(|error| {
                if is_disconnected(&error) {
                    SpawnError::StageLost { step: progress.step() }
                } else {
                    SpawnError::Stage(error)
                }
            })?;
            StartedStage { endpoints: ends, zygote }
        }
    };
    let StageEndpoints { control, stdout, stderr } = ends;
    let mut monitor = None;
    match await_running(spec, &control, &progress, &mut monitor, deadline, timeout) {
        Ok(StartedProgram { program, monitor, private, learner, listeners, report }) => {
            stage.prepare_standby(&call);
            Ok(JailedProgram {
                pid: pid_of(program.as_fd()),
                stdout,
                stderr,
                learner,
                private,
                listeners,
                report,
                monitor: Monitor::new(pid_of(monitor.as_fd()), monitor, control, program),
            })
        }
        Err(error) => {
            match (monitor, &error) {
                (Some(pidfd), _) => clean_up(pidfd, control),
                (None, SpawnError::StageLost { .. } | SpawnError::TimedOut { .. }) => {
                    stage.discard_zygote(&zygote)
                }
                (None, _) => {}
            }
            Err(error)
        }
    }
}

/// The parts of a spec that the zygote needs.
fn stage_request(spec: &JailSpec) -> StageRequest {
    let isolation = spec.isolation.as_ref().filter(|_| spec.mode != Mode::Off);
    let namespaces = isolation.map(|isolation| NamespaceRequest {
        network: !matches!(isolation.network, Network::Host { .. }),
        own_uid: spec.identity.is_some(),
    });
    StageRequest { namespaces, ahead: false }
}

/// The spec with every host path replaced by its real path, if it has any. The stage follows no links, since
/// it may see other owners than the host does. An untrusted link refuses the program in every mode: otherwise
/// its owner could disable another program's protection.
fn resolve_paths(spec: &JailSpec) -> Result<Option<JailSpec>, SpawnError> {
    let mut spec = spec.clone();
    match (&mut spec.isolation, spec.mode) {
        (None, _) | (_, Mode::Off) => return Ok(None),
        (Some(isolation), _) => isolation
            .view
            .resolve(spec.identity)
            .map_err(|error| SpawnError::Step { step: "filesystem".into(), reason: error.to_string() })?,
    }
    Ok(Some(spec))
}

/// The spec in a sealed memory file, since it does not fit into a packet.
fn encode_spec(spec: &JailSpec) -> Result<OwnedFd, SpawnError> {
    let text = serde_json::to_vec(spec).map_err(SpawnError::Encode)?;
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

struct StartedProgram {
    program: OwnedFd,
    monitor: OwnedFd,
    learner: Option<Learner>,
    private: Option<OwnedFd>,
    listeners: Vec<OwnedFd>,
    report: Report,
}

/// Reads the stage's messages until the program runs. `monitor` is the stage, from its first message on.
fn await_running(
    spec: &JailSpec,
    control: &OwnedFd,
    progress: &Progress,
    monitor: &mut Option<OwnedFd>,
    deadline: Option<Instant>,
    timeout: Duration,
) -> Result<StartedProgram, SpawnError> {
    let mut report = Report::new();
    let mut learner = None;
    let mut listeners = Vec::new();
    loop {
        match wire::receive::<StageNote>(control).map_err(SpawnError::Protocol)? {
            ReceiveOutcome::Packet(StageNote::Born, descriptors) => {
                *monitor = Some(descriptors.into_iter().next().ok_or_else(|| missing_pidfd("stage"))?);
            }
            ReceiveOutcome::Packet(StageNote::Report(lines), _) => report.extend(lines),
            ReceiveOutcome::Packet(StageNote::Failed { step, reason }, _) => {
                return Err(SpawnError::Step { step, reason });
            }
            ReceiveOutcome::Packet(StageNote::Listening, mut descriptors) => {
                // Must be started at once: the stage itself may make a call that waits for an answer.
                if let (Some(listener), Some(isolation)) = (descriptors.pop(), &spec.isolation) {
                    let started = Learner::start(listener, &isolation.profile);
                    learner =
                        Some(started.map_err(|source| SpawnError::Resource { what: "learner", source })?);
                }
            }
            ReceiveOutcome::Packet(StageNote::LoopbackListener, descriptors) => {
                listeners.extend(descriptors);
                if listeners.len() > LISTENERS_MAX {
                    return Err(SpawnError::Protocol(io::Error::other("there are too many listeners")));
                }
            }
            ReceiveOutcome::Packet(StageNote::Running, descriptors) => {
                let mut descriptors = descriptors.into_iter();
                let program = descriptors.next().ok_or_else(|| missing_pidfd("running program"))?;
                let monitor = monitor.take().ok_or_else(|| missing_pidfd("stage"))?;
                let private = descriptors.next();
                return Ok(StartedProgram { program, monitor, private, learner, listeners, report });
            }
            ReceiveOutcome::Packet(StageNote::Ended(_), _) => {
                return Err(SpawnError::Protocol(io::Error::other("the program ended before it ran")));
            }
            ReceiveOutcome::Closed => return Err(SpawnError::StageLost { step: progress.step() }),
            ReceiveOutcome::Empty => {
                let left = remaining(deadline);
                let input = PollFlags::IN;
                if left.is_zero()
                    || !wait_ready(control.as_fd(), input, left).map_err(SpawnError::Protocol)?
                {
                    return Err(SpawnError::TimedOut { step: progress.step(), after: timeout });
                }
            }
        }
    }
}

fn missing_pidfd(who: &str) -> SpawnError {
    SpawnError::Protocol(io::Error::other(format!("the {who} came without its pidfd")))
}

/// Ends a stage whose program will not run. For a working stage, closing the control socket is enough. One
/// that hangs is killed, and its child with it (parent-death signal).
fn clean_up(pidfd: OwnedFd, control: OwnedFd) {
    drop(control);
    if !wait_ready(pidfd.as_fd(), PollFlags::IN, STAGE_EXIT_TIMEOUT).unwrap_or(false) {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
        let _ = wait_ready(pidfd.as_fd(), PollFlags::IN, STAGE_EXIT_TIMEOUT);
    }
    reaper::reap_later(pidfd);
}
