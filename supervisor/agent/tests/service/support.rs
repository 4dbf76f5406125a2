//! Starts a `talon-agent` for one test, with the supervisor's end of its control socket.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper_util::rt::TokioIo;
use talon_agent_settings::{Settings, SettingsBundle};
use talon_control::Control;
use talon_extensions::Extensions;
use talon_proto::agent::agent_client::AgentClient;
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{
    AskRequest, AttachClient, Chunk, Configure, Done, FromAgent, HostConnection, Operation, Ready, Refused,
    ToAgent, from_agent, to_agent,
};
use talon_proto::state::{Layers, Open, Sqlite, open};
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

use crate::host::{self, Plugins};

pub(crate) type Client = AgentClient<Channel>;

/// The answers of the model in all tests.
pub(crate) const SCRIPT: &str = r#"
answers:
  - { when: { user: "^hello" }, say: "Hello to you, too." }
  - { when: { user: "^read", step: 1 }, call: [ { tool: files__read, arguments: { path: a } } ] }
  - { when: { user: "^read" }, say: "It was read." }
  - { when: { user: "^write", step: 1 }, call: [ { tool: files__write, arguments: { path: b } } ] }
  - { when: { user: "^write", result: "denied" }, say: "It was not written." }
  - { when: { user: "^write" }, say: "It was written." }
  - { when: { user: "^slow", step: 1 }, call: [ { tool: slow__wait } ] }
  - { when: { user: "^slow", result: "not known" }, say: "Nobody knows." }
  - { when: { user: "^slow" }, say: "It waited." }
  - { when: { user: "^hang" }, say: "Once upon a time", hang: true }
  - { when: { user: "^glance", step: 1 }, say: "I look.", call: [ { tool: files__read, arguments: { path: a } }, { tool: look, arguments: { at: home } } ] }
  - { when: { user: "^(glance|The results of the calls)" }, say: "It was seen." }
  - { when: { user: "^remember", step: 1 }, call: [ { tool: memory__save, arguments: { content: "likes tea" } } ] }
  - { when: { user: "^remember" }, say: "It is remembered." }
  - { when: { user: "^delegate", step: 1 }, call: [ { tool: subagent__run, arguments: { agent: ResearchAgent, task: "dig for gold" } } ] }
  - { when: { user: "^delegate", result: "not known" }, say: "It was lost." }
  - { when: { user: "^delegate" }, say: "Gold was found." }
  - { when: { user: "^dig", step: 1 }, call: [ { tool: files__read, arguments: { path: mine } } ] }
  - { when: { user: "^dig", step: 2 }, call: [ { tool: slow__wait } ] }
  - { when: { user: "^dig" }, say: '{"summary": "gold", "sources": [], "key_facts": []}' }
  - { when: { user: "^which ports", step: 1 }, call: [ { tool: memory__conversations, arguments: { query: "ports" } } ] }
  - { when: { user: "^which ports", result: "8080" }, say: "As before: 8080." }
  - { when: { user: "^which ports" }, say: "Nothing was said." }
  - { when: { user: "^json" }, say: '{"n": 7}' }
  - { when: { user: "What it found: silence" }, say: '{"proposal": null}' }
  - { when: { user: "What it found: nonsense" }, say: "I would rather not." }
  - { when: { user: "^What was noticed" }, say: '{"observation": "A test fails.", "proposal": "Mend the failing test.", "confidence": "high", "actions": [{"label": "Run tests", "payload": {"only": "parser"}}]}' }
  - { when: { user: "^Mend the failing test" }, say: "It is mended." }
  - { when: { user: "^Run tests" }, say: "They were run." }
  - { say: "What?" }
"#;

/// A configuration with that script.
pub(crate) const SETTINGS: &str = r"
models:
  providers:
    scripted: { kind: scripted, file: /script.yaml }
  catalog:
    scripted/small: { alias: small, tier: cheap, context_window: 128000, tools: true, cost: { input: 1, output: 2 } }
    scripted/large: { tier: premium, context_window: 128000, tools: true, vision: true, cost: { input: 10, output: 20 } }
