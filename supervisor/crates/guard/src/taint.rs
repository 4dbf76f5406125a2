//! Tells of a call that its arguments carry what a plugin said before.
//!
//! A model that was talked into something by a tool's answer acts by its next calls. This layer remembers fingerprints
//! of what recently went out to a scope ([`CallFields::scope`](crate::CallFields::scope)) and compares the arguments of
//! that scope's later calls with them: [`CallFields::tainted_by`](crate::CallFields::tainted_by) and
//! [`Report::tainted_by`](crate::Report::tainted_by) name the plugins. It blocks nothing;
//! it is for policies, approvals and people who read reports. A plugin's own text going back to it counts too.
//!
//! # What is found
//!
//! Every piece of [`MIN_PIECE`] or more letters and digits in a row that the answer and an argument have in common.
//! Case, white space and punctuation do not count, so quoting, wrapping, marks and another indentation hide nothing.
//! Paraphrase, translation and encodings do: this follows text, not meaning. Not counted are
//!
//! - what the call itself had brought and the plugin only repeated: a path the model made up is not the plugin's;
//! - our own notices, and what the host says without the plugin.
//!
//! # What it costs and where it ends
//!
//! Of an answer every ninth position is remembered, of arguments every position is looked up, as `rsync` does it. That
//! finds every common piece at less than winnowing would take, because only one of the sides is stored. Work is linear in
//! the text, and most of it is put off until a call brings a piece to look up, which short arguments do not. Space is
//! bounded: [`TaintSettings`]. Remembered are the newest pieces; a plugin that sends a lot pushes out
//! its own first. Scopes share nothing: whether a piece is known in one of them does not show in another.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use foldhash::quality::RandomState;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::is_of_plugin;
use crate::call::Call;
use crate::wrap::Guarded;

mod grams;
mod kept;
mod letters;
mod own;
mod table;
mod told;

use grams::{GRAM, Grams, STRIDE};
use own::Own;
use told::Told;

/// The shortest piece that is certain to be found, in letters and digits: five to seven words, or one key or digest.
/// Shorter pieces are in common by chance, as phrases and paths are.
pub const MIN_PIECE: usize = GRAM + STRIDE - 1;

/// How many scopes are remembered: more than a host has sessions at a time. Set with [`TaintSettings::max_scopes`];
/// beyond it the one that was not used for the longest time is forgotten.
pub const DEFAULT_MAX_SCOPES: usize = 64;

/// How many fingerprints a scope keeps: those of some 190 KiB of prose, which is more than a model's next step is about. They take
/// 128 KiB, and what waits for its fingerprints to be taken up to 300 KiB, half of it spare. Set with
/// [`TaintSettings::max_fingerprints`]; beyond it old ones make place for new ones.
pub const DEFAULT_MAX_FINGERPRINTS: usize = 16 * 1024;

/// How much of a call's arguments is looked at: what calls may carry by default. What is longer is refused further down
/// in a stack with default limits; in others the rest is not looked at. Fixed, because it bounds the work of one call.
pub const MAX_LOOKED_AT: usize = 1024 * 1024;

/// The bounds of a [`Taint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaintSettings {
    /// How many scopes. Default [`DEFAULT_MAX_SCOPES`].
    pub max_scopes: usize,
    /// How many fingerprints for each. Default [`DEFAULT_MAX_FINGERPRINTS`].
    pub max_fingerprints: usize,
}

impl Default for TaintSettings {
    fn default() -> Self {
        Self { max_scopes: DEFAULT_MAX_SCOPES, max_fingerprints: DEFAULT_MAX_FINGERPRINTS }
    }
}

/// What is remembered. Clones are the same memory: one serves the stacks of all plugins.
#[derive(Clone)]
pub struct Taint {
    shared: Arc<Shared>,
}

struct Shared {
    settings: TaintSettings,
    grams: Grams,
    scopes: Mutex<Scopes>,
}

#[derive(Default)]
struct Scopes {
    known: HashMap<String, Scope, RandomState>,
    /// Counts uses, which tells who was used last.
    uses: u64,
}

struct Scope {
    told: Arc<Mutex<Told>>,
    used: u64,
}

/// Shows the bounds and nothing of what is remembered.
impl fmt::Debug for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taint").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

impl Default for Taint {
    fn default() -> Self {
        Self::new(TaintSettings::default())
    }
}

impl Taint {
    /// A memory with these bounds.
    #[must_use]
    pub fn new(settings: TaintSettings) -> Self {
        Self { shared: Arc::new(Shared { settings, grams: Grams::new(), scopes: Mutex::default() }) }
    }

    /// Forgets a scope, when its session is over.
    pub fn forget(&self, scope: &str) {
        self.shared.scopes.lock().unwrap_or_else(PoisonError::into_inner).known.remove(scope);
    }

