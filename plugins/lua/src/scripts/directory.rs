//! The directory of scripts: what is there, and what a file says.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat, openat2};
use rustix::io::Errno;
use talon_lua_engine::{MAX_SOURCE_BYTES, source_text};

/// The most scripts. 256: each has a machine and a thread.
const MAX_SCRIPTS: usize = 256;
/// How many names of the directory are looked at.
const MAX_ENTRIES: usize = 4096;
/// The longest name of a script: with a point behind it, it is the name of an action.
const MAX_NAME_BYTES: usize = 40;
/// The bit of a file's mode that lets everybody write to it.
const EVERYBODY_WRITES: u32 = 0o002;
/// What a script's file ends with, and a file with its tests.
const ENDING: &str = ".lua";
const TESTS_ENDING: &str = "_test.lua";

/// What tells whether a file was changed or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fingerprint([i128; 5]);

impl Fingerprint {
    fn of(stat: &Stat) -> Self {
        let time = |seconds: i64, nanos: i128| i128::from(seconds) * 1_000_000_000 + nanos;
        Self([
            i128::from(stat.st_dev),
            i128::from(stat.st_ino),
            i128::from(stat.st_size),
            time(stat.st_mtime, i128::from(stat.st_mtime_nsec)),
            time(stat.st_ctime, i128::from(stat.st_ctime_nsec)),
        ])
    }
}

/// The files of one script, before they are read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ScriptFiles {
    /// Of the script and of its tests; nothing for a file that cannot be looked at.
    pub(crate) fingerprints: (Option<Fingerprint>, Option<Fingerprint>),
    /// Whether it has tests.
    pub(crate) has_tests: bool,
}

/// The directory as it is now.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// The scripts by name.
    pub(crate) scripts: BTreeMap<String, ScriptFiles>,
    /// Files that are no scripts, although their names end so; each with what to do.
    pub(crate) refused: Vec<String>,
}

/// Lists the scripts. Blocking.
///
/// # Errors
/// Why it cannot be listed, with what to do.
pub(crate) fn list(dir: &Path) -> Result<Listing, String> {
    let said = |error: io::Error| {
        format!("cannot read the directory of scripts {}: {}", dir.display(), remedy(&error, dir))
    };
    let handle = open(dir, OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY, Mode::empty());
    let handle = handle.map_err(|error| said(error.into()))?;
    let mut listing = Listing::default();
    for (index, entry) in std::fs::read_dir(dir).map_err(said)?.enumerate() {
        if index == MAX_ENTRIES {
            listing
                .refused
                .push(format!("{} has more than {MAX_ENTRIES} files: move others away", dir.display()));
            break;
        }
        let Ok(file) = entry.map_err(said)?.file_name().into_string() else { continue };
        let (script, tests) = match (file.strip_suffix(TESTS_ENDING), file.strip_suffix(ENDING)) {
            (Some(script), _) => (script, true),
            (None, Some(script)) => (script, false),
            (None, None) => continue,
        };
        if !is_name(script) {
            listing.refused.push(format!(
                "{file:.80}: a script's name has 1 to {MAX_NAME_BYTES} of A-Z, a-z, 0-9, _ and -: rename it"
            ));
            continue;
        }
        let fingerprint = open_file(&handle, &file).and_then(|file| Ok(Fingerprint::of(&fstat(&file)?))).ok();
        let files = listing.scripts.entry(script.to_owned()).or_default();
        if tests {
            files.has_tests = true;
            files.fingerprints.1 = fingerprint;
        } else {
            // Marks that there is a script, and not tests alone.
            files.fingerprints.0 = Some(fingerprint.unwrap_or_default());
        }
    }
    listing.scripts.retain(|_, files| files.fingerprints.0.is_some());
    while listing.scripts.len() > MAX_SCRIPTS
        && let Some((name, _)) = listing.scripts.pop_last()
    {
        listing
            .refused
            .push(format!("{name}{ENDING}: there are more than {MAX_SCRIPTS} scripts: remove some"));
    }
    Ok(listing)
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(plain)
}

