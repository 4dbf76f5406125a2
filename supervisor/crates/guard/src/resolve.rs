//! Checks a call against what its plugin declared, before anything of it reaches the plugin.
//!
//! It checks in this order: the caller is granted the action; the plugin exists; its capabilities are known;
//! it has the action; the action is what was approved; the caller may run it (`user_only` is for people and
//! programs, not for models, and so is an action that only plays roles); the arguments are not too large; and each argument is known, present where
//! required and of its type (see [`arguments`](self#arguments)). Then it sets the host's own values: the
//! declared name, the session context that the action asks for *and* the operator grants, and the operator's
//! credentials. A refusal lists all problems of the arguments at once, with the nearest names, so that a
//! model can repair its call in one step.
//!
//! The directory is read on each call, so refreshed capabilities take effect at once. A plugin whose
//! capabilities were never read is refused as `unavailable`, retryable: without them it is unknown whether a
//! model may run the action.
//!
//! # Arguments
//!
//! Arguments are strings on the wire, or JSON ([`CallFields::json`](crate::CallFields::json)), or both.
//! As strings: `type` says how to parse one: `string` (and the empty type) unchanged,
//! `integer`, `number` and `boolean` in their JSON spelling (`5`, `-1.5`, `true`), `array` and `object` as
//! JSON text. An unknown type is not checked. The value is then checked against the parameter's JSON Schema
//! fragment: `type`, `enum`, `const`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`,
//! `minLength`, `maxLength`, `pattern`, `items`, `required` and `properties`. Other keywords are ignored, and
//! so is a schema that is not a JSON object or is too large: the check spares a plugin mistaken calls, it
//! does not replace the plugin's own checks.
//!
//! As JSON a value has a type of its own, which has to be one that the parameter takes: by its `type`, with
//! `null` where the schema admits it, or by the schema alone where the type is none of JSON Schema. Two
//! things that models do are put right, in both forms: a string where no string is taken is read as its text
//! would be (`"3"` is 3), and `null` for an optional parameter that takes none is left out.
//!
//! A required parameter whose schema has a `default` may be missing.
//!
//! An argument named in `inject_context_args` is set by the host: a caller that sends it is refused, and it
//! never counts as missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use talon_arguments::Arguments;
use talon_proto::plugin::{Action, CredentialHeader};
use talon_proto::roles::is_tool;
use tower_layer::Layer;
use tower_service::Service;

use crate::call::{Call, CallFields, Origin};
use crate::call_when_ready::{CallWhenReady, POLLED_AFTER_END, call_when_ready};
use crate::error::CallError;

mod actions;
mod arguments;
mod error;
mod schema;

pub use actions::Actions;
pub use arguments::Problems;
pub use error::{ResolveError, Suggestions};
use schema::Patterns;

/// The limit for all arguments of a call, names and values, in each of their two forms: 1 MiB, as the issue asks. Larger input belongs in
/// a file whose path the tool gets. Set with [`ResolveLayer::max_argument_bytes`].
pub const DEFAULT_MAX_ARGUMENT_BYTES: usize = 1024 * 1024;

/// The plugins that calls can be made to. Read on each call.
pub trait Directory: Clone + Send + Sync + 'static {
    /// The plugin with this configured name; `None` if there is none.
    fn target(&self, plugin: &str) -> Option<Target>;
    /// The configured names of all plugins, for "did you mean" in the refusal.
    fn names(&self) -> Vec<String>;
}

/// One plugin, as `resolve` sees it.
#[derive(Debug, Clone)]
pub struct Target {
    /// The name it declared for itself.
    pub declared_name: String,
    /// Its actions by name. Shared for as long as the declaration stays the same, because the parsed schemas
    /// are cached in it.
    pub actions: Arc<Actions>,
    /// Actions that are refused because they differ from what was approved.
    pub withheld: Arc<BTreeSet<String>>,
    /// Whether its actions are known.
    pub ready: Readiness,
}

/// Whether a plugin's capabilities are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// They were read, now or from an earlier process.
    Known,
    /// They were never read: the call is refused as `unavailable`.
    NotYet {
        /// Why, in words that end with what to do next, such as `it is starting; try again in a moment`.
        reason: String,
        /// Whether waiting helps; it does not for a plugin that failed for good or is switched off.
        retryable: bool,
    },
}

/// Which of the host's values the operator grants to one plugin. Default: none.
#[derive(Clone, Default, PartialEq)]
pub struct ContextGrants {
    /// Names of session-context values it may be given, if its action asks for them.
    pub context: BTreeSet<String>,
    /// Credentials that are sent with each of its calls.
    pub credentials: BTreeMap<String, CredentialHeader>,
}

/// Shows the names of the credentials, never their values.
impl fmt::Debug for ContextGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grants")
            .field("context", &self.context)
            .field("credentials", &self.credentials.keys())
            .finish()
    }
}

/// Makes [`Resolve`] services.
#[derive(Debug, Clone)]
pub struct ResolveLayer<D> {
    rules: Rules<D>,
}

impl<D: Directory> ResolveLayer<D> {
    /// A layer that looks plugins up in `directory` and gives them what `grants` holds.
    #[must_use]
    pub fn new(directory: D, grants: ContextGrants) -> Self {
        let patterns = Arc::default();
        let max_argument_bytes = DEFAULT_MAX_ARGUMENT_BYTES;
        Self { rules: Rules { directory, grants: Arc::new(grants), max_argument_bytes, patterns } }
    }

