//! The request to the stage.

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use rustix::process::{Pid, getpid};

use super::kernel_memory::SocketBuffers;
use super::origin::{HeldNamespaces, StageOrigin};
use super::step_error::StepError;
use crate::progress::Progress;
use crate::report::{Protection, Report};
use crate::spec::{Isolation, JailSpec, Mode, Program, SPEC_MAX_BYTES};
use crate::wire::{self, DescriptorRole, ReceiveOutcome, StageCommand};

/// The spec, and what was prepared from it before the fork, so that later steps find nothing to refuse.
pub(super) struct Plan {
    pub(super) spec: JailSpec,
    /// The open program, for [`Program::Descriptor`].
    pub(super) program: Option<File>,
    /// The program's standard input, if it is to be other than `/dev/null`.
    pub(super) stdin: Option<OwnedFd>,
    /// The `cgroup.procs` of its cgroup, open for writing.
    pub(super) group: Option<File>,
    /// Our progress, for the supervisor.
    pub(super) progress: Progress,
    /// The report so far.
    pub(super) report: RefCell<Report>,
    pub(super) argv: Vec<CString>,
    pub(super) env: Vec<CString>,
    /// The filter's listener when learning, once the filter is loaded.
    pub(super) listener: OnceCell<OwnedFd>,
    /// The process that forks the program's.
    pub(super) monitor: Pid,
    /// How the stage was made; taken by the step `namespaces`.
    pub(super) origin: Cell<StageOrigin>,
    /// The namespaces, once there are any.
    pub(super) namespaces: OnceCell<HeldNamespaces>,
    /// The program's private directory inside them, for the supervisor.
    pub(super) private: OnceCell<OwnedFd>,
    /// Opened to set its session's share of the cores later, if needed.
    pub(super) session: OnceCell<File>,
    /// Whether its cgroup has the cpu controller, once it has joined one.
    pub(super) shares_cpu: OnceCell<bool>,
    /// The `/proc` by which the memory of its processes is watched.
    pub(super) watched_proc: OnceCell<OwnedFd>,
    /// The count of its sockets, where that is its own.
    pub(super) watched_sockets: OnceCell<SocketBuffers>,
    /// The child's end of the channel to the broker of its sockets, if it gets them from the monitor.
    pub(super) broker_channel: Option<OwnedFd>,
    /// Whether it has left the host's network for an empty one.
    pub(super) left_host_network: Cell<bool>,
    /// The supervisor's sockets on its loopback interface, until they are passed on.
    pub(super) listeners: OnceCell<Vec<OwnedFd>>,
}

impl Plan {
    /// The requested isolation, unless it is switched off.
    pub(super) fn isolation(&self) -> Option<&Isolation> {
        self.spec.isolation.as_ref().filter(|_| self.spec.mode != Mode::Off)
    }

    /// Adds a line to the report. Two steps may handle one protection (a cgroup, and its stand-in), and
    /// report the same when it is switched off.
    pub(super) fn add_to_report(&self, line: Protection) {
        let mut report = self.report.borrow_mut();
        if !report.contains(&line) {
            report.push(line);
        }
    }
}

/// Reads the request from the control socket. It was sent before the stage was made, so this does not wait
/// long.
pub(super) fn receive(control: &OwnedFd, born: StageOrigin) -> Result<Plan, StepError> {
    let received = wire::receive_waiting::<StageCommand>(control);
    let received = received.map_err(|error| StepError::io("cannot read the request", &error, ""))?;
    let ReceiveOutcome::Packet(StageCommand::Start(roles), descriptors) = received else {
        return Err(StepError::new("the first packet is not a request"));
    };
    let mut descriptors = descriptors.into_iter();
    let Some(text) = descriptors.next() else {
        return Err(StepError::new("the request came without a spec"));
    };
    // The size of the file, so that one read is enough.
    let size = rustix::fs::fstat(&text).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(SPEC_MAX_BYTES)).unwrap_or(0) + 1);
    let read = File::from(rewind(text)?).take(SPEC_MAX_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| StepError::io("cannot read the spec", &error, ""))?;
    let spec: JailSpec = serde_json::from_slice(&bytes)
        .map_err(|error| StepError::new(format!("cannot parse the spec: {error}")))?;
    let (mut program, mut stdin, mut group, mut progress) = (None, None, None, None);
    for (role, descriptor) in roles.into_iter().zip(descriptors) {
        match role {
            DescriptorRole::Program => program = Some(File::from(descriptor)),
            DescriptorRole::Stdin => stdin = Some(descriptor),
            DescriptorRole::Group => group = Some(File::from(descriptor)),
            DescriptorRole::Progress => progress = Some(Progress::from_descriptor(descriptor)),
        }
    }
    if matches!(spec.program, Program::Descriptor) && program.is_none() {
        return Err(StepError::new("the request came without the program's descriptor"));
    }
    let progress = progress.ok_or_else(|| StepError::new("the request came without a place for progress"))?;
    let report = RefCell::new(Report::new());
    let argv = spec.argv.iter().map(|argument| c_string(argument)).collect::<Result<_, _>>()?;
    let env = environment(&spec.env)?;
    let (namespaces, private, watched) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
    let listener = OnceCell::new();
    let monitor = getpid();
    Ok(Plan {
        spec,
        program,
        stdin,
        group,
        progress,
        report,
        argv,
        env,
        listener,
        monitor,
        origin: Cell::new(born),
        namespaces,
        private,
        watched_proc: watched,
        watched_sockets: OnceCell::new(),
        broker_channel: None,
        left_host_network: Cell::new(false),
        listeners: OnceCell::new(),
        session: OnceCell::new(),
        shares_cpu: OnceCell::new(),
    })
}

/// The descriptor has the writer's file position.
fn rewind(text: OwnedFd) -> Result<OwnedFd, StepError> {
    rustix::fs::seek(&text, rustix::fs::SeekFrom::Start(0))
        .map_err(|errno| StepError::errno("cannot read the spec", errno.raw_os_error(), ""))?;
    Ok(text)
}

/// The entries of an environment.
pub(super) fn environment(variables: &[(OsString, OsString)]) -> Result<Vec<CString>, StepError> {
    variables.iter().map(|(key, value)| c_string(&env_entry(key, value))).collect()
}

fn env_entry(key: &OsStr, value: &OsStr) -> OsString {
    let mut variable = key.to_owned();
    variable.push("=");
    variable.push(value);
    variable
}

pub(super) fn c_string(text: &OsStr) -> Result<CString, StepError> {
    CString::new(text.as_bytes()).map_err(|_| StepError::new("an argument or variable has a NUL byte in it"))
}
