//! Checks of the configured directories and sockets, and of the groups that may use them.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, Gid, Group, User, access};
use talon_supervisor::config::{Engine, Environment, Loaded, State};
use talon_supervisor::host::SOCKET_NAME;
use talon_supervisor::state;
use talon_supervisor::{admin, agent};

use super::check::{Check, CheckBuilder, Section};

/// Write permission for others.
const OTHERS_WRITE: u32 = 0o002;

const fn check_named(what: &'static str) -> CheckBuilder {
    CheckBuilder(Section::Files, what)
}

pub(super) fn checks(loaded: &Loaded) -> Vec<Check> {
    let config = &loaded.config;
    let mut checks = vec![
        directory(check_named("runtime dir"), &config.runtime_dir),
        data_dir(&config.state.data_dir, config.talon_plugin_settings().uid_range.is_some()),
    ];
    if let Some(dir) = &config.log.dir {
        checks.push(directory(check_named("log dir"), dir));
    }
    checks.push(plugin_dir(config.plugins.tools.plugin_dir.as_deref()));
    checks.extend(socket(check_named("host.sock"), &config.runtime_dir.join(SOCKET_NAME)));
    checks.extend(socket(check_named("agent.sock"), &config.runtime_dir.join(agent::SOCKET_NAME)));
    checks.extend(socket(check_named("admin.sock"), &config.runtime_dir.join(admin::SOCKET_NAME)));
    checks.extend(group(check_named("host.group"), config.host.group.as_deref()));
    checks.extend(group(check_named("admin.group"), config.admin.group.as_deref()));
    checks.extend(stored_state(&config.state));
    checks
}

/// A directory that the supervisor creates and writes to.
pub(super) fn directory(of: CheckBuilder, dir: &Path) -> Check {
    let shown = dir.display();
    // It would be created below the nearest existing ancestor.
    let Some(existing) = dir.ancestors().find(|ancestor| ancestor.exists()) else {
        return of.fail(format!("{shown} has no parent directory")).with_fix("name another one");
    };
    if existing == dir
        && let Ok(about) = dir.metadata()
        && about.mode() & OTHERS_WRITE != 0
    {
        return of
            .fail(format!("everybody may write to {shown}"))
            .with_reason("anyone who may write there can replace Talon's sockets and files")
            .with_fix(format!("chmod o-w {shown}"));
    }
    match access(existing, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) if existing == dir => of.ok(shown.to_string()),
        Ok(()) => of.ok(format!("{shown} (made at the start)")),
        Err(error) => of
            .warn(format!("this user may not write to {}: {error}", existing.display()))
            .with_fix("nothing, if the supervisor runs as another user; `sudo talon doctor` looks as root"),
    }
}

/// The state directory. The supervisor refuses to start if others may read it; if plugins have their own
/// uids, others may have execute permission on it.
fn data_dir(dir: &Path, own_uids: bool) -> Check {
    let of = check_named("data dir");
    let (mode, forbidden) = if own_uids { (0o711, 0o066) } else { (0o700, 0o077) };
    match dir.metadata() {
        Ok(about) if about.is_dir() && about.mode() & forbidden != 0 => of
            .fail(format!(
                "{} may be used by others (its mode is {:04o})",
                dir.display(),
                about.mode() & 0o7777
            ))
            .with_reason("it holds the plugins' state, and the supervisor does not start with it")
            .with_fix(format!("chmod {mode:o} {}", dir.display())),
        _ => directory(of, dir),
    }
}

fn plugin_dir(dir: Option<&Path>) -> Check {
    let of = check_named("plugin dir");
    let Some(dir) = dir else {
        return of.warn("none").with_fix("set plugins.tools.plugin_dir, or name plugins one by one");
    };
    match std::fs::read_dir(dir) {
        Ok(entries) => of.ok(format!("{} ({} entries)", dir.display(), entries.count())),
        Err(error) => of
            .fail(format!("cannot read {}: {error}", dir.display()))
            .with_reason("no plugin is found there")
            .with_fix("create it, or change plugins.tools.plugin_dir"),
    }
}

/// A socket of the supervisor, if it exists.
fn socket(of: CheckBuilder, path: &Path) -> Option<Check> {
    let about = path.symlink_metadata().ok()?;
    let mode = about.permissions().mode() & 0o777;
    let group = Group::from_gid(Gid::from_raw(about.gid())).ok().flatten();
    let group = group.map_or_else(|| about.gid().to_string(), |group| group.name);
    let says = format!("{} (mode {mode:04o}, group {group})", path.display());
    Some(if mode & 0o007 == 0 {
        of.ok(says)
    } else {
        // The supervisor checks the peer of each connection, so this only lets others connect.
        of.warn(says).with_reason("users without any role can use up its connections").with_fix(format!(
            "chmod o= {}, and find out who changed it: the supervisor makes it 0660",
            path.display()
        ))
    })
}

