//! A mock host: launches a plugin binary and exercises it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use talon_proto::model::model_server::ModelServer;
use talon_proto::plugin::{Action, JobProposal, PluginCapabilities, ToolCallRequest, ToolResultResponse};
use talon_proto::state::state_server::StateServer;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::Status;
use tonic::transport::Server;

use super::client::{Client, accept};
use super::launch::{LaunchError, PrivateDir, Process, launch};
use super::{Answer, CallError, CannedModel, Events, MemoryState, Notices, arguments, role_sample};
use crate::{model, state};

/// How long a plugin may take until its handshake line, unless [`Builder::start_timeout`] sets another limit.
/// Generous, because test machines are busy.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long one call may take, unless [`Host::call_within`] sets another limit; as in real hosts.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A running plugin, driven as by a host. Dropping it kills the plugin and all its child processes.
///
/// ```no_run
/// # async fn test() -> Result<(), Box<dyn std::error::Error>> {
/// use serde_json::json;
/// use talon_sdk::testing::Host;
///
/// // In a test: env!("CARGO_BIN_EXE_hello")
/// let host = Host::launch("target/debug/hello").await?;
/// let answer = host.call("greet", json!({"name": "Ada"})).await?;
/// assert_eq!(answer.content, "Hello, Ada!");
/// assert!(host.shutdown().await?.success());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Host {
    client: Client,
    process: Process,
    /// What serves its sockets.
    served: Vec<JoinHandle<()>>,
    calls: AtomicU64,
}

/// How to launch a plugin; see [`Host::builder`].
#[derive(Debug)]
#[must_use = "nothing is launched yet"]
pub struct Builder {
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    config: Value,
    state: Option<MemoryState>,
    model: Option<CannedModel>,
    start_timeout: Duration,
}

impl Builder {
    /// Adds a command-line argument.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds an environment variable. Besides these the plugin gets PATH, TMPDIR and the handshake's.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the plugin's settings, a JSON object; `{}` unless set.
    pub fn config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }

    /// Serves the plugin this state.
    pub fn state(mut self, state: &MemoryState) -> Self {
        self.state = Some(state.clone());
        self
    }

    /// Grants the plugin these models.
    pub fn model(mut self, model: &CannedModel) -> Self {
        self.model = Some(model.clone());
        self
    }

    /// Sets how long the plugin may take until its handshake line; 30 s unless set.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Starts the plugin, reads its handshake, connects, calls `Init`.
    ///
    /// # Errors
    /// See [`LaunchError`]; most of them carry the plugin's log.
    pub async fn launch(mut self) -> Result<Host, LaunchError> {
        let start = |source| LaunchError::Start { program: self.program.clone(), source };
        let dir = PrivateDir::new().map_err(start)?;
        let mut served = Vec::new();
        let mut bind = |name: &str, variable: &str| {
            let path = dir.0.join(name);
            self.env.push((variable.to_owned(), path.to_string_lossy().into_owned()));
            UnixListener::bind(&path).map(UnixListenerStream::new)
        };
        // Each ends when the host is dropped; a failure shows in the plugin.
        if let Some(memory) = self.state.take() {
            let incoming = bind("state.sock", state::SOCKET_ENV).map_err(start)?;
            let server = Server::builder().serve_with_incoming(StateServer::new(memory), incoming);
            served.push(tokio::spawn(async move { drop(server.await) }));
        }
        if let Some(canned) = self.model.take() {
            let incoming = bind("model.sock", model::SOCKET_ENV).map_err(start)?;
            let server = Server::builder().serve_with_incoming(ModelServer::new(canned), incoming);
            served.push(tokio::spawn(async move { drop(server.await) }));
        }
        let process = launch(&self.program, &self.args, &self.env, dir, self.start_timeout).await?;
        let client = Client::connect(&process.socket).await?;
        let host = Host { client, process, served, calls: AtomicU64::new(0) };
        host.client
            .init(self.config.to_string())
            .await
            .map_err(|status| LaunchError::Init(Box::new(status)))?;
        Ok(host)
    }
}

impl Host {
    /// Launches a plugin without settings, arguments or state.
    ///
    /// # Errors
    /// See [`LaunchError`]; most of them carry the plugin's log.
    pub async fn launch(program: impl AsRef<Path>) -> Result<Self, LaunchError> {
        Self::builder(program).launch().await
    }

    /// Prepares a launch.
    pub fn builder(program: impl AsRef<Path>) -> Builder {
        Builder {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            config: json!({}),
            state: None,
            model: None,
            start_timeout: START_TIMEOUT,
        }
    }

    /// Calls an action with these arguments, a JSON object, and checks the answer as a host does.
    ///
    /// # Errors
    /// [`CallError`] when the plugin failed. A tool error is an [`Answer`] with `error` set.
    ///
    /// # Panics
    /// When `args` is no object.
    pub async fn call(&self, action: &str, args: Value) -> Result<Answer, CallError> {
        self.call_within(action, args, CALL_TIMEOUT).await
    }

