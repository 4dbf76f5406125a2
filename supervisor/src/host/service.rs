//! The gRPC service: which module answers which request, and what the audit log records of it.

use std::sync::Arc;

use futures_util::stream::BoxStream;
use talon_listen::ConnectionLimiter;
use talon_plugin::{Events, Registry};
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
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};

use super::closing::StreamCloser;
use super::context::{HostContext, SupervisorInfo};
use super::exit_requests::ExitSender;
use super::limits::count;
use super::{
    audit_log, calls, configuration, credentials, diagnosis, events, exit_requests, operate, plugins,
    raw_answers, receipts, reload, series, status, streams,
};
use crate::config::HostLimits;
use crate::dispatch::{self, Dispatcher};

/// `talon.host.v1.Host`. Cheap to clone.
#[derive(Clone)]
pub struct HostService {
    context: HostContext,
}

impl HostService {
    /// The service for a dispatcher and its registry. `closing` ends the streams of events and logs;
    /// `leaving` receives requests to end the supervisor or to hand it over. Of `limits` it keeps those of streams.
    #[must_use]
    pub fn new(
        registry: Registry,
        dispatcher: Arc<Dispatcher>,
        events: Events,
        about: SupervisorInfo,
        closing: StreamCloser,
        exit_requests: ExitSender,
        limits: &HostLimits,
    ) -> Self {
        let followers = ConnectionLimiter::new(count(limits.follows), count(limits.follows_per_user));
        let info = Arc::new(about);
        let reading = Arc::new(Semaphore::new(1));
        let diagnoses = Arc::default();
        let context = HostContext {
            registry,
            dispatcher,
            events,
            info,
            followers,
            closing,
            exit_requests,
            reading,
            diagnoses,
        };
        Self { context }
    }

    /// The same service for another server, with another closer for its streams.
    #[must_use]
    pub fn with_closer(&self, closing: StreamCloser) -> Self {
        Self { context: HostContext { closing, ..self.context.clone() } }
    }

    /// Information about the supervisor.
    #[must_use]
    pub fn info(&self) -> Arc<SupervisorInfo> {
        Arc::clone(&self.context.info)
    }
}

#[tonic::async_trait]
impl Host for HostService {
    type ExecuteStreamingStream = BoxStream<'static, Result<ExecuteUpdate, Status>>;
    type WatchEventsStream = BoxStream<'static, Result<Event, Status>>;
    type LogsStream = BoxStream<'static, Result<LogLine, Status>>;
    type WatchCredentialsStream = BoxStream<'static, Result<CredentialChange, Status>>;
    type SubscribeStream = BoxStream<'static, Result<HostEvent, Status>>;

    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<ExecuteResponse>, Status> {
        let info = &self.context.info;
        dispatch::execute(&self.context.dispatcher, &info.audit, &info.receipts, request).await
    }

    async fn execute_streaming(
        &self,
        request: Request<ExecuteRequest>,
    ) -> Result<Response<Self::ExecuteStreamingStream>, Status> {
        let info = &self.context.info;
        dispatch::execute_streaming(&self.context.dispatcher, &info.audit, &info.receipts, request)
    }

    async fn approve(&self, request: Request<ApproveRequest>) -> Result<Response<ApproveResponse>, Status> {
        let recording = self.context.record(&request, "approve", &request.get_ref().name);
        let result = operate::approve(&self.context, request).await;
        recording.finish(&result);
        result
    }

    async fn list_plugins(
        &self,
        request: Request<ListPluginsRequest>,
    ) -> Result<Response<ListPluginsResponse>, Status> {
        self.context.info.usages.read().await;
        plugins::list(&self.context, &request)
    }

    async fn get_plugin(
        &self,
        request: Request<GetPluginRequest>,
    ) -> Result<Response<GetPluginResponse>, Status> {
        self.context.info.usages.read().await;
        plugins::get(&self.context, &request)
    }

    async fn refresh_capabilities(
        &self,
        request: Request<RefreshCapabilitiesRequest>,
    ) -> Result<Response<RefreshCapabilitiesResponse>, Status> {
        let recording = self.context.record(&request, "refresh", &request.get_ref().name);
        let result = operate::refresh(&self.context, request).await;
        recording.finish(&result);
        result
    }

