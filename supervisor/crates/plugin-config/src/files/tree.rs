//! Walks a plugin's directory through descriptors: bounded, not by path, and without following symlinks.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, readlinkat, statat};

use super::trust;

/// The most files, links and directories of a directory plugin. 20,000 is several times a large virtual
/// environment; more is probably a wrong directory, such as a home.
pub const MAX_ENTRIES: usize = 20_000;

/// The most bytes of its files together: 1 GiB, which is copied at the first start.
pub const MAX_BYTES: u64 = 1 << 30;

/// How deep its directories may nest: the walk holds one descriptor open for each level.
pub const MAX_DEPTH: usize = 32;

/// Where absolute symlinks may lead: programs and libraries of the system.
const SYSTEM_DIRS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/nix/store"];

/// Why a directory cannot be a plugin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// Something in it cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another user may change something in it.
    #[error("{} cannot be trusted: {problem}", path.display())]
    Untrusted {
        /// What.
        path: PathBuf,
        /// Who may change it, and what to do.
        problem: String,
    },
    /// It is too large.
    #[error("{} holds more than {MAX_ENTRIES} files or {} MiB: keep only what the plugin needs in it", path.display(), MAX_BYTES >> 20)]
    TooLarge {
        /// The directory.
        path: PathBuf,
    },
    /// It nests too deeply.
    #[error("{} nests deeper than {MAX_DEPTH} directories: keep only what the plugin needs", path.display())]
    TooDeep {
        /// The innermost directory reached.
        path: PathBuf,
    },
    /// A symlink leads out of it.
    #[error("{} is a symbolic link to {}, outside the plugin's directory: replace it by a copy, or by a relative link that stays inside", path.display(), target.display())]
    LinkOutside {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// A device, socket or pipe.
    #[error("{} is neither a file, a directory nor a symbolic link: remove it", path.display())]
    SpecialFile {
        /// What.
        path: PathBuf,
    },
}

/// One entry of a directory, in the order of a sorted depth-first walk.
#[derive(Debug)]
pub enum TreeEntry<'e> {
    /// A directory. Comes before its content.
    Dir,
    /// A regular file.
    File {
        /// Open for reading, at its start.
        file: &'e mut File,
        /// Whether any user may execute it.
        executable: bool,
    },
    /// A symlink that stays inside or leads to the system's directories.
    Link {
        /// Where it leads, as written.
        target: &'e Path,
    },
}

/// Walks `root` and calls `visit` for each entry with its path below the root. The root itself and `skip` (a
/// name directly in the root) are left out.
pub fn walk(
    root: &Path,
    skip: Option<&OsStr>,
    visit: &mut dyn FnMut(&Path, TreeEntry<'_>) -> Result<(), TreeError>,
) -> Result<(), TreeError> {
    let failed = |source: rustix::io::Errno| TreeError::Io { path: root.to_owned(), source: source.into() };
    let fd = rustix::fs::open(root, dir_flags(), Mode::empty()).map_err(failed)?;
    check_trust(root, &fstat(&fd).map_err(failed)?)?;
    let mut walker = Walker { root, skip, visit, entries: 0, bytes: 0 };
    walker.directory(fd, Path::new(""), 0)
}

fn dir_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn check_trust(path: &Path, stat: &rustix::fs::Stat) -> Result<(), TreeError> {
    match trust::others_may_write(stat) {
        Some(problem) => Err(TreeError::Untrusted { path: path.to_owned(), problem }),
        None => Ok(()),
    }
}

struct Walker<'w> {
    root: &'w Path,
    skip: Option<&'w OsStr>,
    visit: &'w mut dyn FnMut(&Path, TreeEntry<'_>) -> Result<(), TreeError>,
    entries: usize,
    bytes: u64,
}

