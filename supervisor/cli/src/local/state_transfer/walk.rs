//! Finds the files of the layout in a directory.
//!
//! Names are not validated here: the ids in another program's directory may differ from ours, and the
//! importer reports each invalid one. Files outside the layout are ignored.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, statat};
use rustix::io::Errno;

use super::layout::{
    ALL_NOTIFICATIONS, APPROVALS, MEDIA, MEMORIES, MEMORY, NOTIFICATIONS, OCCURRENCES, PLUGINS, PROPOSALS,
    RULES, SCHEDULE, SESSIONS, SHADOW, STATE, YAML,
};
use super::tree::Tree;
use crate::local::state::part::StatePart;

/// Files per import. Each session is one file; a machine's users need years to start a million.
pub(super) const MAX_FILES: usize = 1_000_000;
/// Bytes per file: the most that `talon-state` holds in memory of one file, four times a plugin's default
/// quota. A larger file is reported and not sent.
pub(super) const MAX_FILE_BYTES: u64 = 256 << 20;
/// Bytes per import. Larger ones have to be split into several directories.
pub(super) const MAX_BYTES: u64 = 64 << 30;

/// A file to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub(super) path: String,
    pub(super) bytes: u64,
    pub(super) part: StatePart,
}

/// A file that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SkippedFile {
    pub(super) path: String,
    pub(super) part: StatePart,
    pub(super) reason: String,
}

/// The files of a directory, sorted by path.
#[derive(Debug, Default)]
pub(super) struct WalkResult {
    pub(super) files: Vec<FoundFile>,
    pub(super) skipped: Vec<SkippedFile>,
    /// The total size of the files.
    bytes: u64,
}

/// The directory exceeds the limits of one import.
#[derive(Debug, thiserror::Error)]
pub(super) enum WalkError {
    #[error("{path} cannot be read: {source}")]
    Io { path: String, source: io::Error },
    #[error("it holds more than {MAX_FILES} files: import it in parts")]
    TooMany,
    #[error("it holds more than {} GiB: import it in parts", MAX_BYTES >> 30)]
    TooLarge,
}

/// Lists the files of the layout.
pub(super) fn walk(tree: &Tree) -> Result<WalkResult, WalkError> {
    let mut walked = WalkResult::default();
    for directory in [SESSIONS, MEDIA] {
        for name in names(tree, directory)? {
            if name.ends_with(YAML) && !name.starts_with('.') {
                walked.visit(tree, directory, &name, StatePart::Agent)?;
            }
        }
    }
    walked.visit(tree, MEMORY, MEMORIES, StatePart::Agent)?;
    walked.visit(tree, APPROVALS, RULES, StatePart::Agent)?;
    walked.visit(tree, SCHEDULE, OCCURRENCES, StatePart::Agent)?;
    walked.visit(tree, SCHEDULE, PROPOSALS, StatePart::Agent)?;
    walked.visit(tree, NOTIFICATIONS, ALL_NOTIFICATIONS, StatePart::Agent)?;
    walked.visit(tree, SHADOW, STATE, StatePart::Agent)?;
    for plugin in names(tree, PLUGINS)? {
        walked.visit(tree, &format!("{PLUGINS}/{plugin}"), STATE, StatePart::Plugins)?;
    }
    Ok(walked)
}

