//! A fake of the supervisor's host service with two plugins that answer as a test needs.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use talon_arguments::Arguments;
use talon_guard::{Answer, EnvelopeMode, Guard, GuardSettings};
use talon_proto::host::host_server::{Host, HostServer};
use talon_proto::host::{
    AckEventsRequest, AckEventsResponse, ApproveRequest, ApproveResponse, CheckCredentialRequest,
    CheckCredentialResponse, CreateTokenRequest, CreateTokenResponse, CredentialChange, DiagnoseRequest,
    DiagnoseResponse, Event, ExecuteRequest, ExecuteResponse, ExecuteUpdate, Extension, GetCallRequest,
    GetCallResponse, GetConfigRequest, GetConfigResponse, GetPluginRequest, GetPluginResponse,
    GetRawAnswerRequest, GetRawAnswerResponse, GetSeriesRequest, GetSeriesResponse, GetStatusRequest,
    GetStatusResponse, GuardLayer, HandOverRequest, HandOverResponse, HostEvent, LiftQuarantineRequest,
    LiftQuarantineResponse, ListCallsRequest, ListCallsResponse, ListConfigChangesRequest,
    ListConfigChangesResponse, ListPluginsRequest, ListPluginsResponse, ListRawAnswersRequest,
    ListRawAnswersResponse, ListTokensRequest, ListTokensResponse, LogLine, LogsRequest, OpenGatewayRequest,
    OpenGatewayResponse, Outcome, PatchConfigRequest, PatchConfigResponse, Plugin, RedeemLinkRequest,
    RedeemLinkResponse, RefreshCapabilitiesRequest, RefreshCapabilitiesResponse, ReloadPluginRequest,
    ReloadPluginResponse, ReloadRequest, ReloadResponse, RestartRequest, RestartResponse, RevokeTokenRequest,
    RevokeTokenResponse, SearchAuditRequest, SearchAuditResponse, ShutdownRequest, ShutdownResponse,
    StartRequest, StartResponse, StopRequest, StopResponse, SubscribeRequest, VerifyAuditRequest,
    VerifyAuditResponse, VerifyReceiptsRequest, VerifyReceiptsResponse, WatchCredentialsRequest,
    WatchEventsRequest, execute_update,
};
use talon_proto::plugin::{Action, Parameter, PluginCapabilities};
use tokio::net::UnixStream;
use tokio::sync::{Notify, Semaphore, broadcast};
use tonic::{Request, Response, Status};

use crate::sink::Sink;

/// The state that all connections share.
pub(crate) struct Plugins {
    guard: Guard,
    /// The calls, in order.
    calls: Mutex<Vec<ExecuteRequest>>,
    called: Notify,
    /// `slow.wait` takes one permit for each answer.
    pub(crate) answers: Semaphore,
    /// The action that never answers.
    pub(crate) held: Mutex<&'static str>,
    /// What happens with plugins and the configuration.
    pub(crate) news: broadcast::Sender<Event>,
    /// Plays `sink.send`, and has events.
    sink: Mutex<Option<Arc<Sink>>>,
}

impl Plugins {
    pub(crate) fn new() -> Arc<Self> {
        let settings = GuardSettings { envelope: EnvelopeMode::Quoted, ..GuardSettings::default() };
        Arc::new(Self {
            guard: Guard::new(settings).unwrap(),
            calls: Mutex::default(),
            called: Notify::new(),
            answers: Semaphore::new(0),
            held: Mutex::default(),
            news: broadcast::Sender::new(64),
            sink: Mutex::default(),
        })
    }

    /// Has a sink, and events, from now on.
    pub(crate) fn set_sink(&self, sink: Arc<Sink>) {
        *self.sink.lock() = Some(sink);
    }

    fn sink(&self) -> Option<Arc<Sink>> {
        self.sink.lock().clone()
    }

    /// The calls so far, as `plugin.action`.
    pub(crate) fn called(&self) -> Vec<String> {
        self.requests().iter().map(|call| format!("{}.{}", call.plugin, call.action)).collect()
    }

    pub(crate) fn requests(&self) -> Vec<ExecuteRequest> {
        self.calls.lock().clone()
    }

    /// Waits until this many calls have arrived.
    pub(crate) async fn wait_for(&self, calls: usize) {
        loop {
            let more = self.called.notified();
            if self.requests().len() >= calls {
                return;
            }
            more.await;
        }
    }