impl Walker<'_> {
    fn error(&self, relative: &Path, source: impl Into<io::Error>) -> TreeError {
        TreeError::Io { path: self.root.join(relative), source: source.into() }
    }

    fn directory(&mut self, dir: OwnedFd, relative: &Path, depth: usize) -> Result<(), TreeError> {
        if depth > MAX_DEPTH {
            return Err(TreeError::TooDeep { path: self.root.join(relative) });
        }
        for name in self.sorted_names(&dir, relative)? {
            if depth == 0 && self.skip == Some(name.as_os_str()) {
                continue;
            }
            self.entry(&dir, &name, &relative.join(&name), depth)?;
        }
        Ok(())
    }

    fn sorted_names(&mut self, dir: &OwnedFd, relative: &Path) -> Result<Vec<OsString>, TreeError> {
        let mut names = Vec::new();
        for entry in Dir::read_from(dir).map_err(|e| self.error(relative, e))? {
            let entry = entry.map_err(|e| self.error(relative, e))?;
            let name: &CStr = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(TreeError::TooLarge { path: self.root.to_owned() });
            }
            names.push(OsStr::from_bytes(name.to_bytes()).to_owned());
        }
        names.sort();
        Ok(names)
    }

    fn entry(&mut self, dir: &OwnedFd, name: &OsStr, relative: &Path, depth: usize) -> Result<(), TreeError> {
        let seen = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| self.error(relative, e))?;
        match FileType::from_raw_mode(seen.st_mode) {
            FileType::Directory => {
                let fd =
                    openat(dir, name, dir_flags(), Mode::empty()).map_err(|e| self.error(relative, e))?;
                let stat = fstat(&fd).map_err(|e| self.error(relative, e))?;
                check_trust(&self.root.join(relative), &stat)?;
                (self.visit)(relative, TreeEntry::Dir)?;
                self.directory(fd, relative, depth + 1)
            }
            FileType::RegularFile => {
                // NONBLOCK: if the file was swapped for a pipe meanwhile, opening it does not block.
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let fd = openat(dir, name, flags, Mode::empty()).map_err(|e| self.error(relative, e))?;
                let stat = fstat(&fd).map_err(|e| self.error(relative, e))?;
                if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                    return Err(TreeError::SpecialFile { path: self.root.join(relative) });
                }
                check_trust(&self.root.join(relative), &stat)?;
                let executable = trust::is_executable(&stat);
                // Counted by size before reading; the copier detects a file that grows meanwhile.
                self.bytes = self.bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(u64::MAX));
                if self.bytes > MAX_BYTES {
                    return Err(TreeError::TooLarge { path: self.root.to_owned() });
                }
                let mut file = File::from(fd);
                (self.visit)(relative, TreeEntry::File { file: &mut file, executable })
            }
            FileType::Symlink => {
                let target = readlinkat(dir, name, Vec::new()).map_err(|e| self.error(relative, e))?;
                let target = PathBuf::from(OsStr::from_bytes(target.as_bytes()));
                if !is_allowed_link(relative, &target) {
                    return Err(TreeError::LinkOutside { path: self.root.join(relative), target });
                }
                (self.visit)(relative, TreeEntry::Link { target: &target })
            }
            _ => Err(TreeError::SpecialFile { path: self.root.join(relative) }),
        }
    }
}

/// Whether a path without symlinks belongs to the system: it is below a system directory, and only root may
/// change it and its directory.
pub fn is_system_file(real: &Path) -> bool {
    let roots_alone =
        |path: &Path| rustix::fs::stat(path).is_ok_and(|stat| stat.st_uid == 0 && stat.st_mode & 0o022 == 0);
    SYSTEM_DIRS.iter().any(|dir| real.starts_with(dir))
        && roots_alone(real)
        && real.parent().is_some_and(roots_alone)
}

/// Whether a symlink at `link` (below the root) leads inside the root or to a system directory.
///
/// `..` is allowed only at the beginning of a relative target, where it goes up from a real directory. After
/// a name it would go up from the target of that name.
fn is_allowed_link(link: &Path, target: &Path) -> bool {
    if target.is_absolute() {
        return target.components().all(|c| matches!(c, Component::RootDir | Component::Normal(_)))
            && SYSTEM_DIRS.iter().any(|dir| target.starts_with(dir));
    }
    let mut depth = link.components().count().saturating_sub(1);
    let mut named = false;
    for component in target.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(_) => named = true,
            Component::ParentDir if !named && depth > 0 => depth -= 1,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: DISC-14
    #[test]
    fn links_that_lead_out_are_told() {
        for (link, target) in [
            ("a", "b"),
            ("a", "./b/c"),
            ("d/a", "../b"),
            ("bin/python", "/usr/bin/python3"),
            ("lib64", "lib"),
        ] {
            assert!(is_allowed_link(Path::new(link), Path::new(target)), "{link} -> {target}");
        }
        for (link, target) in [
            ("a", "../b"),
            ("d/a", "../../b"),
            ("a", "b/../../c"),
            ("a", "/etc/passwd"),
            ("a", "/usr/../etc/passwd"),
            ("a", "/usrlocal"),
            ("a", "/"),
        ] {
            assert!(!is_allowed_link(Path::new(link), Path::new(target)), "{link} -> {target}");
        }
    }
}