/// The names in a directory, sorted; empty if it does not exist.
fn names(tree: &Tree, dir: &str) -> Result<Vec<String>, WalkError> {
    let failed = |error: Errno| WalkError::Io { path: dir.to_owned(), source: error.into() };
    let Some(fd) =
        existing_dir(tree.dir(dir)).map_err(|source| WalkError::Io { path: dir.to_owned(), source })?
    else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for entry in Dir::read_from(fd).map_err(failed)? {
        // A name that is not UTF-8 is not a valid id; it is reported in a lossy form.
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
        if names.len() > MAX_FILES {
            return Err(WalkError::TooMany);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// `None` if the directory does not exist or is not a directory.
fn existing_dir(opened: io::Result<OwnedFd>) -> io::Result<Option<OwnedFd>> {
    match opened {
        Ok(fd) => Ok(Some(fd)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl WalkResult {
    fn visit(&mut self, tree: &Tree, dir: &str, name: &str, part: StatePart) -> Result<(), WalkError> {
        let path = format!("{dir}/{name}");
        let stat = match existing_dir(tree.dir(dir)) {
            Ok(None) => return Ok(()),
            Ok(Some(fd)) => statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from),
            Err(error) => Err(error),
        };
        let stat = match stat {
            Ok(stat) => stat,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                let link = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
                let reason = if link { LINK.to_owned() } else { format!("cannot be looked at: {error}") };
                self.skipped.push(SkippedFile { path, part, reason });
                return Ok(());
            }
        };
        let bytes = u64::try_from(stat.st_size).unwrap_or_default();
        let reason = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if bytes > MAX_FILE_BYTES => too_large(bytes),
            FileType::RegularFile => {
                self.files.push(FoundFile { path, bytes, part });
                self.bytes = self.bytes.saturating_add(bytes);
                if self.files.len() + self.skipped.len() > MAX_FILES {
                    return Err(WalkError::TooMany);
                }
                if self.bytes > MAX_BYTES {
                    return Err(WalkError::TooLarge);
                }
                return Ok(());
            }
            FileType::Symlink => LINK.to_owned(),
            _ => "it is no regular file".to_owned(),
        };
        self.skipped.push(SkippedFile { path, part, reason });
        Ok(())
    }
}

const LINK: &str = "a symbolic link is not followed";

/// The reason for a file above the limit.
fn too_large(bytes: u64) -> String {
    format!(
        "it has {bytes} bytes, and an import takes {MAX_FILE_BYTES} of one file; `talon export` and `talon backup` of as \
         much state are not affected: move it with `talon backup` and `talon restore`"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_layout_is_found_and_everything_else_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        };
        for path in [
            "sessions/b.yaml",
            "sessions/a.yaml",
            "sessions/.a.yaml.7.new",
            "sessions/notes.txt",
            "memory/memories.yaml",
            "memory/other.yaml",
            "media/a.yaml",
            "media/a.png",
            "plugins/Notes/state.yaml",
            "plugins/notes/data.bin",
            "plugins/loose.yaml",
            "config.yaml",
        ] {
            write(path);
        }
        symlink("/etc/passwd", dir.path().join("sessions/link.yaml")).unwrap();
        symlink("/etc", dir.path().join("plugins/etc")).unwrap();
        std::fs::File::create(dir.path().join("sessions/big.yaml"))
            .unwrap()
            .set_len(MAX_FILE_BYTES + 1)
            .unwrap();
        let walked = walk(&Tree::open(dir.path()).unwrap()).unwrap();
        let found: Vec<&str> = walked.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(
            found,
            [
                "sessions/a.yaml",
                "sessions/b.yaml",
                "media/a.yaml",
                "memory/memories.yaml",
                "plugins/Notes/state.yaml"
            ]
        );
        let unread: Vec<&str> = walked.skipped.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(unread, ["sessions/big.yaml", "sessions/link.yaml", "plugins/etc/state.yaml"]);
        let parts: Vec<StatePart> = walked.skipped.iter().map(|file| file.part).collect();
        assert_eq!(parts, [StatePart::Agent, StatePart::Agent, StatePart::Plugins]);
        let why = &walked.skipped[0].reason;
        assert!(why.contains("268435457 bytes") && why.contains("talon backup"), "{why}");
    }

    #[test]
    fn an_empty_directory_has_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let walked = walk(&Tree::open(dir.path()).unwrap()).unwrap();
        assert!(walked.files.is_empty() && walked.skipped.is_empty());
    }
}
