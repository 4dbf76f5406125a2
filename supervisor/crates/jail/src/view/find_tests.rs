use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::view::{GeneratedFile, Symlink};

/// A host directory with `tool` (executable), `text` and links, shown at `/app`.
fn fixture(access: Access) -> (tempfile::TempDir, View) {
    let host = tempfile::tempdir().unwrap();
    for (name, mode) in [("tool", 0o755), ("text", 0o644)] {
        let path = host.path().join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    symlink("tool", host.path().join("near")).unwrap();
    symlink("/app/tool", host.path().join("inside")).unwrap();
    symlink(host.path().join("tool"), host.path().join("outside")).unwrap();
    symlink("round", host.path().join("round")).unwrap();
    let view = View {
        shown: vec![BindMount { at: "/app".into(), from: host.path().into(), access, needed: true }],
        files: vec![GeneratedFile { at: "/etc/made".into(), text: String::new() }],
        links: vec![Symlink { at: "/short".into(), to: "app".into() }],
        program_at: Some("/srv/program".into()),
        ..View::default()
    };
    (host, view)
}

#[test]
fn links_are_followed_as_inside() {
    let (_host, view) = fixture(Access::Execute);
    for runs in ["/app/tool", "/app/near", "/app/inside", "/short/tool", "/app/../short/near", "/srv/program"]
    {
        assert!(view.can_execute(Path::new(runs)), "{runs}");
    }
    for shown in ["/app", "/app/text", "/short/text", "/etc/made"] {
        assert!(view.contains(Path::new(shown)) && !view.can_execute(Path::new(shown)), "{shown}");
    }
    for missing in ["/app/outside", "/app/round", "/app/no", "/etc", "/etc/shadow", "/", "/application"] {
        assert!(!view.contains(Path::new(missing)), "{missing}");
    }
}

#[test]
fn what_is_missing_is_named_where_the_links_lead() {
    let (host, view) = fixture(Access::Execute);
    assert_eq!(view.find(Path::new("/short/outside")).err().unwrap(), host.path().join("tool"));
}

#[test]
fn only_what_may_be_executed_runs() {
    for access in [Access::Read, Access::Write] {
        assert!(!fixture(access).1.can_execute(Path::new("/app/tool")));
    }
}

#[test]
fn the_innermost_entry_decides() {
    let (host, mut view) = fixture(Access::Execute);
    let from = host.path().join("tool");
    view.shown.push(BindMount { at: "/app/tool".into(), from, access: Access::Read, needed: true });
    assert!(view.contains(Path::new("/app/tool")) && !view.can_execute(Path::new("/app/tool")));
}
