//! Calls to plugins that do not exist, or that the caller may not know of.

use std::task::{Context, Poll};

use talon_guard::{Call, CallError, Directory, RawAnswer, Target};
use talon_plugin::Registry;
use tower::Service;

use super::directory::names;

/// Resolves no plugin. It knows the names of the existing ones, for the text of the refusal.
#[derive(Clone)]
pub(super) struct UnknownPluginDirectory {
    pub(super) registry: Registry,
}

impl Directory for UnknownPluginDirectory {
    fn target(&self, _: &str) -> Option<Target> {
        None
    }

    fn names(&self) -> Vec<String> {
        names(&self.registry)
    }
}

/// The bottom of the stack for unknown plugins. `resolve` refuses those calls, so it is never reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnknownPluginService;

/// `resolve` accepted a call to a plugin that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("a call to the unknown plugin {0:?} came through resolve")]
struct UnexpectedCallError(String);

impl Service<Call> for UnknownPluginService {
    type Response = RawAnswer;
    type Error = CallError;
    type Future = std::future::Ready<Result<RawAnswer, CallError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        std::future::ready(Err(CallError::defect(UnexpectedCallError(call.plugin.to_string()))))
    }
}
