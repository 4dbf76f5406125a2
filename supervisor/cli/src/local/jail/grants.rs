//! Paths granted to a command, in addition to the system's files.

use std::io;
use std::path::{Component, Path, PathBuf};

use talon_jail::{Access, View};

use crate::failure::Failure;

/// The paths that are granted, each with the option that names it.
#[derive(Debug, Default)]
pub(crate) struct Grants(Vec<(&'static str, PathBuf, Access)>);

impl Grants {
    /// These, and the paths of one more option.
    pub(crate) fn and(mut self, option: &'static str, paths: Vec<PathBuf>, access: Access) -> Self {
        self.0.extend(paths.into_iter().map(|path| (option, path, access)));
        self
    }

    /// Adds them to the view. Fails as wrong usage if one is not there.
    pub(super) fn add_to(&self, view: &mut View) -> Result<(), Failure> {
        for (option, path, access) in &self.0 {
            let whole = absolute(path).and_then(|whole| whole.metadata().map(|_| whole));
            let whole = whole.map_err(|error| {
                Failure::usage(format!(
                    "{option} {}: {error}; name a file or directory that is there",
                    path.display()
                ))
            })?;
            view.grant(&whole, *access);
        }
        Ok(())
    }
}

/// The path as it is named in the jail: absolute and normalized. A path with `..` may lead through symbolic
/// links to another file than it seems to; it is resolved.
pub(crate) fn absolute(path: &Path) -> io::Result<PathBuf> {
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
        let missing = Grants::default().and("--read", vec!["/nonexistent/data".into()], Access::Read);
        let failure = missing.add_to(&mut View::default()).err().unwrap().to_string();
        assert!(failure.starts_with("--read /nonexistent/data: "), "{failure}");
    }
}
