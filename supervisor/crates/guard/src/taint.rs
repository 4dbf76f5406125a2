//! Marks calls whose arguments carry text that a plugin's answer contained before.
//!
//! A model that was talked into something by a tool's answer acts through its next calls. This layer
//! remembers fingerprints of recent answers to a scope ([`CallFields::scope`](crate::CallFields::scope)) and
//! compares the arguments of that scope's later calls with them:
//! [`CallFields::tainted_by`](crate::CallFields::tainted_by) and
//! [`Report::tainted_by`](crate::Report::tainted_by) name the plugins. It blocks nothing; it is for policies,
//! approvals and people who read reports. A plugin's own text going back to it counts too.
//!
//! # What is found
//!
//! Every run of [`MIN_PIECE`] or more letters and digits that the answer and an argument have in common.
//! Case, white space and punctuation do not count, so quoting, wrapping, marks and other indentation hide
//! nothing. Paraphrase, translation and encodings do: this compares text, not meaning.
//!
//! A shorter value counts if it is rare: an e-mail address, a long number, an identifier of letters and digits
//! of 12 and more (`taint/rare_values.rs`). Such a value counts as a whole, and only if it stands in the first 16 KiB of
//! the answer and among the first 64 of its text. It does not count
//!
//! - what the call itself contained and the plugin only repeated: a path that the model made up is not the
//!   plugin's;
//! - the host's notices and the host's own answers.
//!
//! # Costs and limits
//!
//! Every ninth position of an answer is stored, and every position of the arguments is looked up, as `rsync`
//! does it. That finds every common run at less cost than winnowing, because only one of the sides is stored.
//! Work is linear in the text, and most of it is deferred until a call has arguments long enough to look up.
//! Space is bounded by [`TaintSettings`]. The newest fingerprints are kept; a plugin that sends a lot evicts
//! its own first. Scopes share nothing: whether text is known in one of them does not show in another.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use foldhash::quality::RandomState;
use parking_lot::Mutex;
use pin_project_lite::pin_project;
use smallvec::SmallVec;
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::is_from_plugin;
use crate::call::Call;
use crate::executor::Executor;
use crate::wrap::Guarded;

mod argument_grams;
mod gram_length;
mod letters;
mod ngrams;
mod normalized_buffer;
mod rare_values;
mod scope_memory;
mod table;

use argument_grams::ArgumentGrams;
use gram_length::GRAM_BYTES;
use ngrams::{NGramHasher, STRIDE};
use rare_values::rare_values;
use scope_memory::ScopeMemory;

/// The shortest run that is certain to be found, in letters and digits: five to seven words, or one key or
/// digest. Shorter runs are in common by chance, as phrases and paths are.
pub const MIN_PIECE: usize = GRAM_BYTES + STRIDE - 1;

/// How many scopes are remembered: more than a host has sessions at a time. Set with
/// [`TaintSettings::max_scopes`]; beyond it the least recently used one is forgotten.
pub const DEFAULT_MAX_SCOPES: usize = 64;

/// How many fingerprints a scope keeps: those of some 190 KiB of prose, which is more than a model's next
/// step depends on. They take 128 KiB, and the deferred texts up to 300 KiB, half of it unused capacity. Set
/// with [`TaintSettings::max_fingerprints`]; beyond it old ones are evicted.
pub const DEFAULT_MAX_FINGERPRINTS: usize = 16 * 1024;

/// How much of a call's arguments is compared: the default limit of arguments. Longer ones are refused
/// further down in a stack with default limits; in others the rest is not compared. Fixed, because it bounds
/// the work of one call.
pub const MAX_LOOKED_AT: usize = 1024 * 1024;

/// This many fingerprints of rare values need no allocation: most texts hold none or a few.
const INLINE_VALUES: usize = 4;

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

/// The remembered fingerprints. Clones share them: one value serves the stacks of all plugins.
#[derive(Clone)]
pub struct Taint {
    shared: Arc<Shared>,
}

struct Shared {
    settings: TaintSettings,
    grams: NGramHasher,
    scopes: Mutex<Scopes>,
}

#[derive(Default)]
struct Scopes {
    known: HashMap<String, Scope, RandomState>,
    /// Counts uses, which orders the scopes by their last use.
    uses: u64,
}

struct Scope {
    memory: Arc<Mutex<ScopeMemory>>,
    used: u64,
}