/// The texts of a script and of its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Texts {
    pub(crate) source: String,
    pub(crate) tests: Option<String>,
}

/// Why a script cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// It is being written: what was read may be half of it.
    Changing(String),
    /// For this reason, with what to do.
    Refused(String),
}

impl From<String> for ReadError {
    fn from(reason: String) -> Self {
        Self::Refused(reason)
    }
}

/// Reads a script. Blocking.
///
/// # Errors
/// [`ReadError`]
pub(crate) fn read(dir: &Path, script: &str, has_tests: bool) -> Result<Texts, ReadError> {
    let handle = open(dir, OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY, Mode::empty())
        .map_err(|error| remedy(&error.into(), dir))?;
    let source = read_text(dir, &handle, &format!("{script}{ENDING}"))?;
    let tests = has_tests.then(|| read_text(dir, &handle, &format!("{script}{TESTS_ENDING}"))).transpose()?;
    Ok(Texts { source, tests })
}

fn read_text(dir: &Path, handle: &OwnedFd, name: &str) -> Result<String, ReadError> {
    let path = dir.join(name);
    let file =
        open_file(handle, name).map_err(|error| format!("{name}: {}", remedy(&error.into(), &path)))?;
    let stat = fstat(&file).map_err(|error| format!("{name}: {}", io::Error::from(error)))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(format!("{name} is no regular file: put a file of text there").into());
    }
    if stat.st_mode & EVERYBODY_WRITES != 0 {
        return Err(format!("{name}: everybody may write to it; run chmod o-w on it").into());
    }
    let mut file = File::from(file);
    let bytes = unchanged(&mut file, |file| {
        let mut bytes = Vec::new();
        let most = MAX_SOURCE_BYTES as u64 + 1;
        file.take(most).read_to_end(&mut bytes).map(|_| bytes)
    });
    let Some(bytes) = bytes.map_err(|error| format!("{name}: {error}"))? else {
        return Err(ReadError::Changing(format!("{name} is being written: it is read again")));
    };
    if bytes.len() > MAX_SOURCE_BYTES {
        let problem = format!("{name} has more than {MAX_SOURCE_BYTES} bytes: split it into several scripts");
        return Err(problem.into());
    }
    Ok(source_text(&bytes).map(str::to_owned).map_err(|error| format!("{name}: {error}"))?)
}

/// What was read of a file; `None` if the file changed meanwhile.
fn unchanged<T>(file: &mut File, read: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<Option<T>> {
    let before = Fingerprint::of(&fstat(&*file)?);
    let content = read(file)?;
    Ok((Fingerprint::of(&fstat(&*file)?) == before).then_some(content))
}

/// Opens a file of the directory, and nothing outside of it, whatever links say. Neither a FIFO nor a device is waited for.
fn open_file(dir: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    match openat2(dir, name, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
        // A kernel, or a profile of system calls, without it: then no link at all is followed.
        Err(Errno::NOSYS | Errno::PERM) => openat(dir, name, flags | OFlags::NOFOLLOW, Mode::empty()),
        opened => opened,
    }
}

/// An error with what to do about it.
fn remedy(error: &io::Error, path: &Path) -> String {
    let uid = rustix::process::geteuid().as_raw();
    match Errno::from_io_error(error) {
        Some(Errno::ACCESS | Errno::PERM) => {
            format!("talon-lua, which runs as uid {uid}, may not read it: chmod o+rX {}", path.display())
        }
        Some(Errno::XDEV | Errno::LOOP) => "it is a link out of the directory: copy the file".to_owned(),
        Some(Errno::NOENT) => "it is not there".to_owned(),
        Some(Errno::NXIO) => "it is no regular file: put a file of text there".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_changes_while_it_is_read_is_not_taken() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"one").expect("written");
        assert_eq!(unchanged(&mut file, |_| Ok(1)).expect("read"), Some(1));
        assert_eq!(unchanged(&mut file, |file| file.write_all(b"two")).expect("read"), None);
    }
}
