//! `Diagnose`: what `talon doctor` finds.
//!
//! The doctor is a client with a command line, and belongs to the binary; so the supervisor runs its own binary, bounded, and passes on what
//! it writes without reading it.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use talon_proto::host::{DiagnoseRequest, DiagnoseResponse};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use super::context::HostContext;
use crate::config::Role;
use crate::peer::require;
use crate::socket::HOST_SOCKET_NAME;
use crate::to_wire::{status_text, unix_ms};

/// How long an answer is kept: a page that is read again costs nothing.
const KEPT_FOR: Duration = Duration::from_secs(30);
/// The longest run. Each of the doctor's checks has a few seconds.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The longest report, in bytes: some hundred findings are 100 KiB.
const MAX_REPORT_BYTES: u64 = 1 << 20;

/// The latest answer; its lock is held during a run, so that there is one at a time.
#[derive(Debug, Default)]
pub(super) struct Diagnoses(Mutex<Option<(Instant, DiagnoseResponse)>>);

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
enum DiagnosisError {
    #[error("talon doctor cannot be run: {0}; run it in a terminal")]
    Run(#[from] io::Error),
    #[error("talon doctor took longer than {} s; run it in a terminal to see at what it waits", TIMEOUT.as_secs())]
    TimedOut,
    #[error("talon doctor wrote more than {MAX_REPORT_BYTES} bytes; run it in a terminal")]
    TooLong,
    #[error("talon doctor wrote no report; run it in a terminal to see why")]
    NoReport,
}

pub(super) async fn diagnose(
    context: &HostContext,
    request: Request<DiagnoseRequest>,
) -> Result<Response<DiagnoseResponse>, Status> {
    require(&request, Role::Operate)?;
    let mut latest = context.diagnoses.0.lock().await;
    if let Some((at, answer)) = &*latest
        && at.elapsed() < KEPT_FOR
    {
        return Ok(Response::new(answer.clone()));
    }
    let socket = context.info.runtime_dir.join(HOST_SOCKET_NAME);
    let report = run(&socket, context.info.config_file.as_deref());
    let report_json = match tokio::time::timeout(TIMEOUT, report).await {
        Ok(Ok(report)) => report,
        Ok(Err(error)) => return Err(Status::unavailable(status_text(error.to_string()))),
        Err(_) => return Err(Status::unavailable(DiagnosisError::TimedOut.to_string())),
    };
    let answer = DiagnoseResponse { report_json, unix_ms: unix_ms(SystemTime::now()) };
    *latest = Some((Instant::now(), answer.clone()));
    Ok(Response::new(answer))
}

/// Doctors that run. They are no plugins, although they descend from us.
static RUNNING: parking_lot::Mutex<BTreeSet<u32>> = parking_lot::Mutex::new(BTreeSet::new());

/// Whether this process is a doctor that we started: it may look at our sockets.
pub(crate) fn is_doctor(pid: u32) -> bool {
    RUNNING.lock().contains(&pid)
}

/// A doctor's process id, while nobody else can have it.
struct DoctorPid(u32);

impl DoctorPid {
    fn of(pid: u32) -> Self {
        RUNNING.lock().insert(pid);
        Self(pid)
    }
}

impl Drop for DoctorPid {
    fn drop(&mut self) {
        RUNNING.lock().remove(&self.0);
    }
}

/// Runs the doctor of this very binary, also if the file was replaced meanwhile.
async fn run(socket: &std::path::Path, config: Option<&std::path::Path>) -> Result<String, DiagnosisError> {
    let mut command = Command::new(PathBuf::from("/proc/self/exe"));
    command.args(["doctor", "--output", "json", "--color", "never", "--socket"]).arg(socket);
    if let Some(config) = config {
        command.arg("--config").arg(config);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut doctor = command.spawn()?;
    // Let go of before the process is waited for, after which another one may get its id.
    let pid = doctor.id().map(DoctorPid::of);
    let Some(stdout) = doctor.stdout.take() else { return Err(DiagnosisError::NoReport) };
    let mut report = Vec::new();
    stdout.take(MAX_REPORT_BYTES + 1).read_to_end(&mut report).await?;
    if report.len() as u64 > MAX_REPORT_BYTES {
        return Err(DiagnosisError::TooLong);
    }
    drop(pid);
    // 1 says that something is wrong, which is a report.
    doctor.wait().await?;
    match String::from_utf8(report) {
        Ok(report) if !report.is_empty() => Ok(report),
        _ => Err(DiagnosisError::NoReport),
    }
}