/// Shows the bounds and nothing of the content.
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
    /// An empty memory with these bounds.
    #[must_use]
    pub fn new(settings: TaintSettings) -> Self {
        Self { shared: Arc::new(Shared { settings, grams: NGramHasher::new(), scopes: Mutex::default() }) }
    }

    /// The plugins whose answers share text with these arguments, sorted, and the fingerprints of the
    /// arguments.
    fn examine<'a>(
        &self,
        memory: Option<&Mutex<ScopeMemory>>,
        args: impl Iterator<Item = &'a String>,
    ) -> (Vec<String>, ArgumentGrams) {
        let mut own = ArgumentGrams::default();
        let mut sources = Vec::new();
        let mut budget = MAX_LOOKED_AT;
        let Shared { grams, .. } = &*self.shared;
        for value in args {
            let value = talon_sanitize::prefix(value, budget);
            budget -= value.len();
            own.reserve(value.len());
            let values = self.hash_values(value);
            own.add(&values);
            if let Some(memory) = memory
                && !values.is_empty()
            {
                memory.lock().sources_of_values(&values, &mut sources);
            }
            grams.hash_every_position(value, |some| {
                own.add(some);
                if let Some(memory) = memory {
                    memory.lock().sources_of(grams, some, &mut sources);
                }
            });
        }
        let names = sources.iter().filter_map(|source| Some(memory?.lock().name(*source).to_owned()));
        own.sort();
        (sorted(names.collect()), own)
    }

    /// Remembers what a plugin answered, except for what the call contained.
    fn remember<'a>(
        &self,
        mut memory: Option<Arc<Mutex<ScopeMemory>>>,
        scope: &str,
        plugin: &str,
        texts: impl Iterator<Item = &'a str>,
        own: &ArgumentGrams,
    ) {
        let Shared { grams, .. } = &*self.shared;
        for text in texts {
            let mut values = self.hash_values(text);
            let has_grams = ngrams::may_contain_gram(text);
            if !has_grams && values.is_empty() {
                continue;
            }
            // Only once there is something to remember: a scope whose answers are short costs nothing.
            if memory.is_none() {
                memory = self.scope_memory(scope, true);
            }
            let Some(memory) = &memory else { return };
            if !values.is_empty() {
                memory.lock().insert_values(own.filter().exclude(&mut values), plugin);
            }
            if !has_grams {
                continue;
            }
            let at_once = memory.lock().defer(grams, plugin, text, own);
            if let Some(source) = at_once {
                // A long text is inserted in batches, so that other calls of the scope get the lock in
                // between.
                let own = own.filter();
                grams.hash_every_stride(text, |some| memory.lock().insert(own.exclude(some), source));
            }
        }
    }

    /// The fingerprints of the rare values in a text.
    fn hash_values(&self, text: &str) -> SmallVec<[u64; INLINE_VALUES]> {
        let mut values = SmallVec::new();
        rare_values(text, |letters| values.push(self.shared.grams.hash_value(letters)));
        values
    }

    fn scope_memory(&self, scope: &str, create: bool) -> Option<Arc<Mutex<ScopeMemory>>> {
        let TaintSettings { max_scopes, max_fingerprints } = self.shared.settings;
        let mut scopes = self.shared.scopes.lock();
        scopes.uses += 1;
        let used = scopes.uses;
        if let Some(found) = scopes.known.get_mut(scope) {
            found.used = used;
            return Some(found.memory.clone());
        }
        if !create || max_scopes == 0 || max_fingerprints == 0 {
            return None;
        }
        while scopes.known.len() >= max_scopes {
            let oldest = scopes.known.iter().min_by_key(|(_, scope)| scope.used)?.0.clone();
            scopes.known.remove(&oldest);
        }
        let memory = Arc::new(Mutex::new(ScopeMemory::new(max_fingerprints)));
        scopes.known.insert(scope.to_owned(), Scope { memory: memory.clone(), used });
        Some(memory)
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    names
}

/// Makes [`TaintService`] services.
#[derive(Debug, Clone)]
pub struct TaintLayer {
    taint: Taint,
    executor: Executor,
}

impl TaintLayer {
    /// A layer that uses this memory.
    #[must_use]
    pub fn new(taint: Taint) -> Self {
        Self { taint, executor: Executor::default() }
    }

    /// Sets what runs the work on large answers.
    #[must_use]
    pub fn executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }
}

impl<S> Layer<S> for TaintLayer {
    type Service = TaintService<S>;
    fn layer(&self, inner: S) -> TaintService<S> {
        TaintService { taint: self.taint.clone(), executor: self.executor, inner }
    }
}

/// Compares arguments with earlier answers: see the [module](self).
#[derive(Debug, Clone)]
pub struct TaintService<S> {
    taint: Taint,
    executor: Executor,
    inner: S,
}

impl<S> Service<Call> for TaintService<S>
where
    S: Service<Call, Response = Guarded>,
{
    type Response = Guarded;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, mut call: Call) -> Self::Future {
        let opaque = call.opaque;
        let memory = if opaque { None } else { self.taint.scope_memory(&call.scope, false) };
        let compared = call.args.values().filter(|_| !opaque);
        let (tainted_by, own) = self.taint.examine(memory.as_deref(), compared);
        call.tainted_by.clone_from(&tainted_by);
        let after = AnswerRecorder {
            taint: self.taint.clone(),
            scope: call.scope.clone(),
            plugin: call.plugin.clone(),
            memory,
            tainted_by,
            argument_grams: own,
            opaque,
        };
        ResponseFuture { future: self.inner.call(call), after, executor: self.executor }
    }
}

pin_project! {
    /// The answer to one call.
    pub struct ResponseFuture<F> {
        #[pin]
        future: F,
        after: AnswerRecorder,
        executor: Executor,
    }
}

/// Records the answer of one call.
struct AnswerRecorder {
    taint: Taint,
    scope: Arc<str>,
    plugin: Arc<str>,
    /// The scope's memory, if it had one when the call came in.
    memory: Option<Arc<Mutex<ScopeMemory>>>,
    tainted_by: Vec<String>,
    argument_grams: ArgumentGrams,
    /// Nothing of the answer is remembered.
    opaque: bool,
}

impl AnswerRecorder {
    fn apply(&mut self, answer: &mut Guarded) {
        answer.set_tainted_by(std::mem::take(&mut self.tainted_by));
        if self.opaque {
            return;
        }
        if is_from_plugin(answer.outcome()) || answer.report().digest.is_some() {
            let plugin = answer.written_by().unwrap_or(&self.plugin);
            let texts = answer.texts_of_plugin();
            self.taint.remember(self.memory.take(), &self.scope, plugin, texts, &self.argument_grams);
        }
    }
}

impl<F, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Guarded, E>>,
{
    type Output = Result<Guarded, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut answer = ready!(this.future.poll(cx))?;
        let bytes = answer.report().bytes_out;
        this.executor.run(bytes, || this.after.apply(&mut answer));
        Poll::Ready(Ok(answer))
    }
}

#[cfg(test)]
mod tests;
