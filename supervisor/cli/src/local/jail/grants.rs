//! Paths granted to a command, in addition to the system's files.

use std::io;
use std::path::{Component, Path, PathBuf};

use talon_jail::{Access, View};

use crate::failure::Failure;

/// Adds the paths of one option to the view.
pub(super) fn add(view: &mut View, option: &str, paths: &[PathBuf], access: Access) -> Result<(), Failure> {
    for path in paths {
        let whole = absolute(path).and_then(|whole| whole.metadata().map(|_| whole));
        let whole = whole.map_err(|error| {
            Failure::usage(format!(
                "{option} {}: {error}; name a file or directory that is there",
                path.display()
            ))
        })?;
        view.grant(&whole, access);
    }
    Ok(())
}

/// The path as it is named in the jail: absolute and normalized. A path with `..` may lead through symbolic
/// links to another file than it seems to; it is resolved.
pub(super) fn absolute(path: &Path) -> io::Result<PathBuf> {
    if path.components().any(|part| part == Component::ParentDir) {
        return path.canonicalize();
    }
    // Reassembling the components removes `.`, double slashes and a trailing slash.
    Ok(std::path::absolute(path)?.components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_plain() {
        assert_eq!(absolute(Path::new("/usr//lib/./")).unwrap(), Path::new("/usr/lib"));
        assert_eq!(
            absolute(Path::new("/usr/../usr/lib")).unwrap(),
            Path::new("/usr/lib").canonicalize().unwrap()
        );
        let here = std::env::current_dir().unwrap();
        assert_eq!(absolute(Path::new(".")).unwrap(), here);
        assert_eq!(absolute(Path::new("x/y")).unwrap(), here.join("x/y"));
    }

    #[test]
    fn what_is_not_there_is_named_with_its_option() {
        let missing = [PathBuf::from("/nonexistent/data")];
        let failure = add(&mut View::default(), "--read", &missing, Access::Read).err().unwrap().to_string();
        assert!(failure.starts_with("--read /nonexistent/data: "), "{failure}");
    }
}