/// A group that may use a socket, and its members.
fn group(of: CheckBuilder, name: Option<&str>) -> Option<Check> {
    let name = name?;
    Some(match Group::from_name(name) {
        Ok(Some(group)) => {
            let primary = |member: &String| !group.mem.contains(member);
            let own = User::from_name(name).ok().flatten().filter(|user| user.gid == group.gid);
            let own = own.map(|user| user.name).filter(primary);
            let members: Vec<String> = group.mem.iter().cloned().chain(own).collect();
            if members.is_empty() {
                of.warn(format!("{name} has no members"))
                    .with_reason("only root and the supervisor's own user can connect")
                    .with_fix(format!("adduser NAME {name}; it counts from the next login on"))
            } else {
                of.ok(format!("{name}: {}", members.join(", ")))
            }
        }
        Ok(None) => of
            .fail(format!("there is no group {name}"))
            .with_reason("the supervisor cannot give it its socket, and does not start")
            .with_fix(format!("groupadd --system {name}, or name another one")),
        Err(error) => {
            of.warn(format!("cannot look up {name}: {error}")).with_fix("look at /etc/nsswitch.conf")
        }
    })
}

/// The state store, and data of another program that could be imported.
fn stored_state(settings: &State) -> Vec<Check> {
    let of = check_named("state");
    if let Some(backend) = settings.storage_backend() {
        let text = format!("the plugins' state is kept by {}, which sees all of it", backend.action);
        return vec![of.ok(text)];
    }
    if settings.plugins_database() == Some(Engine::Off) {
        return vec![of.warn("off: plugins cannot keep anything (state.engine)")];
    }
    let importable = |dir: PathBuf| {
        let dir = dir.display();
        of.warn(format!("{dir} can be taken over")).with_fix(format!("talon import {dir} (--dry-run first)"))
    };
    let home = Environment::of_process().home;
    let imports = state::to_import(&settings.data_dir, home.as_deref());
    imports.into_iter().map(importable).collect()
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn a_directory_that_will_be_made_is_fine_and_one_for_everybody_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let check = directory(check_named("data dir"), &dir.path().join("a/b"));
        assert_eq!(check.verdict, Verdict::Ok);
        assert!(check.message.contains("made at the start"));
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(directory(check_named("data dir"), dir.path()).verdict, Verdict::Fail);
    }

    #[test]
    fn a_data_directory_that_a_start_refuses_fails() {
        let dir = tempfile::tempdir().unwrap();
        for (mode, own_uids, verdict) in [
            (0o755, false, Verdict::Fail),
            (0o755, true, Verdict::Fail),
            (0o711, false, Verdict::Fail),
            (0o711, true, Verdict::Ok),
            (0o700, false, Verdict::Ok),
            (0o700, true, Verdict::Ok),
        ] {
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let check = data_dir(dir.path(), own_uids);
            assert_eq!(check.verdict, verdict, "{mode:o}: {check:?}");
        }
        assert_eq!(data_dir(&dir.path().join("a"), false).verdict, Verdict::Ok);
    }

    #[test]
    fn a_missing_plugin_directory_fails_and_none_is_a_warning() {
        assert_eq!(plugin_dir(Some(Path::new("/nonexistent/plugins"))).verdict, Verdict::Fail);
        assert_eq!(plugin_dir(None).verdict, Verdict::Warn);
    }

    #[test]
    fn a_group_has_to_be_there() {
        assert!(group(check_named("host.group"), None).is_none());
        let missing = group(check_named("host.group"), Some("no-such-group-here")).unwrap();
        assert_eq!(missing.verdict, Verdict::Fail);
        assert!(missing.fix.contains("groupadd"), "{}", missing.fix);
        assert_ne!(group(check_named("host.group"), Some("root")).unwrap().verdict, Verdict::Fail);
    }

    #[test]
    fn a_socket_for_everybody_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("host.sock");
        assert!(socket(check_named("host.sock"), &path).is_none());
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        for (mode, verdict) in [(0o660, Verdict::Ok), (0o666, Verdict::Warn)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(socket(check_named("host.sock"), &path).unwrap().verdict, verdict);
        }
    }
}
