//! A host service for tests of the server around it.

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use talon_proto::host::host_server::Host;
use talon_proto::host::{
    AckEventsRequest, AckEventsResponse, ApproveRequest, ApproveResponse, CheckCredentialRequest,
    CheckCredentialResponse, CreateTokenRequest, CreateTokenResponse, CredentialChange, DiagnoseRequest,
    DiagnoseResponse, Event, ExecuteRequest, ExecuteResponse, ExecuteUpdate, GetCallRequest, GetCallResponse,
    GetConfigRequest, GetConfigResponse, GetPluginRequest, GetPluginResponse, GetRawAnswerRequest,
    GetRawAnswerResponse, GetSeriesRequest, GetSeriesResponse, GetStatusRequest, GetStatusResponse,
    HandOverRequest, HandOverResponse, HostEvent, LiftQuarantineRequest, LiftQuarantineResponse,
    ListCallsRequest, ListCallsResponse, ListConfigChangesRequest, ListConfigChangesResponse,
    ListPluginsRequest, ListPluginsResponse, ListRawAnswersRequest, ListRawAnswersResponse,
    ListTokensRequest, ListTokensResponse, LogLine, LogsRequest, OpenGatewayRequest, OpenGatewayResponse,
    PatchConfigRequest, PatchConfigResponse, RedeemLinkRequest, RedeemLinkResponse,
    RefreshCapabilitiesRequest, RefreshCapabilitiesResponse, ReloadPluginRequest, ReloadPluginResponse,
    ReloadRequest, ReloadResponse, RestartRequest, RestartResponse, RevokeTokenRequest, RevokeTokenResponse,
    SearchAuditRequest, SearchAuditResponse, ShutdownRequest, ShutdownResponse, StartRequest, StartResponse,
    StopRequest, StopResponse, SubscribeRequest, VerifyAuditRequest, VerifyAuditResponse,
    VerifyReceiptsRequest, VerifyReceiptsResponse, WatchCredentialsRequest, WatchEventsRequest,
};
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use crate::config::Role;
use crate::peer::require;

/// What the service observes of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CallEvent {
    Began,
    Dropped,
}

/// Calls of this plugin are answered at once.
pub(super) const ANSWERS: &str = "answers";

/// A host whose calls stay pending, except those of [`ANSWERS`], and that reports when they are dropped.
pub(super) struct PendingHost {
    pub(super) seen: mpsc::UnboundedSender<CallEvent>,
}

struct DropNotifier(mpsc::UnboundedSender<CallEvent>);

impl Drop for DropNotifier {
    fn drop(&mut self) {
        let _ = self.0.send(CallEvent::Dropped);
    }
}

fn unimplemented<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("not in this test"))
}

