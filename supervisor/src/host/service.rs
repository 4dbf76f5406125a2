//! The gRPC service: its state, and which module answers which request.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::stream::BoxStream;
use talon_guard::ResolveError;
use talon_guard::resolve::Suggestions;
use talon_plugin::{Events, Plugin, Registry};
use talon_plugin_config::name::RESERVED_NAME;
use talon_proto::host::host_server::Host;
use talon_proto::host::{
    ApproveRequest, ApproveResponse, Event, ExecuteRequest, ExecuteResponse, ExecuteUpdate, GetPluginRequest,
    GetPluginResponse, GetRawAnswerRequest, GetRawAnswerResponse, GetStatusRequest, GetStatusResponse,
    HandOverRequest, HandOverResponse, ListPluginsRequest, ListPluginsResponse, ListRawAnswersRequest,
    ListRawAnswersResponse, LogLine, LogsRequest, RefreshCapabilitiesRequest, RefreshCapabilitiesResponse,
    ReloadPluginRequest, ReloadPluginResponse, ReloadRequest, ReloadResponse, RestartRequest,
    RestartResponse, ShutdownRequest, ShutdownResponse, StartRequest, StartResponse, StopRequest,
    StopResponse, WatchEventsRequest,
};
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};

use super::closing::StreamCloser;
use super::exit_requests::ExitSender;
use super::peer::Peer;
use super::{
    MAX_FOLLOWERS, execute, exit_requests, operate, plugins, raw_answers, reload, status, status_text,
    streams,
};
use crate::admin::usage::UsageReader;
use crate::agent;
use crate::audit::{Audit, OperationRecording};
use crate::dispatch::Dispatcher;
use crate::serve::Reloader;
use crate::state::StateSupervisor;

/// Static information about the supervisor, and handles to its parts.
#[derive(Clone)]
pub struct SupervisorInfo {
    /// When it started.
    pub started: SystemTime,
    /// The directory of its sockets.
    pub runtime_dir: PathBuf,
    /// The directory of persistent data.
    pub data_dir: PathBuf,
    /// The configuration file, if there is one.
    pub config_file: Option<PathBuf>,
    /// Protections that this machine cannot provide for plugins, each with its reason.
    pub not_enforced: Vec<String>,
    /// Changes configuration and plugins at runtime.
    pub reloader: Reloader,
    /// The state service; `None` if state is off.
    pub state: Option<StateSupervisor>,
    /// The agent; `None` if there is none.
    pub agent: Option<agent::AgentSupervisor>,
    /// Resource usage of processes.
    pub usages: UsageReader,
    /// The name of the machine's sandbox tier.
    pub tier: &'static str,
    /// The audit log of calls and operations.
    pub audit: Audit,
}

/// `talon.host.v1.Host`. Cheap to clone.
#[derive(Clone)]
pub struct HostService {
    pub(super) registry: Registry,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) events: Events,
    pub(super) info: Arc<SupervisorInfo>,
    pub(super) followers: Arc<Semaphore>,
    /// Ends the streams when the supervisor ends.
    pub(super) closing: StreamCloser,
    pub(super) exit_requests: ExitSender,
}

impl HostService {
    /// The service for a dispatcher and its registry. `closing` ends the streams of events and logs;
    /// `leaving` receives requests to end the supervisor or to hand it over.
    #[must_use]
    pub fn new(
        registry: Registry,
        dispatcher: Arc<Dispatcher>,
        events: Events,
        about: SupervisorInfo,
        closing: StreamCloser,
        exit_requests: ExitSender,
    ) -> Self {
        let followers = Arc::new(Semaphore::new(MAX_FOLLOWERS));
        Self { registry, dispatcher, events, info: Arc::new(about), followers, closing, exit_requests }
    }

    /// The same service for another server, with another closer for its streams.
    #[must_use]
    pub fn with_closer(&self, closing: StreamCloser) -> Self {
        Self { closing, ..self.clone() }
    }

    /// Information about the supervisor.
    #[must_use]
    pub fn info(&self) -> Arc<SupervisorInfo> {
        Arc::clone(&self.info)
    }

    /// Records an operation until it ends. A denied operation of an unknown user is not recorded: such a user
    /// could fill the disk.
    fn record<T>(&self, request: &Request<T>, verb: &str, subject: &str) -> OperationRecording {
        let peer = request.extensions().get::<Peer>().filter(|peer| peer.rights.is_some());
        let nobody = Audit::default();
        let audit = if peer.is_some() { &self.info.audit } else { &nobody };
        audit.operation(peer, verb, subject)
    }

    /// The plugin of that name, or an error that names the nearest ones.
    pub(super) fn plugin(&self, name: &str) -> Result<Plugin, Status> {
        self.plugin_among(name, |_| true)
    }

    /// The same for a peer that does not see every plugin.
    pub(super) fn plugin_among(&self, name: &str, shown: impl Fn(&str) -> bool) -> Result<Plugin, Status> {
        if name == RESERVED_NAME && self.dispatcher.core().is_some() {
            return Err(Status::failed_precondition(status_text(format!(
                "{RESERVED_NAME} is the supervisor itself: it has no process to start, stop or follow; see `talon status`"
            ))));
        }
        self.registry.get(name).ok_or_else(|| {
            let names: Vec<String> = self
                .registry
                .list()
                .iter()
                .map(|plugin| plugin.name().to_string())
                .filter(|name| shown(name))
                .collect();
            Status::not_found(status_text(unknown_plugin(name, &names)))
        })
    }
}

