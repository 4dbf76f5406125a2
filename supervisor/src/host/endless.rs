//! A host service for tests of the server around it.

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
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
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use super::peer::require;
use crate::config::Role;

/// What the service observes of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Began,
    Dropped,
}

/// Calls of this plugin are answered at once.
pub(super) const ANSWERS: &str = "answers";

/// A host whose calls stay pending, except those of [`ANSWERS`], and that reports when they are dropped.
pub(super) struct Endless {
    pub(super) seen: mpsc::UnboundedSender<Seen>,
}

struct Guard(mpsc::UnboundedSender<Seen>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(Seen::Dropped);
    }
}

fn nothing<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("not in this test"))
}

#[tonic::async_trait]
impl Host for Endless {
    type ExecuteStreamingStream = BoxStream<'static, Result<ExecuteUpdate, Status>>;
    type WatchEventsStream = BoxStream<'static, Result<Event, Status>>;
    type LogsStream = BoxStream<'static, Result<LogLine, Status>>;

    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<ExecuteResponse>, Status> {
        if request.get_ref().plugin == ANSWERS {
            return Ok(Response::new(ExecuteResponse::default()));
        }
        let _guard = Guard(self.seen.clone());
        let _ = self.seen.send(Seen::Began);
        std::future::pending().await
    }
    async fn execute_streaming(
        &self,
        _: Request<ExecuteRequest>,
    ) -> Result<Response<Self::ExecuteStreamingStream>, Status> {
        nothing()
    }
    async fn approve(&self, _: Request<ApproveRequest>) -> Result<Response<ApproveResponse>, Status> {
        nothing()
    }
    async fn list_plugins(
        &self,
        _: Request<ListPluginsRequest>,
    ) -> Result<Response<ListPluginsResponse>, Status> {
        nothing()
    }
    async fn get_plugin(&self, _: Request<GetPluginRequest>) -> Result<Response<GetPluginResponse>, Status> {
        nothing()
    }
    async fn refresh_capabilities(
        &self,
        _: Request<RefreshCapabilitiesRequest>,
    ) -> Result<Response<RefreshCapabilitiesResponse>, Status> {
        nothing()
    }
    async fn start(&self, _: Request<StartRequest>) -> Result<Response<StartResponse>, Status> {
        nothing()
    }
    async fn stop(&self, _: Request<StopRequest>) -> Result<Response<StopResponse>, Status> {
        nothing()
    }
    async fn restart(&self, _: Request<RestartRequest>) -> Result<Response<RestartResponse>, Status> {
        nothing()
    }
    async fn reload_plugin(
        &self,
        _: Request<ReloadPluginRequest>,
    ) -> Result<Response<ReloadPluginResponse>, Status> {
        nothing()
    }
    async fn reload(&self, _: Request<ReloadRequest>) -> Result<Response<ReloadResponse>, Status> {
        nothing()
    }
    async fn shutdown(&self, _: Request<ShutdownRequest>) -> Result<Response<ShutdownResponse>, Status> {
        nothing()
    }
    async fn hand_over(&self, _: Request<HandOverRequest>) -> Result<Response<HandOverResponse>, Status> {
        nothing()
    }
    async fn get_status(
        &self,
        request: Request<GetStatusRequest>,
    ) -> Result<Response<GetStatusResponse>, Status> {
        let permitted = require(&request, Role::Call)?;
        Ok(Response::new(GetStatusResponse {
            you: Some((&permitted.peer).into()),
            ..GetStatusResponse::default()
        }))
    }
    async fn watch_events(
        &self,
        _: Request<WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        Ok(Response::new(futures_util::stream::pending().boxed()))
    }
    async fn list_raw_answers(
        &self,
        _: Request<ListRawAnswersRequest>,
    ) -> Result<Response<ListRawAnswersResponse>, Status> {
        nothing()
    }
    async fn get_raw_answer(
        &self,
        _: Request<GetRawAnswerRequest>,
    ) -> Result<Response<GetRawAnswerResponse>, Status> {
        nothing()
    }
    async fn logs(&self, _: Request<LogsRequest>) -> Result<Response<Self::LogsStream>, Status> {
        nothing()
    }
}
