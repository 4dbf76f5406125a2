//! The service itself: what it stands on, and which file answers which request.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::stream::BoxStream;
use talon_guard::ResolveError;
use talon_guard::resolve::Others;
use talon_plugin::discover::Refused;
use talon_plugin::name::RESERVED_NAME;
use talon_plugin::{Events, Plugin, Registry};
use talon_proto::host::host_server::Host;
use talon_proto::host::{
    ApproveRequest, ApproveResponse, Event, ExecuteRequest, ExecuteResponse, ExecuteUpdate, GetPluginRequest,
    GetPluginResponse, GetRawAnswerRequest, GetRawAnswerResponse, GetStatusRequest, GetStatusResponse,
    ListPluginsRequest, ListPluginsResponse, ListRawAnswersRequest, ListRawAnswersResponse, LogLine,
    LogsRequest, RefreshCapabilitiesRequest, RefreshCapabilitiesResponse, RestartRequest, RestartResponse,
    StartRequest, StartResponse, StopRequest, StopResponse, WatchEventsRequest,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::{MAX_FOLLOWERS, execute, operate, plugins, raw, status, status_text, streams};
use crate::door::Door;
use crate::state::Keeper;

/// What the supervisor says about itself; it does not change while it runs.
#[derive(Debug, Clone)]
pub struct About {
    /// When it started.
    pub started: SystemTime,
    /// Where its sockets are.
    pub runtime_dir: PathBuf,
    /// Where it keeps what must survive a restart.
    pub data_dir: PathBuf,
    /// The configuration file, if there is one.
    pub config_file: Option<PathBuf>,
    /// Protections that this machine cannot give any plugin, each with its reason.
    pub not_enforced: Vec<String>,
    /// What was discovered or configured and refused.
    pub refused: Vec<Refused>,
    /// What keeps the plugins' state; `None` if nothing does.
    pub keeper: Option<Keeper>,
}

/// `talon.host.v1.Host`. Cheap to clone.
#[derive(Clone)]
pub struct HostService {
    pub(super) registry: Registry,
    pub(super) door: Arc<Door>,
    pub(super) events: Events,
    pub(super) about: Arc<About>,
    pub(super) followers: Arc<Semaphore>,
    /// Ends the streams when the supervisor does.
    pub(super) closing: CancellationToken,
}

impl HostService {
    /// The service over a door and its registry. `closing` ends the streams of events and logs.
    #[must_use]
    pub fn new(
        registry: Registry,
        door: Arc<Door>,
        events: Events,
        about: About,
        closing: CancellationToken,
    ) -> Self {
        let followers = Arc::new(Semaphore::new(MAX_FOLLOWERS));
        Self { registry, door, events, about: Arc::new(about), followers, closing }
    }

    /// The plugin of that name, or an error that names the nearest ones.
    pub(super) fn plugin(&self, name: &str) -> Result<Plugin, Status> {
        self.plugin_among(name, |_| true)
    }

    /// The same for somebody who is not shown every name.
    pub(super) fn plugin_among(&self, name: &str, shown: impl Fn(&str) -> bool) -> Result<Plugin, Status> {
        if name == RESERVED_NAME && self.door.core().is_some() {
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

/// In the words in which a call to it would be refused.
fn unknown_plugin(name: &str, names: &[String]) -> String {
    let others = Others::of(name, names.iter().map(String::as_str));
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
        operate::approve(self, request).await
    }

    async fn list_plugins(
        &self,
        request: Request<ListPluginsRequest>,
    ) -> Result<Response<ListPluginsResponse>, Status> {
        plugins::list(self, &request)
    }

    async fn get_plugin(
        &self,
        request: Request<GetPluginRequest>,
    ) -> Result<Response<GetPluginResponse>, Status> {
        plugins::get(self, &request)
    }

    async fn refresh_capabilities(
        &self,
        request: Request<RefreshCapabilitiesRequest>,
    ) -> Result<Response<RefreshCapabilitiesResponse>, Status> {
        operate::refresh(self, request).await
    }

    async fn start(&self, request: Request<StartRequest>) -> Result<Response<StartResponse>, Status> {
        operate::start(self, request).await
    }

    async fn stop(&self, request: Request<StopRequest>) -> Result<Response<StopResponse>, Status> {
        operate::stop(self, request).await
    }

    async fn restart(&self, request: Request<RestartRequest>) -> Result<Response<RestartResponse>, Status> {
        operate::restart(self, request).await
    }

    async fn get_status(
        &self,
        request: Request<GetStatusRequest>,
    ) -> Result<Response<GetStatusResponse>, Status> {
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
        raw::list(self, &request)
    }

    async fn get_raw_answer(
        &self,
        request: Request<GetRawAnswerRequest>,
    ) -> Result<Response<GetRawAnswerResponse>, Status> {
        raw::get(self, &request)
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
