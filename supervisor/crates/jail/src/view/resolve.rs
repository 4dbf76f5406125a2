//! What a path of the host's leads to, found out before the jail is built, by who sees the true owners of files.
//!
//! A plugin that may write somewhere can put a symbolic link there, and whatever is shown to another plugin by a
//! path through it would be what the link says: any file of the host's. So links are followed here and nowhere
//! else, and only such that no program of ours can have put there:
//!
//! - The link is root's, or ours while programs run under other uids than ours.
//! - So is the directory that it is in, and each above it, and nobody else may write there. A link that its
//!   operator made can be moved like any other file by whoever may write to the directories.
//!
//! The stage opens what comes out of it without following any link. Without links a path through what a program
//! may write ends in there as well, since it can neither rename nor link files across the mounts that it is given.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::find::parts;
use super::{Access, View, check};
use crate::spec::Identity;

/// The most links that one path may lead through; the kernel's own number.
const LINKS_MAX: usize = 40;

/// What a user namespace shows in place of a uid that it does not have.
const UNMAPPED: u32 = 65_534;

impl View {
    /// Replaces each path of the host's by the one that it leads to, on which no link is. What is not there, or not
    /// to be reached, stays as it is: the jail says so when it is built. `identity` is that of the program; without
    /// one it shares ours.
    ///
    /// Fails for what is needed and cannot be shown safely: because somebody else could have planted a link on the
    /// way, because it leads to what no view may show, or because it is a socket that is not shown to be written
    /// to. The text ends with what to do.
    pub fn resolve(&mut self, identity: Option<Identity>) -> Result<(), String> {
        let trust = Trust::of(identity);
        for shown in &mut self.shown {
            let wrong = match trust.walk(&shown.from) {
                Ok((real, kind)) => match showable(&real, kind, shown.access) {
                    Ok(()) => {
                        shown.from = real;
                        continue;
                    }
                    Err(problem) => problem,
                },
                Err(Refusal::Kernel(_)) => continue,
                Err(planted @ Refusal::Planted(..)) => planted.to_string(),
            };
            // What is not needed is left out, as the link that is still on its path is not followed.
            if shown.needed {
                return Err(format!("cannot show {}: {wrong}", shown.from.display()));
            }
        }
        Ok(())
    }
}

/// What a path of the host's leads to when a program of this identity is shown it; without an identity the program
/// shares ours. `None` for what is not there or not to be reached.
///
/// Fails if somebody else could have planted a link on the way; the text ends with what to do.
pub fn real_path(path: &Path, identity: Option<Identity>) -> Result<Option<PathBuf>, String> {
    match Trust::of(identity).walk(path) {
        Ok((real, _)) => Ok(Some(real)),
        Err(Refusal::Kernel(_)) => Ok(None),
        Err(planted @ Refusal::Planted(..)) => Err(format!("cannot show {}: {planted}", path.display())),
    }
}

/// Whether what was found may be shown like this.
fn showable(real: &Path, kind: FileType, access: Access) -> Result<(), String> {
    check::outside(real)?;
    if access == Access::Connect && kind != FileType::Socket {
        return Err(format!("{} is no socket, so nobody can connect to it", real.display()));
    }
    if kind == FileType::Socket && !matches!(access, Access::Write | Access::Connect) {
        return Err(format!(
            "{} is a socket, and no mount keeps a program that sees it from connecting to it (grant it to be \
             written to, or not at all)",
            real.display()
        ));
    }
    Ok(())
}

/// Why a path of the host's was not followed to its end.
#[derive(Debug)]
enum Refusal {
    Kernel(Errno),
    /// This link, and whose it or the directory is that it could have been put into.
    Planted(PathBuf, u32),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kernel(errno) => errno.fmt(out),
            Self::Planted(link, uid) => write!(
                out,
                "the link {} on its way belongs to uid {uid}, or lies where others may write, who could point it \
                 anywhere (grant the path that it leads to, or let root own it and the directories above it)",
                link.display()
            ),
        }
    }
}

/// Whose links are followed.
struct Trust {
    owners: Vec<u32>,
}

impl Trust {
    fn of(identity: Option<Identity>) -> Self {
        let mut owners = vec![0];
        // What programs write is ours, too, where they share our uid.
        if identity.is_some() {
            owners.push(geteuid().as_raw());
        }
        // In somebody's user namespace these are the host's, root first of all, and of no program of ours. In the
        // host's own it is a user.
        if !is_hosts_namespace() {
            owners.push(UNMAPPED);
        }
        Self { owners }
    }

    /// The path without links, and what is there.
    fn walk(&self, path: &Path) -> Result<(PathBuf, FileType), Refusal> {
        match crate::plainly::open(CWD, path) {
            Ok(file) => Ok((path.to_owned(), kind(&fstat(&file).map_err(Refusal::Kernel)?))),
            Err(Errno::LOOP) => self.follow(path),
            Err(errno) => Err(Refusal::Kernel(errno)),
        }
    }

    fn follow(&self, path: &Path) -> Result<(PathBuf, FileType), Refusal> {
        // The directories that were gone through, so that ".." leads back whatever is renamed meanwhile.
        let mut way = vec![Place::open(CWD, "/".as_ref())?];
        let mut place = PathBuf::from("/");
        let mut ahead: VecDeque<OsString> = parts(path);
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
            let next = Place::open(&way[way.len() - 1].file, &part)?;
            place.push(&part);
            if kind(&next.stat) != FileType::Symlink {
                way.push(next);
                continue;
            }
            if !self.owners.contains(&next.stat.st_uid) {
                return Err(Refusal::Planted(place, next.stat.st_uid));
            }
            if let Some(open) = way.iter().find(|directory| !self.keeps(&directory.stat)) {
                return Err(Refusal::Planted(place, open.stat.st_uid));
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(Refusal::Kernel(Errno::LOOP));
            }
            let to = readlinkat(&next.file, "", Vec::new()).map_err(Refusal::Kernel)?;
            let to = PathBuf::from(OsString::from_vec(to.into_bytes()));
            place.pop();
            for part in parts(&to).into_iter().rev() {
                ahead.push_front(part);
            }
        }
        let last = way.last().expect("the root stays in it");
        Ok((place, kind(&last.stat)))
    }

    /// Whether nobody else can put anything in the place of what these owners have in a directory. In a sticky one,
    /// such as `/tmp`, nobody can rename or remove what is another's.
    fn keeps(&self, directory: &Stat) -> bool {
        const STICKY: u32 = 0o1000;
        let mode = directory.st_mode;
        let others = mode & 0o002 != 0 || mode & 0o020 != 0 && directory.st_gid != 0;
        self.owners.contains(&directory.st_uid) && (!others || mode & STICKY != 0)
    }
}

/// A file or directory on the way.
struct Place {
    file: OwnedFd,
    stat: Stat,
}

impl Place {
    fn open(below: impl std::os::fd::AsFd, part: &std::ffi::OsStr) -> Result<Self, Refusal> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = openat(below, part, flags, Mode::empty()).map_err(Refusal::Kernel)?;
        let stat = fstat(&file).map_err(Refusal::Kernel)?;
        Ok(Self { file, stat })
    }
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Whether every uid there is has its own number here. What cannot be read is taken for the host's, where less is
/// trusted.
fn is_hosts_namespace() -> bool {
    let Ok(map) = std::fs::read_to_string("/proc/self/uid_map") else { return true };
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
