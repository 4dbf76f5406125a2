//! Turns every error below into an error result, so that a caller always gets an answer.
//!
//! It stands inside sanitize because error texts come from plugins too: a gRPC status message, a declared
//! parameter name in a refusal. It stands outside validate, so that an answer that is not accepted becomes an
//! error result like any other refusal.
//!
//! The caller gets [`CallError`]'s `Display`; the log gets the whole chain:
//!
//! | error | log |
//! |---|---|
//! | defect | `error`, always |
//! | fault | `warn`, always |
//! | refusal with a cause | `warn`: the cause is attached for the log |
//! | refusal without one | `debug`: the caller got the whole error |

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::Answer;
use crate::call::Call;
use crate::call_when_ready::{CallWhenReady, call_when_ready};
use crate::error::CallError;
use talon_sanitize::prefix;

/// How much of an error's chain one log line holds. A cause may quote a plugin; 4 KiB is a screenful.
const MAX_LOGGED_BYTES: usize = 4096;

/// How much of a call's id or plugin name one log line holds: by contract they are at most 128 and 64
/// characters.
const MAX_NAME_BYTES: usize = 128;

/// Makes [`Rescue`] services.
#[derive(Debug, Clone, Copy, Default)]
pub struct RescueLayer;

impl RescueLayer {
    /// The layer has no settings.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl<S> Layer<S> for RescueLayer {
    type Service = Rescue<S>;
    fn layer(&self, inner: S) -> Rescue<S> {
        Rescue { inner }
    }
}

/// Never fails: see the [module](self).
#[derive(Debug, Clone)]
pub struct Rescue<S> {
    inner: S,
}

impl<S> Service<Call> for Rescue<S>
where
    S: Service<Call, Response = Answer> + Clone,
    S::Error: Into<CallError>,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = ResponseFuture<S>;

    /// Always ready: an inner service that fails to become ready has to become an answer too, so the call
    /// waits for it.
    #[inline]
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, call: Call) -> Self::Future {
        ResponseFuture {
            id: call.id.clone(),
            plugin: call.plugin.clone(),
            future: call_when_ready(&mut self.inner, call),
        }
    }
}

pin_project! {
    /// The answer to one call.
    pub struct ResponseFuture<S>
    where
        S: Service<Call>,
    {
        #[pin]
        future: CallWhenReady<S>,
        id: Arc<str>,
        plugin: Arc<str>,
    }
}

impl<S> Future for ResponseFuture<S>
where
    S: Service<Call, Response = Answer>,
    S::Error: Into<CallError>,
{
    type Output = Result<Answer, Infallible>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = match ready!(this.future.poll(cx)) {
            Ok(answer) => answer,
            Err(error) => {
                let error = error.into();
                log(&error, this.id, this.plugin);
                answer(&error)
            }
        };
        Poll::Ready(Ok(answer))
    }
}

/// The error as a result. An error without a text would look like an empty success, so it gets one.
fn answer(error: &CallError) -> Answer {
    let mut text = error.to_string();
    if text.is_empty() {
        text = format!("the call failed ({})", error.reason());
    }
    Answer::from_host(error.outcome(), text)
}

fn log(error: &CallError, call_id: &str, plugin: &str) {
    // The caller may have made up both.
    let (call_id, plugin) = (prefix(call_id, MAX_NAME_BYTES), prefix(plugin, MAX_NAME_BYTES));
    let reason = error.reason();
    let whole = error.detail();
    // A string field, which subscribers escape: line breaks and escape sequences of a plugin cannot forge log
    // lines.
    let detail = prefix(&whole, MAX_LOGGED_BYTES);
    match error {
        CallError::Defect { .. } => {
            tracing::error!(call_id, plugin, reason, detail, "defect in the host");
        }
        // The plugin's state change was logged when it happened; here each call would repeat it.
        CallError::Fault { reason: crate::reason::UNAVAILABLE, .. } => {
            tracing::debug!(call_id, plugin, reason, detail, "the plugin is not available");
        }
        CallError::Fault { .. } => {
            tracing::warn!(call_id, plugin, reason, detail, "the plugin failed a call");
        }
        CallError::Refused { source: Some(_), .. } => {
            tracing::warn!(call_id, plugin, reason, detail, "a call was refused");
        }
        CallError::Refused { .. } => {
            tracing::debug!(call_id, plugin, reason, detail, "a call was refused");
        }
    }
}

#[cfg(test)]
mod tests;
