//! Installs a package of PyPI with an interpreter that it can run on.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::download::Download;
use super::install_error::InstallError;
use super::installer::run;
use super::program_path::find;

/// The interpreters that are tried in this order, as far as they are installed: the system's, then the newest ones.
const INTERPRETERS: [&str; 7] =
    ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10", "python3.9"];
/// How pip says that a package is for other interpreters, followed by their versions.
const REQUIRES: &str = "Requires-Python ";
/// How much of pip's errors is read; it says why in a few lines.
const MAX_ERROR_BYTES: u64 = 64 << 10;
/// How much of the versions is shown.
const MAX_SHOWN_CHARS: usize = 40;

/// Creates a virtual environment in `home`, with the package in it.
pub(super) fn install(download: &Download, home: &Path) -> Result<(), InstallError> {
    let interpreters = interpreters(download.python.as_deref())?;
    install_with(&interpreters, download, home)
}

/// The interpreters for a package: the one that its launcher was given, or all that are installed.
fn interpreters(asked: Option<&str>) -> Result<Vec<PathBuf>, InstallError> {
    if let Some(asked) = asked {
        let named = if asked.starts_with(|c: char| c.is_ascii_digit()) {
            format!("python{asked}")
        } else {
            asked.to_owned()
        };
        return match find(&named) {
            Some(python) => Ok(vec![python]),
            None => Err(InstallError::NeedsPython { program: named }),
        };
    }
    let found: Vec<PathBuf> = INTERPRETERS.iter().filter_map(|name| find(name)).collect();
    if found.is_empty() { Err(InstallError::NeedsProgram { program: "python3" }) } else { Ok(found) }
}

/// Tries one interpreter after the other, while the package is for others.
fn install_with(interpreters: &[PathBuf], download: &Download, home: &Path) -> Result<(), InstallError> {
    let mut wanted = None;
    for python in interpreters {
        match attempt(python, download, home)? {
            None => return Ok(()),
            Some(versions) => wanted = Some(versions),
        }
    }
    let tried = interpreters.iter().map(|python| python.display().to_string()).collect::<Vec<_>>().join(", ");
    Err(InstallError::OtherPython { wanted: wanted.unwrap_or_default(), tried })
}

/// Installs it with one interpreter. Returns the versions that the package is for, if this is none of them.
fn attempt(python: &Path, download: &Download, home: &Path) -> Result<Option<String>, InstallError> {
    let mut venv = Command::new(python);
    // Isolated from the current directory and the environment.
    venv.args(["-I", "-m", "venv", "--clear"]).arg(home);
    run(venv)?;
    let mut pip = Command::new(home.join("bin/python"));
    pip.args([
        "-I",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
    ]);
    pip.arg("--").args(download.requirements());
    let shown = pip.get_program().to_string_lossy().into_owned();
    let start = |error| InstallError::Start { shown: shown.clone(), error };
    pip.stdin(Stdio::null()).stdout(io::stderr()).stderr(Stdio::piped());
    let mut child = pip.spawn().map_err(start)?;
    let mut said = Vec::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.by_ref().take(MAX_ERROR_BYTES).read_to_end(&mut said).map_err(start)?;
        io::copy(&mut stderr, &mut io::sink()).map_err(start)?;
    }
    let status = child.wait().map_err(start)?;
    if status.success() {
        return Ok(None);
    }
    if let Some(versions) = required_versions(&String::from_utf8_lossy(&said)) {
        return Ok(Some(versions));
    }
    // A closed stderr is no reason to hide that it failed.
    let _ = io::stderr().write_all(&said);
    Err(InstallError::Installer { shown, status })
}

/// The versions of Python that pip names: `>=3.12`.
fn required_versions(said: &str) -> Option<String> {
    let (_, after) = said.split_once(REQUIRES)?;
    let versions = after.split([';', '\n']).next().unwrap_or_default().trim();
    Some(versions.chars().filter(|c| !c.is_control()).take(MAX_SHOWN_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::download::PackageRegistry;
    use super::*;

    /// An interpreter that makes an environment and whose pip says this.
    fn interpreter(dir: &Path, name: &str, pip: &str) -> PathBuf {
        let path = dir.join(name);
        let text = format!(
            "#!/bin/sh\nif [ \"$3\" = venv ]; then mkdir -p \"$5/bin\"; cp \"$0\" \"$5/bin/python\"; exit 0; fi\n{pip}\n"
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    // Promises: MCP-16
    #[test]
    fn the_next_interpreter_is_tried_and_otherwise_the_version_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let old = interpreter(
            dir.path(),
            "python3",
            "echo 'ERROR: Ignored the following versions that require a different python version: 1.0 Requires-Python >=3.12; \
             0.9 Requires-Python >=3.11' >&2; exit 1",
        );
        let new = interpreter(dir.path(), "python3.12", "touch \"$(dirname \"$0\")/installed\"");
        let download = Download {
            registry: PackageRegistry::PyPi,
            package: "pkg".to_owned(),
            program: None,
            python: None,
            with: Vec::new(),
            args: Vec::new(),
        };
        let home = dir.path().join("home");
        install_with(&[old.clone(), new], &download, &home).unwrap();
        assert!(home.join("bin/installed").is_file());
        let error = install_with(std::slice::from_ref(&old), &download, &home).unwrap_err().to_string();
        assert!(error.contains(">=3.12") && error.contains(&old.display().to_string()), "{error}");
        let broken = interpreter(dir.path(), "python3.13", "echo 'ERROR: no network' >&2; exit 1");
        let error = install_with(&[broken], &download, &home).unwrap_err();
        assert!(matches!(error, InstallError::Installer { .. }), "{error}");
    }

    #[test]
    fn the_version_of_a_launcher_is_the_only_one() {
        let error = interpreters(Some("3.77")).unwrap_err().to_string();
        assert!(error.contains("python3.77"), "{error}");
    }
}
