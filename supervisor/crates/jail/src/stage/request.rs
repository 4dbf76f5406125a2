//! What the stage was asked to do.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use rustix::process::Pid;

use super::step::StepError;
use crate::spec::{JailSpec, Program, SPEC_MAX_BYTES};
use crate::wire::{self, Order, Received};

/// The spec, and what was made of it before the fork: the steps should find nothing left to refuse.
pub(super) struct Plan {
    pub(super) spec: JailSpec,
    /// The open program, for [`Program::Descriptor`].
    pub(super) program: Option<File>,
    pub(super) argv: Vec<CString>,
    pub(super) env: Vec<CString>,
    /// The stage, which will be the program's parent.
    pub(super) monitor: Pid,
}

/// Takes the request off the control socket. It was there before the stage was, so this does not wait long.
pub(super) fn receive(control: &OwnedFd) -> Result<Plan, StepError> {
    let received = wire::receive_waiting::<Order>(control);
    let received = received.map_err(|error| StepError::io("cannot read the request", &error, ""))?;
    let Received::Packet(Order::Start, descriptors) = received else {
        return Err(StepError::new("the first packet is not a request"));
    };
    let mut descriptors = descriptors.into_iter();
    let Some(text) = descriptors.next() else {
        return Err(StepError::new("the request came without a spec"));
    };
    let mut bytes = Vec::new();
    let read = File::from(rewound(text)?).take(SPEC_MAX_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| StepError::io("cannot read the spec", &error, ""))?;
    let spec: JailSpec = serde_json::from_slice(&bytes)
        .map_err(|error| StepError::new(format!("cannot parse the spec: {error}")))?;
    let program = descriptors.next().map(File::from);
    if matches!(spec.program, Program::Descriptor) && program.is_none() {
        return Err(StepError::new("the request came without the program's descriptor"));
    }
    let argv = spec.argv.iter().map(|argument| c_string(argument)).collect::<Result<_, _>>()?;
    let env =
        spec.env.iter().map(|(key, value)| c_string(&variable(key, value))).collect::<Result<_, _>>()?;
    Ok(Plan { spec, program, argv, env, monitor: rustix::process::getpid() })
}

/// The writer's position came along with the descriptor.
fn rewound(text: OwnedFd) -> Result<OwnedFd, StepError> {
    rustix::fs::seek(&text, rustix::fs::SeekFrom::Start(0))
        .map_err(|errno| StepError::errno("cannot read the spec", errno.raw_os_error(), ""))?;
    Ok(text)
}

fn variable(key: &OsStr, value: &OsStr) -> OsString {
    let mut variable = key.to_owned();
    variable.push("=");
    variable.push(value);
    variable
}

pub(super) fn c_string(text: &OsStr) -> Result<CString, StepError> {
    CString::new(text.as_bytes()).map_err(|_| StepError::new("an argument or variable has a NUL byte in it"))
}
