//! The client of the supervisor's host service, over a connection that the supervisor passes to the agent.
//!
//! The agent cannot open the supervisor's sockets; it requests a connection and receives one
//! ([`HostConnector`]). A broken connection is replaced at the next request, and a supervisor that is being
//! replaced is waited for ([`talon_client::RECONNECT_WINDOW`]). Requests that can be repeated safely are; a
//! call that may have been made is a [`HostError`].
//!
//! The list of actions is requested for each turn, after it has begun. That takes two requests over a local socket, and
//! a cached list would have to be invalidated when plugins start, stop, change, or are approved. Turns that begin while
//! it is requested share the next request.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use prost::Message as _;
use talon_agent_settings::milliseconds;
use talon_child::SharedRequests;
use talon_client::{CallError, Client, RequestFate};
use talon_extensions::EntryKey;
use talon_guard::Raw;
use talon_proto::host::{
    AckEventsRequest, Event, ExecuteRequest, ExecuteResponse, Extension, GetPluginRequest, GetStatusRequest,
    HostEvent, ListPluginsRequest, SubscribeRequest, WatchEventsRequest,
};
use talon_proto::plugin::PluginCapabilities;
use talon_proto::roles::proposes;
use tokio::net::UnixStream;
use tonic::{Code, Status};

use crate::bus::HostFeed;
use crate::driver::{CallUpdate, DeclaredPlugins, Host, HostCall, HostError, Progress};
use crate::hooks::{AcceptedJobs, EntryState, EntryStates, RoleCall, RoleCallError, RoleHost};
use crate::notify::HostEvents;
use crate::proposals::{Declaration, Declarations, withdrawn};

/// The most tools that are accepted from the supervisor, far more than a model can choose from. Further ones,
/// in the order of the plugins, are dropped and logged. `agent.allow` shortens the list.
const MAX_TOOLS: usize = 4096;
/// The largest total size of their declarations: a plugin may declare 4 MiB. Further ones are dropped and
/// logged.
const MAX_TOOLS_BYTES: usize = 32 << 20;
/// How many plugins are queried concurrently, so that a long list does not take one round trip per plugin.
const MAX_CONCURRENT_QUERIES: usize = 8;

/// Provides connections to the host.
#[async_trait]
pub trait HostConnector: Send + Sync {
    /// Returns a connected stream on which `talon.host.v1` is served. Called when there is no connection, or
    /// the last one broke.
    ///
    /// # Errors
    /// Why there is none. [`io::ErrorKind::NotFound`], `ConnectionRefused` and `WouldBlock` mean that there
    /// may be one soon, and are retried.
    async fn connect(&self) -> io::Result<UnixStream>;
}

/// The client of the supervisor's host service.
pub struct HostClient {
    client: Client,
    /// Lists of all actions.
    tools: SharedRequests<(), Result<Arc<DeclaredPlugins>, HostError>>,
}

impl HostClient {
    /// Connects at the first request. Must be called within a tokio runtime.
    #[must_use]
    pub fn new(connect: Arc<dyn HostConnector>) -> Self {
        let connect = move || {
            let connect = Arc::clone(&connect);
            Box::pin(async move { connect.connect().await }) as talon_client::Connecting
        };
        Self { client: Client::with_connector(Arc::new(connect)), tools: SharedRequests::default() }
    }

    /// What a plugin declares, for people.
    ///
    /// # Errors
    /// The supervisor's answer: NOT_FOUND if there is no such plugin (any more).
    async fn declared(&self, name: &str) -> Result<Option<PluginCapabilities>, Status> {
        declared(&self.client, name, false).await
    }
}

async fn declared(
    client: &Client,
    name: &str,
    for_model: bool,
) -> Result<Option<PluginCapabilities>, Status> {
    let requests = client.ask(|mut host| {
        let question = GetPluginRequest { name: name.to_owned(), for_model };
        async move { host.get_plugin(question).await }
    });
    Ok(requests.await?.into_inner().capabilities)
}

/// The actions of a plugin for a model; `None` if it stopped since it was listed.
async fn capabilities(client: &Client, name: &str) -> Result<Option<PluginCapabilities>, Status> {
    match declared(client, name, true).await {
        Err(status) if status.code() == Code::NotFound => Ok(None),
        answer => answer,
    }
}