    async fn start(&self, request: Request<StartRequest>) -> Result<Response<StartResponse>, Status> {
        let recording = self.context.record(&request, "start", &request.get_ref().name);
        let result = operate::start(&self.context, request).await;
        recording.finish(&result);
        result
    }

    async fn stop(&self, request: Request<StopRequest>) -> Result<Response<StopResponse>, Status> {
        let recording = self.context.record(&request, "stop", &request.get_ref().name);
        let result = operate::stop(&self.context, request).await;
        recording.finish(&result);
        result
    }

    async fn restart(&self, request: Request<RestartRequest>) -> Result<Response<RestartResponse>, Status> {
        let recording = self.context.record(&request, "restart", &request.get_ref().name);
        let result = operate::restart(&self.context, request).await;
        recording.finish(&result);
        result
    }

    async fn reload_plugin(
        &self,
        request: Request<ReloadPluginRequest>,
    ) -> Result<Response<ReloadPluginResponse>, Status> {
        let recording = self.context.record(&request, "reload", &request.get_ref().name);
        let result = reload::plugin(&self.context, request).await;
        recording.finish(&result);
        result
    }

    async fn reload(&self, request: Request<ReloadRequest>) -> Result<Response<ReloadResponse>, Status> {
        let recording = self.context.record(
            &request,
            "reload_config",
            if request.get_ref().dry_run { "dry run" } else { "" },
        );
        let result = reload::configuration(&self.context, request).await;
        recording.finish(&result);
        result
    }

    async fn shutdown(
        &self,
        request: Request<ShutdownRequest>,
    ) -> Result<Response<ShutdownResponse>, Status> {
        let recording = self.context.record(&request, "shutdown", "");
        let result = exit_requests::shutdown(&self.context.exit_requests, &request).await;
        recording.finish(&result);
        result
    }

    async fn hand_over(
        &self,
        request: Request<HandOverRequest>,
    ) -> Result<Response<HandOverResponse>, Status> {
        let recording = self.context.record(&request, "hand_over", "");
        let result = exit_requests::hand_over(&self.context.exit_requests, request).await;
        recording.finish(&result);
        result
    }

    async fn get_status(
        &self,
        request: Request<GetStatusRequest>,
    ) -> Result<Response<GetStatusResponse>, Status> {
        self.context.info.usages.read().await;
        status::status(&self.context, &request)
    }

    async fn watch_events(
        &self,
        request: Request<WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        streams::events(&self.context, request)
    }

    async fn subscribe(
        &self,
        request: Request<SubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        events::subscribe(&self.context, request)
    }

    async fn ack_events(
        &self,
        request: Request<AckEventsRequest>,
    ) -> Result<Response<AckEventsResponse>, Status> {
        events::acknowledge(&self.context, request).await
    }

    async fn list_raw_answers(
        &self,
        request: Request<ListRawAnswersRequest>,
    ) -> Result<Response<ListRawAnswersResponse>, Status> {
        let recording = self.context.record(&request, "list_raw_answers", "");
        let result = raw_answers::list(&self.context, &request);
        recording.finish(&result);
        result
    }

    async fn get_raw_answer(
        &self,
        request: Request<GetRawAnswerRequest>,
    ) -> Result<Response<GetRawAnswerResponse>, Status> {
        let recording = self.context.record(&request, "get_raw_answer", &request.get_ref().call_id);
        let result = raw_answers::get(&self.context, &request);
        recording.finish(&result);
        result
    }

    async fn verify_receipts(
        &self,
        request: Request<VerifyReceiptsRequest>,
    ) -> Result<Response<VerifyReceiptsResponse>, Status> {
        receipts::verify(&self.context, request)
    }

    async fn logs(&self, request: Request<LogsRequest>) -> Result<Response<Self::LogsStream>, Status> {
        streams::logs(&self.context, request)
    }

    async fn create_token(
        &self,
        request: Request<CreateTokenRequest>,
    ) -> Result<Response<CreateTokenResponse>, Status> {
        let recording = self.context.record(&request, "create_token", &request.get_ref().name);
        let result = credentials::create(&self.context, request).await;
        recording.finish(&result);
        result
    }

