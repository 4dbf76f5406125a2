//! The database's directory and file: protected from other users, and never created in place of an existing
//! one.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::open_error::OpenError;

/// SQLite treats a file smaller than its smallest page as new.
pub(super) const MIN_FILE_BYTES: u64 = 512;

/// The path of a file beside the database, with a suffix.
pub(super) fn sibling_path(database: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(suffix);
    name.into()
}

/// Makes sure that the directory exists and is closed to other users.
pub(super) fn prepare_directory(database: &Path) -> Result<PathBuf, OpenError> {
    let directory = match database.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .map_err(OpenError::file(&directory, "the directory cannot be made"))?;
    let found =
        fs::metadata(&directory).map_err(OpenError::file(&directory, "the directory cannot be seen"))?;
    check_owner(&directory, &found)?;
    let mode = found.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(OpenError::Exposed { directory, mode });
    }
    Ok(directory)
}

/// Whether there is a database. An empty file is damaged, since ours are complete before they get their name.
/// A log without its database is damaged too, since SQLite would apply it to a new one.
pub(super) fn exists(database: &Path) -> Result<bool, OpenError> {
    let damaged =
        |detail: &str| Err(OpenError::Damaged { path: database.to_owned(), detail: detail.to_owned() });
    let log = sibling_path(database, "-wal");
    match fs::metadata(database) {
        Ok(found) if !found.is_file() => damaged("it is not a file"),
        Ok(found) if found.len() < MIN_FILE_BYTES => damaged("it is cut off, or was emptied"),
        Ok(found) => {
            check_owner(database, &found)?;
            if found.permissions().mode() & 0o077 != 0 {
                fs::set_permissions(database, Permissions::from_mode(0o600))
                    .map_err(OpenError::file(database, "the file cannot be closed to other users"))?;
            }
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if fs::metadata(&log).is_ok_and(|found| found.len() > 0) {
                return damaged("it is missing, although its log is there (-wal)");
            }
            Ok(false)
        }
        Err(error) => Err(OpenError::file(database, "the file cannot be seen")(error)),
    }
}

/// Creates a database under a temporary name, and renames it when it is complete. Two processes may do so at
/// once: only one gets the name, and an existing file is never replaced.
pub(super) fn create(
    directory: &Path,
    database: &Path,
    fill: impl FnOnce(&Path) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let draft = sibling_path(database, &format!(".new-{}", ulid::Ulid::generate()));
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .map_err(OpenError::file(&draft, "the file cannot be made"))
        .and_then(|_| fill(&draft))
        .and_then(|()| match fs::hard_link(&draft, database) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(OpenError::file(database, "the file cannot get its name")(error))
            }
            _ => Ok(()),
        });
    // The draft is not needed any more in any case, and a remaining one does no harm.
    let _gone = fs::remove_file(&draft);
    made?;
    // The name itself has to survive a power cut too.
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(OpenError::file(directory, "the directory cannot be synced"))
}

/// The owner of a file can open it to others or replace it, so it must be us. This also applies to root.
fn check_owner(path: &Path, found: &fs::Metadata) -> Result<(), OpenError> {
    let (owner, us) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner == us {
        return Ok(());
    }
    Err(OpenError::NotOurs { path: path.to_owned(), owner, us })
}

/// Renames a file to an unused name, and makes sure that the name survives a power cut.
pub(super) fn publish_as(draft: &Path, name: &Path) -> io::Result<()> {
    match renameat_with(CWD, draft, CWD, name, RenameFlags::NOREPLACE) {
        // Some file systems cannot do this in one step.
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::hard_link(draft, name)?;
            fs::remove_file(draft)?;
        }
        done => done?,
    }
    let directory = name.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

/// Whether two paths lead to the same file.
pub(super) fn same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    id(one).is_some_and(|one| Some(one) == id(other))
}