agent:
  confirm: { default: destructive }
";

pub(crate) fn handed(settings: &str) -> SettingsBundle {
    let settings: Settings = serde_saphyr::from_str(settings).unwrap();
    let files = BTreeMap::from([(PathBuf::from("/script.yaml"), SCRIPT.as_bytes().to_vec())]);
    SettingsBundle { settings, files, ..SettingsBundle::default() }
}

/// The place of a test's database.
pub(crate) struct TestDirectory {
    directory: TempDir,
}

impl TestDirectory {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn open(&self) -> Open {
        let path = self.path("agent/agent.db").to_str().unwrap().to_owned();
        Open {
            engine: Some(open::Engine::Sqlite(Sqlite { path, max_bytes: 0 })),
            layers: Layers::Conversations.into(),
            exclusive: true,
            for_restore: false,
            examined: false,
        }
    }
}

/// How often a test kills the agent: 10 times, or as often as `TALON_TEST_KILLS` says (`make long`).
pub(crate) fn kills() -> usize {
    std::env::var("TALON_TEST_KILLS").map_or(10, |kills| kills.parse().unwrap())
}

/// The running program.
pub(crate) struct Agent {
    child: Child,
    control: Option<Arc<Control<ToAgent, FromAgent>>>,
    messages: mpsc::UnboundedReceiver<from_agent::Kind>,
    operations: mpsc::UnboundedReceiver<Operation>,
    listening: tokio::task::JoinHandle<()>,
    /// The same socket, for invalid messages.
    raw: Option<OwnedFd>,
    pub(crate) plugins: Arc<Plugins>,
    log: PathBuf,
}

impl Agent {
    /// Starts it without sending a message.
    pub(crate) fn start(place: &TestDirectory) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let (ours, theirs) = talon_control::pair().unwrap();
        let log = place.path(&format!("log-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let mut command = Command::new(env!("CARGO_BIN_EXE_talon-agent"));
        command.env_clear().env("TALON_LOG", "agent=debug").stdin(theirs).stdout(Stdio::null());
        let child = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
        let raw = Some(ours.try_clone().unwrap());
        let (control, plugins) = (Arc::new(Control::new(ours).unwrap()), Plugins::new());
        let (sender, messages) = mpsc::unbounded_channel();
        let (operation_sender, operations) = mpsc::unbounded_channel();
        let listening =
            tokio::spawn(listen(Arc::clone(&control), Arc::clone(&plugins), sender, operation_sender));
        Self { child, control: Some(control), messages, operations, listening, raw, plugins, log }
    }

    /// Starts it with a new or existing database.
    pub(crate) async fn at(place: &TestDirectory) -> Self {
        Self::with(place, SETTINGS).await.0
    }

    pub(crate) async fn with(place: &TestDirectory, settings: &str) -> (Self, Ready) {
        let mut agent = Self::start(place);
        let ready = agent.configure(place, settings).await;
        (agent, ready)
    }

    /// Starts it with these extensions, as YAML.
    pub(crate) async fn with_extensions(place: &TestDirectory, extensions: &str) -> Self {
        let mut agent = Self::start(place);
        agent.configure_extensions(place, extensions).await;
        agent
    }

    /// Sends a configuration with these extensions, as YAML.
    pub(crate) async fn configure_extensions(&mut self, place: &TestDirectory, extensions: &str) {
        self.configure_with(place, SETTINGS, extensions).await;
    }

    /// Sends a configuration with these settings and extensions, each as YAML.
    pub(crate) async fn configure_with(&mut self, place: &TestDirectory, settings: &str, extensions: &str) {
        let settings = handed(settings).to_bytes().unwrap();
        let extensions: Extensions = serde_saphyr::from_str(extensions).unwrap();
        let extensions = extensions.to_bytes();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&settings).unwrap();
        file.write_all(&extensions).unwrap();
        let configure = Configure {
            open: Some(place.open()),
            settings_bytes: settings.len() as u64,
            extensions_bytes: extensions.len() as u64,
            home: home_of(&place.open()),
            ..Configure::default()
        };
        self.send(to_agent::Kind::Configure(configure), Some(file.into())).await;
        match self.receive().await {
            Some(from_agent::Kind::Ready(_)) => {}
            other => panic!("{other:?}: {}", self.log()),
        }
    }

