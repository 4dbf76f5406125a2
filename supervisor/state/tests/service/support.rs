//! A `talon-state` of a test's own, with the starter's end of its control socket.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use hyper_util::rt::TokioIo;
use talon_control::Control;
use talon_proto::state::operator_client::OperatorClient;
use talon_proto::state::state_client::StateClient;
use talon_proto::state::{
    AttachOperator, AttachPlugin, DetachPlugin, FromState, Layers, Open, Postgres, Ready, Refused, Sqlite,
    ToState, from_state, open, to_state,
};
use tempfile::TempDir;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};

pub(crate) const QUOTA_BYTES: u64 = 64 << 20;
pub(crate) const QUOTA_KEYS: u64 = 10_000;
/// The largest value, and what a client has to take.
pub(crate) const MAX_VALUE: usize = 1 << 20;

pub(crate) type Plugin = StateClient<Channel>;
pub(crate) type Operator = OperatorClient<Channel>;

/// Where a test's database and sockets are.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        // The sockets in it are for others too.
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path("state/state.db")
    }

    pub(crate) fn open(&self) -> Open {
        let path = self.database().to_str().unwrap().to_owned();
        Open {
            engine: Some(open::Engine::Sqlite(Sqlite { path, max_bytes: 0 })),
            layers: Layers::KeyValues.into(),
            exclusive: true,
            for_restore: false,
            examined: false,
        }
    }
}

pub(crate) fn postgres(url: String) -> Open {
    let engine = Some(open::Engine::Postgres(Postgres { url }));
    Open { engine, layers: Layers::KeyValues.into(), ..Open::default() }
}

/// The running program.
pub(crate) struct Service {
    pub(crate) child: Child,
    control: Option<Control<ToState, FromState>>,
    log: PathBuf,
}

impl Service {
    /// Starts it, and says nothing yet.
    pub(crate) fn start(place: &Place) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let (ours, theirs) = talon_control::pair().unwrap();
        let log = place.path(&format!("log-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let mut command = Command::new(env!("CARGO_BIN_EXE_talon-state"));
        command.env_remove("TALON_LOG").stdin(theirs).stdout(Stdio::null());
        let child = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
        Self { child, control: Some(Control::new(ours).unwrap()), log }
    }

    /// Starts it with a new or earlier database at a place.
    pub(crate) async fn at(place: &Place) -> Self {
        Self::with(place, place.open()).await.0
    }

    pub(crate) async fn with(place: &Place, open: Open) -> (Self, Ready) {
        let service = Self::start(place);
        service.say(to_state::Kind::Open(open), None).await;
        match service.hear().await {
            Some(from_state::Kind::Ready(ready)) => (service, ready),
            other => panic!("{other:?}: {}", service.log()),
        }
    }

    /// Starts it with a database that it is to refuse; with how it ends.
    pub(crate) async fn refused(place: &Place, open: Open) -> (Refused, ExitStatus) {
        let mut service = Self::start(place);
        service.say(to_state::Kind::Open(open), None).await;
        match service.hear().await {
            Some(from_state::Kind::Refused(refused)) => (refused, service.ended()),
            other => panic!("{other:?}: {}", service.log()),
        }
    }

    pub(crate) async fn say(&self, kind: to_state::Kind, descriptor: Option<OwnedFd>) {
        let message = ToState { kind: Some(kind) };
        let descriptor = descriptor.as_ref().map(AsFd::as_fd);
        self.control.as_ref().unwrap().send(&message, descriptor).await.unwrap();
    }

    pub(crate) async fn hear(&self) -> Option<from_state::Kind> {
        self.control.as_ref().unwrap().receive().await.unwrap()?.message.kind
    }

    /// Attaches a socket of our own uid with the usual quota.
    pub(crate) async fn attach(&self, id: u64, plugin: &str, socket: &Path) {
        let uid = nix::unistd::geteuid().as_raw();
        self.attach_with(attach(id, plugin, uid), listener(socket)).await;
    }

    pub(crate) async fn attach_with(&self, attach: AttachPlugin, listener: OwnedFd) {
        self.say(to_state::Kind::AttachPlugin(attach), Some(listener)).await;
    }

    /// Attaches a socket and connects there.
    pub(crate) async fn plugin(&self, place: &Place, id: u64, plugin: &str) -> Plugin {
        let socket = place.path(&format!("{plugin}-{id}"));
        self.attach(id, plugin, &socket).await;
        connect(&socket).await
    }

    pub(crate) async fn detach(&self, id: u64) {
        self.say(to_state::Kind::DetachPlugin(DetachPlugin { id }), None).await;
    }

    pub(crate) async fn operator(&self) -> Operator {
        let (ours, theirs) = net::UnixStream::pair().unwrap();
        self.say(to_state::Kind::AttachOperator(AttachOperator {}), Some(theirs.into())).await;
        ours.set_nonblocking(true).unwrap();
        let mut stream = Some(UnixStream::from_std(ours).unwrap());
        let connector = tower::service_fn(move |_| {
            let stream = stream.take();
            async move { stream.map(TokioIo::new).ok_or_else(|| std::io::Error::other("it ended")) }
        });
        let channel = Endpoint::from_static("http://talon").connect_with_connector(connector).await.unwrap();
        OperatorClient::new(channel).max_decoding_message_size(4 * MAX_VALUE)
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Closes the lifeline.
    pub(crate) fn let_go(&mut self) {
        self.control = None;
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        nix::sys::signal::kill(pid, signal).unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _ended = self.child.wait();
    }
}

pub(crate) fn attach(id: u64, plugin: &str, uid: u32) -> AttachPlugin {
    AttachPlugin { id, plugin: plugin.to_owned(), uid, quota_bytes: QUOTA_BYTES, quota_keys: QUOTA_KEYS }
}

/// A listening socket, as the supervisor binds it. Its permissions do not decide who is admitted.
pub(crate) fn listener(path: &Path) -> OwnedFd {
    let listener = net::UnixListener::bind(path).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
    listener.into()
}

pub(crate) async fn connect(socket: &Path) -> Plugin {
    StateClient::new(channel(socket).await).max_decoding_message_size(4 * MAX_VALUE)
}

pub(crate) async fn channel(socket: &Path) -> Channel {
    let socket = socket.to_owned();
    let connector = tower::service_fn(move |_| {
        let socket = socket.clone();
        async move { Ok::<_, std::io::Error>(TokioIo::new(UnixStream::connect(socket).await?)) }
    });
    Endpoint::from_static("http://talon").connect_with_connector(connector).await.unwrap()
}

/// Says by name why a test does not run here. On CI, where everything has to run, it is a failure.
pub(crate) fn skip(test: &str, reason: &str) {
    let everything = std::env::var_os("CI").is_some() && nix::unistd::geteuid().is_root();
    assert!(!everything, "{test} would be skipped on CI: {reason}");
    eprintln!("SKIPPED {test}: {reason}");
}
