//! Resolves a path inside a view without building it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use super::{Access, BindMount, View};

/// The most links that one path may lead through; the kernel's own limit.
pub(super) const LINKS_MAX: usize = 40;

/// What a path leads to.
pub(super) struct PathTarget {
    /// The file on the host; `None` if it is generated for the program.
    host: Option<PathBuf>,
    /// The access rights.
    access: Access,
}

impl View {
    /// Whether this absolute path leads to a file inside: a host file, a generated one or the program. Links
    /// are followed as they will be inside, so one that leads out of the view leads nowhere. The program's
    /// private directories do not count: the host's files at their paths are not in them.
    pub fn contains(&self, path: &Path) -> bool {
        self.find(path).is_ok()
    }

    /// Whether this absolute path leads to a file that can be executed inside.
    pub fn can_execute(&self, path: &Path) -> bool {
        self.find(path).is_ok_and(|found| found.is_executable())
    }

    /// What a path leads to; otherwise the part of the path that does not exist.
    pub(super) fn find(&self, path: &Path) -> Result<PathTarget, PathBuf> {
        let mut ahead: VecDeque<OsString> = components(path);
        let mut place = PathBuf::from("/");
        let mut links = 0;
        while let Some(part) = ahead.pop_front() {
            if part == ".." {
                place.pop();
                continue;
            }
            let next = if part == "/" { PathBuf::from("/") } else { place.join(&part) };
            if let Some(to) = self.link_target(&next) {
                links += 1;
                if links > LINKS_MAX {
                    return Err(path.into());
                }
                for part in components(&to).into_iter().rev() {
                    ahead.push_front(part);
                }
                continue;
            }
            place = next;
        }
        if self.program_at.as_deref() == Some(place.as_path()) {
            return Ok(PathTarget { host: None, access: Access::Execute });
        }
        if self.files.iter().any(|file| file.at == place) {
            return Ok(PathTarget { host: None, access: Access::Read });
        }
        match self.entry_of(&place) {
            Some(shown) if fs::metadata(shown.host_path(&place)).is_ok() => {
                Ok(PathTarget { host: Some(shown.host_path(&place)), access: shown.access })
            }
            _ => Err(place),
        }
    }

    /// The target of the link at this path, if there is one.
    fn link_target(&self, place: &Path) -> Option<PathBuf> {
        if let Some(link) = self.links.iter().find(|link| link.at == place) {
            return Some(link.to.clone());
        }
        // A shown link is resolved when the view is built, so inside it is not a link.
        let shown = self.entry_of(place).filter(|shown| shown.at != place)?;
        fs::read_link(shown.host_path(place)).ok()
    }

    /// The entry that a path inside belongs to.
    pub(super) fn entry_of(&self, place: &Path) -> Option<&BindMount> {
        let over = self.shown.iter().filter(|shown| place.starts_with(&shown.at));
        over.max_by_key(|shown| shown.at.components().count())
    }
}

impl BindMount {
    /// The host path of a path inside this entry.
    pub(super) fn host_path(&self, place: &Path) -> PathBuf {
        match place.strip_prefix(&self.at) {
            Ok(rest) if !rest.as_os_str().is_empty() => self.from.join(rest),
            _ => self.from.clone(),
        }
    }
}

impl PathTarget {
    pub(super) fn is_executable(&self) -> bool {
        const ANY_EXECUTE: u32 = 0o111;
        let executable = |path: &PathBuf| {
            fs::metadata(path)
                .is_ok_and(|data| data.is_file() && data.permissions().mode() & ANY_EXECUTE != 0)
        };
        self.access == Access::Execute && self.host.as_ref().is_none_or(executable)
    }
}

/// The components of a path, with "/" at the front of an absolute one, and ".." for going up.
pub(super) fn components(path: &Path) -> VecDeque<OsString> {
    path.components().filter(|part| *part != Component::CurDir).map(|part| part.as_os_str().into()).collect()
}

/// The path without `.` and `..`, computed from the text only.
pub(super) fn normalize(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir | Component::Prefix(_) => {}
            Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
