//! A change of one key, and its effect: what both engines decide alike.

use crate::error::Error;
use crate::id::{Key, PluginId};
use crate::invalid::InvalidError;
use crate::key_values::{Namespace, SwapResult, check_value};

/// A change of one key.
pub(crate) struct Change {
    pub(crate) namespace: Namespace,
    pub(crate) key: Key,
    kind: ChangeKind,
}

enum ChangeKind {
    Set(Vec<u8>),
    /// As `Set`, but only if the value differs.
    Import(Vec<u8>),
    Delete,
    Swap {
        expected: Option<Vec<u8>>,
        new: Option<Vec<u8>>,
    },
}

/// What an engine reads of the key before it decides.
pub(crate) enum Current {
    /// The length of the value, which costs less to read than the value.
    Length(Option<u64>),
    /// The value.
    Value(Option<Vec<u8>>),
}

/// What an engine does with the key.
pub(crate) enum Effect<'c> {
    /// Write the value `new`, or remove the key; `old` is the length of the value before.
    Replace { old: Option<u64>, new: Option<&'c [u8]> },
    /// Write nothing.
    Leave(ChangeResult),
}

/// The result of a change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChangeResult {
    Applied,
    /// Not applied, since this is the current value.
    NotApplied(Option<Vec<u8>>),
}

impl Change {
    pub(crate) fn set(namespace: &Namespace, key: &Key, value: Vec<u8>) -> Result<Self, InvalidError> {
        check_value(&value)?;
        Ok(Self::new(namespace.clone(), key, ChangeKind::Set(value)))
    }

    pub(crate) fn import(namespace: &Namespace, key: &Key, value: Vec<u8>) -> Result<Self, InvalidError> {
        check_value(&value)?;
        Ok(Self::new(namespace.clone(), key, ChangeKind::Import(value)))
    }

    /// A quota never prevents freeing space, so the quota does not matter here.
    pub(crate) fn delete(plugin: &PluginId, key: &Key) -> Self {
        Self::new(Namespace::of(plugin.clone()), key, ChangeKind::Delete)
    }

    pub(crate) fn swap(
        namespace: &Namespace,
        key: &Key,
        expected: Option<Vec<u8>>,
        new: Option<Vec<u8>>,
    ) -> Result<Self, InvalidError> {
        new.as_deref().map_or(Ok(()), check_value)?;
        Ok(Self::new(namespace.clone(), key, ChangeKind::Swap { expected, new }))
    }

    fn new(namespace: Namespace, key: &Key, kind: ChangeKind) -> Self {
        Self { namespace, key: key.clone(), kind }
    }

    /// Whether a plugin that stores nothing yet gets a row.
    pub(crate) fn creates_plugin(&self) -> bool {
        !matches!(self.kind, ChangeKind::Delete)
    }

    /// Whether the effect depends on the current value, and not only on its length.
    pub(crate) fn compares_value(&self) -> bool {
        matches!(self.kind, ChangeKind::Import(_) | ChangeKind::Swap { .. })
    }

    /// The effect on a key with this content. [`Current::Value`] is expected if [`Self::compares_value`].
    pub(crate) fn effect(&self, current: Current) -> Effect<'_> {
        let old = match &current {
            Current::Length(length) => *length,
            Current::Value(value) => value.as_ref().map(|value| value.len() as u64),
        };
        let current = match current {
            Current::Length(_) => None,
            Current::Value(value) => value,
        };
        match &self.kind {
            ChangeKind::Set(value) => Effect::Replace { old, new: Some(value) },
            ChangeKind::Import(value) if current.as_ref() == Some(value) => {
                Effect::Leave(ChangeResult::NotApplied(None))
            }
            ChangeKind::Import(value) => Effect::Replace { old, new: Some(value) },
            ChangeKind::Delete if old.is_none() => Effect::Leave(ChangeResult::NotApplied(None)),
            ChangeKind::Delete => Effect::Replace { old, new: None },
            ChangeKind::Swap { expected, .. } if current != *expected => {
                Effect::Leave(ChangeResult::NotApplied(current))
            }
            ChangeKind::Swap { new, .. } => Effect::Replace { old, new: new.as_deref() },
        }
    }
}

impl ChangeResult {
    pub(crate) fn is_applied(&self) -> bool {
        *self == Self::Applied
    }
}

impl From<ChangeResult> for SwapResult {
    fn from(result: ChangeResult) -> Self {
        match result {
            ChangeResult::Applied => Self::Swapped,
            ChangeResult::NotApplied(current) => Self::Conflict(current),
        }
    }
}

/// A key as it stands in the database.
pub(crate) fn stored_key(bytes: Vec<u8>) -> Result<Key, Error> {
    let text = String::from_utf8(bytes).map_err(|error| Error::unreadable("key", error))?;
    Key::new(text).map_err(|error| Error::unreadable("key", error))
}
