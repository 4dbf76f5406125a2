//! Installs a package once, so that a jail without network can run it.
//!
//! Packages may contain scripts that run during installation, outside of any jail. npm is called with scripts
//! disabled, and pip accepts only prebuilt packages. Each installation starts in a fresh directory: an
//! existing one is under the package's control, and programs in it would run with the importing user's
//! rights.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use talon_sanitize::{Raw, sanitized};
use tempfile::TempDir;

use super::download::{Download, PackageRegistry, split_pypi};
use super::install_error::{InstallError, ManifestProblem};
use super::installer::run;
use super::node_engine;
use super::program_path::find;
use super::python;
use crate::failure::Failure;
use crate::output::Output;

/// A file in each directory that records what was installed, so that a second import is quick.
const STAMP: &str = ".talon-installed";
/// The largest `package.json` to read. Registries refuse much smaller ones.
const MAX_PACKAGE_BYTES: u64 = 1 << 20;

/// How many files of a package are inspected. Large packages have tens of thousands.
const MAX_FILES: usize = 200_000;

/// How to run an installed package.
#[derive(Debug)]
pub(super) struct Installed {
    pub(super) command: PathBuf,
    /// Arguments before the server's own.
    pub(super) leading_args: Vec<String>,
    /// What the interpreter may lack.
    pub(super) note: Option<String>,
}

/// The directory for all packages; created if it does not exist.
pub(super) fn directory(path: &Path) -> Result<PathBuf, Failure> {
    fs::create_dir_all(path).and_then(|()| path.canonicalize()).map_err(|error| {
        Failure::usage(format!(
            "cannot use {} for --install: {error}; name another directory",
            path.display()
        ))
    })
}

/// The installation command as one would type it.
pub(super) fn command_line(download: &Download, home: &Path) -> String {
    let home = home.display();
    match download.registry {
        PackageRegistry::Npm => format!("npm install --prefix {home} --ignore-scripts {}", download.package),
        PackageRegistry::PyPi => {
            format!(
                "python3 -I -m venv {home} && {home}/bin/python -I -m pip install --only-binary :all: {}",
                download.requirements().collect::<Vec<_>>().join(" ")
            )
        }
    }
}

/// Installs a package into a separate directory, unless it is there already.
pub(super) fn install(download: &Download, home: &Path, out: &mut Output) -> Result<Installed, InstallError> {
    let stamp = home.join(STAMP);
    let wanted = format!("{}\n", command_line(download, home));
    if fs::read_to_string(&stamp).ok().as_ref() != Some(&wanted) {
        out.err_line(sanitized!("installing {} …", Raw::from(&download.package).line()));
        is_replaceable(home)?;
        let failed = |error: io::Error| InstallError::Directory { home: home.to_owned(), error };
        let fresh = temp_sibling(home).map_err(failed)?;
        match download.registry {
            PackageRegistry::Npm => npm(download, fresh.path())?,
            PackageRegistry::PyPi => python::install(download, fresh.path())?,
        }
        fs::write(fresh.path().join(STAMP), wanted).map_err(failed)?;
        move_into_place(fresh, home).map_err(failed)?;
    }
    match download.registry {
        PackageRegistry::Npm => {
            let Package { script, engine } = package_of(download, home)?;
            let node = find("node").ok_or(InstallError::NeedsProgram { program: "node" })?;
            let note = engine.and_then(|wanted| node_engine::note(&wanted, &node));
            Ok(Installed { command: node, leading_args: vec![script.display().to_string()], note })
        }
        PackageRegistry::PyPi => {
            let program = script_of_pypi(download, home)?;
            Ok(Installed {
                command: home.join("bin/python"),
                leading_args: vec![program.display().to_string()],
                note: None,
            })
        }
    }
}

/// Fails unless the directory was created by this program.
fn is_replaceable(home: &Path) -> Result<(), InstallError> {
    if home.symlink_metadata().is_ok() && !home.join(STAMP).is_file() {
        return Err(InstallError::Occupied { home: home.to_owned() });
    }
    Ok(())
}

/// A temporary directory next to the final one. Deleted unless it is moved into place.
fn temp_sibling(home: &Path) -> io::Result<TempDir> {
    let parent = home.parent().unwrap_or(home);
    // Plugins may run with other uids, and have to read it.
    tempfile::Builder::new().prefix(".new-").permissions(Permissions::from_mode(0o755)).tempdir_in(parent)
}

/// Moves the directory to its final path, replacing an earlier installation.
fn move_into_place(fresh: TempDir, home: &Path) -> io::Result<()> {
    let old = temp_sibling(home)?;
    match fs::rename(home, old.path().join("old")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::rename(fresh.path(), home)?;
    // It was renamed, so there is nothing to delete under the old name.
    let _ = fresh.keep();
    Ok(())
}

/// Whether the package contains shared libraries, which can only be loaded with execute permission.
pub(super) fn holds_machine_code(home: &Path) -> bool {
    let mut open = vec![home.to_owned()];
    let mut seen = 0;
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            seen += 1;
            let path = entry.path();
            let library = path.extension().is_some_and(|extension| extension == "so" || extension == "node")
                || path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so."));
            // A package that is too large to inspect is treated as if it did.
            if library || seen > MAX_FILES {
                return true;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
            }
        }
    }
    false
}

