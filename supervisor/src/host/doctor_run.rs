//! Runs the doctor: once at a time, within bounds.
//!
//! The doctor is a client with a command line, and belongs to the binary; so the supervisor runs its own binary, bounded, and passes on what
//! it writes without reading it.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use talon_proto::host::DiagnoseResponse;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::to_wire::unix_ms;

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
pub(super) enum DiagnosisError {
    #[error("talon doctor cannot be run: {0}; run it in a terminal")]
    Run(#[from] io::Error),
    #[error("talon doctor took longer than {} s; run it in a terminal to see at what it waits", TIMEOUT.as_secs())]
    TimedOut,
    #[error("talon doctor wrote more than {MAX_REPORT_BYTES} bytes; run it in a terminal")]
    TooLong,
    #[error("talon doctor wrote no report; run it in a terminal to see why")]
    NoReport,
}

impl Diagnoses {
    /// What the doctor finds, or found half a minute ago at most, with this socket and this config file.
    pub(super) async fn report(
        &self,
        socket: &Path,
        config: Option<&Path>,
    ) -> Result<DiagnoseResponse, DiagnosisError> {
        let mut latest = self.0.lock().await;
        if let Some((at, answer)) = &*latest
            && at.elapsed() < KEPT_FOR
        {
            return Ok(answer.clone());
        }
        let report = tokio::time::timeout(TIMEOUT, run(socket, config)).await;
        let report_json = report.map_err(|_| DiagnosisError::TimedOut)??;
        let answer = DiagnoseResponse { report_json, unix_ms: unix_ms(SystemTime::now()) };
        *latest = Some((Instant::now(), answer.clone()));
        Ok(answer)
    }
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
async fn run(socket: &Path, config: Option<&Path>) -> Result<String, DiagnosisError> {
    let mut command = Command::new("/proc/self/exe");
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