    async fn list_tokens(
        &self,
        request: Request<ListTokensRequest>,
    ) -> Result<Response<ListTokensResponse>, Status> {
        credentials::list(&self.context, request).await
    }

    async fn revoke_token(
        &self,
        request: Request<RevokeTokenRequest>,
    ) -> Result<Response<RevokeTokenResponse>, Status> {
        let recording = self.context.record(&request, "revoke_token", &request.get_ref().id);
        let result = credentials::revoke(&self.context, request).await;
        recording.finish(&result);
        result
    }

    async fn open_gateway(
        &self,
        request: Request<OpenGatewayRequest>,
    ) -> Result<Response<OpenGatewayResponse>, Status> {
        let recording = self.context.record(&request, "open_gateway", "");
        let result = credentials::open(&self.context, request).await;
        recording.finish(&result);
        result
    }

    async fn check_credential(
        &self,
        request: Request<CheckCredentialRequest>,
    ) -> Result<Response<CheckCredentialResponse>, Status> {
        credentials::check(&self.context, request).await
    }

    async fn redeem_link(
        &self,
        request: Request<RedeemLinkRequest>,
    ) -> Result<Response<RedeemLinkResponse>, Status> {
        credentials::redeem(&self.context, request).await
    }

    async fn watch_credentials(
        &self,
        request: Request<WatchCredentialsRequest>,
    ) -> Result<Response<Self::WatchCredentialsStream>, Status> {
        credentials::watch(&self.context, &request)
    }

    async fn search_audit(
        &self,
        request: Request<SearchAuditRequest>,
    ) -> Result<Response<SearchAuditResponse>, Status> {
        let recording = self.context.record(&request, "search_audit", &request.get_ref().text);
        let result = audit_log::search(&self.context, request).await;
        recording.finish(&result);
        result
    }

    async fn verify_audit(
        &self,
        request: Request<VerifyAuditRequest>,
    ) -> Result<Response<VerifyAuditResponse>, Status> {
        let recording = self.context.record(&request, "verify_audit", "");
        let result = audit_log::check(&self.context, request).await;
        recording.finish(&result);
        result
    }

    async fn diagnose(
        &self,
        request: Request<DiagnoseRequest>,
    ) -> Result<Response<DiagnoseResponse>, Status> {
        diagnosis::diagnose(&self.context, request).await
    }

    async fn get_config(
        &self,
        request: Request<GetConfigRequest>,
    ) -> Result<Response<GetConfigResponse>, Status> {
        configuration::get(&self.context, &request)
    }

    async fn patch_config(
        &self,
        request: Request<PatchConfigRequest>,
    ) -> Result<Response<PatchConfigResponse>, Status> {
        let recording =
            self.context.record(&request, "patch_config", &configuration::subject(request.get_ref()));
        let result = configuration::patch(&self.context, request).await;
        recording.finish(&configuration::verdict(&result));
        result
    }

    async fn list_config_changes(
        &self,
        request: Request<ListConfigChangesRequest>,
    ) -> Result<Response<ListConfigChangesResponse>, Status> {
        configuration::changes(&self.context, request).await
    }

    async fn list_calls(
        &self,
        request: Request<ListCallsRequest>,
    ) -> Result<Response<ListCallsResponse>, Status> {
        calls::list(&self.context, &request)
    }

    async fn get_call(&self, request: Request<GetCallRequest>) -> Result<Response<GetCallResponse>, Status> {
        let recording = self.context.record(&request, "get_call", &request.get_ref().id);
        let result = calls::get(&self.context, &request);
        recording.finish(&result);
        result
    }

    async fn get_series(
        &self,
        request: Request<GetSeriesRequest>,
    ) -> Result<Response<GetSeriesResponse>, Status> {
        series::get(&self.context, &request)
    }

    async fn lift_quarantine(
        &self,
        request: Request<LiftQuarantineRequest>,
    ) -> Result<Response<LiftQuarantineResponse>, Status> {
        let recording = self.context.record(&request, "lift_quarantine", &request.get_ref().name);
        let result = operate::lift_quarantine(&self.context, &request);
        recording.finish(&result);
        result
    }
}
