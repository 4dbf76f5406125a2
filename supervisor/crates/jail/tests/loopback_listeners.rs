//! Sockets of the supervisor's on a program's own loopback interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;

use common::filter::{where_call_gives, where_namespaces_are_refused};
use common::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use talon_jail::{
    InheritedFds, Isolation, JailSpec, LoopbackListeners, Mode, Network, Profile, Status, View,
};

const BASH: &str = "/bin/bash";
const PYTHON: &str = "/usr/bin/python3";

/// Where the sockets listen. 127.0.0.1 is not the only address of a loopback interface.
const PROXY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128);
const HOST: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(127, 83, 0, 1), 443);

/// A program with these sockets inside.
fn listening(argv: &[&str], addresses: &[SocketAddrV4]) -> JailSpec {
    let ids = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let network = Network::Loopback;
    let view = View::system(ids, Path::new("/run/plugin/h"), &network);
    let profile = Profile::builtin("strict").unwrap().compile(&network).unwrap();
    let env = vec![("PROXY".into(), "http://127.0.0.1:3128".into())];
    let listeners = LoopbackListeners { addresses: addresses.to_vec(), env };
    let isolation = Isolation { view, network, listeners, profile };
    JailSpec { isolation: Some(isolation), ..spec(argv) }
}

fn skipped_without(program: &str, test: &str) -> bool {
    let missing = !Path::new(program).exists();
    if missing {
        eprintln!("skipped {test}: it needs {program}");
    }
    missing
}

/// The next connection, which has to come.
fn accept(listener: &TcpListener) -> TcpStream {
    let limit = Timespec::try_from(LONG).unwrap();
    assert_eq!(
        poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&limit)).unwrap(),
        1,
        "no connection came"
    );
    let (stream, peer) = listener.accept().unwrap();
    assert!(matches!(peer, SocketAddr::V4(peer) if peer.ip().is_loopback()));
    stream.set_nonblocking(false).unwrap();
    stream
}

fn take(listeners: &mut Vec<OwnedFd>) -> TcpListener {
    listeners.remove(0).into()
}

// Promises: JAIL-46
#[test]
fn a_program_reaches_the_supervisors_sockets_inside_and_nothing_else() {
    if skipped_without(BASH, "a_program_reaches_the_supervisors_sockets_inside_and_nothing_else") {
        return;
    }
    let here = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let here = here.local_addr().unwrap().port();
    let script = format!(
        "echo $PROXY; \
         exec 3<>/dev/tcp/127.0.0.1/3128; echo first >&3; cat <&3; \
         exec 4<>/dev/tcp/127.83.0.1/443; echo second >&4; cat <&4; exec 3<&- 4<&-; \
         (: </dev/tcp/127.0.0.1/{here}) 2>/dev/null && echo the host answers; \
         (: </dev/tcp/192.0.2.1/80) 2>&1 | grep -o 'Network is unreachable' | head -n 1; \
         ls -l /proc/self/fd /proc/1/fd 2>/dev/null | grep -c socket"
    );
    let mut jailed = start(&listening(&[BASH, "-c", &script], &[PROXY, HOST])).unwrap();
    assert_eq!(status(&jailed, "network"), &Status::Enforced);
    assert_eq!(jailed.listeners.len(), 2);
    for word in ["first", "second"] {
        let mut stream = accept(&take(&mut jailed.listeners));
        let mut said = vec![0; word.len() + 1];
        stream.read_exact(&mut said).unwrap();
        assert_eq!(said, format!("{word}\n").as_bytes());
        writeln!(stream, "{word} answer").unwrap();
    }
    let outcome = finish(jailed);
    let lines: Vec<_> = outcome.stdout.lines().collect();
    // The last one: neither it nor its monitor holds them.
    let expected = ["http://127.0.0.1:3128", "first answer", "second answer", "Network is unreachable", "0"];
    assert_eq!(lines, expected, "{}", outcome.stderr);
}

