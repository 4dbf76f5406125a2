//! The plugins' sockets for key-values, with a server that answers which plugin it takes the client for.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use talon_jail::Mode;
use talon_plugin::{AttachedSocket, StateSockets};
use talon_plugin_config::spec::Dialect;
use talon_plugin_config::{PluginName, PluginSpec};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;

use super::{Host, call, host, host_with, name, spec};

/// Greets each client by the name that the socket stands for.
#[derive(Debug, Default)]
pub(super) struct Greeter {
    served: Arc<AtomicUsize>,
    peers: Mutex<Vec<(PluginName, u32)>>,
}

#[derive(Debug)]
struct Greeting {
    served: Arc<AtomicUsize>,
    task: JoinHandle<()>,
    socket: OwnedFd,
}

impl StateSockets for Greeter {
    fn attach(&self, plugin: &PluginName, peer: u32, socket: OwnedFd) -> Box<dyn AttachedSocket> {
        self.peers.lock().push((plugin.clone(), peer));
        self.served.fetch_add(1, Ordering::SeqCst);
        let kept = socket.try_clone().unwrap();
        let listener = tokio::net::UnixListener::from_std(UnixListener::from(socket)).unwrap();
        let plugin = plugin.clone();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let known = stream.peer_cred().is_ok_and(|found| found.uid() == peer);
                let text = if known { format!("you are {plugin}") } else { "who are you?".to_owned() };
                let _ = stream.write_all(text.as_bytes()).await;
            }
        });
        Box::new(Greeting { served: self.served.clone(), task, socket: kept })
    }
}

impl AttachedSocket for Greeting {
    fn socket(&self) -> std::io::Result<OwnedFd> {
        self.socket.try_clone()
    }
}

impl Drop for Greeting {
    fn drop(&mut self) {
        self.task.abort();
        self.served.fetch_sub(1, Ordering::SeqCst);
    }
}

fn greeting_host(range: u32) -> (Host, Arc<Greeter>) {
    let greeter = Arc::new(Greeter::default());
    (host_with(range, Some(greeter.clone())), greeter)
}

fn named(text: &str) -> PluginSpec {
    PluginSpec { name: name(text), ..spec("serve") }
}

pub(super) async fn tried(plugin: &talon_plugin::Plugin, what: &str, path: &str) -> String {
    super::call_with(plugin, "try", &[("what", what), ("path", path)]).await
}

#[tokio::test]
async fn every_plugin_reaches_its_own_key_values() {
    let (host, greeter) = greeting_host(30);
    let mut off = named("off");
    off.sandbox.mode = Mode::Off;
    let opentalon = PluginSpec { args: vec!["opentalon".to_owned()], ..named("opentalon") };
    let handed =
        PluginSpec { args: vec!["handed".to_owned()], dialect: Dialect::GoPlugin, ..named("handed") };
    for (spec, own_uid) in [(named("jailed"), true), (opentalon, true), (handed, true), (off, false)] {
        let name = spec.name.clone();
        let plugin = host.up(spec).await;
        assert_eq!(tried(&plugin, "state", "").await, format!("fine you are {name}"));
        let uid = if own_uid && super::is_root() {
            plugin.snapshot().instances[0].uid.unwrap()
        } else {
            rustix::process::geteuid().as_raw()
        };
        assert_eq!(greeter.peers.lock().last(), Some(&(name, uid)));
    }
    assert_eq!(greeter.served.load(Ordering::SeqCst), 4);
    host.done().await;
    assert_eq!(greeter.served.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_plugin_does_not_reach_anothers() {
    let (host, _greeter) = greeting_host(31);
    let plugin = host.up(named("one")).await;
    let [own] = &host.private_dirs()[..] else { panic!("one process has one directory") };
    let own = own.join("k").display().to_string();
    assert_eq!(tried(&plugin, "connect", &own).await, "fine you are one");
    let other = host.up(named("two")).await;
    let outcome = tried(&other, "connect", &own).await;
    assert!(outcome.contains("No such file"), "{outcome}");
    // Beside its socket it can write only in its own directories.
    let outcome = tried(&plugin, "write", &own.replace("/k", "/x")).await;
    assert!(outcome.contains("(os error"), "{outcome}");
    host.done().await;
}

#[tokio::test]
async fn it_goes_with_the_process() {
    let (host, greeter) = greeting_host(32);
    let served = || greeter.served.load(Ordering::SeqCst);
    let plugin = host.up(PluginSpec { instances: 2, ..named("twice") }).await;
    assert_eq!(served(), 2);
    plugin.restart().await.unwrap();
    assert_eq!((served(), greeter.peers.lock().len()), (2, 4));
    plugin.stop().await.unwrap();
    assert_eq!(served(), 0);
    // Nor does a start that comes to nothing keep it.
    host.refused(PluginSpec { args: vec!["die".to_owned()], ..named("dies") }, &["exit code 3"]).await;
    assert_eq!(served(), 0);
    host.done().await;
}

#[tokio::test]
async fn where_nobody_serves_them_there_is_no_socket() {
    let host = host(33);
    let plugin = host.up(named("without")).await;
    assert!(!call(&plugin, "env").await.contains("TALON_STATE_SOCKET"));
    let [own] = &host.private_dirs()[..] else { panic!("one process has one directory") };
    assert!(!own.join("k").exists());
    host.done().await;
}