fn npm(download: &Download, home: &Path) -> Result<(), InstallError> {
    let npm = find("npm").ok_or(InstallError::NeedsProgram { program: "npm" })?;
    let mut command = Command::new(npm);
    command.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
    command.arg(home).arg("--").arg(&download.package);
    run(command)
}

/// The script of a PyPI package.
fn script_of_pypi(download: &Download, home: &Path) -> Result<PathBuf, InstallError> {
    let (name, _) = split_pypi(&download.package);
    let name = name.split('[').next().unwrap_or(name);
    let name = download.program.as_deref().unwrap_or(name);
    let mut components = Path::new(name).components();
    let one = matches!((components.next(), components.next()), (Some(Component::Normal(_)), None));
    if !one || name.contains('/') {
        return Err(InstallError::BadProgramName { name: name.to_owned() });
    }
    let program = home.join("bin").join(name);
    match program.canonicalize() {
        Ok(real) if !real.starts_with(home) => Err(InstallError::OutsidePackage { program }),
        Ok(real) if real.is_file() => Ok(program),
        _ => Err(InstallError::NoProgram { program }),
    }
}

/// What a `package.json` says.
struct Package {
    /// The script, as named by `bin`.
    script: PathBuf,
    /// The versions of Node that it is for, as named by `engines`.
    engine: Option<String>,
}

fn package_of(download: &Download, home: &Path) -> Result<Package, InstallError> {
    let name = match download.package.rsplit_once('@') {
        Some((name, _)) if !name.is_empty() => name,
        _ => &download.package,
    };
    let package = home.join("node_modules").join(name);
    let about = package.join("package.json");
    let odd = |problem| InstallError::Manifest { file: about.clone(), problem };
    let size = fs::metadata(&about).map_err(|error| odd(error.into()))?.len();
    if size > MAX_PACKAGE_BYTES {
        return Err(odd(ManifestProblem::TooLarge));
    }
    let text = fs::read(&about).map_err(|error| odd(error.into()))?;
    let about_it: Value = serde_json::from_slice(&text).map_err(|error| odd(error.into()))?;
    let short = name.rsplit('/').next().unwrap_or(name);
    let script = match &about_it["bin"] {
        Value::String(script) => Some(script),
        Value::Object(scripts) => {
            let named = scripts.get(download.program.as_deref().unwrap_or(short));
            let only = scripts.values().next().filter(|_| scripts.len() == 1 && download.program.is_none());
            match named.or(only) {
                Some(Value::String(script)) => Some(script),
                _ => None,
            }
        }
        _ => None,
    };
    let script = package.join(script.ok_or_else(|| odd(ManifestProblem::NoProgram))?);
    let real = script.canonicalize().map_err(|error| odd(error.into()))?;
    if !real.starts_with(home) {
        return Err(odd(ManifestProblem::OutsidePackage));
    }
    let engine = about_it.pointer("/engines/node").and_then(Value::as_str).map(str::to_owned);
    Ok(Package { script: real, engine })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_pypi(package: &str, program: Option<&str>) -> Download {
        let program = program.map(str::to_owned);
        Download {
            registry: PackageRegistry::PyPi,
            package: package.to_owned(),
            program,
            python: None,
            with: Vec::new(),
            args: Vec::new(),
        }
    }

    #[test]
    fn a_program_is_one_of_its_package() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir(home.join("bin")).unwrap();
        fs::write(home.join("bin/pkg"), "").unwrap();
        std::os::unix::fs::symlink("/bin/sh", home.join("bin/out")).unwrap();
        assert_eq!(script_of_pypi(&of_pypi("pkg[x]==1", None), &home).unwrap(), home.join("bin/pkg"));
        for (name, why) in [
            ("../bin/pkg", "no name"),
            ("/bin/sh", "no name"),
            ("..", "no name"),
            ("pkg/", "no name"),
            ("", "no name"),
            ("out", "leads out"),
            ("none", "has no program"),
        ] {
            let said = script_of_pypi(&of_pypi("pkg", Some(name)), &home).unwrap_err();
            assert!(said.to_string().contains(why), "{name}: {said}");
        }
    }

    #[test]
    fn a_fresh_directory_takes_the_place_of_what_was_installed() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("git");
        for text in ["one", "two"] {
            let fresh = temp_sibling(&home).unwrap();
            fs::write(fresh.path().join("file"), text).unwrap();
            move_into_place(fresh, &home).unwrap();
            assert_eq!(fs::read_to_string(home.join("file")).unwrap(), text);
        }
        drop(temp_sibling(&home).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn what_somebody_else_put_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("git");
        is_replaceable(&home).unwrap();
        fs::create_dir(&home).unwrap();
        assert!(is_replaceable(&home).unwrap_err().to_string().contains("something else"));
        fs::write(home.join(STAMP), "").unwrap();
        is_replaceable(&home).unwrap();
    }
}
