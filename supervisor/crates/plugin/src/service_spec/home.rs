//! The home of a service: `<data_dir>/<name>`, a private directory for its persistent data.

use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Gid, Mode, OFlags, Uid, chmod, chownat, fstat};
use rustix::io::Errno;
use talon_jail::Identity;
use talon_plugin_config::name::PluginName;
use talon_plugin_config::privileges::may_change_uid;

use crate::identity::{Identities, IdentityError};
use crate::rundir::{open_dir, prepare_data_dir};
use crate::settings::SetupError;

const MODE: u32 = 0o700;

/// A directory below the data directory, and its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// Its path, without symlinks.
    pub dir: PathBuf,
    /// The owner; `None` if it is our own uid, because services run with it.
    pub identity: Option<Identity>,
}

impl Home {
    /// Creates `<data_dir>/<below>` for the service `name` with mode 0700, or checks the existing one;
    /// creates and checks the data directory, too. The owner is the uid of `uid_range` that is permanently
    /// assigned to the name (`identities.json`). Without a range, or without the privilege to change owners,
    /// it is our own uid. Blocking.
    ///
    /// `below` is one plain file name.
    ///
    /// # Errors
    /// [`SetupError`]: [`SetupError::Exposed`] for a directory that other users may read, or that has another owner; it
    /// says which command to run.
    pub fn prepare(
        data_dir: &Path,
        name: &PluginName,
        below: &str,
        uid_range: Option<RangeInclusive<u32>>,
    ) -> Result<Self, SetupError> {
        debug_assert!(!below.is_empty() && !below.starts_with('.') && !below.contains('/'), "{below}");
        let data_dir = prepare_data_dir(data_dir, uid_range.is_some())?;
        let identity = match uid_range {
            Some(range) if may_change_uid() => Some(identity(&data_dir, range, name)?),
            _ => None,
        };
        let dir = data_dir.join(below);
        prepare(&dir, identity)?;
        Ok(Self { dir, identity })
    }
}

fn identity(data_dir: &Path, range: RangeInclusive<u32>, name: &PluginName) -> Result<Identity, SetupError> {
    Identities::open(data_dir, range)?.get_or_allocate(name).map_err(|error| match error {
        IdentityError::Io { path, source } => SetupError::Io { what: "write", path, source },
        IdentityError::Damaged { path, problem } => SetupError::Identities { path, problem },
        error @ IdentityError::Exhausted { .. } => {
            SetupError::Setting { setting: "sandbox.uid_range", problem: error.to_string() }
        }
    })
}

fn prepare(dir: &Path, identity: Option<Identity>) -> Result<(), SetupError> {
    let io_error =
        |what: &'static str, source: io::Error| SetupError::Io { what, path: dir.to_owned(), source };
    let made = match std::fs::DirBuilder::new().mode(MODE).create(dir) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(io_error("create", error)),
    };
    // The owner can be read without permission to read the directory.
    let path_only = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match rustix::fs::open(dir, path_only, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::LOOP | Errno::NOTDIR) => {
            let problem = "it is no directory (a symbolic link to one will not do)".to_owned();
            return Err(SetupError::Untrusted { path: dir.to_owned(), problem });
        }
        Err(error) => return Err(io_error("open", error.into())),
    };
    if made {
        // The umask may have removed bits. Only we can write to the parent, so this is the directory that was
        // just created.
        chmod(dir, Mode::from_raw_mode(MODE)).map_err(|e| io_error("chmod", e.into()))?;
    }
    let stat = fstat(&fd).map_err(|e| io_error("look at", e.into()))?;
    if stat.st_mode & 0o077 != 0 {
        return Err(SetupError::Exposed {
            path: dir.to_owned(),
            problem: format!(
                "may be used by others than its owner (its mode is {:04o})",
                stat.st_mode & 0o7777
            ),
            command: format!("chmod 700 {}", dir.display()),
            hint: "",
        });
    }
    let own = rustix::process::geteuid().as_raw();
    let owner = identity.map_or(own, |identity| identity.uid);
    if stat.st_uid == owner {
        return Ok(());
    }
    match identity {
        // Just created, now or by an earlier supervisor that stopped before changing the owner.
        Some(identity) if stat.st_uid == own && is_empty(dir).map_err(|e| io_error("read", e))? => chownat(
            &fd,
            "",
            Some(Uid::from_raw(identity.uid)),
            Some(Gid::from_raw(identity.gid)),
            AtFlags::EMPTY_PATH,
        )
        .map_err(|e| io_error("chown", e.into())),
        _ => Err(wrong_owner_error(dir, stat.st_uid, identity)),
    }
}

fn wrong_owner_error(dir: &Path, uid: u32, identity: Option<Identity>) -> SetupError {
    let (owner, group) = identity.map_or_else(
        || (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
        |identity| (identity.uid, identity.gid),
    );
    SetupError::Exposed {
        path: dir.to_owned(),
        problem: format!("belongs to uid {uid}, and uid {owner} is to use it"),
        command: format!("chown -R {owner}:{group} {}", dir.display()),
        hint: " as root, if what is in it is Talon's",
    }
}

fn is_empty(dir: &Path) -> io::Result<bool> {
    for entry in Dir::read_from(open_dir(dir)?)? {
        let entry = entry?;
        if entry.file_name() != c"." && entry.file_name() != c".." {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
#[path = "home_tests.rs"]
mod tests;
