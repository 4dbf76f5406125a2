//! The host files that a plugin sees beyond the system's own, as written in the configuration.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::document::Findings;
use crate::document::origin::KeyPath;

/// The most paths of one list: each of them is a mount and a Landlock rule at every start.
pub const MAX_GRANTS: usize = 64;

/// Paths that no grant may name, because the jail provides its own.
const JAIL_OWNED_PATHS: [&str; 2] = ["/proc", "/dev"];

/// Directories in which all programs keep sockets and scratch files: grants must name something below them. The jail
/// refuses them, too, also as the target of a symlink.
const SHARED_PATHS: [&str; 5] = ["/run", "/var/run", "/tmp", "/var/tmp", "/sys"];

/// Files and directories of the host's that a plugin sees, at the paths that they have on the host; a directory
/// with all that is in it. The file's own permissions still count: the plugin's uid has to be among those whom
/// they let in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxFs {
    /// What it may read. Sockets in it can be connected to before Linux 7.1.
    #[schemars(with = "Option<Vec<PathSchema>>", extend("x-default" = "nothing"), example = &["/srv/code"])]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<PathBuf>>,
    /// What it may read and execute: an interpreter outside of `/usr` with its libraries.
    #[schemars(with = "Option<Vec<PathSchema>>", extend("x-default" = "nothing"), example = &["/opt/python-3.13"])]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execute: Option<Vec<PathBuf>>,
    /// What it may read and write, make and remove. A socket that lies there can be connected to.
    #[schemars(with = "Option<Vec<PathSchema>>", extend("x-default" = "nothing"), example = &["/srv/index"])]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<PathBuf>>,
}

/// The schema of a path in a list.
struct PathSchema;

impl JsonSchema for PathSchema {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Path".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "path" })
    }
}

impl SandboxFs {
    /// The lists with their names.
    pub(crate) fn lists(&self) -> [(&'static str, Option<&Vec<PathBuf>>); 3] {
        [("read", self.read.as_ref()), ("execute", self.execute.as_ref()), ("write", self.write.as_ref())]
    }

    /// Whether no list is set.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.lists().iter().all(|(_, list)| list.is_none())
    }

    /// These lists where they are set, otherwise the wider ones.
    #[must_use]
    pub fn with_defaults(&self, wider: &Self) -> Self {
        let list =
            |own: &Option<Vec<PathBuf>>, wider: &Option<Vec<PathBuf>>| own.clone().or_else(|| wider.clone());
        Self {
            read: list(&self.read, &wider.read),
            execute: list(&self.execute, &wider.execute),
            write: list(&self.write, &wider.write),
        }
    }

    /// Checks that these paths can be granted.
    pub(super) fn check(&self, path: &KeyPath, found: &mut Findings<'_>) {
        for (name, list) in self.lists() {
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
