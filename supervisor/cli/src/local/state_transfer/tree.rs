//! Files below one directory. Neither paths nor symbolic links that appear during the operation can lead
//! outside of it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, fsync, mkdirat, open, openat2, renameat,
    syncfs, unlinkat,
};
use rustix::io::Errno;

/// Files are accessible only to their owner.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const DIR_MODE: Mode = Mode::RWXU;
const BELOW: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// An open directory.
#[derive(Debug)]
pub(super) struct Tree {
    root: OwnedFd,
}

impl Tree {
    /// Opens an existing directory.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let root = open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root })
    }

    /// Opens a directory; creates it and its parents if necessary.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new().recursive(true).mode(DIR_MODE.bits()).create(path)?;
        Self::open(path)
    }

    /// Opens a directory below the root, for listing.
    pub(super) fn dir(&self, path: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat2(&self.root, path, flags, Mode::empty(), BELOW)?)
    }

    /// Opens a regular file below the root for reading. Does not block on other file types, such as a pipe.
    pub(super) fn open_file(&self, path: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat2(&self.root, path, flags, Mode::empty(), BELOW)?;
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        Ok(file.into())
    }

    /// Creates a file below the root, under a temporary name until it is complete. `path` belongs to the
    /// layout.
    pub(super) fn begin_file(&self, path: &str) -> io::Result<Draft> {
        let (dirs, name) = path.rsplit_once('/').unwrap_or((".", path));
        let mut dir = self.dir(".")?;
        // Open each component relative to its parent, so that no symbolic link can be inserted.
        for word in dirs.split('/').filter(|word| *word != ".") {
            match mkdirat(&dir, word, DIR_MODE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            dir = openat2(&dir, word, flags, Mode::empty(), BELOW)?;
        }
        let draft = format!(".{name}.{}.new", std::process::id());
        // A leftover of an earlier process with the same pid.
        match unlinkat(&dir, &draft, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat2(&dir, &draft, flags, FILE_MODE, BELOW)?;
        Ok(Draft { file: file.into(), dir, draft, name: name.to_owned(), done: false })
    }

    /// Syncs all written data to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(syncfs(&self.root)?)
    }
}

/// An incomplete file; deleted unless it is finished.
#[derive(Debug)]
pub(super) struct Draft {
    file: File,
    dir: OwnedFd,
    draft: String,
    name: String,
    done: bool,
}

impl Draft {
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Renames the file to its final name; replaces an existing one.
    pub(super) fn finish(mut self) -> io::Result<()> {
        renameat(&self.dir, &self.draft, &self.dir, &self.name)?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.done {
            // A leftover under a temporary name does no harm.
            let _left = unlinkat(&self.dir, &self.draft, AtFlags::empty());
        }
    }
}

/// Syncs the directory entries to the disk.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    let dir =
        rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(fsync(&dir)?)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_appears_whole_and_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::create(&dir.path().join("a/b")).unwrap();
        let mut draft = tree.begin_file("plugins/notes/state.yaml").unwrap();
        draft.write(b"x: 1\n").unwrap();
        let place = dir.path().join("a/b/plugins/notes");
        assert!(!place.join("state.yaml").exists());
        draft.finish().unwrap();
        drop(tree.begin_file("plugins/notes/state.yaml").unwrap());
        let names: Vec<_> =
            std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["state.yaml"], "what was given up is gone");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&place), mode(&place.join("state.yaml"))), (0o700, 0o600));
        let mut text = String::new();
        tree.open_file("plugins/notes/state.yaml").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "x: 1\n");
    }

    #[test]
    fn links_and_pipes_are_not_followed_and_nothing_is_reached_outside() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("state.yaml"), "secret").unwrap();
        let inside = dir.path().join("inside");
        std::fs::create_dir_all(inside.join("plugins/pipe")).unwrap();
        symlink(&outside, inside.join("plugins/link")).unwrap();
        rustix::fs::mknodat(CWD, inside.join("plugins/pipe/state.yaml"), FileType::Fifo, FILE_MODE, 0)
            .unwrap();
        let tree = Tree::open(&inside).unwrap();
        for bad in ["plugins/link/state.yaml", "../outside/state.yaml", "plugins/pipe/state.yaml"] {
            assert!(tree.open_file(bad).is_err(), "{bad}");
        }
        assert!(tree.begin_file("plugins/link/state.yaml").is_err());
        assert_eq!(std::fs::read(outside.join("state.yaml")).unwrap(), b"secret");
    }
}
