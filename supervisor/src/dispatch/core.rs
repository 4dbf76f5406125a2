//! The supervisor's own actions, called like a plugin's: `talon.read_more`.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use talon_guard::{Actions, Answer, Call, CallError, Directory, Outcome, Pages, Readiness, Target};
use talon_plugin::Registry;
use talon_plugin_config::name::RESERVED_NAME;
use talon_proto::plugin::{Action, Parameter, PluginCapabilities};
use tower::Service;

/// Reads the next page of a text that exceeded its limit.
pub(super) const READ_MORE: &str = "read_more";

/// The capabilities of the supervisor itself.
pub(super) fn capabilities() -> PluginCapabilities {
    let parameter = |name: &str, kind: &str, required, schema: &str, description: &str| Parameter {
        name: name.to_owned(),
        description: description.to_owned(),
        r#type: kind.to_owned(),
        required,
        schema: schema.to_owned(),
    };
    let read_more = Action {
        name: READ_MORE.to_owned(),
        description:
            "Reads on in an answer that was too long to be shown whole: one page of it from an offset on. \
                      structured_content tells next_offset, which is null behind the last page."
                .to_owned(),
        parameters: vec![
            parameter(
                "handle",
                "string",
                true,
                "",
                "The handle in the notice of the answer that was too long",
            ),
            parameter(
                "offset",
                "integer",
                false,
                r#"{"minimum": 0}"#,
                "Where to begin, in bytes; 0 if left out",
            ),
        ],
        read_only: true,
        ..Action::default()
    };
    PluginCapabilities {
        name: RESERVED_NAME.to_owned(),
        description: "The supervisor's own actions".to_owned(),
        actions: vec![read_more],
        ..PluginCapabilities::default()
    }
}

/// How `resolve` sees the supervisor's own actions.
#[derive(Clone)]
pub(super) struct CoreDirectory {
    registry: Registry,
    actions: Arc<Actions>,
}

impl CoreDirectory {
    pub(super) fn new(registry: Registry) -> Self {
        let actions =
            capabilities().actions.into_iter().map(|action| (action.name.clone(), action)).collect();
        Self { registry, actions: Arc::new(actions) }
    }
}

impl Directory for CoreDirectory {
    fn target(&self, plugin: &str) -> Option<Target> {
        (plugin == RESERVED_NAME).then(|| Target {
            declared_name: RESERVED_NAME.to_owned(),
            actions: Arc::clone(&self.actions),
            withheld: Arc::default(),
            ready: Readiness::Known,
        })
    }

    fn names(&self) -> Vec<String> {
        super::directory::names(&self.registry)
    }
}

/// Executes the supervisor's own actions, after `resolve` has accepted the call.
#[derive(Clone)]
pub(super) struct Core {
    pub(super) pages: Pages,
    /// How large a page may be.
    pub(super) page_bytes: usize,
}

impl Core {
    fn read_more(&self, call: &Call) -> Answer {
        let handle = call.args.get("handle").map(String::as_str).unwrap_or_default();
        // Resolve has checked that it is an integer of at least 0. One that does not fit into a usize is
        // beyond every end.
        let offset = match call.args.get("offset").map(|offset| offset.parse()) {
            None => 0,
            Some(offset) => offset.unwrap_or(usize::MAX),
        };
        match self.pages.read(&call.scope, handle, offset, self.page_bytes) {
            Ok(page) => page.into_answer(),
            Err(error) => Answer::from_host(Outcome::ToolError, error.to_string()),
        }
    }
}

impl Service<Call> for Core {
    type Response = Answer;
    type Error = CallError;
    type Future = Ready<Result<Answer, CallError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        ready(Ok(self.read_more(&call)))
    }
}
