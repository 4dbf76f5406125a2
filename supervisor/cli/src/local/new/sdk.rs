//! Finds the source of talon-sdk, which Rust plugins depend on.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Where packages install it, relative to the directory of `talon`.
const PACKAGED: &str = "../share/talon/sdk";
/// How many levels above this program to look for a source tree: target/debug is two levels below it, and
/// with a target triple three.
const MAX_ABOVE: usize = 4;
/// Names that cargo reserves for its directories, of Rust's standard crates, and of the new crate's
/// dependencies.
const RESERVED: [&str; 12] = [
    "alloc",
    "build",
    "core",
    "deps",
    "examples",
    "incremental",
    "proc-macro",
    "std",
    "talon-proto",
    "talon-sdk",
    "test",
    "tokio",
];

/// The SDK's source.
#[derive(Debug)]
pub(super) struct Sdk {
    /// An absolute path.
    pub(super) path: PathBuf,
    /// The lock file of the tested versions, in a source tree.
    pub(super) lock: Option<PathBuf>,
}

/// Finds the SDK at the given path, or at the default locations.
pub(super) fn find(said: Option<&Path>) -> Result<Sdk, Failure> {
    if let Some(path) = said {
        return open_at(path).ok_or_else(|| {
            Failure::usage(format!(
                "there is no talon-sdk in {}: --sdk names the directory with its Cargo.toml, sdk/ of Talon's source",
                path.display()
            ))
        });
    }
    let own = std::env::current_exe().unwrap_or_default();
    let dir = own.parent().unwrap_or(Path::new("/"));
    let above = dir.ancestors().take(MAX_ABOVE + 1).map(|tree| tree.join("sdk"));
    std::iter::once(dir.join(PACKAGED)).chain(above).find_map(|path| open_at(&path)).ok_or_else(|| {
        Failure::failed(format!(
            "talon-sdk is neither in {} nor in a source tree around {}: say where it is with --sdk PATH (sdk/ of Talon's source)",
            dir.join(PACKAGED).display(),
            own.display()
        ))
    })
}

fn open_at(path: &Path) -> Option<Sdk> {
    let manifest = fs::read_to_string(path.join("Cargo.toml")).ok()?;
    if !manifest.lines().any(|line| line.trim() == "name = \"talon-sdk\"") {
        return None;
    }
    let path = path.canonicalize().ok()?;
    let lock = path.parent().map(|tree| tree.join("Cargo.lock")).filter(|lock| lock.is_file());
    Some(Sdk { path, lock })
}

/// Rejects plugin names that are not valid crate names.
pub(super) fn check_crate_name(name: &str) -> Result<(), Failure> {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Failure::usage(format!(
            "{name} is no name of a Rust crate, which begins with a letter: choose another"
        )));
    }
    if RESERVED.contains(&name) {
        return Err(Failure::usage(format!("{name} means something else to cargo: choose another name")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_where_it_was_said_to_be_or_the_error_says_what_to_give() {
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let sdk = find(Some(&tree.join("supervisor/../sdk"))).unwrap();
        assert_eq!(sdk.path, tree.join("sdk").canonicalize().unwrap());
        assert!(sdk.lock.is_some());
        let error = find(Some(tree)).unwrap_err().to_string();
        assert!(error.contains("sdk/ of Talon's source"), "{error}");
    }

    #[test]
    fn some_names_of_plugins_are_none_of_crates() {
        for name in ["1st", "test", "core"] {
            assert!(check_crate_name(name).is_err(), "{name}");
        }
        check_crate_name("my-tool").unwrap();
    }
}
