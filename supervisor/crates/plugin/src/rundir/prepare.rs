//! Creates our directories, and trusts them only if no other user can replace them.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, Stat, fchmod, fstat};
use rustix::io::Errno;
use talon_plugin_config::privileges::{OVERFLOW_UID, may_change_uid};

use super::{PRIVATE_MODE, SHARED_MODE, open_dir};
use crate::settings::SetupError;

const NOT_TRAVERSABLE: &str =
    "plugins run with their own uids and cannot pass through it; run chmod o+x on it";

/// The first directory on the way to `path` that plugins with their own uids cannot pass through, and the
/// reason.
pub(crate) fn impassable_ancestor(path: &Path) -> Option<(PathBuf, &'static str)> {
    let blocked = |dir: &&Path| rustix::fs::stat(*dir).is_ok_and(|stat| stat.st_mode & 0o001 == 0);
    path.ancestors().find(blocked).map(|dir| (dir.to_owned(), NOT_TRAVERSABLE))
}

/// Creates one of our directories and checks that no other user can replace it or write into it. Returns its
/// path without symlinks, which plugins will print.
pub(crate) fn prepare_dir(
    path: &Path,
    setting: &'static str,
    others_pass: bool,
) -> Result<PathBuf, SetupError> {
    prepare(path, setting, others_pass, SHARED_MODE, &|stat| {
        (stat.st_mode & 0o022 != 0).then(|| SetupError::Untrusted {
            path: path.to_owned(),
            problem: "others than its owner may write to it".to_owned(),
        })
    })
}

/// Creates and checks the data directory, like [`prepare_dir`]. Other users may not read it. If plugins and
/// services have their own uids (`own_uids`), they may pass through it to their own directories.
pub(crate) fn prepare_data_dir(path: &Path, own_uids: bool) -> Result<PathBuf, SetupError> {
    let (mode, forbidden) = if own_uids { (SHARED_MODE, 0o066) } else { (PRIVATE_MODE, 0o077) };
    prepare(path, "state.data_dir", false, mode, &|stat| {
        (stat.st_mode & forbidden != 0).then(|| SetupError::Exposed {
            path: path.to_owned(),
            problem: format!(
                "may be used by others than its owner (its mode is {:04o}), and holds what plugins keep",
                stat.st_mode & 0o7777
            ),
            command: format!("chmod {mode:o} {}", path.display()),
            hint: if own_uids {
                " (in a systemd unit, StateDirectoryMode=0711)"
            } else {
                " (in a systemd unit, StateDirectoryMode=0700)"
            },
        })
    })
}

fn prepare(
    path: &Path,
    setting: &'static str,
    others_pass: bool,
    mode: u32,
    refuse: &dyn Fn(&Stat) -> Option<SetupError>,
) -> Result<PathBuf, SetupError> {
    let io_error =
        |what: &'static str, source: io::Error| SetupError::Io { what, path: path.to_owned(), source };
    if !path.is_absolute() {
        let problem = format!("{} is not an absolute path: write one", path.display());
        return Err(SetupError::Setting { setting, problem });
    }
    if path.as_os_str().as_bytes().contains(&0) {
        let problem = "the path holds a NUL character: remove it".to_owned();
        return Err(SetupError::Setting { setting, problem });
    }
    if let Some(parent) = path.parent() {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o755).create(parent);
        made.map_err(|e| io_error("create the parent of", e))?;
    }
    let created = match std::fs::DirBuilder::new().mode(mode).create(path) {
        Ok(()) => true,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => false,
        Err(e) => return Err(io_error("create", e)),
    };
    let untrusted = |path: &Path, problem: String| SetupError::Untrusted { path: path.to_owned(), problem };
    let fd = match open_dir(path) {
        Ok(fd) => fd,
        Err(Errno::LOOP | Errno::NOTDIR) => {
            return Err(untrusted(
                path,
                "it is no directory (a symbolic link to one will not do)".to_owned(),
            ));
        }
        Err(e) => return Err(io_error("open", e.into())),
    };
    if created {
        // The umask may have removed bits.
        fchmod(&fd, Mode::from_raw_mode(mode)).map_err(|e| io_error("chmod", e.into()))?;
    }
    let stat = fstat(&fd).map_err(|e| io_error("look at", e.into()))?;
    let own = rustix::process::geteuid().as_raw();
    if stat.st_uid != own {
        return Err(untrusted(
            path,
            format!("uid {} owns it, and this supervisor runs as uid {own}", stat.st_uid),
        ));
    }
    if let Some(error) = refuse(&stat) {
        return Err(error);
    }
    let real = path.canonicalize().map_err(|e| io_error("resolve", e))?;
    check_ancestors(&real, others_pass)?;
    Ok(real)
}

/// Checks that no other user may rename the directory, and that plugins with their own uids can pass through
/// to it.
fn check_ancestors(real: &Path, others_pass: bool) -> Result<(), SetupError> {
    for (index, ancestor) in real.ancestors().enumerate() {
        let stat = rustix::fs::stat(ancestor).map_err(|e| SetupError::Io {
            what: "look at",
            path: ancestor.to_owned(),
            source: e.into(),
        })?;
        let untrusted =
            |problem: &str| SetupError::Untrusted { path: ancestor.to_owned(), problem: problem.to_owned() };
        if index > 0
            && let Some(problem) = others_may_rename(&stat)
        {
            return Err(untrusted(&problem));
        }
        if others_pass && stat.st_mode & 0o001 == 0 {
            return Err(untrusted(NOT_TRAVERSABLE));
        }
    }
    Ok(())
}

/// Which users other than root and ours could replace the content of this directory; `None` if there are
/// none.
fn others_may_rename(stat: &Stat) -> Option<String> {
    let own = rustix::process::geteuid();
    // In a user namespace every owner from outside has this uid, and no process inside can have it.
    let outside = stat.st_uid == OVERFLOW_UID && !own.is_root();
    if stat.st_uid != 0 && stat.st_uid != own.as_raw() && !outside {
        return Some(format!("uid {} owns it and may rename what is in it", stat.st_uid));
    }
    let sticky = stat.st_mode & 0o1000 != 0;
    if sticky {
        return None;
    }
    if stat.st_mode & 0o002 != 0 {
        return Some("everybody may rename what is in it".to_owned());
    }
    // The group of a service has other members; the group of a person usually has none.
    let own_group = !may_change_uid() && !own.is_root() && stat.st_gid == rustix::process::getegid().as_raw();
    (stat.st_mode & 0o020 != 0 && stat.st_gid != 0 && !own_group)
        .then(|| format!("members of group {} may rename what is in it", stat.st_gid))
}
