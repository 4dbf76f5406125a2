//! Resolves a command's first word to the program to execute.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use talon_jail::{Access, Program, View, missing_interpreter};

use super::exit::{NOT_EXECUTABLE, NOT_FOUND};
use super::grants::absolute;
use crate::failure::Failure;

/// The program to execute.
#[derive(Debug)]
pub(super) struct ResolvedProgram {
    pub(super) program: Program,
    /// Passed to the jail for [`Program::Descriptor`].
    pub(super) file: Option<File>,
}

/// Finds the command as a shell would, and makes it visible in the jail.
///
/// A program that the view already contains is executed by path. A script is added at its own path, because
/// its interpreter opens it by path. Any other program is executed by descriptor and appears alone at its
/// path, without the files next to it.
pub(super) fn find(command: &OsStr, view: &mut View, namespaces: bool) -> Result<ResolvedProgram, Failure> {
    let path = look_up(command)?;
    if !namespaces || view.can_execute(&path) {
        return Ok(ResolvedProgram { program: Program::Path(path), file: None });
    }
    let file = File::open(&path).map_err(|error| {
        let text =
            format!("cannot open {}: {error}; it must be readable to be run in a jail", path.display());
        Failure::new(NOT_EXECUTABLE, text)
    })?;
    if !is_script(&file) {
        view.program_at = Some(path);
        return Ok(ResolvedProgram { program: Program::Descriptor, file: Some(file) });
    }
    view.grant(&path, Access::Execute);
    if let Some(missing) = missing_interpreter(&file, view) {
        return Err(Failure::new(NOT_EXECUTABLE, interpreter_outside(&path, &missing)));
    }
    Ok(ResolvedProgram { program: Program::Path(path), file: None })
}

fn interpreter_outside(script: &Path, interpreter: &Path) -> String {
    let script = script.display();
    // For /opt/venv/bin/python3 all of /opt/venv is needed.
    let bin = interpreter.parent().filter(|parent| parent.ends_with("bin")).and_then(Path::parent);
    let grant = bin.unwrap_or(interpreter).display();
    let interpreter = interpreter.display();
    format!("{script} needs {interpreter}, which is not in the jail: add --execute {grant}")
}

fn look_up(command: &OsStr) -> Result<PathBuf, Failure> {
    if command.as_bytes().contains(&b'/') {
        let shown = Path::new(command).display();
        let path = absolute(Path::new(command)).map_err(|error| not_found(&format!("{shown}: {error}")))?;
        return match executable(&path) {
            Ok(true) => Ok(path),
            Ok(false) => Err(Failure::new(
                NOT_EXECUTABLE,
                format!("{shown} is no executable file: make it one with chmod +x"),
            )),
            Err(error) => Err(not_found(&format!("{shown}: {error}"))),
        };
    }
    let dirs = env::var_os("PATH").unwrap_or_default();
    let candidates = env::split_paths(&dirs).filter(|dir| dir.is_absolute()).map(|dir| dir.join(command));
    let found = candidates.into_iter().find(|path| executable(path).unwrap_or(false));
    found.ok_or_else(|| {
        let shown = command.display();
        not_found(&format!("{shown} is not on the PATH; for a file in this directory write ./{shown}"))
    })
}

fn not_found(why: &str) -> Failure {
    Failure::new(NOT_FOUND, format!("cannot find the command: {why}"))
}

fn executable(path: &Path) -> io::Result<bool> {
    const ANY_EXECUTE: u32 = 0o111;
    let data = path.metadata()?;
    Ok(data.is_file() && data.permissions().mode() & ANY_EXECUTE != 0)
}

fn is_script(file: &File) -> bool {
    let mut start = [0; 2];
    file.read_exact_at(&mut start, 0).is_ok() && start == *b"#!"
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use talon_jail::Network;

    use super::*;

    fn view() -> View {
        View::system((80_001, 80_001), Path::new("/"), &Network::None)
    }

    fn file(dir: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn what_the_system_has_goes_by_path_and_nothing_is_added() {
        let (mut view, before) = (view(), view().shown);
        let found = find(OsStr::new("sh"), &mut view, true).unwrap();
        assert!(matches!(found.program, Program::Path(path) if path.ends_with("sh")));
        assert_eq!((view.shown, view.program_at), (before, None));
    }

    #[test]
    fn a_program_elsewhere_goes_by_descriptor_and_a_script_by_path() {
        let dir = tempfile::tempdir().unwrap();
        let program = file(dir.path(), "program", "\x7fELF", 0o755);
        let mut view = view();
        let found = find(program.as_os_str(), &mut view, true).unwrap();
        assert!(matches!(found.program, Program::Descriptor) && found.file.is_some());
        assert_eq!(view.program_at.as_deref(), Some(program.as_path()));
        let script = file(dir.path(), "script", "#!/bin/sh\n", 0o755);
        let found = find(script.as_os_str(), &mut view, true).unwrap();
        assert!(matches!(found.program, Program::Path(path) if path == script));
        assert!(view.can_execute(&script) && !view.can_execute(&program.with_file_name("other")));
    }

    // Promises: CLI-20
    #[test]
    fn an_interpreter_outside_is_named_with_the_option_that_gives_it() {
        let dir = tempfile::tempdir().unwrap();
        let python = dir.path().join("venv/bin/python3");
        std::fs::create_dir_all(python.parent().unwrap()).unwrap();
        symlink("/usr/bin/env", &python).unwrap();
        let script = file(dir.path(), "script", &format!("#!{}\n", python.display()), 0o755);
        let failure = find(script.as_os_str(), &mut view(), true).unwrap_err();
        let wanted = format!("--execute {}", dir.path().join("venv").display());
        assert!(failure.to_string().ends_with(&wanted), "{failure}");
        let mut view = view();
        view.grant(&dir.path().join("venv"), Access::Execute);
        assert!(find(script.as_os_str(), &mut view, true).is_ok());
    }

    #[test]
    fn what_cannot_be_run_is_told_from_what_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let plain = file(dir.path(), "plain", "", 0o644);
        let code = |command: &OsStr| find(command, &mut view(), true).unwrap_err().code();
        assert_eq!(code(plain.as_os_str()), NOT_EXECUTABLE);
        assert_eq!(code(dir.path().as_os_str()), NOT_EXECUTABLE);
        assert_eq!(code(OsStr::new("/nonexistent/x")), NOT_FOUND);
        assert_eq!(code(OsStr::new("no-such-command-anywhere")), NOT_FOUND);
    }
}
