use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

/// A directory with a short enough path, which every user may pass through.
fn scratch() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn prepared(dir: &Path) -> Arc<RuntimeDir> {
    Arc::new(RuntimeDir::prepare(dir, false).unwrap())
}

// Promises: HOST-15
#[test]
fn a_second_supervisor_is_refused_and_told_who_is_there() {
    let dir = scratch();
    let first = prepared(&dir.path().join("run"));
    let refused = RuntimeDir::prepare(&dir.path().join("run"), false).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains(&format!("pid {}", std::process::id())), "{text}");
    drop(first);
    prepared(&dir.path().join("run"));
}

// Promises: LAUNCH-15
#[test]
fn a_path_too_long_for_a_socket_says_how_long_it_may_be() {
    let dir = scratch();
    let error = RuntimeDir::prepare(&dir.path().join("x".repeat(60)), false).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, SetupError::PathTooLong { .. }), "{text}");
    assert!(text.contains(&MAX_RUNTIME_DIR_BYTES.to_string()) && text.contains("runtime_dir"), "{text}");
}

// Promises: LAUNCH-15
#[test]
fn the_longest_runtime_dir_leaves_room_for_the_longest_socket() {
    let socket = format!("/{}{LONGEST_SOCKET}", "r".repeat(MAX_RUNTIME_DIR_BYTES - 1));
    assert_eq!(socket.len(), MAX_SOCKET_PATH_BYTES);
    assert!(std::os::unix::net::SocketAddr::from_pathname(socket).is_ok());
}

#[test]
fn a_directory_that_others_may_write_to_is_refused() {
    let dir = scratch();
    let run = dir.path().join("run");
    std::fs::create_dir(&run).unwrap();
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(RuntimeDir::prepare(&run, false), Err(SetupError::Untrusted { .. })));
    let link = dir.path().join("link");
    symlink(dir.path(), &link).unwrap();
    assert!(matches!(RuntimeDir::prepare(&link, false), Err(SetupError::Untrusted { .. })));
}

#[test]
fn a_directory_below_one_of_somebody_else_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = scratch();
    let theirs = dir.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    let run = theirs.join("run");
    let problem = |uid, gid, mode| {
        std::os::unix::fs::chown(&theirs, Some(uid), Some(gid)).unwrap();
        std::fs::set_permissions(&theirs, std::fs::Permissions::from_mode(mode)).unwrap();
        RuntimeDir::prepare(&run, false).map(drop).map_err(|error| error.to_string())
    };
    assert!(problem(4242, 0, 0o755).unwrap_err().contains("uid 4242 owns it"));
    // The owner of a sticky directory may still rename its content.
    assert!(problem(4242, 0, 0o1755).unwrap_err().contains("uid 4242 owns it"));
    assert!(problem(0, 4242, 0o775).unwrap_err().contains("members of group 4242"));
    assert_eq!(problem(0, 4242, 0o1775), Ok(()));
    assert_eq!(problem(0, 0, 0o775), Ok(()));
}

#[test]
fn plugins_with_their_own_uid_must_be_able_to_reach_it() {
    let dir = scratch();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let error = RuntimeDir::prepare(&dir.path().join("run"), true).unwrap_err();
    assert!(error.to_string().contains("o+x"), "{error}");
    prepared(&dir.path().join("run"));
}

// Promises: LAUNCH-13
#[test]
fn a_private_directory_lives_and_goes() {
    let dir = scratch();
    let runtime = prepared(&dir.path().join("run"));
    let private = runtime.allocate(None).unwrap();
    for inner in [private.socket_dir(), private.tmp_dir(), private.home_dir()] {
        assert_eq!(inner.metadata().unwrap().mode() & 0o777, 0o700);
    }
    let path = private.path().to_owned();
    assert_ne!(runtime.allocate(None).unwrap().path(), path);
    drop(private);
    assert!(!path.exists());
}

