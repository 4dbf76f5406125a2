//! What is handed over, and who may connect.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use talon_proto::state::{AttachOperator, DescribeRequest, to_state};

use crate::plugin::{get, set};
use crate::support::{Place, Service, attach, connect, listener, skip};

/// Whether it was closed without a byte. An admitted client gets the server's settings first.
fn is_closed(socket: &Path) -> bool {
    let mut stream = UnixStream::connect(socket).unwrap();
    matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_))
}

// Promises: STATE-6
#[tokio::test]
async fn another_uid_is_refused() {
    const STRANGER: &str = "54321";
    if !nix::unistd::geteuid().is_root() {
        return skip("another_uid_is_refused", "only root can be somebody else");
    }
    let place = Place::new();
    let service = Service::at(&place).await;
    let socket = place.path("k");
    service.attach(1, "hello", &socket).await;
    let mut plugin = connect(&socket).await;
    set(&mut plugin, "secret", b"x").await.unwrap();
    let mut stranger = Command::new("setpriv");
    stranger.args(["--reuid", STRANGER, "--regid", STRANGER, "--clear-groups", "perl", "-MIO::Socket::UNIX"]);
    stranger
        .args(["-e", "my $s = IO::Socket::UNIX->new($ARGV[0]) or die; exit(sysread($s, my $x, 1) ? 7 : 0)"]);
    let heard = stranger.arg(&socket).stdin(Stdio::null()).status().unwrap();
    assert_eq!(heard.code(), Some(0), "a stranger was let in");
    assert!(service.log().contains("a connection of another user was closed"), "{}", service.log());
    assert!(service.log().contains(r#""peer.uid":54321"#), "{}", service.log());
    assert!(get(&mut plugin, "secret").await.unwrap().is_some());
    // And the other way round: the configured uid counts, not that of this process.
    let socket = place.path("other");
    service.attach_with(attach(2, "other", 54321), listener(&socket)).await;
    assert!(is_closed(&socket));
    // It is logged and counted for each socket separately.
    let log = service.log();
    let said = log.lines().find(|line| line.contains(r#""plugin":"other""#)).expect(&log);
    assert!(said.contains("a connection of another user was closed"), "{said}");
    assert!(said.contains(r#""refused":1,"#) && said.contains(r#""unsaid":0"#), "{said}");
}

#[tokio::test]
async fn what_cannot_be_attached_is_left_and_the_rest_served() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let uid = nix::unistd::geteuid().as_raw();
    let say = |id, name: &str| to_state::Kind::AttachPlugin(attach(id, name, uid));
    let listening = |name: &str| Some(listener(&place.path(name)));
    let pair = || Some(OwnedFd::from(UnixStream::pair().unwrap().0));
    service.attach(1, "hello", &place.path("good")).await;
    service.say(say(1, "other"), listening("duplicate")).await;
    service.say(say(2, "hello"), None).await;
    service.say(say(3, "hello"), pair()).await;
    service.say(say(4, "../hello"), listening("name")).await;
    service.say(say(5, "hello"), Some(std::fs::File::open("/dev/null").unwrap().into())).await;
    service.detach(99).await;
    service.say(to_state::Kind::Open(place.open()), None).await;
    service.say(to_state::Kind::AttachOperator(AttachOperator {}), None).await;
    service.say(to_state::Kind::AttachOperator(AttachOperator {}), listening("operator")).await;
    let mut operator = service.operator().await;
    let described = operator.describe(DescribeRequest::default()).await.unwrap().into_inner();
    assert_eq!(described.sockets, 1);
    let log = service.log();
    for why in [
        "socket 1 is attached already",
        "no descriptor came with it",
        "does not listen",
        "a plugin's id must have",
        "no unix stream socket",
        "no socket 99 is attached",
        "open already",
        "is not connected",
    ] {
        assert!(log.contains(why), "{why}: {log}");
    }
    let mut plugin = connect(&place.path("good")).await;
    set(&mut plugin, "a", b"x").await.unwrap();
    for name in ["duplicate", "name"] {
        assert!(UnixStream::connect(place.path(name)).is_err(), "{name} is held");
    }
}

#[tokio::test]
async fn a_detached_socket_is_closed_with_its_connections_and_its_number_is_free() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let socket = place.path("k");
    service.attach(1, "hello", &socket).await;
    let mut plugin = connect(&socket).await;
    set(&mut plugin, "a", b"x").await.unwrap();
    let mut idle = UnixStream::connect(&socket).unwrap();
    service.detach(1).await;
    let mut last_words = Vec::new();
    // Reads what the server said, and then its end.
    tokio::task::spawn_blocking(move || idle.read_to_end(&mut last_words)).await.unwrap().unwrap();
    assert!(UnixStream::connect(&socket).is_err());
    assert!(get(&mut plugin, "a").await.is_err());
    let again = place.path("again");
    service.attach(1, "hello", &again).await;
    assert!(get(&mut connect(&again).await, "a").await.unwrap().is_some());
}
