//! Removes a directory tree with arbitrary content of a plugin: through descriptors, without following
//! symlinks, and with a bounded number of open descriptors at any depth.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, chownat, fchmod, fchown, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;
use rustix::process::geteuid;

/// The deepest level of the recursion; deeper directories are moved up to the top.
const MAX_DEPTH: usize = 32;

/// The most names that are held in memory at once.
const BATCH_NAMES: usize = 1024;

/// Removes `name` in `parent` with its content. Continues after an error and returns the first one.
pub(crate) fn remove_tree(parent: BorrowedFd<'_>, name: impl Arg) -> io::Result<()> {
    let name = name.into_c_str()?.into_owned();
    match unlinkat(parent, &name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR) => {}
        Err(error) => return Err(error.into()),
    }
    let top = open_dir(parent, &name)?;
    let mut remover = TreeRemover { top: top.as_fd(), lifted: 0, first_error: None };
    // Directories that were moved to the top meanwhile need another round.
    loop {
        let lifted = remover.lifted;
        remover.remove_contents(top.as_fd(), 0);
        if remover.lifted == lifted || remover.first_error.is_some() {
            break;
        }
    }
    match (unlinkat(parent, &name, AtFlags::REMOVEDIR), remover.first_error) {
        (Ok(()) | Err(Errno::NOENT), _) => Ok(()),
        (Err(_), Some(first)) => Err(first),
        (Err(error), None) => Err(error.into()),
    }
}

struct TreeRemover<'t> {
    top: BorrowedFd<'t>,
    lifted: u64,
    first_error: Option<io::Error>,
}

impl TreeRemover<'_> {
    fn record_error(&mut self, error: impl Into<io::Error>) {
        self.first_error.get_or_insert(error.into());
    }

    /// Removes the content of a directory, as far as possible.
    fn remove_contents(&mut self, dir: BorrowedFd<'_>, depth: usize) {
        // Stops at a batch in which nothing was removed; it would come again for ever.
        loop {
            let names = match names(dir) {
                Ok(names) => names,
                Err(error) => return self.record_error(error),
            };
            let mut removed = false;
            for name in &names {
                removed |= self.remove_entry(dir, name, depth);
            }
            if names.len() < BATCH_NAMES || !removed {
                return;
            }
        }
    }

    /// Removes one entry. Returns whether it is gone from this directory.
    fn remove_entry(&mut self, dir: BorrowedFd<'_>, name: &CString, depth: usize) -> bool {
        match unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return true,
            Err(Errno::ISDIR) => {}
            Err(error) => {
                self.record_error(error);
                return false;
            }
        }
        if depth >= MAX_DEPTH {
            return self.move_to_top(dir, name);
        }
        match open_dir(dir, name) {
            Ok(inner) => self.remove_contents(inner.as_fd(), depth + 1),
            Err(error) => {
                self.record_error(error);
                return false;
            }
        }
        match unlinkat(dir, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => true,
            Err(error) => {
                self.record_error(error);
                false
            }
        }
    }

    /// Moves a deep directory to the top, where the next round finds it.
    fn move_to_top(&mut self, dir: BorrowedFd<'_>, name: &CString) -> bool {
        // Opened only for its chmod: moving a directory writes to it.
        let _ = open_dir(dir, name);
        self.lifted += 1;
        match renameat(dir, name, self.top, format!(".lifted-{}", self.lifted)) {
            Ok(()) => true,
            Err(error) => {
                self.record_error(error);
                false
            }
        }
    }
}

fn names(dir: BorrowedFd<'_>) -> rustix::io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
        if names.len() == BATCH_NAMES {
            break;
        }
    }
    Ok(names)
}

/// Opens a directory to empty it, and restores permissions that its owner removed.
fn open_dir(parent: BorrowedFd<'_>, name: &CString) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let path_only = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = openat(parent, name, path_only, Mode::empty())?;
            // Only the owner may change the mode.
            let _ = chownat(&fd, "", Some(geteuid()), None, AtFlags::EMPTY_PATH);
            let magic = format!("/proc/self/fd/{}", fd.as_raw_fd());
            std::fs::set_permissions(magic, std::fs::Permissions::from_mode(0o700))?;
            openat(parent, name, flags, Mode::empty())?
        }
        other => other?,
    };
    // May fail without the privilege; then the removal reports the error. The mode of another user's
    // directory can forbid the removal (sticky bit, no write permission), and only its owner may change it.
    let _ = fchown(&fd, Some(geteuid()), None);
    let _ = fchmod(&fd, Mode::from_raw_mode(0o700));
    Ok(fd)
}
