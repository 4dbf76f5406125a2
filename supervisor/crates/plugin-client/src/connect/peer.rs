//! Identifies the peer of a connection, as the kernel reports it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

/// How many ancestors of a process are followed; a plugin that nests deeper is not recognized.
const MAX_GENERATIONS: usize = 256;

/// How much of the kernel's table of TCP sockets is read: about fifty thousand sockets.
const MAX_TABLE_BYTES: u64 = 8 << 20;

/// The kernel's number for a listening socket.
const LISTEN: &str = "0A";

/// Whether `pid` is `ancestor` or a descendant. A process whose parent died becomes a child of the monitor.
pub fn is_descendant(pid: i32, ancestor: u32) -> bool {
    let Ok(mut pid) = u32::try_from(pid) else { return false };
    for _ in 0..MAX_GENERATIONS {
        if pid == ancestor {
            return true;
        }
        match parent(pid) {
            Some(parent) if parent > 1 => pid = parent,
            _ => return false,
        }
    }
    false
}

/// Whether there is such a process.
pub(super) fn exists(pid: i32) -> bool {
    u32::try_from(pid).is_ok_and(|pid| parent(pid).is_some())
}

fn parent(pid: u32) -> Option<u32> {
    let mut stat = Vec::new();
    File::open(format!("/proc/{pid}/stat")).ok()?.take(4096).read_to_end(&mut stat).ok()?;
    // `pid (name) state ppid …`, where the name may hold any bytes: parentheses, spaces, invalid UTF-8.
    String::from_utf8_lossy(&stat).rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The uids of all listeners on a TCP port of this machine.
pub(super) fn tcp_listener_uids(port: u16) -> io::Result<Vec<u32>> {
    let mut uids = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        match File::open(table) {
            Ok(file) => listeners(BufReader::new(file.take(MAX_TABLE_BYTES)), port, &mut uids)?,
            // This kernel has no IPv6.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    if uids.is_empty() {
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "no process listens there"));
    }
    Ok(uids)
}

/// Parses lines `slot: local:port remote:port state … uid …`; addresses and state are hexadecimal.
fn listeners(table: impl BufRead, port: u16, uids: &mut Vec<u32>) -> io::Result<()> {
    for line in table.lines().skip(1) {
        let line = line?;
        let mut fields = line.split_whitespace().skip(1);
        let (Some(local), Some(_), Some(state)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let local_port = local.rsplit(':').next().and_then(|p| u16::from_str_radix(p, 16).ok());
        if state == LISTEN
            && local_port == Some(port)
            && let Some(uid) = fields.nth(3).and_then(|uid| uid.parse().ok())
        {
            uids.push(uid);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_are_known() {
        let own = std::process::id();
        let own_pid = i32::try_from(own).unwrap();
        assert!(is_descendant(own_pid, own));
        assert!(is_descendant(own_pid, parent(own).unwrap()));
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert!(is_descendant(i32::try_from(child.id()).unwrap(), own));
        assert!(!is_descendant(own_pid, child.id()));
        drop(child.stdin.take());
        let child_pid = i32::try_from(child.id()).unwrap();
        assert!(exists(child_pid) && exists(own_pid) && !exists(0) && !exists(-1));
        child.wait().unwrap();
        assert!(!exists(child_pid));
        assert!(!is_descendant(0, own));
        assert!(!is_descendant(-1, own));
    }

    #[test]
    fn a_name_that_is_no_text_hides_no_process() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let (ready, named) = std::sync::mpsc::channel();
        // A thread has its name in its own stat file, which looks like a process's.
        let thread = std::thread::spawn(move || {
            rustix::thread::set_name(c"\xff) \xfe(").unwrap();
            ready.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
            let _ = receiver.recv();
        });
        let tid = named.recv().unwrap();
        assert_eq!(parent(tid), parent(std::process::id()));
        drop(sender);
        thread.join().unwrap();
    }

    #[test]
    fn the_owner_of_a_port_is_known() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(tcp_listener_uids(port).unwrap(), [rustix::process::geteuid().as_raw()]);
    }
}
