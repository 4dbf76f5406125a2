//! `talon doctor`: what this machine can give, and whether what is configured can work here.

use std::path::Path;

use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::json;
use talon_proto::host::GetStatusRequest;

use super::client::Client;
use super::failure::Failure;
use super::output::Out;
use super::table::{Cell, Table};
use super::{Global, serve, socket};
use crate::exit;

/// Check this machine and the configuration: protections, directories, the supervisor.
///
/// Exits with 1 if something that is asked for is missing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon doctor
  talon doctor --output json | jq '.checks[] | select(.status != \"ok\")'")]
pub(super) struct DoctorArgs {}

/// How one check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ok,
    /// Works, though not as well as it could.
    Note,
    /// Something that is asked for is missing.
    Missing,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Missing => "missing",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Ok => AnsiColor::Green.on_default(),
            Self::Note => AnsiColor::Yellow.on_default(),
            Self::Missing => AnsiColor::Red.on_default(),
        }
    }
}

struct Check {
    what: String,
    verdict: Verdict,
    says: String,
}

impl Check {
    fn new(what: impl Into<String>, verdict: Verdict, says: impl Into<String>) -> Self {
        Self { what: what.into(), verdict, says: says.into() }
    }
}

impl DoctorArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Out) -> Result<u8, Failure> {
        let mut checks = Vec::new();
        match serve::load(&serve::load_options(global)) {
            Ok(loaded) => {
                let from = loaded
                    .file
                    .as_ref()
                    .map_or("none: built-in defaults".into(), |file| file.display().to_string());
                checks.push(Check::new("config", Verdict::Ok, from));
                for warning in &loaded.warnings {
                    checks.push(Check::new("config", Verdict::Note, warning.to_string()));
                }
                checks.push(directory("runtime dir", &loaded.config.runtime_dir));
                checks.push(directory("data dir", &loaded.config.state.data_dir));
                checks.push(plugin_dir(loaded.config.plugins.tools.plugin_dir.as_deref()));
            }
            Err(failure) => checks.push(Check::new("config", Verdict::Missing, failure.to_string())),
        }
        checks.push(supervisor(global).await);
        protections(&mut checks);

        if out.is_json() {
            let checks = checks.iter().map(
                |check| json!({ "check": check.what, "status": check.verdict.word(), "message": check.says }),
            );
            let value = json!({ "checks": checks.collect::<serde_json::Value>() });
            out.json(&value);
        } else {
            let mut table = Table::new(&["CHECK", "STATUS", ""]);
            for check in &checks {
                let verdict = Cell::styled(check.verdict.word(), check.verdict.style());
                for (number, line) in check.says.lines().enumerate() {
                    let first = number == 0;
                    let what = if first { check.what.as_str() } else { "" };
                    table.row(vec![
                        what.into(),
                        if first { verdict.clone() } else { "".into() },
                        line.into(),
                    ]);
                }
            }
            out.table(&table);
        }
        let missing = checks.iter().any(|check| check.verdict == Verdict::Missing);
        Ok(if missing { exit::TOOL_ERROR } else { exit::OK })
    }
}

/// A directory that the supervisor makes and writes to.
fn directory(what: &str, dir: &Path) -> Check {
    let shown = dir.display();
    // The nearest parent that exists is where it would be made.
    let Some(existing) = dir.ancestors().find(|ancestor| ancestor.exists()) else {
        return Check::new(what, Verdict::Missing, format!("{shown} has no parent directory"));
    };
    let access = nix::unistd::AccessFlags::W_OK | nix::unistd::AccessFlags::X_OK;
    match nix::unistd::access(existing, access) {
        Ok(()) if existing == dir => Check::new(what, Verdict::Ok, shown.to_string()),
        Ok(()) => Check::new(what, Verdict::Ok, format!("{shown} (made at the start)")),
        Err(error) => {
            let says = format!("this user may not write to {}: {error}", existing.display());
            Check::new(what, Verdict::Note, format!("{says}; fine if the supervisor runs as another user"))
        }
    }
}

fn plugin_dir(dir: Option<&Path>) -> Check {
    let Some(dir) = dir else {
        return Check::new(
            "plugin dir",
            Verdict::Note,
            "none: set plugins.tools.plugin_dir, or name plugins one by one",
        );
    };
    match std::fs::read_dir(dir) {
        Ok(entries) => {
            Check::new("plugin dir", Verdict::Ok, format!("{} ({} entries)", dir.display(), entries.count()))
        }
        Err(error) => {
            let says = format!(
                "cannot read {}: {error}; create it, or change plugins.tools.plugin_dir",
                dir.display()
            );
            Check::new("plugin dir", Verdict::Missing, says)
        }
    }
}

async fn supervisor(global: &Global) -> Check {
    let path = match socket::find(global) {
        Ok(path) => path,
        Err(_) => {
            return Check::new(
                "supervisor",
                Verdict::Note,
                "not looked for: the configuration does not say where",
            );
        }
    };
    let mut client = match Client::connect_to(path.clone()).await {
        Ok(client) => client,
        Err(failure) => return Check::new("supervisor", Verdict::Note, failure.to_string()),
    };
    match client.host.get_status(GetStatusRequest {}).await {
        Ok(status) => {
            let status = status.into_inner();
            let role = status.you.map(|you| you.role).unwrap_or_default();
            let says = format!(
                "talon {} (pid {}) is {} on {}; your role there is {role}",
                status.version,
                status.pid,
                status.state,
                path.display()
            );
            Check::new("supervisor", Verdict::Ok, says)
        }
        Err(status) => Check::new("supervisor", Verdict::Note, client.failure(&status).to_string()),
    }
}

/// What the jail can give here. A stand-in is weaker, and said to be. What is not there is a note: no plugin asks
/// for it in this version, and each says in its status that it is not enforced.
fn protections(checks: &mut Vec<Check>) {
    for protection in talon_jail::probe() {
        let what = format!("jail: {}", protection.name);
        checks.push(match protection.status {
            talon_jail::Status::Enforced => Check::new(what, Verdict::Ok, "available"),
            talon_jail::Status::StandIn(how) => Check::new(what, Verdict::Note, how),
            talon_jail::Status::Missing(why) => Check::new(what, Verdict::Note, why),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_will_be_made_is_fine() {
        let dir = tempfile::tempdir().unwrap();
        let check = directory("data dir", &dir.path().join("a/b"));
        assert_eq!(check.verdict, Verdict::Ok);
        assert!(check.says.contains("made at the start"));
    }

    #[test]
    fn a_missing_plugin_directory_is_missing_and_none_is_a_note() {
        assert_eq!(plugin_dir(Some(Path::new("/nonexistent/plugins"))).verdict, Verdict::Missing);
        assert_eq!(plugin_dir(None).verdict, Verdict::Note);
    }
}