#[tonic::async_trait]
impl Host for PendingHost {
    type ExecuteStreamingStream = BoxStream<'static, Result<ExecuteUpdate, Status>>;
    type WatchEventsStream = BoxStream<'static, Result<Event, Status>>;
    type LogsStream = BoxStream<'static, Result<LogLine, Status>>;
    type WatchCredentialsStream = BoxStream<'static, Result<CredentialChange, Status>>;
    type SubscribeStream = BoxStream<'static, Result<HostEvent, Status>>;

    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<ExecuteResponse>, Status> {
        if request.get_ref().plugin == ANSWERS {
            return Ok(Response::new(ExecuteResponse::default()));
        }
        let _guard = DropNotifier(self.seen.clone());
        let _ = self.seen.send(CallEvent::Began);
        std::future::pending().await
    }
    async fn execute_streaming(
        &self,
        _: Request<ExecuteRequest>,
    ) -> Result<Response<Self::ExecuteStreamingStream>, Status> {
        unimplemented()
    }
    async fn approve(&self, _: Request<ApproveRequest>) -> Result<Response<ApproveResponse>, Status> {
        unimplemented()
    }
    async fn list_plugins(
        &self,
        _: Request<ListPluginsRequest>,
    ) -> Result<Response<ListPluginsResponse>, Status> {
        unimplemented()
    }
    async fn get_plugin(&self, _: Request<GetPluginRequest>) -> Result<Response<GetPluginResponse>, Status> {
        unimplemented()
    }
    async fn refresh_capabilities(
        &self,
        _: Request<RefreshCapabilitiesRequest>,
    ) -> Result<Response<RefreshCapabilitiesResponse>, Status> {
        unimplemented()
    }
    async fn start(&self, _: Request<StartRequest>) -> Result<Response<StartResponse>, Status> {
        unimplemented()
    }
    async fn stop(&self, _: Request<StopRequest>) -> Result<Response<StopResponse>, Status> {
        unimplemented()
    }
    async fn restart(&self, _: Request<RestartRequest>) -> Result<Response<RestartResponse>, Status> {
        unimplemented()
    }
    async fn reload_plugin(
        &self,
        _: Request<ReloadPluginRequest>,
    ) -> Result<Response<ReloadPluginResponse>, Status> {
        unimplemented()
    }
    async fn reload(&self, _: Request<ReloadRequest>) -> Result<Response<ReloadResponse>, Status> {
        unimplemented()
    }
    async fn shutdown(&self, _: Request<ShutdownRequest>) -> Result<Response<ShutdownResponse>, Status> {
        unimplemented()
    }
    async fn hand_over(&self, _: Request<HandOverRequest>) -> Result<Response<HandOverResponse>, Status> {
        unimplemented()
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
    async fn subscribe(
        &self,
        _: Request<SubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        unimplemented()
    }
    async fn ack_events(&self, _: Request<AckEventsRequest>) -> Result<Response<AckEventsResponse>, Status> {
        unimplemented()
    }
    async fn list_raw_answers(
        &self,
        _: Request<ListRawAnswersRequest>,
    ) -> Result<Response<ListRawAnswersResponse>, Status> {
        unimplemented()
    }
    async fn get_raw_answer(
        &self,
        _: Request<GetRawAnswerRequest>,
    ) -> Result<Response<GetRawAnswerResponse>, Status> {
        unimplemented()
    }
    async fn verify_receipts(
        &self,
        _: Request<VerifyReceiptsRequest>,
    ) -> Result<Response<VerifyReceiptsResponse>, Status> {
        unimplemented()
    }
    async fn logs(&self, _: Request<LogsRequest>) -> Result<Response<Self::LogsStream>, Status> {
        unimplemented()
    }
    async fn check_credential(
        &self,
        _: Request<CheckCredentialRequest>,
    ) -> Result<Response<CheckCredentialResponse>, Status> {
        unimplemented()
    }
    async fn create_token(
        &self,
        _: Request<CreateTokenRequest>,
    ) -> Result<Response<CreateTokenResponse>, Status> {
        unimplemented()
    }
    async fn list_tokens(
        &self,
        _: Request<ListTokensRequest>,
    ) -> Result<Response<ListTokensResponse>, Status> {
        unimplemented()
    }
    async fn open_gateway(
        &self,
        _: Request<OpenGatewayRequest>,
    ) -> Result<Response<OpenGatewayResponse>, Status> {
        unimplemented()
    }
    async fn redeem_link(
        &self,
        _: Request<RedeemLinkRequest>,
    ) -> Result<Response<RedeemLinkResponse>, Status> {
        unimplemented()
    }
    async fn revoke_token(
        &self,
        _: Request<RevokeTokenRequest>,
    ) -> Result<Response<RevokeTokenResponse>, Status> {
        unimplemented()
    }
    async fn watch_credentials(
        &self,
        _: Request<WatchCredentialsRequest>,
    ) -> Result<Response<Self::WatchCredentialsStream>, Status> {
        unimplemented()
    }
    async fn search_audit(
        &self,
        _: Request<SearchAuditRequest>,
    ) -> Result<Response<SearchAuditResponse>, Status> {
        unimplemented()
    }
    async fn verify_audit(
        &self,
        _: Request<VerifyAuditRequest>,
    ) -> Result<Response<VerifyAuditResponse>, Status> {
        unimplemented()
    }
    async fn diagnose(&self, _: Request<DiagnoseRequest>) -> Result<Response<DiagnoseResponse>, Status> {
        unimplemented()
    }
    async fn get_config(&self, _: Request<GetConfigRequest>) -> Result<Response<GetConfigResponse>, Status> {
        unimplemented()
    }
    async fn patch_config(
        &self,
        _: Request<PatchConfigRequest>,
    ) -> Result<Response<PatchConfigResponse>, Status> {
        unimplemented()
    }
    async fn list_config_changes(
        &self,
        _: Request<ListConfigChangesRequest>,
    ) -> Result<Response<ListConfigChangesResponse>, Status> {
        unimplemented()
    }
    async fn list_calls(&self, _: Request<ListCallsRequest>) -> Result<Response<ListCallsResponse>, Status> {
        unimplemented()
    }
    async fn get_call(&self, _: Request<GetCallRequest>) -> Result<Response<GetCallResponse>, Status> {
        unimplemented()
    }
    async fn get_series(&self, _: Request<GetSeriesRequest>) -> Result<Response<GetSeriesResponse>, Status> {
        unimplemented()
    }
    async fn lift_quarantine(
        &self,
        _: Request<LiftQuarantineRequest>,
    ) -> Result<Response<LiftQuarantineResponse>, Status> {
        unimplemented()
    }
}
