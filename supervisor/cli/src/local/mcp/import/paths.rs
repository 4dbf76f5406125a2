//! Which of the host's files a server needs: those in its arguments, and those of its program.

use std::io::Read as _;
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
/// Directories, mostly below a home, in which package managers put the programs of all their packages.
const SHARED_PROGRAMS: [&str; 3] = [".cargo", "go", "local"];
/// Interpreters, which need the files next to them.
const INTERPRETERS: [&str; 7] = ["node", "python", "deno", "bun", "ruby", "java", "php"];

/// Grants the files and directories in the arguments, since the server is meant to work on them: to read, or also to
/// write if the user wants that.
pub(super) fn grant_arguments(entry: &mut Entry, args: &[String], notes: &mut Vec<String>) {
    let values = args.iter().map(|arg| arg.split_once('=').map_or(arg.as_str(), |(_, value)| value));
    grant_paths(entry, values, "its arguments name", notes);
}

/// The same for the variables of its environment, some of which are lists of paths.
pub(super) fn grant_variables(entry: &mut Entry, env: &[(String, String)], notes: &mut Vec<String>) {
    for (name, value) in env.iter().filter(|(name, _)| name != "PATH") {
        grant_paths(entry, value.split(':'), &format!("its variable {name} names"), notes);
    }
}

fn grant_paths<'v>(
    entry: &mut Entry,
    values: impl Iterator<Item = &'v str>,
    named: &str,
    notes: &mut Vec<String>,
) {
    for value in values {
        let path = Path::new(value);
        if !path.is_absolute() || SYSTEM.iter().any(|system| path.starts_with(system)) {
            continue;
        }
        match path.canonicalize() {
            Ok(real) => grant_path(entry, path, &real, named, notes),
            Err(_) => grant_absent(entry, path, named, notes),
        }
    }
}

fn grant_path(entry: &mut Entry, path: &Path, real: &Path, named: &str, notes: &mut Vec<String>) {
    if let Some(project) = project_of(real) {
        let shown = literal(&project.display().to_string());
        if !entry.execute.contains(&shown) {
            notes.push(format!("may read {}, where its program lies", project.display()));
            entry.execute.push(shown);
        }
        return;
    }
    let shown = literal(&real.display().to_string());
    if !is_grantable(real) {
        notes.push(format!(
            "{named} {}, which is more than a plugin is shown: name what it needs below it",
            real.display()
        ));
    } else if real != path {
        notes.push(format!(
            "{named} {}, a link to {}, which is not granted: name the latter",
            path.display(),
            real.display()
        ));
    } else if entry.may_write && !entry.write.contains(&shown) {
        notes.push(format!("may write {}: {named} it", real.display()));
        entry.write.push(shown);
    } else if !entry.may_write && !entry.read.contains(&shown) {
        notes.push(format!(
            "may read {}: {named} it; to let it write there, import it with --grant-write, or move that to sandbox.fs.write",
            real.display()
        ));
        entry.read.push(shown);
    }
}

/// Only its directory can be granted. A path in no directory, such as `/query`, is more often no path at all.
fn grant_absent(entry: &mut Entry, path: &Path, named: &str, notes: &mut Vec<String>) {
    let Some(directory) = path.parent().filter(|parent| parent.parent().is_some() && parent.is_dir()) else {
        return;
    };
    let real = directory.canonicalize().ok().filter(|real| real == directory && is_grantable(real));
    match real {
        Some(real) if entry.may_write => {
            notes.push(format!("may write in {}: {named} {}, which does not exist yet", real.display(), path.display()));
            let shown = literal(&real.display().to_string());
            if !entry.write.contains(&shown) {
                entry.write.push(shown);
            }
        }
        _ => notes.push(format!(
            "{named} {}, which does not exist yet and is not granted: create it, and name it in sandbox.fs.write",
            path.display()
        )),
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

/// What an executable needs beside it, such as its libraries: a directory to grant, or `Err` if that is left out, since
/// it is shared with other programs. `None`: it is no machine code, or lies in the system's directories.
pub(super) fn program_dir(program: &Path) -> Option<Result<PathBuf, PathBuf>> {
    let real = program.canonicalize().ok()?;
    if SYSTEM.iter().any(|system| real.starts_with(system)) || !is_machine_code(&real) {
        return None;
    }
    let beside = real.parent()?;
    let home = if beside.ends_with("bin") { beside.parent()? } else { beside };
    let shared = SHARED_PROGRAMS.iter().any(|name| home.ends_with(name));
    let own = home.components().count() > 2 && !shared && is_grantable(home);
    Some(if own { Ok(home.to_owned()) } else { Err(real) })
}

fn is_machine_code(file: &Path) -> bool {
    let mut magic = [0; 4];
    let read = std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && &magic == b"\x7fELF"
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

    // Promises: MCP-15
    #[test]
    fn variables_and_absent_paths_are_granted_or_said() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let data = root.join("data");
        std::fs::create_dir(&data).unwrap();
        let (mut entry, mut notes) = (Entry::default(), Vec::new());
        let (shown, absent) = (data.display().to_string(), data.join("new.db").display().to_string());
        let env = [
            ("DATA".to_owned(), format!("/usr/share:{shown}")),
            ("DB".to_owned(), absent.clone()),
            ("PATH".to_owned(), "/opt".to_owned()),
            ("ROUTE".to_owned(), "/query".to_owned()),
        ];
        grant_variables(&mut entry, &env, &mut notes);
        assert_eq!(entry.read, std::slice::from_ref(&shown));
        assert!(notes[0].contains("its variable DATA names"), "{notes:?}");
        assert!(notes[1].contains(&absent) && notes[1].contains("does not exist yet"), "{notes:?}");
        assert_eq!(notes.len(), 2, "{notes:?}");
        std::os::unix::fs::symlink(&data, root.join("link")).unwrap();
        grant_arguments(&mut entry, &[format!("--db={}", root.join("link").display()), absent], &mut notes);
        assert!(notes[2].contains("a link to"), "{notes:?}");
        assert!(notes[3].contains("sandbox.fs.write"), "{notes:?}");
        assert_eq!(entry.read, std::slice::from_ref(&shown));
        let (mut entry, mut notes) = (Entry { may_write: true, ..Entry::default() }, Vec::new());
        grant_variables(&mut entry, &env, &mut notes);
        assert_eq!((entry.read.len(), &entry.write), (0, &vec![shown]), "{notes:?}");
        assert!(notes[1].contains("may write in"), "{notes:?}");
    }

    // Promises: MCP-15
    #[test]
    fn an_executable_comes_with_what_lies_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let program = |path: &str, bytes: &[u8]| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let elf = b"\x7fELF\x02\x01\x01";
        assert_eq!(program_dir(&program("a/bin/server", elf)), Some(Ok(root.join("a"))));
        assert_eq!(program_dir(&program("b/server", elf)), Some(Ok(root.join("b"))));
        assert_eq!(program_dir(&program("c/server", b"#!/bin/sh")), None);
        assert_eq!(program_dir(Path::new("/bin/sh")), None);
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
