//! Checks the host files that a plugin is granted, as written in the configuration.

use std::path::{Component, Path};

use crate::document::Findings;
use crate::document::origin::KeyPath;
use crate::spec::SandboxFs;

/// The most paths of one list: each of them is a mount and a Landlock rule at every start.
pub const MAX_GRANTS: usize = 64;

/// Paths that no grant may name, because the jail provides its own.
const JAIL_OWNED_PATHS: [&str; 2] = ["/proc", "/dev"];

/// Directories in which all programs keep sockets and scratch files: grants must name something below them.
/// The jail refuses them, too, also as the target of a symlink.
const SHARED_PATHS: [&str; 5] = ["/run", "/var/run", "/tmp", "/var/tmp", "/sys"];

/// Checks that these paths can be granted.
pub(super) fn check_grants(fs: &SandboxFs, path: &KeyPath, found: &mut Findings<'_>) {
    for (name, list) in fs.lists() {
        let path = path.key(name);
        let list = list.map(Vec::as_slice).unwrap_or_default();
        if list.len() > MAX_GRANTS {
            let message = format!("{} paths, and at most {MAX_GRANTS} are taken", list.len());
            found.problem(&path, message, "name a directory that holds them");
        }
        for (index, grant) in list.iter().enumerate() {
            if let Err((message, help)) = check_grantable(grant) {
                found.problem(&path.index(index), message, help);
            }
        }
    }
}

/// Checks that a path can be granted to a plugin at all.
fn check_grantable(path: &Path) -> Result<(), (String, &'static str)> {
    use std::os::unix::ffi::OsStrExt;

    let shown = path.display();
    if !path.is_absolute() || path.components().any(|c| c == Component::ParentDir) {
        let message = format!("{shown} is not an absolute path without \"..\"");
        return Err((message, "write the whole path"));
    }
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(("holds a NUL character".to_owned(), "remove it"));
    }
    if path == Path::new("/") {
        let help = "name the directories that it needs, or set its sandbox.mode to off";
        return Err(("would show it the whole machine".to_owned(), help));
    }
    if let Some(own) = JAIL_OWNED_PATHS.iter().find(|own| path.starts_with(own)) {
        let message = format!("{shown} lies in {own}, which the jail provides itself");
        return Err((message, "leave it out"));
    }
    if let Some(shared) = SHARED_PATHS.iter().find(|shared| Path::new(shared).starts_with(path)) {
        let message =
            format!("{shown} would show it {shared}, with sockets and files of everything that runs");
        return Err((message, "name what it needs below it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_shown_is_refused() {
        for good in
            ["/srv/code", "/opt/python/bin/python3", "/developer", "/home/a b", "/run/postgresql", "/var/lib"]
        {
            assert_eq!(check_grantable(Path::new(good)), Ok(()), "{good}");
        }
        for bad in [
            "",
            "srv",
            "./srv",
            "/srv/../etc",
            "/",
            "//",
            "/proc/1",
            "/dev",
            "/a\0b",
            "/run",
            "/var",
            "/tmp/",
        ] {
            assert!(check_grantable(Path::new(bad)).is_err(), "{bad:?}");
        }
    }
}