    /// Like [`call`](Host::call), with this timeout. It is sent to the plugin.
    ///
    /// # Errors
    /// As for [`call`](Host::call).
    ///
    /// # Panics
    /// When `args` is no object.
    pub async fn call_within(
        &self,
        action: &str,
        args: Value,
        timeout: Duration,
    ) -> Result<Answer, CallError> {
        let id = format!("test-call-{}", self.calls.fetch_add(1, Ordering::Relaxed));
        let arguments = arguments(&args);
        let request = ToolCallRequest {
            id: id.clone(),
            plugin: String::new(),
            action: action.to_owned(),
            args: arguments.texts(),
            arguments_json: arguments.to_json(),
            credential_headers: std::collections::BTreeMap::new(),
            takes_input_requests: false,
            input_response: None,
        };
        accept(&id, self.client.execute(request, Some(timeout)).await?)
    }

    /// Calls an action in a role, as for an entry of `extensions`: with the role's sample, over which `changes` are laid
    /// ([`role_sample`](super::role_sample)).
    ///
    /// # Errors
    /// As for [`call`](Host::call), and when the action does not declare the role.
    ///
    /// # Panics
    /// When there is no such role, or `changes` is no object.
    pub async fn call_role(&self, role: &str, action: &str, changes: Value) -> Result<Answer, CallError> {
        let args = role_sample(role, changes);
        let declared = self.capabilities().await?.actions;
        let declares =
            |one: &talon_proto::plugin::Action| one.name == action && one.roles.iter().any(|own| own == role);
        if !declared.iter().any(declares) {
            return Err(CallError::BadAnswer(format!(
                "the action {action} does not declare the role {role}"
            )));
        }
        self.call(action, args).await
    }

    /// Sends a request unchanged and returns the answer unchecked. Dropping the future cancels the call on
    /// the wire.
    ///
    /// # Errors
    /// The gRPC status.
    pub async fn execute(&self, request: ToolCallRequest) -> Result<ToolResultResponse, Status> {
        self.client.execute(request, None).await
    }

    /// What the plugin declares.
    ///
    /// # Errors
    /// The gRPC status.
    pub async fn capabilities(&self) -> Result<PluginCapabilities, Status> {
        self.client.capabilities().await
    }

    /// The jobs that the plugin proposes, each with the name of its action: what an operator would be asked to accept.
    ///
    /// # Errors
    /// The gRPC status.
    pub async fn proposed_jobs(&self) -> Result<Vec<(String, JobProposal)>, Status> {
        let declared = self.capabilities().await?.actions.into_iter();
        let of_action = |action: Action| {
            let name = action.name;
            action.proposed_jobs.into_iter().map(move |job| (name.clone(), job)).collect::<Vec<_>>()
        };
        Ok(declared.flat_map(of_action).collect())
    }

    /// What the plugin declares after a refresh; `None` when it does not implement that.
    ///
    /// # Errors
    /// The gRPC status.
    pub async fn refresh_capabilities(&self) -> Result<Option<PluginCapabilities>, Status> {
        self.client.refresh().await
    }

    /// Listens to the plugin's notices from now on; a previous listener gets no more.
    ///
    /// # Errors
    /// The gRPC status; UNIMPLEMENTED when the plugin sends no notices.
    pub async fn listen(&self) -> Result<Notices, Status> {
        self.client.listen().await
    }

    /// The events that the plugin tells: first those that were not acknowledged. A previous subscriber gets no more.
    ///
    /// # Errors
    /// The gRPC status; UNIMPLEMENTED when the plugin tells none.
    pub async fn events(&self) -> Result<Events, Status> {
        self.client.events().await
    }

    /// Sends new settings.
    ///
    /// # Errors
    /// The gRPC status; INVALID_ARGUMENT when the plugin refuses them.
    pub async fn init(&self, config: Value) -> Result<(), Status> {
        self.client.init(config.to_string()).await
    }

    /// Whether the plugin's health service reports SERVING.
    ///
    /// # Errors
    /// The gRPC status.
    pub async fn is_serving(&self) -> Result<bool, Status> {
        self.client.serving().await
    }

    /// The plugin's process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// The socket the plugin named in its handshake.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.process.socket
    }

    /// The last 1,000 lines the plugin wrote to stderr.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Waits until the plugin has written a line with `text` to stderr, and returns the line. There is no
    /// timeout: set one yourself, or rely on the test runner's.
    pub async fn wait_for_log(&self, text: &str) -> String {
        self.process.line_with(text).await
    }

    /// Asks the plugin to end, as go-plugin does, and waits until it has.
    ///
    /// # Errors
    /// What the system said. A plugin that refuses to end is killed when this future is dropped.
    pub async fn shutdown(self) -> io::Result<ExitStatus> {
        self.client.shutdown().await.map_err(io::Error::other)?;
        self.wait().await
    }

    /// Sends SIGTERM and waits until the plugin has ended.
    ///
    /// # Errors
    /// As for [`shutdown`](Host::shutdown).
    pub async fn terminate(self) -> io::Result<ExitStatus> {
        self.process.signal(Signal::SIGTERM)?;
        self.wait().await
    }

    /// Asks the plugin to end and returns as soon as it agreed, while it drains.
    ///
    /// # Errors
    /// The gRPC status.
    pub async fn begin_shutdown(&self) -> Result<(), Status> {
        self.client.shutdown().await
    }

    /// Waits until the plugin ends without being asked to.
    ///
    /// # Errors
    /// The error of the system.
    pub async fn wait(mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for served in &self.served {
            served.abort();
        }
    }
}
