//! A program whose network is limited to ports: it has no network of the host's but TCP at these ports.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::path::Path;
use std::time::Duration;

use common::*;
use talon_jail::{
    ExitStatus, Isolation, JailSpec, Limits, LoopbackListeners, Network, Profile, Status, View,
};

const PYTHON: &str = "/usr/bin/python3";

/// A Python program in `strict`, with these TCP ports of the host's network. `None` where that cannot be
/// tried.
fn python(test: &str, script: &str, connect: &[u16], bind: &[u16]) -> Option<JailSpec> {
    let has_rule = |line: &talon_jail::ProtectionSupport| line.detail().contains("TCP ports");
    if !Path::new(PYTHON).exists() || !talon_jail::probe(&stage()).protections.iter().any(has_rule) {
        eprintln!("skipped {test}: it needs {PYTHON}, and Landlock with rules for ports (Linux 6.7)");
        return None;
    }
    let network = Network::Host { connect: Some(connect.to_vec()), bind: Some(bind.to_vec()) };
    let ids = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let view = View::system(ids, Path::new("/run/plugin/h"), &network);
    let profile = Profile::builtin("strict").unwrap().compile(&network).unwrap();
    let isolation = Isolation { view, network, listeners: LoopbackListeners::default(), profile };
    Some(JailSpec { isolation: Some(isolation), ..spec(&[PYTHON, "-c", script]) })
}

// Promises: JAIL-12, JAIL-45
#[test]
fn its_sockets_come_from_its_monitor_and_are_as_it_asked() {
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = host.local_addr().unwrap().port();
    let script = format!(
        "import fcntl, os, socket, threading
plain = socket.socket()
print(os.get_inheritable(plain.fileno()), os.get_blocking(plain.fileno()))
waiting = socket.socket(socket.AF_INET6, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
print(os.get_blocking(waiting.fileno()))
reached = []
def connect():
    for round in range(20):
        with socket.create_connection(('127.0.0.1', {port})):
            reached.append(1)
threads = [threading.Thread(target=connect) for thread in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(reached))
if os.fork() == 0:
    socket.create_connection(('127.0.0.1', {port}))
    os._exit(7)
print(os.waitstatus_to_exitcode(os.wait()[1]))
for family, kind in ((socket.AF_INET, socket.SOCK_DGRAM), (socket.AF_INET, socket.SOCK_RAW)):
    try:
        socket.socket(family, kind)
    except OSError as error:
        print(error.errno)"
    );
    let test = "its_sockets_come_from_its_monitor_and_are_as_it_asked";
    let Some(spec) = python(test, &script, &[port], &[]) else { return };
    let taking = std::thread::spawn(move || host.incoming().take(161).filter(Result::is_ok).count());
    let jailed = start(&spec).unwrap();
    let outcome = finish(jailed);
    assert_eq!(outcome.stderr, "");
    let lines: Vec<_> = outcome.stdout.lines().collect();
    // Python sets close-on-exec by itself.
    assert_eq!(lines, ["False True", "False", "160", "7", "13", "1"]);
    assert_eq!(taking.join().unwrap(), 161);
}

// Promises: JAIL-45
#[test]
fn nothing_else_of_the_hosts_network_is_its() {
    let name = format!("talon-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _taken = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    // The host's name is free inside. A socket that listens without having been bound is not reached, or
    // reported.
    let script = format!(
        "import socket, time
own = socket.socket(socket.AF_UNIX)
own.bind('\\0{name}')
listening = socket.socket()
listening.listen()
print(listening.getsockname()[1], flush=True)
listening.settimeout(1000)
listening.accept()
print('reached')"
    );
    let Some(spec) = python("nothing_else_of_the_hosts_network_is_its", &script, &[], &[]) else { return };
    let jailed = start(&spec).unwrap();
    let port: u16 = line(&jailed.stdout).parse().unwrap();
    let port = SocketAddr::from(([127, 0, 0, 1], port));
    let client = TcpStream::connect_timeout(&port, Duration::from_millis(300));
    match status(&jailed, "network") {
        Status::Enforced => assert_eq!(client.unwrap_err().kind(), std::io::ErrorKind::TimedOut),
        // The report is not better than what holds.
        Status::StandIn(text) => {
            assert!(client.is_ok() && text.contains("a port that the kernel picks"), "{text}")
        }
        Status::Missing(text) => panic!("{text}"),
    }
    jailed.monitor.kill_all().unwrap();
    assert_eq!(finish(jailed).stderr, "");
}

#[test]
fn a_limit_on_open_files_holds_for_these_sockets() {
    let script = "import socket
held = []
try:
    while True:
        held.append(socket.socket())
except OSError as error:
    print(error.errno)
held.clear()
socket.socket()";
    let Some(spec) = python("a_limit_on_open_files_holds_for_these_sockets", script, &[], &[]) else {
        return;
    };
    let outcome = run(&JailSpec { limits: Limits { nofile: 64, ..Limits::default() }, ..spec });
    assert_eq!(
        (outcome.status, outcome.stdout.as_str()),
        (ExitStatus::Code(0), "24\n"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn one_that_learns_stays_in_the_hosts_network_and_the_report_says_so() {
    let Some(mut spec) = python("one_that_learns_stays_in_the_hosts_network…", "", &[443], &[]) else {
        return;
    };
    let isolation = spec.isolation.as_mut().unwrap();
    isolation.profile = Profile::builtin("strict").unwrap().compile_learning(&isolation.network).unwrap();
    let jailed = start(&spec).unwrap();
    let Status::StandIn(text) = status(&jailed, "network") else { panic!("{:?}", jailed.report) };
    assert!(text.contains("abstract socket names"), "{text}");
    finish(jailed);
}

#[test]
fn a_list_of_more_ports_than_a_filter_takes_is_refused() {
    let many: Vec<u16> = (1..=1001).collect();
    let Some(spec) = python("a_list_of_more_ports_than_a_filter_takes_is_refused", "", &[], &many) else {
        return;
    };
    let error = start(&spec).unwrap_err().to_string();
    assert!(error.contains("1001 ports, the most is 1000"), "{error}");
}
