//! The tests' files, and the paths of the programs under test.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A private directory for a test, readable by every uid (plugins run under their own) and short enough for
/// unix sockets.
#[derive(Debug)]
pub struct Scratch {
    directory: TempDir,
}

impl Scratch {
    /// Makes one below `/tmp`, which is short; a `TMPDIR` of a build machine often is not.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it makes a directory, which a default would hide")]
    pub fn new() -> Self {
        let directory =
            tempfile::Builder::new().prefix("talon-").tempdir_in("/tmp").expect("/tmp takes a directory");
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755))
            .expect("our own directory takes a mode");
        Self { directory }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A path in it.
    #[must_use]
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file into it, and creates parent directories.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir_all(path.parent().expect("a file in the scratch directory has a parent"))
            .expect("the scratch directory takes directories");
        std::fs::write(&path, text).expect("the scratch directory takes files");
        path
    }

    /// Copies a program into it as an executable file.
    pub fn install(&self, program: &Path, name: &str) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir_all(path.parent().expect("a file in the scratch directory has a parent"))
            .expect("the scratch directory takes directories");
        std::fs::copy(program, &path).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it is our own file");
        path
    }

    /// Writes an executable script into it.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(name, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it is our own file");
        path
    }
}

/// The root of this repository.
#[must_use]
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("tests/harness/ lies in the repository")
}

/// A program that the workspace builds.
///
/// # Panics
/// When it is not built: the tests need every binary, which `make test` builds first.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    let here = std::env::current_exe().expect("a running program has a path");
    let found =
        here.ancestors().skip(1).take(2).map(|directory| directory.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("{name} is not built beside {}: run `cargo build --workspace --bins` first", here.display())
    })
}

/// The directory that cargo builds in, where scripts put what tests need besides.
#[must_use]
pub fn target() -> PathBuf {
    let built = program("talon");
    built.ancestors().nth(2).expect("a program lies in target/<profile>").to_owned()
}

/// An example plugin as `make plugins` puts it below `target/plugins`.
///
/// # Panics
/// When it is not there.
#[must_use]
pub fn example(name: &str) -> PathBuf {
    let path = target().join("plugins").join(name);
    assert!(path.exists(), "{} is missing: run `make plugins` first", path.display());
    path
}
