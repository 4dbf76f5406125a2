use std::os::unix::fs::symlink;

use tokio::net::UnixListener;

use super::*;
use crate::socket_dir::testing::scratch;

struct Scratch {
    _dir: tempfile::TempDir,
    private: Arc<SocketDir>,
}

fn new_scratch() -> Scratch {
    let dir = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
    let private = scratch(dir.path());
    Scratch { _dir: dir, private }
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl Scratch {
    fn path(&self, name: &str) -> PathBuf {
        self.private.path().join("s").join(name)
    }

    fn target(&self, path: &Path, uid: u32, monitor: u32) -> Result<Target, ConnectError> {
        Target::new(&Address::Unix(path.to_owned()), &self.private, uid, monitor, false)
    }

    async fn connect(&self, name: &str) -> Result<Connection, ConnectError> {
        self.target(&self.path(name), own_uid(), std::process::id())?.connect(&BusyFlag::default()).await
    }
}

#[tokio::test]
async fn an_own_socket_is_connected_to_again_and_again() {
    let s = new_scratch();
    let _listener = UnixListener::bind(s.path("plugin1")).unwrap();
    let target = s.target(&s.path("plugin1"), own_uid(), std::process::id()).unwrap();
    for _ in 0..3 {
        target.connect(&BusyFlag::default()).await.unwrap();
    }
}

// Promises: HAND-14
#[tokio::test]
async fn a_path_elsewhere_is_refused() {
    let s = new_scratch();
    let sibling = format!("{}x/socket", s.private.path().display());
    for path in ["/tmp/plugin1", "/run/docker.sock", s.private.path().to_str().unwrap(), sibling.as_str()] {
        let refused = s.target(Path::new(path), own_uid(), 1);
        assert!(matches!(refused, Err(ConnectError::Outside { .. })), "{path}");
    }
}

// Promises: HAND-15
#[tokio::test]
async fn no_symlink_is_followed() {
    let s = new_scratch();
    let elsewhere = tempfile::tempdir().unwrap();
    let _listener = UnixListener::bind(elsewhere.path().join("socket")).unwrap();
    symlink(elsewhere.path().join("socket"), s.path("link")).unwrap();
    assert!(matches!(
        s.connect("link").await,
        Err(ConnectError::NoSocket { .. } | ConnectError::Open { .. })
    ));
    symlink(elsewhere.path(), s.path("dir")).unwrap();
    assert!(matches!(s.connect("dir/socket").await, Err(ConnectError::Open { .. })));
}

// Promises: HAND-15
#[tokio::test]
async fn what_is_no_socket_is_refused() {
    let s = new_scratch();
    std::fs::write(s.path("file"), "").unwrap();
    assert!(matches!(s.connect("file").await, Err(ConnectError::NoSocket { .. })));
    std::fs::create_dir(s.path("dir")).unwrap();
    assert!(matches!(s.connect("dir").await, Err(ConnectError::NoSocket { .. })));
    nix::unistd::mkfifo(&s.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(s.connect("pipe").await, Err(ConnectError::NoSocket { .. })));
    assert!(matches!(s.connect("absent").await, Err(ConnectError::Open { .. })));
}

#[tokio::test]
async fn a_socket_nobody_listens_on_is_an_error() {
    let s = new_scratch();
    drop(UnixListener::bind(s.path("plugin1")).unwrap());
    assert!(matches!(s.connect("plugin1").await, Err(ConnectError::Connect { .. })));
}

// Promises: HAND-16
#[tokio::test]
async fn the_listener_must_be_the_plugin() {
    let s = new_scratch();
    let _listener = UnixListener::bind(s.path("plugin1")).unwrap();
    // Everybody may go there and connect: whose it is has to tell.
    for place in s.path("plugin1").ancestors().take_while(|place| *place != std::path::Path::new("/tmp")) {
        std::fs::set_permissions(place, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    }
    let other_user = s.target(&s.path("plugin1"), own_uid() + 1, std::process::id()).unwrap();
    assert!(matches!(other_user.connect(&BusyFlag::default()).await, Err(ConnectError::WrongUid { .. })));
    let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
    let other_tree = s.target(&s.path("plugin1"), own_uid(), child.id()).unwrap();
    assert!(matches!(other_tree.connect(&BusyFlag::default()).await, Err(ConnectError::WrongProcess { .. })));
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// A plugin that dies right after its handshake is not taken for a stranger.
// Promises: EXT-185
#[tokio::test]
async fn a_listener_whose_process_has_ended_is_said() {
    let s = new_scratch();
    let path = s.path("plugin1");
    let socket = rustix::net::socket(rustix::net::AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    // The kernel reports the process that calls listen(), which this one is not; and the socket outlives it here.
    let listens = "import socket; socket.socket(fileno=0).listen()";
    let status = std::process::Command::new("/usr/bin/python3")
        .args(["-c", listens])
        .stdin(socket.try_clone().unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    let ended = s.connect("plugin1").await;
    assert!(matches!(ended, Err(ConnectError::ListenerEnded { .. })), "{:?}", ended.err());
}

#[tokio::test]
async fn a_socket_that_was_handed_over_is_known_by_its_descriptor() {
    let s = new_scratch();
    let path = s.private.listening_path();
    assert!(matches!(
        s.target(&path, own_uid(), 1).unwrap().connect(&BusyFlag::default()).await,
        Err(ConnectError::Open { .. })
    ));
    let handed = std::os::unix::net::UnixListener::bind(&path).unwrap();
    s.private.remember_listening().unwrap();
    // The kernel reports the supervisor as the peer, whatever the plugin is.
    let target = s.target(&path, own_uid() + 1, 1).unwrap();
    target.connect(&BusyFlag::default()).await.unwrap();
    // Another one in its place is not found, nor one at a path that only looks like it.
    std::fs::rename(&path, path.with_extension("away")).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    target.connect(&BusyFlag::default()).await.unwrap();
    drop(handed);
    assert!(
        matches!(target.connect(&BusyFlag::default()).await, Err(ConnectError::Connect { .. })),
        "no process listens any more"
    );
}

#[tokio::test]
async fn what_the_plugin_finds_at_its_path_is_looked_at() {
    let s = new_scratch();
    let _ours = UnixListener::bind(s.path("plugin1")).unwrap();
    let inside = tempfile::tempdir().unwrap();
    std::fs::create_dir(inside.path().join("s")).unwrap();
    s.private.set_inside(std::fs::File::open(inside.path()).unwrap().into());
    assert!(matches!(s.connect("plugin1").await, Err(ConnectError::Open { .. })));
    let _theirs = UnixListener::bind(inside.path().join("s/plugin1")).unwrap();
    s.connect("plugin1").await.unwrap();
    symlink("/run", inside.path().join("s/out")).unwrap();
    assert!(matches!(s.connect("out/plugin1").await, Err(ConnectError::Open { .. })));
    s.private.close_inside();
    std::fs::remove_dir_all(s.private.path()).unwrap();
    assert!(s.connect("plugin1").await.is_err());
}

// Promises: HAND-19
#[tokio::test]
async fn tcp_needs_leave() {
    let s = new_scratch();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let refused = Target::new(&address, &s.private, own_uid(), 1, false);
    assert!(matches!(refused, Err(ConnectError::TcpNotAllowed { .. })));
    let target = Target::new(&address, &s.private, own_uid(), 1, true).unwrap();
    target.connect(&BusyFlag::default()).await.unwrap();
    let stranger = Target::new(&address, &s.private, own_uid() + 1, 1, true).unwrap();
    assert!(matches!(stranger.connect(&BusyFlag::default()).await, Err(ConnectError::WrongUid { .. })));
}
