//! Which call a server's progress belongs to.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::ProgressToken;
use talon_sdk::Context;

/// The calls in flight, by the progress token that the server got with each.
#[derive(Clone, Default)]
pub(crate) struct Progress {
    calls: Arc<Mutex<HashMap<ProgressToken, Context>>>,
}

impl Progress {
    /// Until the guard is dropped, progress with this token belongs to that call.
    pub(crate) fn watch(&self, token: ProgressToken, call: Context) -> ProgressGuard {
        self.calls.lock().insert(token.clone(), call);
        ProgressGuard { progress: self.clone(), token }
    }

    /// Passes on a log message of the server as output of the call in flight. A message does not say which call it belongs to, so
    /// with several in flight it is of none.
    pub(crate) fn output(&self, text: &str) {
        let calls = self.calls.lock();
        let mut in_flight = calls.values();
        let only = in_flight.next().filter(|_| in_flight.next().is_none()).cloned();
        drop(calls);
        if let Some(call) = only {
            call.output(text);
        }
    }

    /// Passes a server's progress on. Progress of a finished call is dropped.
    pub(crate) fn report(&self, token: &ProgressToken, progress: f64, total: Option<f64>, message: &str) {
        let call = self.calls.lock().get(token).cloned();
        if let Some(call) = call {
            call.progress(progress, total, message);
        }
    }
}

/// One call whose progress is passed on.
pub(crate) struct ProgressGuard {
    progress: Progress,
    token: ProgressToken,
}

impl Drop for ProgressGuard {
    fn drop(&mut self) {
        self.progress.calls.lock().remove(&self.token);
    }
}