    async fn execute(&self, request: ExecuteRequest) -> ExecuteResponse {
        self.calls.lock().push(request.clone());
        self.called.notify_waiters();
        if request.plugin == "sink"
            && let Some(sink) = self.sink()
        {
            return sink.execute(&request).await;
        }
        if request.plugin == "slow" {
            self.answers.acquire().await.unwrap().forget();
        }
        if request.action == *self.held.lock() {
            std::future::pending::<()>().await;
        }
        if let Some(verdict) = verdict(&request) {
            return ExecuteResponse {
                outcome: Outcome::Ok.into(),
                structured_content: verdict.to_string(),
                ..ExecuteResponse::default()
            };
        }
        let arguments = Arguments::parse(&request.arguments_json).expect("the agent sends JSON");
        let path = arguments.texts().get("path").cloned().unwrap_or_default();
        let text = format!("{} {path}: a line of text", request.action);
        let guarded = self.guard.answer("test", &request.plugin, "call", Answer::from_tool(text.clone()));
        ExecuteResponse {
            outcome: Outcome::Ok.into(),
            block: guarded.block().as_str().to_owned(),
            content: text,
            layers: vec![GuardLayer {
                layer: "instance".to_owned(),
                verdict: "pass".to_owned(),
                duration_ns: request.measured.then_some(5),
                reason: String::new(),
            }],
            ..ExecuteResponse::default()
        }
    }
}

/// What the plugin `hooks` answers: it looks at messages, and polishes answers.
fn verdict(request: &ExecuteRequest) -> Option<Value> {
    let asked: Value = serde_json::from_str(&request.arguments_json).ok()?;
    let message = asked["message"].as_str().filter(|_| request.plugin == "hooks")?;
    Some(match request.action.as_str() {
        "look" => json!({"verdict": "replace", "message": format!("{message}, seen")}),
        _ => json!({"verdict": "replace", "message": format!("{message} (polished)")}),
    })
}

/// The entries of `extensions` that the supervisor has: jobs that call `jobs.work`, which declares the role.
fn entries() -> Vec<Extension> {
    let entry = |name: &str| Extension {
        role: "scheduled_task".to_owned(),
        name: name.to_owned(),
        action: "jobs.work".to_owned(),
        state: "ready".to_owned(),
        declared: true,
        ..Extension::default()
    };
    ["work", "again"].map(entry).into()
}

fn capabilities(name: &str) -> PluginCapabilities {
    let action = |name: &str, read_only: bool| Action {
        name: name.to_owned(),
        description: format!("{name} something"),
        parameters: vec![Parameter {
            name: "path".to_owned(),
            r#type: "string".to_owned(),
            ..Parameter::default()
        }],
        read_only,
        ..Action::default()
    };
    let actions = match name {
        "files" => vec![action("read", true), action("write", false)],
        "slow" => vec![action("wait", true)],
        _ => vec![],
    };
    PluginCapabilities { name: name.to_owned(), actions, ..PluginCapabilities::default() }
}

/// Serves a connection until its other end disconnects.
pub(crate) async fn serve(stream: UnixStream, plugins: Arc<Plugins>) {
    let incoming = stream::once(async { Ok::<_, io::Error>(stream) }).chain(stream::pending());
    let served = tonic::transport::Server::builder()
        .serve_with_incoming(HostServer::new(PluginHost(plugins)), Box::pin(incoming));
    served.await.unwrap();
}

struct PluginHost(Arc<Plugins>);

/// Written as `async_trait` expands it, because the attribute does not look into macros.
macro_rules! never {
    ($($method:ident: $request:ty => $response:ty;)*) => {
        $(fn $method<'s, 'f>(
            &'s self,
            _: Request<$request>,
        ) -> BoxFuture<'f, Result<Response<$response>, Status>>
        where
            's: 'f,
            Self: 'f,
        {
            Box::pin(async { Err(Status::unimplemented("an agent asks for no such thing")) })
        })*
    };
}

#[tonic::async_trait]
impl Host for PluginHost {
    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<ExecuteResponse>, Status> {
        Ok(Response::new(self.0.execute(request.into_inner()).await))
    }

    type ExecuteStreamingStream = BoxStream<'static, Result<ExecuteUpdate, Status>>;

    async fn execute_streaming(
        &self,
        request: Request<ExecuteRequest>,
    ) -> Result<Response<Self::ExecuteStreamingStream>, Status> {
        let plugins = Arc::clone(&self.0);
        let answer = async move {
            let done = execute_update::Kind::Done(plugins.execute(request.into_inner()).await);
            Ok(ExecuteUpdate { kind: Some(done) })
        };
        Ok(Response::new(stream::once(answer).boxed()))
    }

    async fn list_plugins(
        &self,
        _: Request<ListPluginsRequest>,
    ) -> Result<Response<ListPluginsResponse>, Status> {
        let plugin = |name: &str| Plugin {
            name: name.to_owned(),
            desired: "up".to_owned(),
            state: "ready".to_owned(),
            ..Plugin::default()
        };
        let plugins = ["files", "slow"].map(plugin).into();
        Ok(Response::new(ListPluginsResponse { plugins }))
    }

