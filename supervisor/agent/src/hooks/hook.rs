//! One hook: its arguments, its call, its verdict.

use std::time::Duration;

use serde_json::{Map, Value};
use talon_extensions::contract::{HookRequest, HookVerdict, VerdictError, VerdictOutcome};
use talon_extensions::template::{self, TemplateError};
use talon_extensions::{EntryKey, HookEntry, Role};
use talon_proto::host::{ExecuteResponse, Outcome};

use super::role_host::{RoleCall, RoleCallError, RoleHost};

/// How long the supervisor may take beyond the deadline until it says that the plugin passed it. 2 s: usually it takes
/// milliseconds, and without an answer the hook counts as failed all the same.
const DEADLINE_GRACE: Duration = Duration::from_secs(2);
/// How much of an error's text is shown and stored.
const MAX_ERROR_CHARS: usize = 300;

/// Why a hook gave no verdict that counts. Its text ends what begins with the hook's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// Its arguments cannot be made.
    #[error("its arguments cannot be made: {0}")]
    Arguments(#[from] TemplateError),
    /// The supervisor could not be asked.
    #[error("the supervisor did not make its call: {0}")]
    Host(#[from] RoleCallError),
    /// It did not answer in time, and neither did the supervisor.
    #[error("it did not answer within {} ms", .0.as_millis())]
    Late(Duration),
    /// The plugin or the guard said no.
    #[error("it gave no verdict ({reason}): {error}")]
    Refused {
        /// The reason's word.
        reason: String,
        /// The text, sanitized by the supervisor.
        error: String,
    },
    /// The plugin asks the person something, which a hook cannot.
    #[error("it asks a question, and a hook gets no answer")]
    Question,
    /// A limit cut its answer.
    #[error("its answer is larger than 1 MiB, or was cut at a limit of its plugin")]
    Cut,
    /// There is no structured answer.
    #[error("its answer has no structured content that is a JSON object")]
    Unstructured,
    /// The answer is no verdict that its entry allows.
    #[error(transparent)]
    Verdict(#[from] VerdictError),
}

/// A hook's answer, with the arguments that it was asked with.
#[derive(Debug, Clone, PartialEq)]
pub struct HookAnswer {
    /// The arguments, as they were sent.
    pub arguments: Map<String, Value>,
    /// The verdict; `Err` is a failure, to which the entry's policy applies.
    pub verdict: Result<VerdictOutcome, HookError>,
}

/// Asks one hook.
pub async fn ask(host: &dyn RoleHost, role: Role, entry: &HookEntry, request: &HookRequest) -> HookAnswer {
    let arguments = match arguments(entry, request) {
        Ok(arguments) => arguments,
        Err(error) => return HookAnswer { arguments: Map::new(), verdict: Err(error.into()) },
    };
    let (plugin, action) = entry.action.split_once('.').unwrap_or((&entry.action, ""));
    let call = RoleCall {
        entry: EntryKey { role, name: entry.name().to_owned() },
        plugin: plugin.to_owned(),
        action: action.to_owned(),
        // Maps with string keys serialize.
        arguments_json: serde_json::to_string(&arguments).unwrap_or_default(),
        deadline: entry.deadline(),
        call_id: String::new(),
    };
    let late = entry.deadline() + DEADLINE_GRACE;
    let verdict = match tokio::time::timeout(late, host.call(&call)).await {
        Err(_) => Err(HookError::Late(entry.deadline())),
        Ok(Err(error)) => Err(HookError::Host(error)),
        Ok(Ok(response)) => verdict(role, entry, &response),
    };
    HookAnswer { arguments, verdict }
}

/// The arguments: the entry's template, or those of the role.
fn arguments(entry: &HookEntry, request: &HookRequest) -> Result<Map<String, Value>, TemplateError> {
    // The type has string keys only.
    let values = serde_json::to_value(request).unwrap_or_default();
    match (&entry.args, values) {
        (Some(args), values) => template::render(args, &values),
        (None, Value::Object(values)) => Ok(values),
        (None, _) => Ok(Map::new()),
    }
}

fn verdict(role: Role, entry: &HookEntry, response: &ExecuteResponse) -> Result<VerdictOutcome, HookError> {
    if response.outcome() != Outcome::Ok {
        let cut = |text: &str| text.chars().take(MAX_ERROR_CHARS).collect();
        return Err(HookError::Refused { reason: cut(&response.reason), error: cut(&response.error) });
    }
    if response.input_request.is_some() {
        return Err(HookError::Question);
    }
    if response.report.as_ref().is_some_and(|report| report.truncated) {
        return Err(HookError::Cut);
    }
    // Servers of protocols without structured answers write the JSON as text.
    let text =
        [&response.structured_content, &response.content].into_iter().find(|text| !text.trim().is_empty());
    let structured: Value =
        text.and_then(|text| serde_json::from_str(text).ok()).ok_or(HookError::Unstructured)?;
    if !structured.is_object() {
        return Err(HookError::Unstructured);
    }
    Ok(HookVerdict::parse(&structured)?.judge(role, entry)?)
}