// Promises: JAIL-46
#[test]
fn addresses_of_other_machines_can_stand_for_them() {
    if skipped_without(BASH, "addresses_of_other_machines_can_stand_for_them") {
        return;
    }
    let script = "exec 3<>/dev/tcp/192.0.2.7/5432; cat <&3; exec 4<>/dev/tcp/10.1.2.3/80; cat <&4; \
                  (: </dev/tcp/10.1.2.4/80) 2>&1 | grep -o 'Network is unreachable' | head -n 1";
    let at = |text: &str| text.parse().unwrap();
    let addresses = [PROXY, at("192.0.2.7:5432"), at("10.1.2.3:80"), at("10.1.2.3:81")];
    let jailed = start(&listening(&[BASH, "-c", script], &addresses)).unwrap();
    assert_eq!(status(&jailed, "network"), &Status::Enforced);
    for (index, word) in [(1, "first"), (2, "second")] {
        let listener: TcpListener = jailed.listeners[index].try_clone().unwrap().into();
        let limit = Timespec::try_from(LONG).unwrap();
        assert_eq!(poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&limit)).unwrap(), 1, "{word}");
        writeln!(listener.accept().unwrap().0, "{word}").unwrap();
    }
    // Nothing beside them became local, whatever class of network an address is in.
    let outcome = finish(jailed);
    assert_eq!(outcome.stdout, "first\nsecond\nNetwork is unreachable\n", "{}", outcome.stderr);
}

// Promises: JAIL-46
#[test]
fn a_supervisor_that_closes_its_socket_is_not_waited_for() {
    if skipped_without(BASH, "a_supervisor_that_closes_its_socket_is_not_waited_for") {
        return;
    }
    let script = "read -r line </dev/stdin; (: </dev/tcp/127.0.0.1/3128) 2>&1 | grep -o refused | head -n 1";
    let (reader, writer) = std::io::pipe().unwrap();
    let wanted = listening(&[BASH, "-c", script], &[PROXY]);
    let given = InheritedFds { stdin: Some(std::os::fd::AsFd::as_fd(&reader)), ..InheritedFds::default() };
    let mut jailed = talon_jail::spawn(&stage(), &wanted, &given, LONG).unwrap();
    jailed.listeners.clear();
    drop(writer);
    assert_eq!(finish(jailed).stdout, "refused\n");
}

// Promises: JAIL-46
#[test]
fn without_the_right_to_listen_it_runs_without_a_network_and_the_report_says_so() {
    let test = "without_the_right_to_listen_it_runs_without_a_network_and_the_report_says_so";
    if skipped_without(BASH, test) {
        return;
    }
    let script = "echo \"[$PROXY]\"; (: </dev/tcp/127.0.0.1/3128) 2>&1 | grep -o refused | head -n 1";
    let wanted = listening(&[BASH, "-c", script], &[PROXY, HOST]);
    let jailed = where_call_gives(libc::SYS_bind, libc::EACCES, || {
        talon_jail::spawn(&stage(), &wanted, &InheritedFds::default(), LONG).unwrap()
    });
    let Status::StandIn(text) = status(&jailed, "network") else { panic!("{:?}", jailed.report) };
    for part in ["TALON_PROXY_SOCKET", "Permission denied", "CAP_NET_ADMIN and CAP_NET_BIND_SERVICE"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(jailed.listeners.is_empty());
    assert_eq!(finish(jailed).stdout, "[]\nrefused\n");
}

// Promises: JAIL-46
#[test]
fn without_namespaces_it_gets_no_socket_of_the_hosts_network() {
    if skipped_without(PYTHON, "without_namespaces_it_gets_no_socket_of_the_hosts_network") {
        return;
    }
    let script = "import errno, os, socket\nprint(os.environ.get('PROXY'))\n\
                  for family in (socket.AF_INET, socket.AF_INET6):\n \
                  for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):\n  \
                  try: socket.socket(family, kind)\n  \
                  except OSError as error: print(errno.errorcode[error.errno])\n";
    let mut wanted = listening(&[PYTHON, "-c", script], &[PROXY]);
    wanted.mode = Mode::BestEffort;
    let jailed = where_namespaces_are_refused(|| {
        talon_jail::spawn(&stage(), &wanted, &InheritedFds::default(), LONG).unwrap()
    });
    assert!(matches!(status(&jailed, "network"), Status::Missing(_)), "{:?}", jailed.report);
    assert!(jailed.listeners.is_empty());
    let outcome = finish(jailed);
    assert_eq!(outcome.stdout, format!("None\n{}", "EAFNOSUPPORT\n".repeat(4)), "{}", outcome.stderr);
}
