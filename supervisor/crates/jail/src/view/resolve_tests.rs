use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
use std::os::unix::net::UnixListener;

use super::*;
use crate::view::BindMount;

/// A program with its own uid.
const OTHER: Option<Identity> = Some(Identity { uid: 71_000, gid: 71_000 });

/// A directory that only we may write to, with `a/b/target` and links to it.
fn fixture() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(path.join("a/b")).unwrap();
    for made in ["a", "a/b"] {
        fs::set_permissions(path.join(made), Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(path.join("a/b/target"), "").unwrap();
    symlink("a/./b/../b/target", path.join("link")).unwrap();
    symlink(path.join("link"), path.join("twice")).unwrap();
    symlink("round", path.join("round")).unwrap();
    (directory, path)
}

#[test]
fn links_that_no_program_can_have_made_are_followed_to_the_end() {
    let (_directory, path) = fixture();
    assert_eq!(real_path(&path.join("twice"), OTHER), Ok(Some(path.join("a/b/target"))));
    assert_eq!(real_path(&path.join("a/b/target"), OTHER), Ok(Some(path.join("a/b/target"))));
    for nowhere in ["round", "link/x", "none"] {
        assert_eq!(real_path(&path.join(nowhere), OTHER), Ok(None), "{nowhere}");
    }
    // Whatever the system has linked is root's, which is trusted always.
    for identity in [None, OTHER] {
        let own = PathBuf::from(format!("/proc/{}", std::process::id()));
        assert_eq!(real_path(Path::new("/proc/self"), identity), Ok(Some(own)));
    }
}

#[test]
fn a_link_where_somebody_else_may_write_is_not_followed_whoever_made_it() {
    let (_directory, path) = fixture();
    symlink("b/target", path.join("a/inner")).unwrap();
    let inner = path.join("a/inner");
    assert!(real_path(&inner, OTHER).unwrap().is_some());
    for (mode, followed) in [(0o757, false), (0o1757, true), (0o755, true)] {
        for above in [&path.join("a"), &path] {
            fs::set_permissions(above, Permissions::from_mode(mode)).unwrap();
            assert_eq!(real_path(&inner, OTHER).is_ok(), followed, "{mode:o} {}", above.display());
            fs::set_permissions(above, Permissions::from_mode(0o755)).unwrap();
        }
    }
    // A path without a link needs no trust: it ends where it says.
    fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
    assert!(real_path(&path.join("a/b"), OTHER).unwrap().is_some());
}

#[test]
fn our_own_links_are_not_followed_for_who_shares_our_uid() {
    if geteuid().is_root() {
        eprintln!("skipped our_own_links_are_not_followed…: root's links are always");
        return;
    }
    let (_directory, path) = fixture();
    let refusal = real_path(&path.join("link"), None).unwrap_err().to_string();
    assert!(refusal.contains("belongs to uid") && refusal.contains("grant the path"), "{refusal}");
    assert_eq!(real_path(&path.join("a/b"), None), Ok(Some(path.join("a/b"))));
}

#[test]
fn a_link_of_somebody_elses_is_not_followed() {
    if !geteuid().is_root() {
        eprintln!("skipped a_link_of_somebody_elses_is_not_followed: only root can give a link away");
        return;
    }
    let (_directory, path) = fixture();
    for uid in [71_000, UNMAPPED] {
        lchown(path.join("link"), Some(uid), None).unwrap();
        let refusal = real_path(&path.join("twice"), OTHER).unwrap_err().to_string();
        assert!(refusal.contains(&format!("uid {uid}")), "{refusal}");
    }
}

#[test]
fn what_a_link_leads_to_is_checked_like_what_is_named() {
    let (_directory, path) = fixture();
    let _listener = UnixListener::bind(path.join("socket")).unwrap();
    for (name, to) in [("run", "/run"), ("devices", "/dev"), ("own", "/proc/self"), ("all", "/")] {
        symlink(to, path.join(name)).unwrap();
    }
    let resolved = |name: &str, access, needed| {
        let from = path.join(name);
        let mut view = View {
            shown: vec![BindMount { at: "/x".into(), from: from.clone(), access, needed }],
            ..View::default()
        };
        view.resolve(OTHER).map(|()| view.shown[0].from != from)
    };
    assert_eq!(resolved("link", Access::Read, true), Ok(true));
    for (name, expected) in
        [("run", "name what is needed"), ("devices", "/dev"), ("own", "/proc"), ("socket", "is a socket")]
    {
        let refusal = resolved(name, Access::Read, true).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{refusal}");
        assert_eq!(resolved(name, Access::Read, false), Ok(false), "{name}");
    }
    assert!(resolved("all", Access::Read, true).is_err());
    assert!(resolved("socket", Access::Execute, true).is_err());
    assert_eq!(resolved("socket", Access::Write, true), Ok(false));
}
