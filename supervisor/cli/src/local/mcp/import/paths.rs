//! Which of the host's files a server needs: those in its arguments, and those of its program.

use std::path::{Path, PathBuf};

use super::entry::Entry;
use super::values::literal;

/// Directories of the system that every plugin sees.
const SYSTEM: [&str; 6] = ["/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/etc/"];
/// Directories that are never granted as a whole.
const NEVER_GRANTED: [&str; 9] =
    ["/", "/proc", "/dev", "/sys", "/run", "/tmp", "/var", "/var/run", "/var/tmp"];
/// Directories below a home that are shared by several programs.
const SHARED_BELOW_HOME: [&str; 4] = [".local", ".config", ".cache", ".ssh"];
/// Interpreters, which need the files next to them.
const INTERPRETERS: [&str; 7] = ["node", "python", "deno", "bun", "ruby", "java", "php"];

/// Grants read access to files and directories in the arguments, since the server is meant to work on them.
pub(super) fn grant_paths(entry: &mut Entry, args: &[String], notes: &mut Vec<String>) {
    for arg in args {
        let path = Path::new(arg.split_once('=').map_or(arg.as_str(), |(_, value)| value));
        let system = SYSTEM.iter().any(|system| path.starts_with(system));
        if !path.is_absolute() || system || !path.exists() {
            continue;
        }
        let Ok(real) = path.canonicalize() else { continue };
        if let Some(project) = project_of(&real) {
            let shown = literal(&project.display().to_string());
            if !entry.execute.contains(&shown) {
                notes.push(format!("may read {}, where its program lies", project.display()));
                entry.execute.push(shown);
            }
            continue;
        }
        if !is_grantable(&real) {
            notes.push(format!(
                "its arguments name {}, which is more than a plugin is shown: name what it needs below it",
                real.display()
            ));
            continue;
        }
        let shown = literal(&real.display().to_string());
        if real == path && !entry.read.contains(&shown) {
            notes.push(format!(
                "may read {}, which its arguments name; to let it write there, move that to sandbox.fs.write",
                real.display()
            ));
            entry.read.push(shown);
        }
    }
}

/// The directory that a script needs: the root of its package, or its parent.
fn project_of(script: &Path) -> Option<PathBuf> {
    /// How many levels to search for a package: `node_modules/@scope/name/dist/bin/x.js` is the deepest
    /// common path.
    const LEVELS: usize = 6;
    let scripts = ["js", "mjs", "cjs", "ts", "py"];
    let is_script = script.is_file()
        && script.extension().is_some_and(|extension| scripts.iter().any(|known| extension == *known));
    let directory = script.parent().filter(|_| is_script)?;
    let is_package = |directory: &&Path| {
        ["package.json", "pyproject.toml"].iter().any(|about| directory.join(about).is_file())
    };
    // Dependencies are installed next to the package.
    let modules =
        directory.ancestors().filter(|dir| dir.ends_with("node_modules")).last().and_then(Path::parent);
    let home = modules.or_else(|| directory.ancestors().take(LEVELS).find(is_package)).unwrap_or(directory);
    (home.components().count() > 2 && is_grantable(home)).then(|| home.to_owned())
}

/// The virtual environment of a Python program.
pub(super) fn environment_of(program: &Path) -> Option<PathBuf> {
    let home = program.parent()?.parent()?;
    (home.join("pyvenv.cfg").is_file() && is_grantable(&home.canonicalize().ok()?)).then(|| home.to_owned())
}

/// The directory that an interpreter outside the system's directories needs.
pub(super) fn interpreter_dir(program: &Path) -> Option<PathBuf> {
    let real = program.canonicalize().ok()?;
    let name = real.file_name()?.to_str()?;
    let interpreter = INTERPRETERS.iter().any(|interpreter| is_version_of(interpreter, name));
    let outside = !SYSTEM.iter().any(|system| real.starts_with(system));
    let home = real.parent()?.parent()?;
    (interpreter && outside && home.components().count() > 2 && is_grantable(home)).then(|| home.to_owned())
}

/// Whether a program is this interpreter, with an optional version: `python3.12`.
fn is_version_of(interpreter: &str, name: &str) -> bool {
    name.strip_prefix(interpreter)
        .is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

/// Whether a path may be granted without asking: not a system directory, and not a home directory, which
/// contains all of a person's files.
fn is_grantable(real: &Path) -> bool {
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    is_grantable_with_home(real, home.as_deref())
}

fn is_grantable_with_home(real: &Path, home: Option<&Path>) -> bool {
    let is_home = |path: &Path| {
        path.parent() == Some(Path::new("/home")) || path == Path::new("/root") || Some(path) == home
    };
    let above = home.is_some_and(|home| home.starts_with(real)) || real == Path::new("/home");
    let shared = real.parent().is_some_and(is_home)
        && real.file_name().is_some_and(|name| SHARED_BELOW_HOME.iter().any(|shared| name == *shared));
    !(NEVER_GRANTED.iter().any(|never| real == Path::new(never)) || above || is_home(real) || shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_comes_with_its_package() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let write = |path: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        write("a/package.json");
        let own = write("a/dist/index.js");
        assert_eq!(project_of(&own), Some(root.join("a")));
        write("b/node_modules/@s/p/package.json");
        let installed = write("b/node_modules/@s/p/dist/index.js");
        assert_eq!(project_of(&installed), Some(root.join("b")));
        assert_eq!(project_of(&write("c/x.py")), Some(root.join("c")));
        assert_eq!(project_of(&write("c/x.txt")), None);
        write("venv/pyvenv.cfg");
        assert_eq!(environment_of(&write("venv/bin/python")), Some(root.join("venv")));
        assert_eq!(environment_of(&own), None);
    }

    #[test]
    fn nobodys_home_is_shown() {
        let shown = |path: &str| is_grantable_with_home(Path::new(path), Some(Path::new("/srv/people/me")));
        for no in [
            "/",
            "/srv",
            "/srv/people",
            "/srv/people/me",
            "/srv/people/me/.local",
            "/home",
            "/home/x",
            "/home/x/.config",
            "/root",
            "/root/.ssh",
            "/tmp",
            "/var",
        ] {
            assert!(!shown(no), "{no}");
        }
        for yes in
            ["/srv/people/me/project", "/srv/people/me/.bun", "/srv/other", "/home/x/project", "/opt/node"]
        {
            assert!(shown(yes), "{yes}");
        }
        assert!(!is_grantable_with_home(Path::new("/home/x"), None));
        for (name, interpreter) in
            [("python3.12", true), ("node", true), ("node-gyp", false), ("nodejs", false)]
        {
            assert_eq!(INTERPRETERS.iter().any(|known| is_version_of(known, name)), interpreter, "{name}");
        }
    }
}
