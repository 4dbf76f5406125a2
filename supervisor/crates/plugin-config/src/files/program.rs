//! Opens a program so that the checked file is the one that runs.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat};

use super::trust;

/// How the kernel runs a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramKind {
    /// ELF: executed by descriptor.
    Native,
    /// `#!`: its interpreter opens it by path, so the path must be inside a view.
    Script,
}

/// A program, open for reading.
#[derive(Debug)]
pub struct OpenProgram {
    /// Positioned at its start.
    pub file: File,
    /// How it runs.
    pub kind: ProgramKind,
}

/// Why a file cannot be run as a plugin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// It cannot be opened or read.
    #[error("cannot open {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A directory, a device, …
    #[error("{} is no regular file: name a program", path.display())]
    NotAFile {
        /// What it is not.
        path: PathBuf,
    },
    /// No execute bit.
    #[error("{} is not executable: run chmod +x on it", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// Another user may change it, or the directory it is in.
    #[error("{} cannot be trusted: {problem}", path.display())]
    Untrusted {
        /// The file or directory.
        path: PathBuf,
        /// Who may change it, and what to do.
        problem: String,
    },
    /// Neither ELF nor script.
    #[error("{} is neither an ELF program nor a script: a script begins with #! and its interpreter", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
}

/// Resolves symlinks in `path`, opens what it names and checks it and its directory.
///
/// Also returns the path that was opened. Symlinks are followed, because installations switch versions with
/// them (and `/usr/bin/python3` is one). Their target must be trustworthy, and it is opened without following
/// further links.
pub fn open(path: &Path) -> Result<(PathBuf, OpenProgram), ProgramError> {
    let io_error = |source: io::Error| ProgramError::Io { path: path.to_owned(), source };
    let real = path.canonicalize().map_err(io_error)?;
    if let Some(parent) = real.parent() {
        let stat = rustix::fs::stat(parent).map_err(|e| io_error(e.into()))?;
        // A sticky directory keeps other users from replacing the file, so it is acceptable as the parent of
        // one file.
        let sticky = stat.st_mode & 0o1000 != 0;
        if let Some(problem) = trust::others_may_write(&stat).filter(|_| !sticky) {
            return Err(ProgramError::Untrusted { path: parent.to_owned(), problem });
        }
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(&real, flags, Mode::empty()).map_err(|e| io_error(e.into()))?;
    let program = inspect(&real, File::from(fd))?;
    Ok((real, program))
}

/// Opens one of our own programs, like [`open`]. It must be native and belong to root or us.
pub fn open_own(path: &Path) -> Result<(PathBuf, File), ProgramError> {
    let (real, OpenProgram { file, kind }) = open(path)?;
    let stat = fstat(&file).map_err(|e| ProgramError::Io { path: real.clone(), source: e.into() })?;
    let problem = match kind {
        ProgramKind::Native if trust::is_owned_by_root_or_us(&stat) => return Ok((real, file)),
        ProgramKind::Native => format!("uid {} owns it; run chown root on it", stat.st_uid),
        ProgramKind::Script => {
            "it is a script, and Talon's own programs are none; reinstall Talon".to_owned()
        }
    };
    Err(ProgramError::Untrusted { path: real, problem })
}

/// Opens a program inside a view, whose content and symlinks were checked before.
pub fn open_in_view(path: &Path) -> Result<OpenProgram, ProgramError> {
    let file = File::open(path).map_err(|source| ProgramError::Io { path: path.to_owned(), source })?;
    inspect(path, file)
}

fn inspect(path: &Path, mut file: File) -> Result<OpenProgram, ProgramError> {
    let io_error = |source: io::Error| ProgramError::Io { path: path.to_owned(), source };
    let stat = fstat(&file).map_err(|e| io_error(e.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ProgramError::NotAFile { path: path.to_owned() });
    }
    if !trust::is_executable(&stat) {
        return Err(ProgramError::NotExecutable { path: path.to_owned() });
    }
    if let Some(problem) = trust::others_may_write(&stat) {
        return Err(ProgramError::Untrusted { path: path.to_owned(), problem });
    }
    let mut magic = Vec::new();
    io::Read::by_ref(&mut file).take(4).read_to_end(&mut magic).map_err(io_error)?;
    let kind = match magic.as_slice() {
        b"\x7fELF" => ProgramKind::Native,
        [b'#', b'!', ..] => ProgramKind::Script,
        _ => return Err(ProgramError::UnknownFormat { path: path.to_owned() }),
    };
    io::Seek::rewind(&mut file).map_err(io_error)?;
    Ok(OpenProgram { file, kind })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(dir: &Path, name: &str, content: &str, mode: u32) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn kinds_are_told_by_their_first_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let script = file(dir.path(), "script", "#!/bin/sh\n", 0o755);
        assert_eq!(open(&script).unwrap().1.kind, ProgramKind::Script);
        assert_eq!(open(Path::new("/proc/self/exe")).unwrap().1.kind, ProgramKind::Native);
        let text = file(dir.path(), "text", "hello", 0o755);
        assert!(matches!(open(&text), Err(ProgramError::UnknownFormat { .. })));
        let empty = file(dir.path(), "empty", "", 0o755);
        assert!(matches!(open(&empty), Err(ProgramError::UnknownFormat { .. })));
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let plain = file(dir.path(), "plain", "#!/bin/sh\n", 0o644);
        assert!(matches!(open(&plain), Err(ProgramError::NotExecutable { .. })));
        let loose = file(dir.path(), "loose", "#!/bin/sh\n", 0o757);
        assert!(matches!(open(&loose), Err(ProgramError::Untrusted { .. })));
        assert!(matches!(open(dir.path()), Err(ProgramError::NotAFile { .. })));
        assert!(matches!(open(&dir.path().join("absent")), Err(ProgramError::Io { .. })));
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(matches!(open(&pipe), Err(ProgramError::NotAFile { .. })));
    }

    #[test]
    fn a_program_of_our_own_is_native_and_roots_or_ours() {
        assert!(open_own(Path::new("/proc/self/exe")).is_ok());
        let dir = tempfile::tempdir().unwrap();
        let script = file(dir.path(), "script", "#!/bin/sh\n", 0o755);
        assert!(open_own(&script).unwrap_err().to_string().contains("it is a script"));
        let theirs = file(dir.path(), "theirs", "\x7fELF", 0o755);
        assert!(open_own(&theirs).is_ok());
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: only root can give a file away");
            return;
        }
        std::os::unix::fs::chown(&theirs, Some(4242), None).unwrap();
        let error = open_own(&theirs).unwrap_err().to_string();
        assert!(error.contains("uid 4242 owns it; run chown root"), "{error}");
    }

    #[test]
    fn a_link_is_judged_by_what_it_names() {
        let dir = tempfile::tempdir().unwrap();
        let open_dir = dir.path().join("open");
        std::fs::create_dir(&open_dir).unwrap();
        let script = file(&open_dir, "script", "#!/bin/sh\n", 0o755);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&script, &link).unwrap();
        assert_eq!(open(&link).unwrap().0, script.canonicalize().unwrap());
        std::fs::set_permissions(&open_dir, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(open(&link), Err(ProgramError::Untrusted { .. })));
    }
}
