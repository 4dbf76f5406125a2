//! Checks of the audit log: whether it is written, and whether its latest file is intact.

use std::path::Path;

use talon_audit::{VerifyError, VerifyRequest, files_of, verify};
use talon_proto::host::GetStatusResponse;
use talon_supervisor::audit;
use talon_supervisor::config::{Config, Environment};

use super::check::{Check, CheckBuilder, Section};
use super::files::directory;

/// The largest file to read here; `talon audit verify` has no limit.
const MAX_FILE_BYTES: u64 = 256 << 20;

const CHECK: CheckBuilder = CheckBuilder(Section::Logs, "audit");
const CHAIN_CHECK: CheckBuilder = CheckBuilder(Section::Logs, "audit chain");

pub(super) fn checks(config: Option<&Config>, status: Option<&GetStatusResponse>) -> Vec<Check> {
    let mut checks = Vec::new();
    checks.extend(status.and_then(written));
    let Some(config) = config.filter(|config| config.audit.enabled) else { return checks };
    // Prefer the supervisor over the configuration: the service manager can override the directory.
    let told = status.and_then(|status| status.audit.as_ref()).map(|audit| Path::new(&audit.file));
    let dir = told.filter(|file| file.is_file()).and_then(Path::parent).map(Path::to_owned);
    let dir = dir.unwrap_or_else(|| audit::directory(config, &Environment::of_process()));
    checks.push(directory(CheckBuilder(Section::Files, "audit dir"), &dir));
    checks.extend(chain(&dir));
    checks
}

/// Whether calls are recorded, according to the supervisor.
fn written(status: &GetStatusResponse) -> Option<Check> {
    let audit = status.audit.as_ref()?;
    Some(match audit.state.as_str() {
        "failing" => CHECK
            .fail(format!("calls are not recorded: {}", audit.problem))
            .with_reason("there is no record of who called what")
            .with_fix("see docs/audit.md"),
        "damaged" => CHECK
            .fail(audit.problem.clone())
            .with_reason("records of who called what are gone")
            .with_fix("see docs/audit.md"),
        _ if audit.lost > 0 => CHECK
            .warn(format!("{} calls have no record, because the disk was too slow or full", audit.lost))
            .with_fix("give it a faster or larger disk (audit.dir), or raise audit.wait"),
        "off" => CHECK.ok("off (audit.enabled)"),
        state => CHECK.ok(format!("{state}: {} records", audit.records)),
    })
}

/// Whether the chain of the latest file is intact, if this user may read it.
fn chain(dir: &Path) -> Option<Check> {
    let latest = files_of(dir).ok()?.pop()?;
    let shown = latest.display().to_string();
    if latest.metadata().ok()?.len() > MAX_FILE_BYTES {
        return Some(
            CHAIN_CHECK.ok(format!("{shown} is too large to be read here; `talon audit verify` does")),
        );
    }
    Some(match verify(&VerifyRequest { files: vec![latest], all: false, anchor: None }) {
        Ok(whole) => CHAIN_CHECK.ok(format!(
            "{shown}: {} records, each as it was; `talon audit verify` reads all files",
            whole.records
        )),
        Err(VerifyError::Broken(broken)) => CHAIN_CHECK
            .fail(format!("{shown}:{} is not what was written: {}", broken.line, broken.fault.word()))
            .with_reason("somebody changed it, or the disk did")
            .with_fix("keep a copy, then `talon audit verify` and docs/audit.md"),
        Err(VerifyError::Empty) => return None,
        Err(error) => CHAIN_CHECK.warn(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use talon_proto::host::AuditStatus;

    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn an_audit_log_that_fails_is_a_failure() {
        let with = |state: &str, lost| {
            let audit = Some(AuditStatus { state: state.to_owned(), lost, ..AuditStatus::default() });
            written(&GetStatusResponse { audit, ..GetStatusResponse::default() }).map(|check| check.verdict)
        };
        assert!(written(&GetStatusResponse::default()).is_none());
        assert_eq!(with("failing", 0), Some(Verdict::Fail));
        assert_eq!(with("on", 3), Some(Verdict::Warn));
        assert_eq!(with("on", 0), Some(Verdict::Ok));
    }
}