    /// The plugins of which these arguments carry a piece, sorted, and the pieces that the call brings.
    fn examine<'a>(
        &self,
        told: Option<&Mutex<Told>>,
        args: impl Iterator<Item = &'a String>,
    ) -> (Vec<String>, Own) {
        let mut own = Own::default();
        let mut sources = Vec::new();
        let mut budget = MAX_LOOKED_AT;
        let Shared { grams, .. } = &*self.shared;
        for value in args {
            let value = crate::text::prefix(value, budget);
            budget -= value.len();
            own.reserve(value.len());
            grams.of_every_position(value, |some| {
                own.add(some);
                if let Some(told) = told {
                    lock(told).sources_of(grams, some, &mut sources);
                }
            });
        }
        let names = sources.iter().filter_map(|source| Some(lock(told?).name(*source).to_owned()));
        own.sort();
        (sorted(names.collect()), own)
    }

    /// Remembers what a plugin said, except for what the call had brought.
    fn remember<'a>(
        &self,
        mut told: Option<Arc<Mutex<Told>>>,
        scope: &str,
        plugin: &str,
        texts: impl Iterator<Item = &'a str>,
        own: &Own,
    ) {
        let Shared { grams, .. } = &*self.shared;
        for text in texts.filter(|text| grams::may_hold_a_piece(text)) {
            // Not before there is something to remember: a scope whose answers are short costs nothing.
            if told.is_none() {
                told = self.told(scope, true);
            }
            let Some(told) = &told else { return };
            let at_once = lock(told).put_off(grams, plugin, text, own);
            if let Some(source) = at_once {
                // Of a long text, some at a time, so that other calls of the scope get at it in between.
                let own = own.seen();
                grams.of_every_stride(text, |some| lock(told).insert(own.without(some), source));
            }
        }
    }

    fn told(&self, scope: &str, create: bool) -> Option<Arc<Mutex<Told>>> {
        let TaintSettings { max_scopes, max_fingerprints } = self.shared.settings;
        let mut scopes = self.shared.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        scopes.uses += 1;
        let used = scopes.uses;
        if let Some(found) = scopes.known.get_mut(scope) {
            found.used = used;
            return Some(found.told.clone());
        }
        if !create || max_scopes == 0 || max_fingerprints == 0 {
            return None;
        }
        while scopes.known.len() >= max_scopes {
            let oldest = scopes.known.iter().min_by_key(|(_, scope)| scope.used)?.0.clone();
            scopes.known.remove(&oldest);
        }
        let told = Arc::new(Mutex::new(Told::new(max_fingerprints)));
        scopes.known.insert(scope.to_owned(), Scope { told: told.clone(), used });
        Some(told)
    }
}

/// A panic elsewhere leaves something valid.
fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    names
}

/// Makes [`Tainting`] services.
#[derive(Debug, Clone)]
pub struct TaintLayer {
    taint: Taint,
}

impl TaintLayer {
    /// A layer that remembers here.
    #[must_use]
    pub fn new(taint: Taint) -> Self {
        Self { taint }
    }
}

impl<S> Layer<S> for TaintLayer {
    type Service = Tainting<S>;
    fn layer(&self, inner: S) -> Tainting<S> {
        Tainting { taint: self.taint.clone(), inner }
    }
}

/// Compares arguments with former answers: see the [module](self).
#[derive(Debug, Clone)]
pub struct Tainting<S> {
    taint: Taint,
    inner: S,
}

impl<S> Service<Call> for Tainting<S>
where
    S: Service<Call, Response = Guarded>,
{
    type Response = Guarded;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut call: Call) -> Self::Future {
        let told = self.taint.told(&call.scope, false);
        let (tainted_by, own) = self.taint.examine(told.as_deref(), call.args.values());
        call.tainted_by.clone_from(&tainted_by);
        let after = After {
            taint: self.taint.clone(),
            scope: call.scope.clone(),
            plugin: call.plugin.clone(),
            told,
            tainted_by,
            own,
        };
        ResponseFuture { future: self.inner.call(call), after }
    }
}

pin_project! {
    /// The answer to one call.
    pub struct ResponseFuture<F> {
        #[pin]
        future: F,
        after: After,
    }
}

/// What is done once there is an answer.
struct After {
    taint: Taint,
    scope: Arc<str>,
    plugin: Arc<str>,
    /// What the scope was told before, if it was told anything when the call came.
    told: Option<Arc<Mutex<Told>>>,
    tainted_by: Vec<String>,
    own: Own,
}

impl After {
    fn apply(&mut self, answer: &mut Guarded) {
        answer.set_tainted_by(std::mem::take(&mut self.tainted_by));
        if is_of_plugin(answer.outcome()) || answer.report().digest.is_some() {
            let plugin = answer.written_by().unwrap_or(&self.plugin);
            let texts = answer.texts_of_plugin();
            self.taint.remember(self.told.take(), &self.scope, plugin, texts, &self.own);
        }
    }
}

impl<F, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Guarded, E>>,
{
    type Output = Result<Guarded, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut answer = ready!(this.future.poll(cx))?;
        this.after.apply(&mut answer);
        Poll::Ready(Ok(answer))
    }
}

#[cfg(test)]
mod tests;