    async fn get_plugin(
        &self,
        request: Request<GetPluginRequest>,
    ) -> Result<Response<GetPluginResponse>, Status> {
        let GetPluginRequest { name, .. } = request.into_inner();
        let capabilities = Some(capabilities(&name));
        let digests = BTreeMap::new().into_iter().collect();
        Ok(Response::new(GetPluginResponse {
            capabilities,
            declaration_digests: digests,
            ..GetPluginResponse::default()
        }))
    }

    type WatchEventsStream = BoxStream<'static, Result<Event, Status>>;

    async fn watch_events(
        &self,
        _: Request<WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let news = stream::unfold(self.0.news.subscribe(), |mut news| async move {
            let event = news.recv().await.ok()?;
            Some((Ok(event), news))
        });
        Ok(Response::new(news.boxed()))
    }

    type SubscribeStream = BoxStream<'static, Result<HostEvent, Status>>;

    async fn subscribe(
        &self,
        request: Request<SubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let SubscribeRequest { after, source, .. } = request.into_inner();
        if !source.is_empty() {
            return Err(Status::unimplemented("no plugin tells events"));
        }
        let sink = self.0.sink().ok_or_else(|| Status::unimplemented("there are no events"))?;
        Ok(Response::new(sink.events_after(after)))
    }

    async fn ack_events(
        &self,
        request: Request<AckEventsRequest>,
    ) -> Result<Response<AckEventsResponse>, Status> {
        let through = request.into_inner().through;
        self.0.sink().ok_or_else(|| Status::unimplemented("there are no events"))?.acknowledge(through);
        Ok(Response::new(AckEventsResponse { through }))
    }

    type LogsStream = BoxStream<'static, Result<LogLine, Status>>;

    async fn logs(&self, _: Request<LogsRequest>) -> Result<Response<Self::LogsStream>, Status> {
        Err(Status::unimplemented("an agent asks for no such thing"))
    }

    async fn get_status(&self, _: Request<GetStatusRequest>) -> Result<Response<GetStatusResponse>, Status> {
        Ok(Response::new(GetStatusResponse { extensions: entries(), ..GetStatusResponse::default() }))
    }

    type WatchCredentialsStream = BoxStream<'static, Result<CredentialChange, Status>>;

    async fn watch_credentials(
        &self,
        _: Request<WatchCredentialsRequest>,
    ) -> Result<Response<Self::WatchCredentialsStream>, Status> {
        Err(Status::unimplemented("an agent asks for no such thing"))
    }

    never! {
        refresh_capabilities: RefreshCapabilitiesRequest => RefreshCapabilitiesResponse;
        approve: ApproveRequest => ApproveResponse;
        start: StartRequest => StartResponse;
        stop: StopRequest => StopResponse;
        restart: RestartRequest => RestartResponse;
        reload_plugin: ReloadPluginRequest => ReloadPluginResponse;
        reload: ReloadRequest => ReloadResponse;
        shutdown: ShutdownRequest => ShutdownResponse;
        hand_over: HandOverRequest => HandOverResponse;
        list_raw_answers: ListRawAnswersRequest => ListRawAnswersResponse;
        verify_receipts: VerifyReceiptsRequest => VerifyReceiptsResponse;
        get_raw_answer: GetRawAnswerRequest => GetRawAnswerResponse;
        check_credential: CheckCredentialRequest => CheckCredentialResponse;
        create_token: CreateTokenRequest => CreateTokenResponse;
        list_tokens: ListTokensRequest => ListTokensResponse;
        open_gateway: OpenGatewayRequest => OpenGatewayResponse;
        redeem_link: RedeemLinkRequest => RedeemLinkResponse;
        revoke_token: RevokeTokenRequest => RevokeTokenResponse;
        search_audit: SearchAuditRequest => SearchAuditResponse;
        verify_audit: VerifyAuditRequest => VerifyAuditResponse;
        diagnose: DiagnoseRequest => DiagnoseResponse;
        get_config: GetConfigRequest => GetConfigResponse;
        patch_config: PatchConfigRequest => PatchConfigResponse;
        list_config_changes: ListConfigChangesRequest => ListConfigChangesResponse;
        list_calls: ListCallsRequest => ListCallsResponse;
        get_call: GetCallRequest => GetCallResponse;
        get_series: GetSeriesRequest => GetSeriesResponse;
        lift_quarantine: LiftQuarantineRequest => LiftQuarantineResponse;
    }
}