/// The actions of all plugins for a model.
async fn list_tools(client: Client) -> Result<Arc<DeclaredPlugins>, HostError> {
    let client = &client;
    let listed = client.ask(|mut host| async move { host.list_plugins(ListPluginsRequest {}).await });
    let plugins = listed.await.map_err(unreachable)?.into_inner().plugins;
    let up = plugins.into_iter().filter(|plugin| plugin.desired == "up").map(|plugin| plugin.name);
    let requests = up.map(|name| async move {
        let capabilities = capabilities(client, &name).await?;
        Ok::<_, Status>(capabilities.map(|capabilities| (name, capabilities)))
    });
    let mut answers = futures_util::stream::iter(requests).buffered(MAX_CONCURRENT_QUERIES);
    let (mut offered, mut tools, mut bytes, mut left_out) = (Vec::new(), 0, 0, 0);
    while let Some(one) = answers.next().await {
        let Some((name, capabilities)) = one.map_err(unreachable)? else { continue };
        let (more_tools, more_bytes) = (capabilities.actions.len(), capabilities.encoded_len());
        if tools + more_tools > MAX_TOOLS || bytes + more_bytes > MAX_TOOLS_BYTES {
            left_out += more_tools;
            continue;
        }
        tools += more_tools;
        bytes += more_bytes;
        offered.push((name, capabilities));
    }
    if left_out > 0 {
        tracing::warn!(
            target: "agent", left_out,
            "more tools than a turn takes ({MAX_TOOLS}, {MAX_TOOLS_BYTES} bytes): name those that are needed in agent.allow"
        );
    }
    Ok(Arc::new(offered))
}

#[async_trait]
impl Host for HostClient {
    async fn tools(&self) -> Result<DeclaredPlugins, HostError> {
        self.tools.ask((), || list_tools(self.client.clone())).await.map(Arc::unwrap_or_clone)
    }

    async fn execute(
        &self,
        call: &HostCall,
        watch: &mut (dyn FnMut(CallUpdate) + Send),
    ) -> Result<ExecuteResponse, HostError> {
        let HostCall {
            plugin,
            action,
            args,
            arguments_json,
            context,
            within,
            takes_input_requests,
            input_response,
            trace,
            call_id,
            measured,
        } = call;
        let request = ExecuteRequest {
            plugin: plugin.clone(),
            action: action.clone(),
            // One form is enough: the supervisor makes the texts of the JSON, by the rule that made these.
            args: if arguments_json.is_empty() { args.clone() } else { Default::default() },
            arguments_json: arguments_json.clone(),
            context: context.clone(),
            call_id: call_id.clone(),
            for_model: true,
            within: within.clone(),
            takes_input_requests: *takes_input_requests,
            input_response: input_response.clone(),
            // What a model is not shown of them is named beside the result.
            wants_media: true,
            measured: *measured,
            ..ExecuteRequest::default()
        };
        let mut convert = |update: talon_client::CallUpdate<'_>| match update {
            talon_client::CallUpdate::Progress(said) => {
                let talon_proto::host::Progress { progress, total, message } = said.clone();
                watch(CallUpdate::Progress(Progress { progress, total, message }));
            }
            talon_client::CallUpdate::Output(output) => watch(CallUpdate::Output(output.clone())),
        };
        let trace_parent = trace.map(|position| position.header());
        let answer = self.client.execute_traced(request, trace_parent.as_deref(), Some(&mut convert)).await;
        answer.map_err(failed)
    }
}

#[async_trait]
impl RoleHost for HostClient {
    async fn call(&self, call: &RoleCall) -> Result<ExecuteResponse, RoleCallError> {
        let RoleCall { entry, plugin, action, arguments_json, deadline, call_id } = call;
        let request = ExecuteRequest {
            plugin: plugin.clone(),
            action: action.clone(),
            arguments_json: arguments_json.clone(),
            call_id: call_id.clone(),
            timeout_ms: milliseconds(*deadline),
            role: entry.role.as_str().to_owned(),
            extension: entry.name.clone(),
            ..ExecuteRequest::default()
        };
        let answer = self.client.execute_traced(request, None, None).await;
        answer.map_err(|error| RoleCallError(Raw::from(failed(error).to_string()).line().into_string()))
    }
}

#[async_trait]
impl EntryStates for HostClient {
    async fn entry_state(&self, entry: &EntryKey) -> Result<EntryState, RoleCallError> {
        let asked = self.client.ask(|mut host| async move { host.get_status(GetStatusRequest {}).await });
        let status =
            asked.await.map_err(|status| RoleCallError(unreachable(status).to_string()))?.into_inner();
        let is_it = |one: &Extension| one.role == entry.role.as_str() && one.name == entry.name;
        let Some(found) = status.extensions.into_iter().find(is_it) else {
            return Ok(EntryState::Waiting(format!("the supervisor has no entry {entry} yet")));
        };
        Ok(match found.state.as_str() {
            "ready" => EntryState::Ready { declares_role: found.declared },
            "waiting" => EntryState::Waiting(found.reason),
            _ => EntryState::Failing(found.reason),
        })
    }
}

