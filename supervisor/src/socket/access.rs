//! Who may connect to a socket: the users and groups of `host.peers`, as an access control list on its file.
//!
//! The socket's mode admits its owner and one group. Without more, a user of `host.peers` outside that group
//! could not connect. A mode that admits everybody would let users without a role fill the listener's queue,
//! in front of administrators; with a list the kernel refuses them before they take a place in it.

use std::io;
use std::path::Path;

use rustix::fs::{XattrFlags, lsetxattr};
use rustix::io::Errno;

use super::bind::{BindError, own_socket};
use crate::config::Config;

/// The kernel's name for the list.
const ATTRIBUTE: &str = "system.posix_acl_access";
/// The version of the list's encoding (`POSIX_ACL_XATTR_VERSION`).
const VERSION: u32 = 2;
/// The id of entries without one.
const NO_ID: u32 = u32::MAX;
/// Read and write: to connect to a socket needs write.
const READ_WRITE: u16 = 6;

/// The tags of entries, in the order in which the kernel wants them (`linux/posix_acl.h`).
const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const OWNING_GROUP: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

/// The users and groups that may connect beside the owner and the owning group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectGrants {
    /// Their uids.
    pub users: Vec<u32>,
    /// Their gids.
    pub groups: Vec<u32>,
}

impl ConnectGrants {
    fn is_empty(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty()
    }

    /// The list as the kernel reads it.
    fn encode(&self) -> Vec<u8> {
        let sorted = |ids: &[u32]| {
            let mut ids = ids.to_vec();
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        let mut list = VERSION.to_le_bytes().to_vec();
        let mut add = |tag: u16, permissions: u16, id: u32| {
            list.extend(tag.to_le_bytes());
            list.extend(permissions.to_le_bytes());
            list.extend(id.to_le_bytes());
        };
        add(OWNER, READ_WRITE, NO_ID);
        sorted(&self.users).into_iter().for_each(|uid| add(USER, READ_WRITE, uid));
        add(OWNING_GROUP, READ_WRITE, NO_ID);
        sorted(&self.groups).into_iter().for_each(|gid| add(GROUP, READ_WRITE, gid));
        add(MASK, READ_WRITE, NO_ID);
        add(OTHERS, 0, NO_ID);
        list
    }
}

/// Lets the peers of a configuration connect to a socket in its runtime directory. With a `host.group`, a
/// file system without access control lists is only logged, because that group can connect. Blocking.
///
/// # Errors
/// [`BindError`]
pub fn grant_peers(config: &Config, name: &str) -> Result<(), BindError> {
    let (users, groups) = config.named_peers();
    let grants = ConnectGrants { users, groups };
    match set_grants(&config.runtime_dir, name, &grants) {
        Err(BindError::Inherited { .. }) => {
            if !grants.is_empty() {
                tracing::info!(
                    "{name} is the service manager's: SocketGroup= and SocketMode= decide which host.peers can connect"
                );
            }
            Ok(())
        }
        Err(error @ BindError::Grants { .. }) if config.host.group.is_some() => {
            tracing::warn!("{error}");
            Ok(())
        }
        result => result,
    }
}

/// Replaces the list of a socket in the runtime directory. Existing connections are not affected. Blocking.
///
/// # Errors
/// [`BindError::Grants`] if the file system has no such lists; without any grants that is no error.
/// [`BindError::Inherited`] for a socket of the service manager.
pub fn set_grants(runtime_dir: &Path, name: &str, grants: &ConnectGrants) -> Result<(), BindError> {
    let path = own_socket(runtime_dir, name)?;
    match lsetxattr(&path, ATTRIBUTE, &grants.encode(), XattrFlags::empty()) {
        Err(Errno::OPNOTSUPP) if grants.is_empty() => Ok(()),
        result => result.map_err(|errno| BindError::Grants { path, source: io::Error::from(errno) }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    /// A uid and a gid that no process has but those of this test.
    const OTHER: u32 = 54_323;

    #[test]
    fn a_list_is_encoded_in_the_kernels_order() {
        let grants = ConnectGrants { users: vec![9, 7, 9], groups: vec![3] };
        let tags: Vec<u16> =
            grants.encode()[4..].chunks(8).map(|entry| u16::from_le_bytes([entry[0], entry[1]])).collect();
        assert_eq!(tags, [OWNER, USER, USER, OWNING_GROUP, GROUP, MASK, OTHERS]);
    }

    // Promises: HOST-22
    #[test]
    fn a_user_of_the_list_connects_and_another_does_not() {
        if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/perl").exists() {
            eprintln!("skipped: only root can act for other users, and this test does so with perl");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        let path = dir.path().join("host.sock");
        let _listener = UnixListener::bind(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o660)).unwrap();
        let connects = |uid: u32, gid: u32| {
            let program = "use Socket; $( = $ARGV[1]; $) = \"$ARGV[1] $ARGV[1]\"; $< = $> = $ARGV[0]; \
                           socket(my $s, PF_UNIX, SOCK_STREAM, 0) or exit 2; \
                           exit(connect($s, pack_sockaddr_un($ARGV[2])) ? 0 : 1)";
            let ids = [uid.to_string(), gid.to_string()];
            let status = Command::new("perl").args(["-e", program]).args(ids).arg(&path).status().unwrap();
            status.code() == Some(0)
        };
        assert!(!connects(OTHER, OTHER));
        match set_grants(dir.path(), "host.sock", &ConnectGrants { users: vec![OTHER], groups: vec![] }) {
            Err(BindError::Grants { source, .. })
                if source.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) =>
            {
                eprintln!("skipped: the file system of {} has no access control lists", dir.path().display());
                return;
            }
            granted => granted.unwrap(),
        }
        assert!(connects(OTHER, OTHER) && !connects(OTHER + 1, OTHER));
        set_grants(dir.path(), "host.sock", &ConnectGrants { users: vec![], groups: vec![OTHER] }).unwrap();
        assert!(connects(OTHER + 1, OTHER) && !connects(OTHER, OTHER + 1));
        set_grants(dir.path(), "host.sock", &ConnectGrants::default()).unwrap();
        assert!(!connects(OTHER, OTHER));
    }
}
