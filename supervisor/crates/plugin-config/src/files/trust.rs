//! Which other users could change a file that we are about to run.

use rustix::fs::Stat;

use crate::privileges::{OVERFLOW_UID, may_change_uid};

/// Whether a mode bit is set. Kept in one place, because libc types the mode differently on each platform.
fn has(stat: &Stat, bit: u32) -> bool {
    stat.st_mode & bit != 0
}

/// The reason if other users may change this file or directory, or `None`.
///
/// Other users are everybody, or the members of a group that is neither root's nor, for a supervisor that a
/// person started, that person's primary group: with a umask of 002 people have files that their own group
/// may write. The group of a service has other members, such as its clients. A sticky bit does not help,
/// because it lets everybody add a plugin. The owner is not checked, because the operator decides who may
/// install plugins.
pub fn others_may_write(stat: &Stat) -> Option<String> {
    if has(stat, 0o002) {
        return Some("everybody may write to it; run chmod o-w on it".to_owned());
    }
    let uid = rustix::process::geteuid();
    let own_group = !may_change_uid() && !uid.is_root() && stat.st_gid == rustix::process::getegid().as_raw();
    if has(stat, 0o020) && stat.st_gid != 0 && !own_group {
        return Some(format!("members of group {} may write to it; run chmod g-w on it", stat.st_gid));
    }
    None
}

/// Whether this file belongs to root, to us, or to the owner of our own program. For parts of Talon itself: a
/// user who could have changed our program need not change this file.
pub fn is_owned_by_root_or_us(stat: &Stat) -> bool {
    let uid = rustix::process::geteuid();
    // In a user namespace every owner from outside has this uid, and no process inside can have it.
    let outside = stat.st_uid == OVERFLOW_UID && !uid.is_root();
    let maker = rustix::fs::stat("/proc/self/exe").is_ok_and(|image| image.st_uid == stat.st_uid);
    stat.st_uid == 0 || stat.st_uid == uid.as_raw() || outside || maker
}

/// Whether any user may execute this file.
pub fn is_executable(stat: &Stat) -> bool {
    has(stat, 0o111)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn problem(mode: u32) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("f")).unwrap();
        file.set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
        others_may_write(&rustix::fs::fstat(&file).unwrap())
    }

    // Promises: DISC-8
    #[test]
    fn what_everybody_may_write_is_not_trusted() {
        assert_eq!(problem(0o755), None);
        assert_eq!(problem(0o700), None);
        assert!(problem(0o757).unwrap().contains("everybody"));
        assert!(problem(0o1777).unwrap().contains("everybody"));
    }
}