#[async_trait]
impl AcceptedJobs for HostClient {
    async fn accepted_job_state(&self, job: &str, action: &str) -> Result<EntryState, RoleCallError> {
        let (plugin, name) = action.split_once('.').unwrap_or((action, ""));
        let declared = match self.declared(plugin).await {
            Ok(Some(declared)) => declared,
            Ok(None) => return Ok(EntryState::Waiting(format!("{plugin} has not said what it offers"))),
            Err(status) if status.code() == Code::NotFound => {
                return Ok(EntryState::Failing(format!(
                    "there is no plugin {plugin}; {}",
                    withdrawn(job, action)
                )));
            }
            Err(status) => return Err(RoleCallError(unreachable(status).to_string())),
        };
        let action_of_name = declared.actions.iter().find(|declared| declared.name == name);
        Ok(match action_of_name {
            Some(found) if proposes(found, plugin, job) => EntryState::Ready { declares_role: true },
            _ => EntryState::Failing(withdrawn(job, action)),
        })
    }
}

#[async_trait]
impl Declarations for HostClient {
    async fn declarations(&self) -> Result<Vec<Declaration>, RoleCallError> {
        let failed = |status| RoleCallError(unreachable(status).to_string());
        let listed =
            self.client.ask(|mut host| async move { host.list_plugins(ListPluginsRequest {}).await });
        let plugins = listed.await.map_err(failed)?.into_inner().plugins;
        let requests = plugins.into_iter().map(|plugin| async move {
            match self.declared(&plugin.name).await {
                Ok(declared) => {
                    let actions = declared.map(|declared| declared.actions);
                    Ok(Some(Declaration { plugin: plugin.name, actions }))
                }
                Err(status) if status.code() == Code::NotFound => Ok(None),
                Err(status) => Err(status),
            }
        });
        let mut answers = futures_util::stream::iter(requests).buffered(MAX_CONCURRENT_QUERIES);
        let mut declarations = Vec::new();
        while let Some(one) = answers.next().await {
            declarations.extend(one.map_err(failed)?);
        }
        Ok(declarations)
    }
}

#[async_trait]
impl HostFeed for HostClient {
    async fn events(&self) -> Result<BoxStream<'static, Result<Event, Status>>, Status> {
        // Those of calls would wake the agent for each call.
        let request = WatchEventsRequest { plugin: String::new(), without_calls: true };
        let stream = self.client.ask(|mut host| {
            let request = request.clone();
            async move { host.watch_events(request).await }
        });
        Ok(stream.await?.into_inner().boxed())
    }
}

/// The supervisor's events of one source.
pub(crate) struct EventStream {
    host: Arc<HostClient>,
    source: &'static str,
}

impl EventStream {
    /// The supervisor's own events.
    pub(crate) fn of_supervisor(host: Arc<HostClient>) -> Self {
        Self { host, source: "" }
    }

    /// The events that plugins tell.
    pub(crate) fn of_plugins(host: Arc<HostClient>) -> Self {
        Self { host, source: "plugins" }
    }
}

#[async_trait]
impl HostEvents for EventStream {
    async fn subscribe(&self, after: u64) -> Result<BoxStream<'static, Result<HostEvent, Status>>, Status> {
        let request = SubscribeRequest { after, kept_only: false, source: self.source.to_owned() };
        let client = &self.host.client;
        let stream = client.ask(|mut host| {
            let request = request.clone();
            async move { host.subscribe(request).await }
        });
        Ok(stream.await?.into_inner().boxed())
    }

    async fn acknowledge(&self, through: u64) -> Result<(), Status> {
        let request = AckEventsRequest { through, source: self.source.to_owned() };
        let client = &self.host.client;
        let answer = client.ask(|mut host| {
            let request = request.clone();
            async move { host.ack_events(request).await }
        });
        answer.await.map(drop)
    }
}

fn unreachable(status: Status) -> HostError {
    let why = talon_client::connect_error(&status)
        .map_or_else(|| status.message().to_owned(), io::Error::to_string);
    HostError::Unknown { why }
}

/// Whether a call without an answer may have been made.
fn failed(error: CallError) -> HostError {
    let why = error.to_string();
    // The supervisor returns these codes before it calls a plugin; it may return others afterwards.
    let refused = [Code::InvalidArgument, Code::PermissionDenied, Code::FailedPrecondition];
    match error.fate {
        RequestFate::NotStarted => HostError::NotMade { why },
        RequestFate::Answered if refused.contains(&error.status.code()) => HostError::NotMade { why },
        RequestFate::Answered | RequestFate::Unknown => HostError::Unknown { why },
    }
}

#[cfg(test)]
mod tests;
