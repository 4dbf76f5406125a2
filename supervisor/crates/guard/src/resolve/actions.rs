//! The actions of a plugin, with the schemas of their parameters parsed once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use talon_proto::plugin::Action;

use super::schema::Schema;

/// Memory for the parsed schemas of one plugin, roughly. Twice what a plugin may declare in all (4 MiB). A
/// parsed schema takes some ten times its text, so this caches the 800 KB of schemas that a very large plugin
/// really uses, and a plugin with schemas that are built to use much memory gets no more. A schema that does
/// not fit is parsed in each call that needs it.
const MAX_CACHED_BYTES: usize = 8 << 20;

/// The actions that a plugin declared, by name, with the schemas parsed so far. A parsed schema lives as long
/// as the declaration it came from, so no call sees one of an earlier declaration.
#[derive(Debug)]
pub struct Actions {
    by_name: BTreeMap<String, Declared>,
    /// Bytes that are left for parsed schemas.
    remaining_bytes: AtomicUsize,
}

#[derive(Debug)]
struct Declared {
    action: Action,
    /// One for each parameter.
    schemas: Box<[OnceLock<CachedSchema>]>,
}

#[derive(Debug)]
enum CachedSchema {
    Unusable,
    Cached(Box<Schema>),
    /// Usable, but not cached for lack of memory.
    Uncached,
}

impl Actions {
    fn with_cache_bytes(room: usize, actions: impl IntoIterator<Item = (String, Action)>) -> Self {
        let declared = |(name, action): (String, Action)| {
            let schemas = action.parameters.iter().map(|_| OnceLock::new()).collect();
            (name, Declared { action, schemas })
        };
        Self { by_name: actions.into_iter().map(declared).collect(), remaining_bytes: room.into() }
    }

    /// Actions that cache no schema.
    #[cfg(test)]
    pub(super) fn without_cache(actions: impl IntoIterator<Item = (String, Action)>) -> Self {
        Self::with_cache_bytes(0, actions)
    }

    pub(super) fn get(&self, name: &str) -> Option<ActionRef<'_>> {
        self.by_name.get(name).map(|declared| ActionRef { declared, remaining_bytes: &self.remaining_bytes })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.by_name.keys().map(String::as_str)
    }
}

impl FromIterator<(String, Action)> for Actions {
    fn from_iter<I: IntoIterator<Item = (String, Action)>>(actions: I) -> Self {
        Self::with_cache_bytes(MAX_CACHED_BYTES, actions)
    }
}

/// No actions.
impl Default for Actions {
    fn default() -> Self {
        Self::from_iter([])
    }
}

/// One action of a plugin.
#[derive(Clone, Copy)]
pub(super) struct ActionRef<'a> {
    declared: &'a Declared,
    remaining_bytes: &'a AtomicUsize,
}

impl<'a> ActionRef<'a> {
    pub(super) fn action(self) -> &'a Action {
        &self.declared.action
    }

    /// The schema of the parameter at this index; `None` if it has no usable one.
    pub(super) fn schema(self, place: usize) -> Option<Cow<'a, Schema>> {
        let text = &self.declared.action.parameters[place].schema;
        match self.declared.schemas[place].get_or_init(|| self.parse(text)) {
            CachedSchema::Unusable => None,
            CachedSchema::Cached(schema) => Some(Cow::Borrowed(schema)),
            CachedSchema::Uncached => Schema::parse(text).map(Cow::Owned),
        }
    }

    fn parse(self, text: &str) -> CachedSchema {
        let Some(schema) = Schema::parse(text) else { return CachedSchema::Unusable };
        let bytes = schema.bytes();
        let less = |room: usize| room.checked_sub(bytes);
        match self.remaining_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => CachedSchema::Cached(Box::new(schema)),
            Err(_) => CachedSchema::Uncached,
        }
    }
}

#[cfg(test)]
mod tests;
