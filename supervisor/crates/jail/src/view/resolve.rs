//! Resolves host paths before the jail is built, in a process that sees the true owners of files.
//!
//! A plugin that may write to a directory can put a symbolic link there. If another plugin were shown a path
//! through it, the link would decide what that plugin sees: any file of the host. So links are followed only
//! here, and only if no plugin can have made them:
//!
//! - The link is owned by root, or by us if programs run under other uids than ours.
//! - So is its directory, and each directory above it, and no other user may write there. Otherwise others
//!   who may write to the directories could move the operator's links like any other file.
//!
//! The stage opens the resulting paths without following any link. Without links, a path through a directory
//! that a program may write to also ends inside that directory, since programs can neither rename nor link
//! files across their mounts.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::error::ViewError;
use super::find::{LINKS_MAX, components};
use super::{Access, View, check};
use crate::identity::Identity;

/// The uid that a user namespace shows for uids that it does not map.
const UNMAPPED: u32 = 65_534;

impl View {
    /// Replaces each host path by its real path, which contains no links. A path that does not exist or
    /// cannot be reached is kept: building the jail reports it. `identity` is the program's; without one it
    /// shares ours.
    ///
    /// Fails for a required entry that cannot be shown safely: because another user could have made a link in
    /// the path, because it leads to something that no view may show, or because it is a socket without write
    /// access. The text ends with what to do.
    pub fn resolve(&mut self, identity: Option<Identity>) -> Result<(), ViewError> {
        let trust = TrustedOwners::of(identity);
        for shown in &mut self.shown {
            let wrong = match trust.walk(&shown.from) {
                Ok((real, kind)) => match check_shareable(&real, kind, shown.access) {
                    Ok(()) => {
                        shown.from = real;
                        continue;
                    }
                    Err(problem) => problem,
                },
                Err(ResolveError::Unreachable) => continue,
                Err(ResolveError::Refused(refusal)) => refusal,
            };
            // An optional entry is left out, since the link that remains in its path is not followed.
            if shown.needed {
                return Err(wrong.of_host_path(&shown.from));
            }
        }
        Ok(())
    }
}

/// The real path of a host path for a program of this identity; without an identity the program shares ours.
/// `None` if it does not exist or cannot be reached.
///
/// Fails if another user could have made a link in the path; the text ends with what to do.
pub fn real_path(path: &Path, identity: Option<Identity>) -> Result<Option<PathBuf>, ViewError> {
    match TrustedOwners::of(identity).walk(path) {
        Ok((real, _)) => Ok(Some(real)),
        Err(ResolveError::Unreachable) => Ok(None),
        Err(ResolveError::Refused(refusal)) => Err(refusal.of_host_path(path)),
    }
}

/// Checks whether the resolved file may be shown with this access.
fn check_shareable(real: &Path, kind: FileType, access: Access) -> Result<(), ViewError> {
    check::check_host_path(real)?;
    if access == Access::Connect && kind != FileType::Socket {
        return Err(ViewError::NotSocket(real.into()));
    }
    if kind == FileType::Socket && !matches!(access, Access::Write | Access::Connect) {
        return Err(ViewError::Socket(real.into()));
    }
    Ok(())
}

/// Why a host path was not resolved.
#[derive(Debug)]
enum ResolveError {
    /// It does not exist or cannot be reached.
    Unreachable,
    /// A link on it is untrusted.
    Refused(ViewError),
}

impl ResolveError {
    /// `owner` is that of the link, or of the directory that it could have been put into.
    fn untrusted_link(link: PathBuf, owner: u32) -> Self {
        Self::Refused(ViewError::UntrustedLink { link, owner })
    }
}

/// The caller treats every error of the kernel alike: building the jail reports it.
fn unreachable(_: Errno) -> ResolveError {
    ResolveError::Unreachable
}

/// The owners whose links are followed.
struct TrustedOwners {
    owners: Vec<u32>,
}

impl TrustedOwners {
    fn of(identity: Option<Identity>) -> Self {
        let mut owners = vec![0];
        // If programs share our uid, files of ours may be theirs.
        if identity.is_some() {
            owners.push(geteuid().as_raw());
        }
        // In a user namespace this uid stands for the host's unmapped uids, including root, and not for a
        // program of ours. In the host's namespace it is an ordinary user.
        if !is_host_user_namespace() {
            owners.push(UNMAPPED);
        }
        Self { owners }
    }

    /// The path without links, and the type of the file there.
    fn walk(&self, path: &Path) -> Result<(PathBuf, FileType), ResolveError> {
        match crate::no_follow::open(CWD, path) {
            Ok(file) => Ok((path.to_owned(), kind(&fstat(&file).map_err(unreachable)?))),
            Err(Errno::LOOP) => self.follow(path),
            Err(_) => Err(ResolveError::Unreachable),
        }
    }

    fn follow(&self, path: &Path) -> Result<(PathBuf, FileType), ResolveError> {
        // The directories on the path so far, so that ".." leads back even if one is renamed meanwhile.
        let mut way = vec![OpenedPath::open(CWD, "/".as_ref())?];
        let mut place = PathBuf::from("/");
        let mut ahead: VecDeque<OsString> = components(path);
        let mut links = 0;
        while let Some(part) = ahead.pop_front() {
            if part == "/" {
                way.truncate(1);
                place = "/".into();
                continue;
            }
            if part == ".." {
                way.truncate((way.len() - 1).max(1));
                place.pop();
                continue;
            }
            let next = OpenedPath::open(&way[way.len() - 1].file, &part)?;
            place.push(&part);
            if kind(&next.stat) != FileType::Symlink {
                way.push(next);
                continue;
            }
            if !self.owners.contains(&next.stat.st_uid) {
                return Err(ResolveError::untrusted_link(place, next.stat.st_uid));
            }
            if let Some(open) = way.iter().find(|directory| !self.protects(&directory.stat)) {
                return Err(ResolveError::untrusted_link(place, open.stat.st_uid));
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(ResolveError::Unreachable);
            }
            let to = readlinkat(&next.file, "", Vec::new()).map_err(unreachable)?;
            let to = PathBuf::from(OsString::from_vec(to.into_bytes()));
            place.pop();
            for part in components(&to).into_iter().rev() {
                ahead.push_front(part);
            }
        }
        let last = way.last().expect("the root stays in it");
        Ok((place, kind(&last.stat)))
    }

    /// Whether only these owners can replace their entries in a directory. In a sticky directory, such as
    /// `/tmp`, users cannot rename or remove the files of others.
    fn protects(&self, directory: &Stat) -> bool {
        const STICKY: u32 = 0o1000;
        let mode = directory.st_mode;
        let others = mode & 0o002 != 0 || mode & 0o020 != 0 && directory.st_gid != 0;
        self.owners.contains(&directory.st_uid) && (!others || mode & STICKY != 0)
    }
}

/// A file or directory on the path.
struct OpenedPath {
    file: OwnedFd,
    stat: Stat,
}

impl OpenedPath {
    fn open(below: impl std::os::fd::AsFd, part: &std::ffi::OsStr) -> Result<Self, ResolveError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = openat(below, part, flags, Mode::empty()).map_err(unreachable)?;
        let stat = fstat(&file).map_err(unreachable)?;
        Ok(Self { file, stat })
    }
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Whether all uids are mapped here. If that cannot be read, assumes the host's namespace, where less is
/// trusted.
fn is_host_user_namespace() -> bool {
    let Ok(map) = std::fs::read_to_string("/proc/self/uid_map") else { return true };
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