    /// Limits the size of the arguments, names and values, injected ones included. Default
    /// [`DEFAULT_MAX_ARGUMENT_BYTES`].
    #[must_use]
    pub fn max_argument_bytes(mut self, bytes: usize) -> Self {
        self.rules.max_argument_bytes = bytes;
        self
    }
}

impl<D: Clone, S> Layer<S> for ResolveLayer<D> {
    type Service = Resolve<D, S>;
    fn layer(&self, inner: S) -> Resolve<D, S> {
        Resolve { rules: self.rules.clone(), inner }
    }
}

/// Refuses calls that the plugin's declaration does not allow: see the [module](self).
#[derive(Debug, Clone)]
pub struct Resolve<D, S> {
    rules: Rules<D>,
    inner: S,
}

#[derive(Debug, Clone)]
struct Rules<D> {
    directory: D,
    grants: Arc<ContextGrants>,
    max_argument_bytes: usize,
    patterns: Arc<Patterns>,
}

impl<D: Directory> Rules<D> {
    /// Checks the call and sets the host's values.
    fn apply(&self, call: &mut Call) -> Result<(), ResolveError> {
        if !call.is_granted() {
            return Err(ResolveError::not_granted(call));
        }
        let Some(target) = self.directory.target(&call.plugin) else {
            return Err(ResolveError::unknown_plugin(call, &self.directory.names()));
        };
        if let Readiness::NotYet { reason, retryable } = target.ready {
            return Err(ResolveError::NotAvailable { plugin: call.plugin.to_string(), reason, retryable });
        }
        let Some(found) = target.actions.get(&call.action) else {
            return Err(ResolveError::unknown_action(call, &target.actions));
        };
        let action = found.action();
        if target.withheld.contains(&call.action) {
            return Err(ResolveError::changed(call));
        }
        if action.user_only && call.origin == Origin::Model {
            return Err(ResolveError::UserOnly { action: call.action.clone() });
        }
        if call.origin == Origin::Model && !is_tool(action) {
            return Err(ResolveError::RoleOnly { action: call.action.clone() });
        }
        if let Some(error) = call.arguments_error.take() {
            return Err(ResolveError::UnusableArguments { action: call.action.clone(), error });
        }
        self.check_size(call)?;
        let CallFields { args, json, .. } = &mut **call;
        let problems = match json {
            Some(json) => arguments::check_json(found, json, args, &self.patterns),
            None => arguments::check(found, args, &self.patterns),
        };
        if !problems.is_empty() {
            return Err(ResolveError::bad_arguments(call, action, problems));
        }
        self.inject(call, action)?;
        call.declared_name = target.declared_name;
        call.credentials.clone_from(&self.grants.credentials);
        Ok(())
    }

    fn check_size(&self, call: &Call) -> Result<(), ResolveError> {
        let texts = call.args.iter().map(|(name, value)| name.len() + value.len()).sum();
        let bytes = call.json.as_ref().map_or(0, Arguments::bytes).max(texts);
        let limit = self.max_argument_bytes;
        if bytes <= limit {
            return Ok(());
        }
        Err(ResolveError::ArgumentsTooLarge { action: call.action.clone(), bytes, limit })
    }

    /// Sets the context values that the session has, the operator grants and the action asks for. Empty
    /// values are not sent.
    fn inject(&self, call: &mut Call, action: &Action) -> Result<(), ResolveError> {
        let wanted = action.inject_context_args.iter().filter(|name| self.grants.context.contains(*name));
        let mut injected = false;
        let CallFields { context, args, json, .. } = &mut **call;
        for name in wanted {
            if let Some(value) = context.get(name).filter(|value| !value.is_empty()) {
                args.insert(name.clone(), value.clone());
                if let Some(json) = json {
                    json.insert_string(name, value);
                }
                injected = true;
            }
        }
        if injected { self.check_size(call) } else { Ok(()) }
    }
}

impl<D, S> Service<Call> for Resolve<D, S>
where
    D: Directory,
    S: Service<Call> + Clone,
    S::Error: Into<CallError>,
{
    type Response = S::Response;
    type Error = CallError;
    type Future = ResponseFuture<S>;

    /// Always ready: a refused call must not wait for the plugin.
    #[inline]
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, mut call: Call) -> Self::Future {
        match self.rules.apply(&mut call) {
            Ok(()) => ResponseFuture { future: Some(call_when_ready(&mut self.inner, call)), refused: None },
            Err(error) => ResponseFuture { future: None, refused: Some(Box::new(error)) },
        }
    }
}

pin_project! {
    /// The answer to one call, or a refusal.
    pub struct ResponseFuture<S>
    where
        S: Service<Call>,
    {
        #[pin]
        future: Option<CallWhenReady<S>>,
        refused: Option<Box<ResolveError>>,
    }
}

impl<S> Future for ResponseFuture<S>
where
    S: Service<Call>,
    S::Error: Into<CallError>,
{
    type Output = Result<S::Response, CallError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        match this.future.as_mut().as_pin_mut() {
            Some(future) => Poll::Ready(ready!(future.poll(cx)).map_err(Into::into)),
            None => Poll::Ready(Err((*this.refused.take().expect(POLLED_AFTER_END)).into())),
        }
    }
}

#[cfg(test)]
mod json_tests;
#[cfg(test)]
mod tests;
