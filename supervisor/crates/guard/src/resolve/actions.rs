//! The actions of a plugin, with the schemas of their parameters parsed once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use talon_proto::plugin::Action;

use super::schema::Schema;

/// Memory for the parsed schemas of one plugin, roughly. Twice what a plugin may declare in all (4 MiB). A parsed
/// schema takes some ten times its text, so this caches the 800 KB of schemas that a very large plugin really uses, and
/// a plugin with schemas that are built to use much memory gets no more. A schema that does not fit is parsed in each
/// call that needs it.
const MAX_KEPT_BYTES: usize = 8 << 20;

/// The actions that a plugin declared, by name, with the schemas parsed so far. A parsed schema lives as long as the
/// declaration it came from, so no call sees one of an earlier declaration.
#[derive(Debug)]
pub struct Actions {
    by_name: BTreeMap<String, Declared>,
    /// Bytes that are left for parsed schemas.
    room: AtomicUsize,
}

#[derive(Debug)]
struct Declared {
    action: Action,
    /// One for each parameter.
    schemas: Box<[OnceLock<Parsed>]>,
}

#[derive(Debug)]
enum Parsed {
    Unusable,
    Kept(Box<Schema>),
    /// Usable, but not cached for lack of memory.
    NotKept,
}

impl Actions {
    fn within(room: usize, actions: impl IntoIterator<Item = (String, Action)>) -> Self {
        let declared = |(name, action): (String, Action)| {
            let schemas = action.parameters.iter().map(|_| OnceLock::new()).collect();
            (name, Declared { action, schemas })
        };
        Self { by_name: actions.into_iter().map(declared).collect(), room: room.into() }
    }

    /// Actions that cache no schema.
    #[cfg(test)]
    pub(super) fn that_keep_nothing(actions: impl IntoIterator<Item = (String, Action)>) -> Self {
        Self::within(0, actions)
    }

    pub(super) fn get(&self, name: &str) -> Option<Found<'_>> {
        self.by_name.get(name).map(|declared| Found { declared, room: &self.room })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.by_name.keys().map(String::as_str)
    }
}

impl FromIterator<(String, Action)> for Actions {
    fn from_iter<I: IntoIterator<Item = (String, Action)>>(actions: I) -> Self {
        Self::within(MAX_KEPT_BYTES, actions)
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
pub(super) struct Found<'a> {
    declared: &'a Declared,
    room: &'a AtomicUsize,
}

impl<'a> Found<'a> {
    pub(super) fn action(self) -> &'a Action {
        &self.declared.action
    }

    /// The schema of the parameter at this index; `None` if it has no usable one.
    pub(super) fn schema(self, place: usize) -> Option<Cow<'a, Schema>> {
        let text = &self.declared.action.parameters[place].schema;
        match self.declared.schemas[place].get_or_init(|| self.parse(text)) {
            Parsed::Unusable => None,
            Parsed::Kept(schema) => Some(Cow::Borrowed(schema)),
            Parsed::NotKept => Schema::parse(text).map(Cow::Owned),
        }
    }

    fn parse(self, text: &str) -> Parsed {
        let Some(schema) = Schema::parse(text) else { return Parsed::Unusable };
        let bytes = schema.bytes();
        let less = |room: usize| room.checked_sub(bytes);
        match self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => Parsed::Kept(Box::new(schema)),
            Err(_) => Parsed::NotKept,
        }
    }
}

#[cfg(test)]
mod tests;
