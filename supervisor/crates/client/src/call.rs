//! One call of an action, repeated where that is safe.

use std::pin::{Pin, pin};
use std::time::Duration;

use talon_proto::host::{
    CallOutput, ExecuteRequest, ExecuteResponse, GetPluginRequest, GetPluginResponse, Progress,
    execute_update,
};
use talon_trace_context::TRACE_PARENT;
use tokio::time::{Instant, timeout_at};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Request, Status};

use crate::client::Client;
use crate::request_fate::RequestFate;
use crate::retry_window::RetryWindow;

/// How much later than the caller's timeout an answer may come: the supervisor itself ends the call in time,
/// and its answer says more than a timeout of the client. After this slack there will be no answer.
const ANSWER_SLACK: Duration = Duration::from_secs(1);

/// What is said of a call while it runs.
#[derive(Debug, Clone, Copy)]
pub enum CallUpdate<'u> {
    /// How far it has come.
    Progress(&'u Progress),
    /// What it puts out.
    Output(&'u CallOutput),
}

/// A failed call.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.text())]
pub struct CallError {
    /// Whether the call may have been executed.
    pub fate: RequestFate,
    /// The last error.
    pub status: Box<Status>,
}

impl CallError {
    fn text(&self) -> String {
        let said = self.status.message();
        match self.fate {
            RequestFate::Answered => said.to_owned(),
            RequestFate::NotStarted => format!("{said}; the call was not begun, and can be repeated"),
            RequestFate::Unknown => format!(
                "{said}; whether the call took effect is not known, and its action is not declared read_only: look before it is \
                 repeated"
            ),
        }
    }
}

impl Client {
    /// Calls an action. It is repeated if the supervisor is replaced meanwhile, and the call was not started
    /// or its action is `read_only`. All attempts together take no longer than the request's own timeout.
    ///
    /// # Errors
    /// [`CallError`]. Errors of the tool and refusals of the guard are answers.
    pub async fn execute(&self, request: ExecuteRequest) -> Result<ExecuteResponse, CallError> {
        self.execute_watched(request, None).await
    }

    /// Like [`Client::execute`]; `watch` receives progress and output.
    ///
    /// # Errors
    /// As [`Client::execute`].
    pub async fn execute_watched(
        &self,
        request: ExecuteRequest,
        watch: Option<&mut (dyn FnMut(CallUpdate<'_>) + Send)>,
    ) -> Result<ExecuteResponse, CallError> {
        self.execute_traced(request, None, watch).await
    }

    /// Like [`Client::execute_watched`], as a part of a trace: `trace_parent` is the header `traceparent` of W3C Trace
    /// Context. One that is no header's value counts as none.
    ///
    /// # Errors
    /// As [`Client::execute`].
    pub async fn execute_traced(
        &self,
        mut request: ExecuteRequest,
        trace_parent: Option<&str>,
        mut watch: Option<&mut (dyn FnMut(CallUpdate<'_>) + Send)>,
    ) -> Result<ExecuteResponse, CallError> {
        let trace_parent = trace_parent.and_then(|text| text.parse().ok());
        let timeout = (request.timeout_ms > 0).then(|| Duration::from_millis(request.timeout_ms));
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut patience = RetryWindow::new(deadline);
        // Once an attempt may have started the call, that stays so, whatever later attempts report.
        let mut begun = false;
        loop {
            let status = match with_deadline(
                deadline,
                pin!(self.try_once(with_trace(request.clone(), trace_parent.as_ref()), &mut watch)),
            )
            .await
            {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            let known = RequestFate::from_status(&status);
            begun |= known == RequestFate::Unknown;
            let failed = |status: Status| {
                let known =
                    if known == RequestFate::NotStarted && begun { RequestFate::Unknown } else { known };
                CallError { fate: known, status: Box::new(status) }
            };
            if known == RequestFate::Answered || !self.wait_for_supervisor(&status, &mut patience).await {
                return Err(failed(status));
            }
            if known == RequestFate::Unknown && !self.is_read_only(&request, &mut patience).await {
                return Err(failed(status));
            }
            if let Some(deadline) = deadline {
                let left = deadline.saturating_duration_since(Instant::now()).as_millis();
                request.timeout_ms = u64::try_from(left).unwrap_or(u64::MAX).max(1);
            }
        }
    }

    async fn try_once(
        &self,
        request: Request<ExecuteRequest>,
        watch: &mut Option<&mut (dyn FnMut(CallUpdate<'_>) + Send)>,
    ) -> Result<ExecuteResponse, Status> {
        let Some(watch) = watch else {
            let _counted = self.calls.begin();
            let mut host = self.host();
            let answer = self.busy_poll.wait(pin!(host.execute(request))).await;
            return answer.map(tonic::Response::into_inner);
        };
        let mut updates = self.host().execute_streaming(request).await?.into_inner();
        while let Some(update) = updates.message().await? {
            match update.kind {
                Some(execute_update::Kind::Progress(progress)) => watch(CallUpdate::Progress(&progress)),
                Some(execute_update::Kind::Output(output)) => watch(CallUpdate::Output(&output)),
                Some(execute_update::Kind::Done(answer)) => return Ok(answer),
                // A later supervisor may send other updates.
                None => {}
            }
        }
        Err(Status::internal("the supervisor ended the call without an answer"))
    }

    /// Whether the current version of the action declares that it has no side effects. Asked after the
    /// connection broke, because a repetition calls the current version.
    async fn is_read_only(&self, request: &ExecuteRequest, patience: &mut RetryWindow) -> bool {
        loop {
            let question = GetPluginRequest { name: request.plugin.clone(), for_model: request.for_model };
            let status = match self.host().get_plugin(question).await {
                Ok(answer) => match declared_read_only(&answer.into_inner(), &request.action) {
                    Some(read_only) => return read_only,
                    // It was just started, and has not declared its capabilities yet.
                    None => Status::unavailable("its plugin has not declared anything yet"),
                },
                Err(status) if RequestFate::from_status(&status) == RequestFate::Answered => return false,
                Err(status) => status,
            };
            if !self.wait_for_supervisor(&status, patience).await {
                return false;
            }
        }
    }
}

/// A request with its position in a trace.
pub(crate) fn with_trace<R>(request: R, parent: Option<&MetadataValue<Ascii>>) -> Request<R> {
    let mut request = Request::new(request);
    if let Some(parent) = parent {
        request.metadata_mut().insert(TRACE_PARENT, parent.clone());
    }
    request
}

/// What a plugin declares about an action; `None` while it has declared nothing.
fn declared_read_only(plugin: &GetPluginResponse, action: &str) -> Option<bool> {
    let actions = &plugin.capabilities.as_ref()?.actions;
    if actions.is_empty() {
        return None;
    }
    Some(actions.iter().any(|one| one.name == action && one.read_only))
}

async fn with_deadline<T>(
    deadline: Option<Instant>,
    call: Pin<&mut impl Future<Output = Result<T, Status>>>,
) -> Result<T, Status> {
    let Some(deadline) = deadline else { return call.await };
    match timeout_at(deadline + ANSWER_SLACK, call).await {
        Ok(answer) => answer,
        Err(elapsed) => Err(Status::from_error(Box::new(elapsed))),
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
