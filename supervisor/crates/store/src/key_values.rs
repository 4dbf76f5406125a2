//! Plugin state: small values under keys, in a namespace for each plugin.

use async_trait::async_trait;

use crate::error::{Error, Resource};
use crate::id::{Key, PluginId};
use crate::invalid::InvalidError;
use crate::limits::{DEFAULT_QUOTA_BYTES, DEFAULT_QUOTA_KEYS, MAX_VALUE_BYTES, size};
use crate::page::{Page, PageRequest};

/// The plugins' key-values. The service that uses this decides which plugin is asking; nothing here does.
///
/// When a method returns `Ok`, the change is on the disk: it survives the end of every process, and a power
/// cut.
#[async_trait]
pub trait KeyValues: Send + Sync {
    /// The value of a key, `None` if there is none.
    ///
    /// # Errors
    /// When the database cannot be read.
    async fn get(&self, plugin: &PluginId, key: &Key) -> Result<Option<Vec<u8>>, Error>;

    /// Sets a key's value.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a value that is too large, [`Error::Quota`], [`Error::Full`].
    async fn set(&self, namespace: &Namespace, key: &Key, value: Vec<u8>) -> Result<(), Error>;

    /// Removes a key; returns whether it existed.
    ///
    /// # Errors
    /// When the database cannot be written.
    async fn delete(&self, plugin: &PluginId, key: &Key) -> Result<bool, Error>;

    /// The keys that begin with `prefix`, in the order of their bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a page token of another request.
    async fn keys(&self, plugin: &PluginId, prefix: &str, page: &PageRequest) -> Result<Page<Key>, Error>;

    /// The same with the sizes of their values, without reading the values.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a page token of another request.
    async fn sizes(
        &self,
        plugin: &PluginId,
        prefix: &str,
        page: &PageRequest,
    ) -> Result<Page<KeySize>, Error>;

    /// The same with their values. A page ends early when its contents grow too large. Concurrent writes may
    /// or may not appear in later pages; each value is complete.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a page token of another request.
    async fn entries(
        &self,
        plugin: &PluginId,
        prefix: &str,
        page: &PageRequest,
    ) -> Result<Page<Entry>, Error>;

    /// Sets a key's value, unless it has that value already; returns whether anything was written.
    ///
    /// # Errors
    /// As [`KeyValues::set`].
    async fn import(&self, namespace: &Namespace, key: &Key, value: Vec<u8>) -> Result<bool, Error>;

    /// Sets a key to `value` (`None`: removes it) if its value is `expected` (`None`: if it does not exist).
    ///
    /// # Errors
    /// As [`KeyValues::set`].
    async fn compare_and_set(
        &self,
        namespace: &Namespace,
        key: &Key,
        expected: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
    ) -> Result<SwapResult, Error>;

    /// Deletes all data of a plugin; returns how much that was.
    ///
    /// # Errors
    /// When the database cannot be written.
    async fn purge(&self, plugin: &PluginId) -> Result<Usage, Error>;

    /// How much a plugin stores.
    ///
    /// # Errors
    /// When the database cannot be read.
    async fn usage(&self, plugin: &PluginId) -> Result<Usage, Error>;

    /// The plugins that store something, in the order of their ids, with their usage.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a page token of another request.
    async fn plugins(&self, page: &PageRequest) -> Result<Page<(PluginId, Usage)>, Error>;
}

/// A plugin's namespace for writing, with its quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// The plugin.
    pub plugin: PluginId,
    /// Its quota.
    pub quota: Quota,
}

impl Namespace {
    /// A plugin's namespace with the default quota.
    #[must_use]
    pub fn of(plugin: PluginId) -> Self {
        Self { plugin, quota: Quota::default() }
    }
}

/// How much a plugin may store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Bytes of keys and values together.
    pub bytes: u64,
    /// Keys.
    pub keys: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self { bytes: DEFAULT_QUOTA_BYTES, keys: DEFAULT_QUOTA_KEYS }
    }
}

/// How much a plugin stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of keys and values together.
    pub bytes: u64,
    /// Keys.
    pub keys: u64,
}

impl Usage {
    /// The usage after a key gets another value. Only growth can be refused: a plugin above a lowered quota
    /// can still free space.
    ///
    /// # Errors
    /// [`Error::Quota`]
    pub fn after_change(
        self,
        namespace: &Namespace,
        key: &Key,
        old: Option<u64>,
        new: Option<u64>,
    ) -> Result<Self, Error> {
        let cost = |value: Option<u64>| value.map_or(0, |bytes| bytes + key.as_bytes().len() as u64);
        let then = Self {
            bytes: (self.bytes + cost(new)).saturating_sub(cost(old)),
            keys: (self.keys + u64::from(new.is_some())).saturating_sub(u64::from(old.is_some())),
        };
        let Quota { bytes, keys } = namespace.quota;
        let refuse = |resource, used, limit, wanted| {
            Err(Error::Quota { plugin: namespace.plugin.clone(), resource, used, limit, wanted })
        };
        if then.bytes > bytes && then.bytes > self.bytes {
            return refuse(Resource::Bytes, self.bytes, bytes, then.bytes);
        }
        if then.keys > keys && then.keys > self.keys {
            return refuse(Resource::Keys, self.keys, keys, then.keys);
        }
        Ok(then)
    }
}

/// A key and the size of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySize {
    /// The key.
    pub key: Key,
    /// The size of the value in bytes, without the key.
    pub bytes: u64,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The value.
    pub value: Vec<u8>,
}

impl Entry {
    /// Its size in a page.
    pub(crate) fn weight(&self) -> usize {
        self.key.as_bytes().len() + self.value.len()
    }
}

/// The result of [`KeyValues::compare_and_set`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwapResult {
    /// The value was the expected one and is now the new one.
    Swapped,
    /// The value was another one (`None` if there was none), and is unchanged.
    Conflict(Option<Vec<u8>>),
}

pub(crate) fn check_value(value: &[u8]) -> Result<(), InvalidError> {
    size("a value", value.len(), MAX_VALUE_BYTES)
}

/// The first key after those with the prefix; `None` if there is no such key.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}