    /// Sends a configuration that it accepts.
    pub(crate) async fn configure(&mut self, place: &TestDirectory, settings: &str) -> Ready {
        let bytes = handed(settings).to_bytes().unwrap();
        self.send_configuration(place.open(), &bytes).await;
        match self.receive().await {
            Some(from_agent::Kind::Ready(ready)) => ready,
            other => panic!("{other:?}: {}", self.log()),
        }
    }

    pub(crate) async fn send_configuration(&self, open: Open, bytes: &[u8]) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let (home, settings_bytes) = (home_of(&open), bytes.len() as u64);
        let configure = Configure { open: Some(open), settings_bytes, home, ..Configure::default() };
        self.send(to_agent::Kind::Configure(configure), Some(file.into())).await;
    }

    /// Sends a configuration that it rejects. Returns its message and exit status.
    pub(crate) async fn refuses(mut self, place: &TestDirectory, bytes: &[u8]) -> (Refused, ExitStatus) {
        self.send_configuration(place.open(), bytes).await;
        match self.receive().await {
            Some(from_agent::Kind::Refused(refused)) => (refused, self.ended()),
            other => panic!("{other:?}: {}", self.log()),
        }
    }

    pub(crate) async fn send(&self, kind: to_agent::Kind, descriptor: Option<OwnedFd>) {
        let message = ToAgent { kind: Some(kind) };
        let descriptor = descriptor.as_ref().map(AsFd::as_fd);
        self.control.as_ref().unwrap().send(&message, descriptor).await.unwrap();
    }

    pub(crate) async fn receive(&mut self) -> Option<from_agent::Kind> {
        self.messages.recv().await
    }

    /// The next operation for the audit log; `None` once it has ended.
    pub(crate) async fn operation(&mut self) -> Option<Operation> {
        self.operations.recv().await
    }

    /// A client with the role call, for a person.
    pub(crate) async fn client(&self, sender: &str) -> Client {
        self.client_with(sender, "call", "person").await
    }

    pub(crate) async fn client_with(&self, sender: &str, role: &str, origin: &str) -> Client {
        self.connect(sender, role, origin, false).await
    }

    /// The gateway, with this ceiling.
    pub(crate) async fn gateway(&self, ceiling: &str) -> Client {
        self.connect("gw:talon/gateway", ceiling, "program", true).await
    }

    async fn connect(&self, sender: &str, role: &str, origin: &str, delegates: bool) -> Client {
        let (ours, theirs) = net::UnixStream::pair().unwrap();
        let attach = AttachClient {
            uid: 1000,
            gid: 1000,
            pid: 1,
            sender: sender.to_owned(),
            role: role.to_owned(),
            origin: origin.to_owned(),
            delegates,
        };
        self.send(to_agent::Kind::AttachClient(attach), Some(theirs.into())).await;
        ours.set_nonblocking(true).unwrap();
        let mut stream = Some(UnixStream::from_std(ours).unwrap());
        let connector = tower::service_fn(move |_| {
            let stream = stream.take();
            async move { stream.map(TokioIo::new).ok_or_else(|| std::io::Error::other("it ended")) }
        });
        AgentClient::new(
            Endpoint::from_static("http://talon").connect_with_connector(connector).await.unwrap(),
        )
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Closes the control socket, and waits for its end.
    pub(crate) async fn close_control(&mut self) -> ExitStatus {
        // The listening task holds it, too.
        self.listening.abort();
        let _aborted = (&mut self.listening).await;
        (self.control, self.raw) = (None, None);
        self.ended()
    }

    /// Sends SIGTERM, as a service manager does.
    pub(crate) fn terminate(&self) {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    }

    /// Sends an invalid message.
    pub(crate) fn garbage(&self) {
        let raw = self.raw.as_ref().unwrap().try_clone().unwrap();
        net::UnixDatagram::from(raw).send(&[0xff; 9]).unwrap();
    }

    /// Kills it, as a power failure would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.ended();
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.listening.abort();
        let _gone = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Answers requests for host connections, and forwards all other messages; operations by themselves.
async fn listen(
    control: Arc<Control<ToAgent, FromAgent>>,
    plugins: Arc<Plugins>,
    messages: mpsc::UnboundedSender<from_agent::Kind>,
    operations: mpsc::UnboundedSender<Operation>,
) {
    while let Ok(Some(packet)) = control.receive().await {
        match packet.message.kind {
            Some(from_agent::Kind::NeedHost(need)) => {
                let (ours, theirs) = net::UnixStream::pair().unwrap();
                ours.set_nonblocking(true).unwrap();
                tokio::spawn(host::serve(UnixStream::from_std(ours).unwrap(), Arc::clone(&plugins)));
                let kind = Some(to_agent::Kind::HostConnection(HostConnection { id: need.id }));
                let _gone = control.send(&ToAgent { kind }, Some(theirs.as_fd())).await;
            }
            Some(from_agent::Kind::Operation(operation)) => drop(operations.send(operation)),
            Some(other) => drop(messages.send(other)),
            None => {}
        }
    }
}

/// The directory of a database's file.
fn home_of(open: &Open) -> String {
    match &open.engine {
        Some(open::Engine::Sqlite(sqlite)) => {
            std::path::Path::new(&sqlite.path).parent().unwrap().to_str().unwrap().to_owned()
        }
        _ => String::new(),
    }
}

/// A question in a session, or in a new one.
pub(crate) fn question(session: &str, text: &str) -> AskRequest {
    AskRequest { session_id: session.to_owned(), text: text.to_owned(), ..AskRequest::default() }
}

/// Asks. Returns the session's id and the chunks after it.
pub(crate) async fn ask(client: &mut Client, session: &str, text: &str) -> (String, Streaming<Chunk>) {
    let mut stream = client.ask(question(session, text)).await.unwrap().into_inner();
    match next(&mut stream).await {
        Some(Kind::Started(started)) => (started.session_id, stream),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn next(stream: &mut Streaming<Chunk>) -> Option<Kind> {
    stream.message().await.unwrap().map(|chunk| chunk.kind.unwrap())
}

/// Reads chunks until one matches, and returns it.
pub(crate) async fn until(stream: &mut Streaming<Chunk>, is_it: impl Fn(&Kind) -> bool) -> Kind {
    loop {
        match next(stream).await {
            Some(kind) if is_it(&kind) => return kind,
            Some(Kind::Error(error)) => panic!("{error:?}"),
            Some(_) => {}
            None => panic!("it ended before"),
        }
    }
}

/// The rest of a turn that ends with an answer.
pub(crate) async fn done(mut stream: Streaming<Chunk>) -> Done {
    match until(&mut stream, |kind| matches!(kind, Kind::Done(_))).await {
        Kind::Done(done) => {
            assert!(stream.message().await.unwrap().is_none(), "nothing comes after the end");
            done
        }
        _ => unreachable!("it was looked for"),
    }
}

/// The rest of a turn that ends without one.
pub(crate) async fn error(mut stream: Streaming<Chunk>) -> talon_proto::agent::Error {
    loop {
        match next(&mut stream).await {
            Some(Kind::Error(error)) => return error,
            Some(Kind::Done(done)) => panic!("{done:?}"),
            Some(_) => {}
            None => panic!("it ended before"),
        }
    }
}

/// Asks, and waits for the answer.
pub(crate) async fn answer(client: &mut Client, session: &str, text: &str) -> (String, Done) {
    let (session, stream) = ask(client, session, text).await;
    (session, done(stream).await)
}

/// The error of a request.
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, Status>) -> Status {
    answer.expect_err("it is refused")
}
