use std::sync::Arc;

use talon_plugin_client::handshake::Address;
use talon_plugin_config::discover::SpecDefaults;
use tokio::net::{UnixListener, UnixStream};

use super::*;
use crate::rundir::{PrivateDir, RuntimeDir};

struct Scene {
    _dir: tempfile::TempDir,
    /// Its end removes the directory with the socket.
    _private: Arc<PrivateDir>,
    listener: UnixListener,
    target: Target,
}

fn scene() -> Scene {
    let dir = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
    let runtime = Arc::new(RuntimeDir::prepare(&dir.path().join("r"), false).unwrap());
    let private = Arc::new(runtime.allocate(None).unwrap());
    let path = private.tmp_dir().join("plugin.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let uid = rustix::process::geteuid().as_raw();
    let target =
        Target::new(&Address::Unix(path), private.sockets(), uid, std::process::id(), false).unwrap();
    Scene { _dir: dir, _private: private, listener, target }
}

/// As the oldest SDK reads: four bytes that are too large a length are the end of it, with the rest unread.
async fn takes_it_for_a_length(mut stream: UnixStream) {
    let mut length = [0; 4];
    stream.read_exact(&mut length).await.unwrap();
    assert_eq!(&length, b"PRI ");
}

#[tokio::test]
async fn who_hangs_up_each_time_is_one_of_them() {
    let Scene { listener, target, _dir, _private } = scene();
    let serving = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            takes_it_for_a_length(stream).await;
        }
    });
    assert!(hangs_up_on_http2(&target).await);
    serving.abort();
}

#[tokio::test]
async fn who_answers_is_none() {
    let Scene { listener, target, _dir, _private } = scene();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // An empty SETTINGS frame, and then the end.
        stream.write_all(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00").await.unwrap();
        listener
    });
    assert!(!hangs_up_on_http2(&target).await);
    drop(serving.await.unwrap());
}

#[tokio::test]
async fn who_dies_of_it_is_none() {
    let Scene { listener, target, _dir, _private } = scene();
    let dying = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        drop(listener);
        takes_it_for_a_length(stream).await;
    });
    assert!(!hangs_up_on_http2(&target).await);
    dying.await.unwrap();
    assert!(!hangs_up_on_http2(&target).await, "no process listens any more");
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_is_none() {
    let Scene { listener, target, _dir, _private } = scene();
    assert!(!hangs_up_on_http2(&target).await);
    drop(listener);
}

#[test]
fn only_opentalons_line_can_lead_there_and_only_where_the_dialect_is_open() {
    let name = PluginName::new("p").unwrap();
    let mut spec = SpecDefaults::default().spec(name.clone(), "test", "/bin/true");
    for (configured, said, possible) in [
        (Dialect::Auto, Dialect::OpenTalon, true),
        (Dialect::OpenTalon, Dialect::OpenTalon, true),
        (Dialect::Auto, Dialect::GoPlugin, false),
        (Dialect::OpenTalonV0, Dialect::GoPlugin, false),
        (Dialect::Mcp, Dialect::GoPlugin, false),
    ] {
        spec.dialect = configured;
        assert_eq!(may_be_framed(&spec, said), possible, "{configured:?} {said:?}");
    }
    assert_eq!(behind_bridge(&spec).dialect, Dialect::OpenTalonV0);

    let framed = FramedPlugins::default();
    framed.remember(&name, "digest");
    assert_eq!(framed.digest(&name).as_deref(), Some("digest"));
    framed.forget(&name);
    assert_eq!(framed.digest(&name), None);
}