/// The same text as the refusal of a call to an unknown plugin.
fn unknown_plugin(name: &str, names: &[String]) -> String {
    let others = Suggestions::for_name(name, names.iter().map(String::as_str));
    ResolveError::UnknownPlugin { plugin: name.to_owned(), others }.to_string()
}

#[tonic::async_trait]
impl Host for HostService {
    type ExecuteStreamingStream = BoxStream<'static, Result<ExecuteUpdate, Status>>;
    type WatchEventsStream = BoxStream<'static, Result<Event, Status>>;
    type LogsStream = BoxStream<'static, Result<LogLine, Status>>;

    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<ExecuteResponse>, Status> {
        execute::execute(self, request).await
    }

    async fn execute_streaming(
        &self,
        request: Request<ExecuteRequest>,
    ) -> Result<Response<Self::ExecuteStreamingStream>, Status> {
        execute::streaming(self, request)
    }

    async fn approve(&self, request: Request<ApproveRequest>) -> Result<Response<ApproveResponse>, Status> {
        let recording = self.record(&request, "approve", &request.get_ref().name);
        let result = operate::approve(self, request).await;
        recording.finish(&result);
        result
    }

    async fn list_plugins(
        &self,
        request: Request<ListPluginsRequest>,
    ) -> Result<Response<ListPluginsResponse>, Status> {
        self.info.usages.read().await;
        plugins::list(self, &request)
    }

    async fn get_plugin(
        &self,
        request: Request<GetPluginRequest>,
    ) -> Result<Response<GetPluginResponse>, Status> {
        self.info.usages.read().await;
        plugins::get(self, &request)
    }

    async fn refresh_capabilities(
        &self,
        request: Request<RefreshCapabilitiesRequest>,
    ) -> Result<Response<RefreshCapabilitiesResponse>, Status> {
        let recording = self.record(&request, "refresh", &request.get_ref().name);
        let result = operate::refresh(self, request).await;
        recording.finish(&result);
        result
    }

    async fn start(&self, request: Request<StartRequest>) -> Result<Response<StartResponse>, Status> {
        let recording = self.record(&request, "start", &request.get_ref().name);
        let result = operate::start(self, request).await;
        recording.finish(&result);
        result
    }

    async fn stop(&self, request: Request<StopRequest>) -> Result<Response<StopResponse>, Status> {
        let recording = self.record(&request, "stop", &request.get_ref().name);
        let result = operate::stop(self, request).await;
        recording.finish(&result);
        result
    }

    async fn restart(&self, request: Request<RestartRequest>) -> Result<Response<RestartResponse>, Status> {
        let recording = self.record(&request, "restart", &request.get_ref().name);
        let result = operate::restart(self, request).await;
        recording.finish(&result);
        result
    }

    async fn reload_plugin(
        &self,
        request: Request<ReloadPluginRequest>,
    ) -> Result<Response<ReloadPluginResponse>, Status> {
        let recording = self.record(&request, "reload", &request.get_ref().name);
        let result = reload::plugin(self, request).await;
        recording.finish(&result);
        result
    }

    async fn reload(&self, request: Request<ReloadRequest>) -> Result<Response<ReloadResponse>, Status> {
        let recording =
            self.record(&request, "reload_config", if request.get_ref().dry_run { "dry run" } else { "" });
        let result = reload::configuration(self, request).await;
        recording.finish(&result);
        result
    }

    async fn shutdown(
        &self,
        request: Request<ShutdownRequest>,
    ) -> Result<Response<ShutdownResponse>, Status> {
        let recording = self.record(&request, "shutdown", "");
        let result = exit_requests::shutdown(self, &request).await;
        recording.finish(&result);
        result
    }

    async fn hand_over(
        &self,
        request: Request<HandOverRequest>,
    ) -> Result<Response<HandOverResponse>, Status> {
        let recording = self.record(&request, "hand_over", "");
        let result = exit_requests::hand_over(self, request).await;
        recording.finish(&result);
        result
    }

    async fn get_status(
        &self,
        request: Request<GetStatusRequest>,
    ) -> Result<Response<GetStatusResponse>, Status> {
        self.info.usages.read().await;
        status::status(self, &request)
    }

    async fn watch_events(
        &self,
        request: Request<WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        streams::events(self, request)
    }

    async fn list_raw_answers(
        &self,
        request: Request<ListRawAnswersRequest>,
    ) -> Result<Response<ListRawAnswersResponse>, Status> {
        let recording = self.record(&request, "list_raw_answers", "");
        let result = raw_answers::list(self, &request);
        recording.finish(&result);
        result
    }

    async fn get_raw_answer(
        &self,
        request: Request<GetRawAnswerRequest>,
    ) -> Result<Response<GetRawAnswerResponse>, Status> {
        let recording = self.record(&request, "get_raw_answer", &request.get_ref().call_id);
        let result = raw_answers::get(self, &request);
        recording.finish(&result);
        result
    }

    async fn logs(&self, request: Request<LogsRequest>) -> Result<Response<Self::LogsStream>, Status> {
        streams::logs(self, request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_gets_the_nearest_ones() {
        let names = ["hello".to_owned(), "code-search".to_owned()];
        assert!(unknown_plugin("helo", &names).ends_with("did you mean \"hello\"?"));
        assert!(unknown_plugin("zzz", &names).contains("\"code-search\""));
        assert!(unknown_plugin(&"x".repeat(1000), &names).len() < 200);
    }
}
