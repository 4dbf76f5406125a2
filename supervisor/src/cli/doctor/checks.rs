//! What must be so for anything to run: the configuration, directories, the supervisor.

use std::path::{Path, PathBuf};

use talon_proto::host::{GetStatusRequest, GetStatusResponse};

use super::super::client::Client;
use super::super::{Global, socket};
use super::{Check, Verdict};
use crate::config::{Engine, Loaded, State, Surroundings};
use crate::state;

/// The configuration's own, and the places that it names.
pub(super) fn of_config(loaded: &Loaded) -> Vec<Check> {
    let from =
        loaded.file.as_ref().map_or("none: built-in defaults".into(), |file| file.display().to_string());
    let mut checks = vec![Check::new("config", Verdict::Ok, from)];
    for warning in &loaded.warnings {
        checks.push(Check::new("config", Verdict::Note, warning.to_string()));
    }
    checks.push(directory("runtime dir", &loaded.config.runtime_dir));
    checks.push(directory("data dir", &loaded.config.state.data_dir));
    checks.extend(kept_state(&loaded.config.state));
    checks.push(plugin_dir(loaded.config.plugins.tools.plugin_dir.as_deref()));
    checks
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

/// What keeps state, and what of another program's could be imported.
fn kept_state(settings: &State) -> Vec<Check> {
    let check = |verdict, says| Check::new("state", verdict, says);
    if settings.engine == Engine::Off {
        return vec![check(Verdict::Note, "off: plugins cannot keep anything (state.engine)".to_owned())];
    }
    let program = match state::find_program(settings.program.as_deref()) {
        Ok(program) => check(Verdict::Ok, format!("kept by {}", program.display())),
        Err(missing) => check(Verdict::Missing, missing.to_string()),
    };
    let importable = |dir: PathBuf| {
        let dir = dir.display();
        check(Verdict::Note, format!("{dir} can be taken over with `talon import {dir}` (--dry-run first)"))
    };
    let home = Surroundings::of_process().home;
    let imports = state::to_import(&settings.data_dir, home.as_deref());
    [program].into_iter().chain(imports.into_iter().map(importable)).collect()
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

/// The supervisor's check, and what it says of itself if it runs.
pub(super) async fn supervisor(global: &Global) -> (Check, Option<GetStatusResponse>) {
    let note = |says: String| (Check::new("supervisor", Verdict::Note, says), None);
    let Ok(path) = socket::find(global) else {
        return note("not looked for: the configuration does not say where".into());
    };
    let mut client = match Client::connect_to(path.clone()).await {
        Ok(client) => client,
        Err(failure) => return note(failure.to_string()),
    };
    let status = match client.host.get_status(GetStatusRequest {}).await {
        Ok(status) => status.into_inner(),
        Err(status) => return note(client.failure(&status).to_string()),
    };
    let role = status.you.as_ref().map_or("", |you| you.role.as_str());
    let says = format!(
        "talon {} (pid {}) is {} on {}; your role there is {role}",
        status.version,
        status.pid,
        status.state,
        path.display()
    );
    (Check::new("supervisor", Verdict::Ok, says), Some(status))
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
