//! The Debian package of this build.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use nix::fcntl::{Flock, FlockArg};

use talon_harness::{program, repository, target};

/// The package with this version, rebuilt if it is older than the programs of this build.
///
/// # Errors
/// Why it cannot be built here, so that the test is skipped.
///
/// # Panics
/// When it cannot be built although everything for it is there.
pub fn package(version: &str) -> Result<PathBuf, String> {
    if !Command::new("cargo").args(["deb", "--version"]).output().is_ok_and(|output| output.status.success())
    {
        return Err("cargo-deb is not installed (tests/scripts/deps.sh test installs it)".to_owned());
    }
    let dir = target().join("package");
    fs::create_dir_all(&dir).expect("the target directory takes directories");
    // Of concurrent tests, only one builds it.
    let lock = fs::File::create(dir.join("lock")).expect("the target directory takes files");
    let _held = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, errno)| errno.to_string())?;
    let made = dir.join(format!("test_{version}.deb"));
    let when = |path: &PathBuf| fs::metadata(path).and_then(|found| found.modified()).ok();
    let sources =
        ["deploy", "deploy/debian", "deploy/package", "deploy/systemd"].map(|below| repository().join(below));
    let files = sources.iter().flat_map(fs::read_dir).flatten().flatten().map(|entry| entry.path());
    let newest = files
        .chain([program("talon"), program("talon-state"), program("talon-agent")])
        .filter_map(|path| when(&path))
        .max();
    if when(&made) > newest {
        return Ok(made);
    }
    let built = program("talon");
    let built = built.parent().expect("a program lies in a directory");
    let output = Command::new(repository().join("deploy/package/package-deb.sh"))
        .arg(built)
        .args([dir.as_os_str(), version.as_ref()])
        .output()
        .expect("a shell is there");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stdout));
    let named = String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned();
    fs::rename(&named, &made).unwrap_or_else(|error| panic!("{named}: {error}"));
    Ok(made)
}
