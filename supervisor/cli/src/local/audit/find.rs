//! Finds the files of the audit log, and parses `--since`.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use talon_audit::{LineReader, files_of};
use talon_proto::host::GetStatusRequest;
use talon_supervisor::audit;
use talon_supervisor::config::Environment;

use crate::client::connection::Client;
use crate::failure::Failure;
use crate::global::Global;
use crate::host_socket::HostSocket;
use crate::local::configuration;

/// The directory that the packaged service uses.
const SYSTEM_DIR: &str = "/var/log/talon/audit";

/// The named files, or the files of the named directory; and whether they should be the complete log.
pub(super) fn files(named: &[PathBuf]) -> Result<(Vec<PathBuf>, bool), Failure> {
    match named {
        [dir] if dir.is_dir() => {
            let files = files_of(dir).map_err(|error| unreadable(dir, &error))?;
            if files.is_empty() {
                return Err(Failure::failed(format!(
                    "{} holds no audit log: name the directory that audit.dir names",
                    dir.display()
                )));
            }
            Ok((files, true))
        }
        files => Ok((files.to_vec(), false)),
    }
}

/// The named paths; otherwise the running supervisor's directory, or else the configuration's.
pub(super) async fn resolve_paths(named: Vec<PathBuf>, global: &Global) -> Result<Vec<PathBuf>, Failure> {
    if !named.is_empty() {
        return Ok(named);
    }
    // Prefer the supervisor over the configuration: the service manager can override the directory.
    if let Some(dir) = supervisor_dir(global).await {
        return Ok(vec![dir]);
    }
    let loaded = configuration::load(&configuration::load_options(global)).ok();
    let configured = loaded.map(|loaded| audit::directory(&loaded.config, &Environment::of_process()));
    let candidates = configured.iter().map(PathBuf::as_path).chain([Path::new(SYSTEM_DIR)]);
    let found = candidates.clone().find(|dir| dir.is_dir());
    found.map(|dir| vec![dir.to_owned()]).ok_or_else(|| {
        let looked: Vec<String> = candidates.map(|dir| dir.display().to_string()).collect();
        Failure::failed(format!(
            "no audit log that this user can see ({}): name its directory, or try again as root",
            looked.join(", ")
        ))
    })
}

async fn supervisor_dir(global: &Global) -> Option<PathBuf> {
    let mut client = Client::connect_if_there(&HostSocket::new(global)).await.ok()??;
    let status = client.host.get_status(GetStatusRequest {}).await.ok()?.into_inner();
    let file = PathBuf::from(status.audit?.file);
    let dir = if file.is_dir() { file } else { file.parent()?.to_owned() };
    dir.is_dir().then_some(dir)
}

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!(
        "cannot read {}: {error}; read it as the user that the supervisor runs as, or as root",
        path.display()
    ))
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("how long ago, as 1h or 30m, or a time in UTC, as 2026-11-22T08:00:00Z")]
pub(super) struct SinceError;

/// A point in time: an age such as `1h`, or a date and time such as `2026-11-22T08:00:00Z`.
pub(super) fn since(text: &str) -> Result<u64, SinceError> {
    let at = match text.parse::<talon_plugin_config::units::Duration>() {
        Ok(ago) => SystemTime::now().checked_sub(ago.get()).unwrap_or(SystemTime::UNIX_EPOCH),
        Err(_) => humantime::parse_rfc3339_weak(text).map_err(|_| SinceError)?,
    };
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The files with records since then. A file is skipped if its successor started before that time; this
/// assumes that the clock did not jump.
pub(super) fn files_since(files: Vec<PathBuf>, since: u64) -> Vec<PathBuf> {
    let began = |file: &PathBuf| {
        let line = LineReader::new(vec![file.clone()]).next_line().ok()??;
        let record: serde_json::Value = serde_json::from_slice(&line.bytes).ok()?;
        record["unix_ms"].as_u64()
    };
    let before = files.iter().skip(1).take_while(|file| began(file).is_some_and(|at| at <= since)).count();
    files.into_iter().skip(before).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_how_long_ago_or_a_date() {
        assert_eq!(since("1970-01-01T00:00:02Z"), Ok(2000));
        assert!(since("1h").unwrap() < since("1s").unwrap());
        assert!(since("yesterday").unwrap_err().to_string().contains("1h"));
    }

    #[test]
    fn files_from_before_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let file = |number: u32, at: u64| {
            let path = dir.path().join(format!("audit-00000000000{number}.jsonl"));
            std::fs::write(&path, format!("{{\"unix_ms\":{at}}}\n")).unwrap();
            path
        };
        let files = vec![file(1, 100), file(2, 200), file(3, 300)];
        for (since, first) in [(0, 0), (199, 0), (200, 1), (299, 1), (10_000, 2)] {
            assert_eq!(files_since(files.clone(), since), files[first..], "{since}");
        }
    }
}
