//! Checks who listens on a unix socket: a path alone proves nothing, since below `/tmp` any user may have
//! created it first.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::process::geteuid;
use tokio::net::UnixStream;

/// Maximum number of symbolic links in a path, as in the kernel; with more the path is refused.
const MAX_LINKS: usize = 40;
/// Mode bits that let users other than the owner write into a directory.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// In such a directory only its owner removes or renames a file.
const STICKY: u32 = 0o1000;

/// Why a listener is not trusted to be a supervisor.
#[derive(Debug)]
pub struct UntrustedListenerError {
    path: PathBuf,
    uid: u32,
    problem: String,
}

impl UntrustedListenerError {
    /// This error, if it is the reason why a connection was not made.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl std::fmt::Display for UntrustedListenerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "uid {} listens on {}, and nothing says that this is your supervisor: {}. Nothing was sent to it; name the \
             socket of the one you mean with --socket, or set its runtime_dir (or XDG_RUNTIME_DIR) to a directory of your own",
            self.uid,
            self.path.display(),
            self.problem
        )
    }
}

impl std::error::Error for UntrustedListenerError {}

/// Accepts a connection if root or this user listens. Another listener is accepted if it owns the socket, and
/// only root, this user or that listener can have put it there, as with a service that has a separate uid and
/// a directory below `/run`.
///
/// # Errors
/// One that holds a [`UntrustedListenerError`]; or the error of the check.
pub fn check_listener(stream: &UnixStream, path: &Path) -> io::Result<()> {
    let (uid, me) = (stream.peer_cred()?.uid(), geteuid().as_raw());
    if uid == me || uid == 0 {
        return Ok(());
    }
    match find_problem(path, uid, me)? {
        None => Ok(()),
        Some(problem) => {
            Err(io::Error::other(UntrustedListenerError { path: path.to_owned(), uid, problem }))
        }
    }
}

/// Which other users may have put a socket where it is. Every directory of the path counts, also those of
/// symbolic links.
fn find_problem(path: &Path, uid: u32, me: u32) -> io::Result<Option<String>> {
    let mut ahead = components(&std::path::absolute(path)?);
    let mut here = PathBuf::from("/");
    let mut links = 0;
    while let Some(step) = ahead.pop() {
        if step == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&step);
        let (around, about) = (here.symlink_metadata()?, next.symlink_metadata()?);
        if let Some(problem) = untrusted_writer(&around, &about, uid, me) {
            return Ok(Some(format!("{} {problem}", here.display())));
        }
        if about.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                return Ok(Some("its path leads through too many symbolic links".to_owned()));
            }
            let to = next.read_link()?;
            if to.is_absolute() {
                here = PathBuf::from("/");
            }
            ahead.extend(components(&to));
        } else if ahead.is_empty() {
            let its_own = about.file_type().is_socket() && about.uid() == uid;
            return Ok((!its_own).then(|| format!("the file there belongs to uid {}", about.uid())));
        } else {
            here = next;
        }
    }
    Ok(Some("its path names a directory".to_owned()))
}

/// Why untrusted users may have put this file into that directory.
fn untrusted_writer(around: &Metadata, about: &Metadata, uid: u32, me: u32) -> Option<String> {
    let ours = |owner: u32| owner == 0 || owner == me;
    if !ours(around.uid()) && around.uid() != uid {
        return Some(format!("belongs to uid {}", around.uid()));
    }
    let written = around.mode() & WRITABLE_BY_OTHERS != 0;
    let kept = around.mode() & STICKY != 0 && ours(about.uid());
    (written && !kept).then(|| "can be written by others".to_owned())
}

/// The components of a path in reverse, so that the next one is last.
fn components(path: &Path) -> Vec<OsString> {
    let named = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    let mut names: Vec<OsString> = named.collect();
    names.reverse();
    names
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A uid that no user has in these tests.
    const OTHER: u32 = 54_321;

    #[test]
    fn what_lies_in_a_directory_of_strangers_is_not_believed() {
        // The directory is this user's and lies below one that all users may write to: to any other user it
        // is untrusted.
        let dir = tempfile::Builder::new().prefix("talon").tempdir_in("/tmp").unwrap();
        let path = dir.path().join("host.sock");
        let _listener = UnixListener::bind(&path).unwrap();
        let own = geteuid().as_raw();
        let said = find_problem(&path, own, OTHER).unwrap();
        if own == 0 {
            assert_eq!(said, None, "root may put what it likes where it likes");
        } else {
            assert!(said.unwrap().contains("/tmp can be written by others"));
        }
        // The listener does not own the socket.
        assert!(find_problem(&path, OTHER, own).unwrap().unwrap().contains(&format!("uid {own}")));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(find_problem(&path, OTHER, own).unwrap().unwrap().contains("can be written by others"));
    }

    #[test]
    fn a_service_with_its_own_uid_is_believed_where_only_root_could_put_it() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root can give files to another uid");
            return;
        }
        let dir = tempfile::Builder::new().prefix("talon").tempdir_in("/tmp").unwrap();
        let make = |below: &Path| {
            fs::create_dir(below).unwrap();
            let path = below.join("host.sock");
            let listener = UnixListener::bind(&path).unwrap();
            for file in [below, &path] {
                std::os::unix::fs::chown(file, Some(OTHER), None).unwrap();
            }
            (listener, path)
        };
        let (_one, good) = make(&dir.path().join("run"));
        assert_eq!(find_problem(&good, OTHER, 0).unwrap(), None);
        assert!(find_problem(&good, OTHER + 1, 0).unwrap().is_some(), "the listener is another");

        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
        let (_two, planted) = make(&open.join("talon"));
        assert!(find_problem(&planted, OTHER, 0).unwrap().unwrap().contains("open can be written by others"));
        // A link from an untrusted user is no better than its target.
        let link = open.join("link");
        symlink(dir.path().join("run"), &link).unwrap();
        assert_eq!(find_problem(&link.join("host.sock"), OTHER, 0).unwrap(), None, "root's link");
        std::os::unix::fs::lchown(&link, Some(OTHER), None).unwrap();
        assert!(find_problem(&link.join("host.sock"), OTHER, 0).unwrap().is_some());
        symlink("loop", dir.path().join("loop")).unwrap();
        assert!(
            find_problem(&dir.path().join("loop/host.sock"), OTHER, 0).unwrap().unwrap().contains("links")
        );
    }
}
