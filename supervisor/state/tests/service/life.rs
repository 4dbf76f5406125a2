//! How the program begins and ends.

use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use talon_proto::state::{DetachPlugin, to_state};

use crate::plugin::{get, set};
use crate::support::{Place, Service};

fn by_hand(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_talon-state"));
    let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn by_hand_it_says_that_it_is_not_for_that() {
    let (code, _, said) = by_hand(&[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("started by talon") && said.contains("not by hand"), "{said}");
    let (code, _, said) = by_hand(&["--nonsense"]);
    assert_eq!(code, Some(2), "{said}");
    let (code, said, _) = by_hand(&["--version"]);
    assert_eq!((code, said.trim()), (Some(0), concat!("talon-state ", env!("CARGO_PKG_VERSION"))));
    let (code, said, _) = by_hand(&["--help"]);
    assert!(code == Some(0) && said.contains("TALON_LOG"), "{said}");
}

#[tokio::test]
async fn anything_but_open_first_is_a_protocol_error() {
    let place = Place::new();
    let mut service = Service::start(&place);
    service.say(to_state::Kind::DetachPlugin(DetachPlugin { id: 1 }), None).await;
    assert_eq!(service.ended().code(), Some(70), "{}", service.log());
    let mut service = Service::start(&place);
    service.say(to_state::Kind::Open(talon_proto::state::Open::default()), None).await;
    assert_eq!(service.ended().code(), Some(70), "{}", service.log());
    assert!(!place.database().exists());
}

// Promises: STATE-8
#[tokio::test]
async fn it_ends_with_its_lifeline_before_and_after_opening() {
    let place = Place::new();
    let mut service = Service::start(&place);
    service.let_go();
    assert!(service.ended().success(), "{}", service.log());
    let mut service = Service::at(&place).await;
    let mut plugin = service.plugin(&place, 1, "hello").await;
    set(&mut plugin, "a", b"kept").await.unwrap();
    service.let_go();
    assert!(service.ended().success(), "{}", service.log());
    assert!(get(&mut plugin, "a").await.is_err());
    // It was closed and not only left: the log is in the database.
    assert!(!place.path("state/state.db-wal").exists());
    let service = Service::at(&place).await;
    let mut plugin = service.plugin(&place, 2, "hello").await;
    assert_eq!(get(&mut plugin, "a").await.unwrap().unwrap(), b"kept");
}

#[tokio::test]
async fn a_termination_ends_it_and_the_signals_of_terminals_do_not() {
    let place = Place::new();
    let mut service = Service::at(&place).await;
    let mut plugin = service.plugin(&place, 1, "hello").await;
    for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGPIPE] {
        service.signal(signal);
        set(&mut plugin, signal.as_str(), b"x").await.unwrap();
    }
    service.signal(Signal::SIGTERM);
    assert!(service.ended().success(), "{}", service.log());
}

#[tokio::test]
async fn what_was_begun_is_finished() {
    let place = Place::new();
    let mut service = Service::at(&place).await;
    let plugin = service.plugin(&place, 1, "hello").await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..16 {
        let mut plugin = plugin.clone();
        writers.spawn(async move {
            let mut acknowledged = 0_u32;
            while set(&mut plugin, &format!("{writer}-{acknowledged}"), b"x").await.is_ok() {
                acknowledged += 1;
            }
            (writer, acknowledged)
        });
    }
    let mut watched = plugin.clone();
    while get(&mut watched, "0-5").await.unwrap().is_none() {}
    service.let_go();
    assert!(service.ended().success(), "{}", service.log());
    let service = Service::at(&place).await;
    let mut plugin = service.plugin(&place, 2, "hello").await;
    while let Some(written) = writers.join_next().await {
        let (writer, acknowledged) = written.unwrap();
        for number in 0..acknowledged {
            assert!(get(&mut plugin, &format!("{writer}-{number}")).await.unwrap().is_some());
        }
    }
}

// Promises: STATE-11
#[tokio::test]
async fn a_client_that_holds_on_does_not_keep_it_from_ending() {
    let place = Place::new();
    let mut service = Service::at(&place).await;
    let socket = place.path("k");
    service.attach(1, "hello", &socket).await;
    // Speaks HTTP/2 and then never answers anything.
    let mut silent = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    std::io::Write::write_all(&mut silent, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let mut answer = [0; 9];
    std::io::Read::read_exact(&mut silent, &mut answer).unwrap();
    service.let_go();
    assert!(service.ended().success(), "{}", service.log());
    // Nothing of it is waited for: it asked for nothing.
    assert!(!service.log().contains("connections were cut off"), "{}", service.log());
}
