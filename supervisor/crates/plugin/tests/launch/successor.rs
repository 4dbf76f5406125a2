//! Like `handover.rs`, but the supervisor is another process and exits, so that the plugins are orphans here.

use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, Signal, kill_process};
use talon_control::fd_bundle::Unpacker;
use talon_plugin::State;
use talon_plugin::handover::ReceivedHandover;
use talon_plugin_config::PluginSpec;

use super::handover::{ended, pid, successor};
use super::{FIXTURE, Host, call, is_root, settings, spec};

/// Room for the document of one process; it has some two thousand bytes.
const DOCUMENT_BYTES: usize = 64 << 10;
const DESCRIPTORS_MAX: usize = 32;

/// Another supervisor, which has handed over its plugin.
struct Predecessor {
    dir: tempfile::TempDir,
    range: u32,
    child: Child,
    inherited: ReceivedHandover,
    socket: UnixStream,
    /// Of its plugin's process.
    pid: u32,
}

fn predecessor(range: u32) -> Predecessor {
    let dir = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let uids =
        settings(dir.path(), range).uid_range.map_or("none".to_owned(), |uids| uids.start().to_string());
    let (socket, theirs) = UnixStream::pair().unwrap();
    let child = Command::new(FIXTURE)
        .args(["supervise".as_ref(), dir.path().as_os_str(), uids.as_ref()])
        .stdin(OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    let (inherited, pid) = receive(&socket);
    Predecessor { dir, range, child, inherited, socket, pid }
}

fn receive(socket: &UnixStream) -> (ReceivedHandover, u32) {
    let mut document = vec![0; DOCUMENT_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut document)];
    let bytes = recvmsg(socket, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC).unwrap().bytes;
    let rights = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptors: Vec<OwnedFd> = rights.flatten().collect();
    let value: serde_json::Value = serde_json::from_slice(&document[..bytes]).unwrap();
    let pid = value["processes"][0]["program"]["pid"].as_u64().unwrap().try_into().unwrap();
    let handed = serde_json::from_value(value).unwrap();
    (ReceivedHandover { document: handed, unpacker: Unpacker::new(descriptors) }, pid)
}

impl Predecessor {
    /// The supervisor releases its processes and exits, and the next one takes over its directories.
    fn succeeded(mut self) -> (Host, u32) {
        self.socket.write_all(b"!").unwrap();
        assert!(self.child.wait().unwrap().success());
        let registry = successor(settings(self.dir.path(), self.range), self.inherited);
        (Host { dir: self.dir, registry }, self.pid)
    }
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

// Promises: HANDOVER-1, HANDOVER-11
#[tokio::test]
async fn a_process_outlives_its_supervisor() {
    let (host, inherited) = predecessor(81).succeeded();
    let mut spec = PluginSpec { enabled: true, ..spec("serve") };
    spec.lifecycle.restart_on_failure = true;
    let plugin = host.registry.register(spec).unwrap();
    plugin.settled().await;
    assert_eq!(pid(&plugin), inherited, "{:#?}", plugin.logs().recent);
    assert_eq!(call(&plugin, "count").await, "call 1 after 1 Init");
    assert_eq!(host.registry.adopted_monitors().len(), 1);
    let uid = plugin.snapshot().instances[0].uid.unwrap();
    assert_eq!(uid != rustix::process::geteuid().as_raw(), is_root());
    // Its exit and the end of its descendants are noticed, though it is no child of this process.
    kill(inherited);
    let mut changes = plugin.logs();
    while plugin.snapshot().state != State::Ready || pid(&plugin) == inherited {
        let _ = changes.live.recv().await.unwrap();
        plugin.settled().await;
    }
    assert!(host.registry.adopted_monitors().is_empty());
    assert_eq!(host.private_dirs().len(), 1);
    assert_eq!(call(&plugin, "count").await, "call 1 after 1 Init");
    host.done().await;
}

// Promises: HANDOVER-11
#[tokio::test]
async fn a_process_that_was_taken_over_is_stopped_in_order() {
    let (host, inherited) = predecessor(82).succeeded();
    let plugin = host.up(spec("serve")).await;
    assert_eq!(pid(&plugin), inherited);
    plugin.stop().await.unwrap();
    ended(inherited).await;
    assert!(host.private_dirs().is_empty());
    host.done().await;
}

// Promises: HANDOVER-12
#[tokio::test]
async fn a_supervisor_that_is_killed_after_it_has_handed_over_takes_nothing_along() {
    let mut before = predecessor(83);
    kill(before.child.id());
    before.child.wait().unwrap();
    let registry = successor(settings(before.dir.path(), 83), before.inherited);
    let host = Host { dir: before.dir, registry };
    let plugin = host.up(spec("serve")).await;
    assert_eq!(pid(&plugin), before.pid);
    assert_eq!(call(&plugin, "count").await, "call 1 after 1 Init");
    host.done().await;
    ended(before.pid).await;
}

// Promises: HANDOVER-3
#[tokio::test]
async fn a_parcel_that_nobody_takes_ends_everything() {
    let Predecessor { dir, mut child, inherited, mut socket, pid, range } = predecessor(84);
    socket.write_all(b"!").unwrap();
    assert!(child.wait().unwrap().success());
    drop(inherited);
    ended(pid).await;
    // A supervisor without any handover can start.
    let registry = super::registry(settings(dir.path(), range)).unwrap();
    let host = Host { dir, registry };
    assert!(host.private_dirs().is_empty());
    host.done().await;
}