// Promises: LIFE-29
#[test]
fn leftovers_are_cleared_and_strangers_are_not() {
    let dir = scratch();
    let run = dir.path().join("run");
    let runtime = prepared(&run);
    let left = runtime.allocate(None).unwrap();
    std::fs::write(left.tmp_dir().join("file"), "x").unwrap();
    let left_path = left.path().to_owned();
    std::mem::forget(left);
    let precious = dir.path().join("precious");
    std::fs::create_dir(&precious).unwrap();
    std::fs::write(precious.join("keep"), "x").unwrap();
    symlink(&precious, run.join("p/abc")).unwrap();
    std::fs::create_dir(run.join("p/not-ours")).unwrap();
    std::fs::write(run.join("p/f00"), "a file").unwrap();
    runtime.clear();
    assert!(!left_path.exists());
    assert!(precious.join("keep").exists());
    for stranger in ["p/abc", "p/not-ours", "p/f00"] {
        assert!(run.join(stranger).symlink_metadata().is_ok(), "{stranger}");
    }
}

// Promises: LAUNCH-14
#[test]
fn whatever_a_plugin_left_in_its_directory_goes_and_nothing_else() {
    let dir = scratch();
    let runtime = prepared(&dir.path().join("run"));
    let private = runtime.allocate(None).unwrap();
    let outside = dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("keep"), "x").unwrap();
    let tmp = private.tmp_dir();
    symlink(&outside, tmp.join("link")).unwrap();
    symlink("/nowhere", tmp.join("dangling")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tmp.join("socket")).unwrap();
    nix::unistd::mkfifo(&tmp.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for index in 0..1500 {
        std::fs::write(tmp.join(format!("f{index}")), "").unwrap();
    }
    let mut deep = tmp.join("deep");
    for _ in 0..100 {
        std::fs::create_dir(&deep).unwrap();
        std::fs::write(deep.join("f"), "").unwrap();
        deep = deep.join("d");
    }
    let locked = tmp.join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::write(locked.join("f"), "").unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).unwrap();
    let path = private.path().to_owned();
    drop(private);
    assert!(!path.exists());
    assert!(outside.join("keep").exists());
}

#[test]
fn nobody_else_may_look_into_the_data_directory() {
    let dir = scratch();
    for (own_uids, made, passes, open, fix) in [
        (false, 0o700, &[0o700][..], &[0o710, 0o701, 0o711, 0o740, 0o720, 0o755, 0o777][..], "chmod 700"),
        (
            true,
            0o711,
            &[0o711, 0o710, 0o701, 0o700],
            &[0o740, 0o720, 0o704, 0o702, 0o755, 0o777],
            "chmod 711",
        ),
    ] {
        let data = dir.path().join(format!("parent/data-{own_uids}"));
        assert_eq!(prepare_data_dir(&data, own_uids).unwrap(), data.canonicalize().unwrap());
        assert_eq!(data.metadata().unwrap().mode() & 0o7777, made);
        let set = |mode| std::fs::set_permissions(&data, std::fs::Permissions::from_mode(mode)).unwrap();
        for mode in passes {
            set(*mode);
            assert!(prepare_data_dir(&data, own_uids).is_ok(), "{mode:o}");
        }
        for mode in open {
            set(*mode);
            let text = prepare_data_dir(&data, own_uids).unwrap_err().to_string();
            assert!(text.contains(&format!("run `{fix} {}`", data.display())), "{text}");
            assert!(text.contains(&format!("StateDirectoryMode=0{made:o}")), "{text}");
        }
    }
}

#[test]
fn the_socket_for_key_values_is_the_plugins_and_its_makers() {
    let dir = scratch();
    let runtime = prepared(&dir.path().join("run"));
    let private = runtime.allocate(None).unwrap();
    let _socket = private.listen_for_state(None).unwrap();
    assert_eq!(private.state_path(), private.path().join("k"));
    assert_eq!(private.state_path().metadata().unwrap().mode() & 0o777, 0o600);
    std::os::unix::net::UnixStream::connect(private.state_path()).unwrap();
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED the rest: only root can give a socket to another group");
        return;
    }
    let private = runtime.allocate(Some(Identity { uid: 4242, gid: 4242 })).unwrap();
    let _socket = private.listen_for_state(Some(Identity { uid: 4242, gid: 4242 })).unwrap();
    let stat = private.state_path().metadata().unwrap();
    assert_eq!((stat.mode() & 0o777, stat.uid(), stat.gid()), (0o660, 0, 4242));
}
