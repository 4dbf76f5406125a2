//! A client of `host.sock`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use talon_proto::host::host_client::HostClient;
use talon_proto::host::{
    Event, ExecuteRequest, ExecuteResponse, GetPluginRequest, GetPluginResponse, GetStatusRequest,
    GetStatusResponse, ListPluginsRequest, LogsRequest, Plugin, RefreshCapabilitiesRequest,
    ReloadPluginRequest, ReloadPluginResponse, ReloadRequest, ReloadResponse, StartRequest, StopRequest,
    WatchEventsRequest,
};
use tokio_stream::StreamExt;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Status, Streaming};

/// After this time a test gives up waiting. It is only a limit for hangs, not an expectation of speed: noisy
/// machines take their time.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection to one supervisor.
#[derive(Debug, Clone)]
pub struct Client {
    inner: HostClient<Channel>,
}

/// Arguments of a call, from pairs.
#[must_use]
pub fn args(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A plain gRPC channel over a unix socket.
///
/// # Errors
/// When no server listens there.
pub async fn dial(socket: &Path) -> Result<Channel, tonic::transport::Error> {
    let socket: PathBuf = socket.to_owned();
    Endpoint::from_static("http://localhost")
        .connect_with_connector(tower::service_fn(move |_: Uri| {
            let socket = socket.clone();
            async move { tokio::net::UnixStream::connect(socket).await.map(TokioIo::new) }
        }))
        .await
}

impl Client {
    /// Connects to a socket.
    ///
    /// # Errors
    /// When no server listens there.
    pub async fn connect(socket: &Path) -> Result<Self, tonic::transport::Error> {
        let channel = dial(socket).await?;
        let inner =
            HostClient::new(channel).max_decoding_message_size(64 << 20).max_encoding_message_size(64 << 20);
        Ok(Self { inner })
    }

    /// The generated client, for what has no shorthand here.
    pub fn raw(&mut self) -> &mut HostClient<Channel> {
        &mut self.inner
    }

    /// Calls an action.
    ///
    /// # Panics
    /// When the supervisor answers with a gRPC error.
    pub async fn call(&self, plugin: &str, action: &str, pairs: &[(&str, &str)]) -> ExecuteResponse {
        self.try_call(plugin, action, pairs)
            .await
            .unwrap_or_else(|status| panic!("{plugin}.{action}: {status}"))
    }

    /// Calls an action.
    ///
    /// # Errors
    /// The supervisor's gRPC error.
    pub async fn try_call(
        &self,
        plugin: &str,
        action: &str,
        pairs: &[(&str, &str)],
    ) -> Result<ExecuteResponse, Status> {
        self.execute(ExecuteRequest {
            plugin: plugin.to_owned(),
            action: action.to_owned(),
            args: args(pairs),
            ..ExecuteRequest::default()
        })
        .await
    }

    /// Sends a request as it is.
    ///
    /// # Errors
    /// The supervisor's gRPC error.
    pub async fn execute(&self, request: ExecuteRequest) -> Result<ExecuteResponse, Status> {
        self.inner.clone().execute(request).await.map(tonic::Response::into_inner)
    }

    /// The supervisor's state.
    ///
    /// # Panics
    /// When it does not answer.
    pub async fn status(&self) -> GetStatusResponse {
        self.inner.clone().get_status(GetStatusRequest {}).await.expect("the supervisor answers").into_inner()
    }

    /// All plugins.
    ///
    /// # Panics
    /// When the supervisor does not answer.
    pub async fn list(&self) -> Vec<Plugin> {
        let answer = self.inner.clone().list_plugins(ListPluginsRequest {}).await;
        answer.expect("the supervisor answers").into_inner().plugins
    }

    /// One plugin with its capabilities.
    ///
    /// # Panics
    /// When the supervisor does not know it.
    pub async fn show(&self, name: &str) -> GetPluginResponse {
        let request = GetPluginRequest { name: name.to_owned(), for_model: false };
        self.inner
            .clone()
            .get_plugin(request)
            .await
            .unwrap_or_else(|status| panic!("{name}: {status}"))
            .into_inner()
    }

    /// One plugin.
    ///
    /// # Panics
    /// When the supervisor does not know it.
    pub async fn plugin(&self, name: &str) -> Plugin {
        self.show(name).await.plugin.expect("the answer has a plugin")
    }

    /// Starts a plugin.
    ///
    /// # Errors
    /// The supervisor's gRPC error.
    pub async fn start(&self, name: &str) -> Result<Plugin, Status> {
        let request = StartRequest { name: name.to_owned() };
        Ok(self.inner.clone().start(request).await?.into_inner().plugin.expect("the answer has a plugin"))
    }

    /// Stops a plugin.
    ///
    /// # Errors
    /// The supervisor's gRPC error.
    pub async fn stop(&self, name: &str) -> Result<Plugin, Status> {
        let request = StopRequest { name: name.to_owned() };
        Ok(self.inner.clone().stop(request).await?.into_inner().plugin.expect("the answer has a plugin"))
    }

    /// Replaces a plugin by the current version of its files.
    ///
    /// # Errors
    /// The supervisor's gRPC error.
    pub async fn reload_plugin(&self, name: &str) -> Result<ReloadPluginResponse, Status> {
        let request = ReloadPluginRequest { name: name.to_owned() };
        Ok(self.inner.clone().reload_plugin(request).await?.into_inner())
    }

    /// Reloads the configuration.
    ///
    /// # Panics
    /// When the supervisor answers with a gRPC error.
    pub async fn reload(&self, dry_run: bool) -> ReloadResponse {
        let answer = self.inner.clone().reload(ReloadRequest { dry_run }).await;
        answer.expect("the supervisor answers").into_inner()
    }

    /// The events of one plugin, or of all when the name is empty.
    ///
    /// # Panics
    /// When the supervisor does not answer.
    pub async fn events(&self, plugin: &str) -> Streaming<Event> {
        let request = WatchEventsRequest { plugin: plugin.to_owned(), ..WatchEventsRequest::default() };
        self.inner.clone().watch_events(request).await.expect("the supervisor answers").into_inner()
    }

    /// The stored log lines of a plugin.
    ///
    /// # Panics
    /// When the supervisor does not answer.
    pub async fn logs(&self, plugin: &str) -> Vec<String> {
        let request = LogsRequest { plugin: plugin.to_owned(), follow: false, tail: 0 };
        let mut stream = self.inner.clone().logs(request).await.expect("the supervisor answers").into_inner();
        let mut lines = Vec::new();
        while let Some(line) = stream.next().await {
            lines.push(line.expect("the stream is whole").text);
        }
        lines
    }

    /// Waits until a log line of the plugin holds the text.
    ///
    /// # Panics
    /// When it does not come.
    pub async fn wait_log(&self, plugin: &str, text: &str) -> String {
        let request = LogsRequest { plugin: plugin.to_owned(), follow: true, tail: 0 };
        let mut stream = self.inner.clone().logs(request).await.expect("the supervisor answers").into_inner();
        let found = tokio::time::timeout(WAIT_TIMEOUT, async {
            while let Some(line) = stream.next().await {
                let line = line.expect("the stream is whole").text;
                if line.contains(text) {
                    return line;
                }
            }
            panic!("the log of {plugin} ended without {text:?}")
        });
        found.await.unwrap_or_else(|_| panic!("no log line of {plugin} holds {text:?}"))
    }

    /// Polls until a condition holds that has no event.
    ///
    /// # Panics
    /// When it does not.
    pub async fn wait_until(&self, what: &str, wanted: impl AsyncFn(&Self) -> bool) {
        let mut pause = tokio::time::interval(Duration::from_millis(5));
        let waited = tokio::time::timeout(WAIT_TIMEOUT, async {
            while !wanted(self).await {
                pause.tick().await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("there was never {what}"));
    }

    /// Waits until a call of the plugin is in flight.
    pub async fn wait_in_flight(&self, plugin: &str) {
        let under_way =
            async |client: &Self| client.plugin(plugin).await.instances.iter().any(|i| i.calls_in_flight > 0);
        self.wait_until("a call under way", under_way).await;
    }

    /// Refreshes the capabilities and returns the plugin's description.
    ///
    /// # Panics
    /// When the supervisor does not answer.
    pub async fn refreshed_description(&self, name: &str) -> String {
        let request = RefreshCapabilitiesRequest { name: name.to_owned() };
        self.inner.clone().refresh_capabilities(request).await.expect("it refreshes");
        self.show(name).await.capabilities.expect("it has capabilities").description
    }

    /// Waits until a plugin satisfies the predicate; checks again at each event.
    ///
    /// # Panics
    /// When that does not come.
    pub async fn wait_for(&self, name: &str, what: &str, mut wanted: impl FnMut(&Plugin) -> bool) -> Plugin {
        // Subscribed before the first check, so that an event in between is not missed.
        let mut events = self.events(name).await;
        let waited = tokio::time::timeout(WAIT_TIMEOUT, async {
            loop {
                let plugin = self.plugin(name).await;
                if wanted(&plugin) {
                    return plugin;
                }
                events.next().await.expect("the supervisor goes on").expect("the stream is whole");
            }
        });
        match waited.await {
            Ok(plugin) => plugin,
            Err(_) => panic!("{name} did not become {what}: {:#?}", self.plugin(name).await),
        }
    }

    /// Waits until a plugin is in a state.
    pub async fn wait_state(&self, name: &str, state: &str) -> Plugin {
        self.wait_for(name, state, |plugin| plugin.state == state).await
    }
}
