//! Opens paths without following symbolic links.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

const PATH_FLAGS: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Opens a path with `O_PATH`, following no link: a link fails with [`Errno::LOOP`]. An absolute path starts
/// at the root, a relative one at `from`.
pub(crate) fn open(from: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    match openat2(from.as_fd(), path, PATH_FLAGS, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // Under a service's `RestrictSUIDSGID=`, a filter answers so, as it cannot see the mode that a new
        // file would get.
        Err(Errno::NOSYS) => step_by_step(from, path),
        other => other,
    }
}

/// The same for a path that must not lead out of `from`, neither by being absolute nor by `..`
/// ([`Errno::XDEV`]).
pub fn open_beneath(from: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(from.as_fd(), path, PATH_FLAGS, Mode::empty(), how) {
        Err(Errno::NOSYS)
            if path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) =>
        {
            step_by_step(from, path)
        }
        Err(Errno::NOSYS) => Err(Errno::XDEV),
        other => other,
    }
}

/// Opens one component after the other, each relative to the one before, which holds even if they are renamed
/// meanwhile.
fn step_by_step(from: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let step = |at: &OwnedFd, name: &std::ffi::OsStr| {
        let next = openat(at, name, PATH_FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&next)?.st_mode) {
            FileType::Symlink => Err(Errno::LOOP),
            _ => Ok(next),
        }
    };
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT);
    }
    let mut at = openat(from, ".", PATH_FLAGS, Mode::empty())?;
    for part in path.components() {
        at = match part {
            Component::RootDir => openat(&at, "/", PATH_FLAGS, Mode::empty())?,
            Component::CurDir | Component::Prefix(_) => at,
            Component::ParentDir => openat(&at, "..", PATH_FLAGS, Mode::empty())?,
            Component::Normal(name) => step(&at, name)?,
        };
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::CWD;

    use super::*;

    type Way = fn(&Path) -> Result<OwnedFd, Errno>;

    // Promises: UNIT-12
    #[test]
    fn step_by_step_it_is_as_in_one_call() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(dir.join("a/b")).unwrap();
        std::fs::write(dir.join("a/b/file"), "").unwrap();
        symlink("b", dir.join("a/link")).unwrap();
        symlink("/etc/passwd", dir.join("a/b/out")).unwrap();
        let ways: [Way; 2] = [|path| open(CWD, path), |path| step_by_step(CWD, path)];
        for path in [
            "a",
            "a/b/file",
            "a/../a/b/./file",
            "a/link",
            "a/link/file",
            "a/b/out",
            "a/none",
            "a/b/file/x",
            "",
        ] {
            let path = if path.is_empty() { "".into() } else { dir.join(path) };
            let seen = ways.map(|way| way(&path).map(|fd| fstat(&fd).unwrap().st_ino));
            assert_eq!(seen[0], seen[1], "{}", path.display());
        }
        assert_eq!(open(CWD, &dir.join("a/link")).err(), Some(Errno::LOOP));
        let top = std::fs::File::open(&dir).unwrap();
        for out in ["..", "/etc", "a/../../x"] {
            assert_eq!(open_beneath(&top, Path::new(out)).err(), Some(Errno::XDEV), "{out}");
        }
        open_beneath(&top, Path::new("a/b/file")).unwrap();
    }
}
