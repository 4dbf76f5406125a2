use std::os::unix::net::UnixDatagram;

use super::*;

fn manager() -> (Manager, UnixDatagram, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    (Manager::at(path.as_os_str().as_bytes()).unwrap(), socket, dir)
}

fn heard(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 1024];
    let count = socket.recv(&mut bytes).unwrap();
    String::from_utf8(bytes[..count].to_vec()).unwrap()
}

// Promises: HANDOVER-37
#[test]
fn a_status_is_one_bounded_line() {
    let (manager, socket, _dir) = manager();
    manager.status("a\nREADY=1");
    assert_eq!(heard(&socket), "STATUS=a READY=1\n");
    manager.status(&"ä".repeat(1000));
    let status = heard(&socket);
    assert!(status.len() < MAX_STATUS_BYTES + 20 && status.ends_with("ä…\n"), "{status}");
}

#[test]
fn a_reload_says_when_it_began() {
    let (manager, socket, _dir) = manager();
    // During the start its end would be taken for the end of the start.
    assert!(manager.reload().is_none());
    manager.ready();
    assert_eq!(heard(&socket), "READY=1\n");
    let reload = manager.reload();
    assert!(heard(&socket).starts_with("RELOADING=1\nMONOTONIC_USEC="));
    drop(reload);
    assert_eq!(heard(&socket), "READY=1\n");
}

// Promises: HANDOVER-38
#[test]
fn a_manager_that_does_not_read_holds_nobody_up() {
    let (manager, socket, _dir) = manager();
    // More than any datagram queue holds.
    for _ in 0..100_000 {
        manager.feed_watchdog();
    }
    assert_eq!(heard(&socket), "WATCHDOG=1\n");
}

#[test]
fn without_a_manager_nothing_is_kept() {
    let manager = Manager::default();
    manager.ready();
    assert!(!manager.is_present() && !manager.has_fd_store());
    assert!(manager.store(std::io::stdin().as_fd()).is_err());
}
