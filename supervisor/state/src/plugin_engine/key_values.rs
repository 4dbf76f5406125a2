//! The store's interface over a storage backend.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use async_trait::async_trait;
use talon_store::{
    Entry, Error, Key, KeySize, KeyValues, Namespace, Page, PageRequest, PageToken, PluginId, SwapResult,
    Usage,
};
use tokio::sync::Mutex;

use super::backend::{Backend, Written};
use super::caller::StorageCaller;
use super::names;
use super::usage::Usages;

/// Locks of keys: two keys that share one wait for each other. As many writes as there are locks go on without their requesters
/// at most, each with some 2 MiB: 128 MiB. The backend takes 16 calls at once, so more locks would not make it faster.
const LOCKS: usize = 64;
/// How often a write is compared anew, because another process changed the key in between. Within this process nobody does.
const MAX_CONFLICTS: usize = 16;
/// The most bytes of values of one page, as in the databases.
const MAX_PAGE_BYTES: usize = talon_store::limits::MAX_PAGE_BYTES;

/// The plugins' key-values in a storage backend.
#[derive(Clone)]
pub(crate) struct PluginKeyValues {
    inner: Arc<Inner>,
}

struct Inner {
    backend: Backend,
    usages: Usages,
    /// A write holds the lock of its key until it is known what became of it.
    locks: Vec<Arc<Mutex<()>>>,
    hasher: RandomState,
    /// The action, for messages.
    action: String,
}

/// A change of a key.
enum Change {
    Set(Vec<u8>),
    Import(Vec<u8>),
    Delete,
    Swap { expected: Option<Vec<u8>>, value: Option<Vec<u8>> },
}

/// What became of a change.
enum Changed {
    Written,
    /// It was so already.
    Same,
    Conflict(Option<Vec<u8>>),
}

impl std::fmt::Debug for PluginKeyValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginKeyValues").field("action", &self.inner.action).finish_non_exhaustive()
    }
}

impl PluginKeyValues {
    pub(crate) fn new(caller: impl StorageCaller + 'static, action: String) -> Self {
        Self {
            inner: Arc::new(Inner {
                backend: Backend::new(Arc::new(caller)),
                usages: Usages::default(),
                locks: (0..LOCKS).map(|_| Arc::default()).collect(),
                hasher: RandomState::new(),
                action,
            }),
        }
    }

    /// The action, as `plugin.action`.
    pub(crate) fn action(&self) -> &str {
        &self.inner.action
    }

    /// Whether the backend answers.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if it does not.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        self.inner.backend.check(&names::root()).await
    }

    /// Changes a key. It waits for the lock as a part of the request, so a requester that goes takes its value along. With the lock
    /// it goes on without the requester, so that the lock is held until the outcome is known.
    async fn change(&self, namespace: &Namespace, key: &Key, change: Change) -> Result<Changed, Error> {
        let name = names::key(&namespace.plugin, key);
        let held = self.inner.lock(&name).lock_owned().await;
        let (inner, namespace, key) = (Arc::clone(&self.inner), namespace.clone(), key.clone());
        let task = tokio::spawn(async move {
            let _held = held;
            inner.change(&namespace, &key, &name, change).await
        });
        // The task ends with the runtime alone.
        task.await.unwrap_or(Err(Error::Closed))
    }
}

impl Inner {
    /// The lock of a key.
    fn lock(&self, name: &[u8]) -> Arc<Mutex<()>> {
        let hash = usize::try_from(self.hasher.hash_one(name)).unwrap_or_default();
        Arc::clone(&self.locks[hash % LOCKS])
    }

    /// Changes a key whose lock is held.
    async fn change(
        &self,
        namespace: &Namespace,
        key: &Key,
        name: &[u8],
        change: Change,
    ) -> Result<Changed, Error> {
        for _ in 0..MAX_CONFLICTS {
            let (revision, old, current) = match &change {
                Change::Set(_) | Change::Delete => match self.backend.look_up(name).await? {
                    Some(found) => (Some(found.revision), Some(found.bytes), None),
                    None => (None, None, None),
                },
                Change::Import(_) | Change::Swap { .. } => match self.backend.get(name).await? {
                    Some(found) => {
                        let bytes = found.value.len() as u64;
                        (Some(found.revision), Some(bytes), Some(found.value))
                    }
                    None => (None, None, None),
                },
            };
            let new = match &change {
                Change::Set(value) => Some(value),
                Change::Import(value) if current.as_ref() == Some(value) => return Ok(Changed::Same),
                Change::Import(value) => Some(value),
                Change::Delete => None,
                Change::Swap { expected, .. } if *expected != current => {
                    return Ok(Changed::Conflict(current));
                }
                Change::Swap { value, .. } => value.as_ref(),
            };
            if new.is_none() && revision.is_none() {
                return Ok(Changed::Same);
            }
            if self.write(namespace, key, name, (revision.as_deref(), old), new).await? == Written::Done {
                return Ok(Changed::Written);
            }
        }
        Err(Error::Unavailable {
            reason: "the key changes all the time: another supervisor writes to the same storage".to_owned(),
            retry_in: std::time::Duration::from_secs(1),
        })
    }

    /// Writes once, within the quota.
    async fn write(
        &self,
        namespace: &Namespace,
        key: &Key,
        name: &[u8],
        (revision, old): (Option<&str>, Option<u64>),
        new: Option<&Vec<u8>>,
    ) -> Result<Written, Error> {
        let bytes = new.map(|value| value.len() as u64);
        let reservation = self.usages.reserve(&self.backend, namespace, key, old, bytes).await?;
        let written = match (new, revision) {
            (Some(value), revision) => self.backend.put(name, revision, value).await,
            (None, Some(revision)) => self.backend.remove(name, revision).await,
            (None, None) => Ok(Written::Done),
        };
        match &written {
            Ok(Written::Done) => self.usages.commit(&reservation),
            Ok(Written::Conflict) => self.usages.release(reservation),
            Err(_) => self.usages.forget(&reservation),
        }
        written
    }

    async fn page(
        &self,
        plugin: &PluginId,
        prefix: &str,
        page: &PageRequest,
    ) -> Result<Page<KeySize>, Error> {
        let of_plugin = names::prefix(plugin);
        let whole = [&of_plugin, prefix.as_bytes()].concat();
        let mut after = page.last().map(|last| [&of_plugin, last].concat());
        let mut items = Vec::new();
        let mut more = true;
        while more && items.len() < page.size() {
            let left = page.size() - items.len();
            let (found, further) = self.backend.scan(&whole, after.as_deref(), left).await?;
            more = further;
            after = found.last().map(|item| item.name.clone()).or(after);
            for item in found {
                let (_, key) = names::parse(&item.name)?;
                items.push(KeySize { key, bytes: item.bytes });
            }
        }
        let next = items.last().filter(|_| more).map(|last| token(last.key.as_bytes())).transpose()?;
        Ok(Page { items, next })
    }
}

fn token(last: &[u8]) -> Result<PageToken, Error> {
    PageToken::parse(&hex::encode(last))
}

#[async_trait]
impl KeyValues for PluginKeyValues {
    async fn get(&self, plugin: &PluginId, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        let found = self.inner.backend.get(&names::key(plugin, key)).await?;
        Ok(found.map(|found| found.value))
    }

    async fn set(&self, namespace: &Namespace, key: &Key, value: Vec<u8>) -> Result<(), Error> {
        self.change(namespace, key, Change::Set(value)).await.map(drop)
    }

    async fn delete(&self, plugin: &PluginId, key: &Key) -> Result<bool, Error> {
        let namespace = Namespace::of(plugin.clone());
        Ok(matches!(self.change(&namespace, key, Change::Delete).await?, Changed::Written))
    }

    async fn keys(&self, plugin: &PluginId, prefix: &str, page: &PageRequest) -> Result<Page<Key>, Error> {
        let Page { items, next } = self.inner.page(plugin, prefix, page).await?;
        Ok(Page { items: items.into_iter().map(|item| item.key).collect(), next })
    }

    async fn sizes(
        &self,
        plugin: &PluginId,
        prefix: &str,
        page: &PageRequest,
    ) -> Result<Page<KeySize>, Error> {
        self.inner.page(plugin, prefix, page).await
    }

    async fn entries(
        &self,
        plugin: &PluginId,
        prefix: &str,
        page: &PageRequest,
    ) -> Result<Page<Entry>, Error> {
        let Page { items, next } = self.inner.page(plugin, prefix, page).await?;
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let mut last = None;
        for KeySize { key, .. } in items {
            // The page ends early when it is heavy, after one entry at least.
            if bytes > MAX_PAGE_BYTES {
                return Ok(Page { items: entries, next: last });
            }
            last = Some(token(key.as_bytes())?);
            // One that was deleted meanwhile is left out.
            if let Some(value) = self.get(plugin, &key).await? {
                bytes += key.as_bytes().len() + value.len();
                entries.push(Entry { key, value });
            }
        }
        Ok(Page { items: entries, next })
    }

    async fn import(&self, namespace: &Namespace, key: &Key, value: Vec<u8>) -> Result<bool, Error> {
        Ok(matches!(self.change(namespace, key, Change::Import(value)).await?, Changed::Written))
    }

    async fn compare_and_set(
        &self,
        namespace: &Namespace,
        key: &Key,
        expected: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
    ) -> Result<SwapResult, Error> {
        Ok(match self.change(namespace, key, Change::Swap { expected, value }).await? {
            Changed::Written | Changed::Same => SwapResult::Swapped,
            Changed::Conflict(current) => SwapResult::Conflict(current),
        })
    }

    async fn purge(&self, plugin: &PluginId) -> Result<Usage, Error> {
        let mut purged = Usage::default();
        loop {
            let page = self.inner.page(plugin, "", &PageRequest::first(0)).await?;
            if page.items.is_empty() {
                return Ok(purged);
            }
            for KeySize { key, bytes } in page.items {
                if self.delete(plugin, &key).await? {
                    purged.keys += 1;
                    purged.bytes += bytes + key.as_bytes().len() as u64;
                }
            }
        }
    }

    async fn usage(&self, plugin: &PluginId) -> Result<Usage, Error> {
        Usages::count(&self.inner.backend, plugin).await
    }

    async fn plugins(&self, page: &PageRequest) -> Result<Page<(PluginId, Usage)>, Error> {
        let last = page.last().map(|last| String::from_utf8_lossy(last).into_owned());
        let mut after = last.map(|last| PluginId::new(&last)).transpose()?.map(|last| names::end(&last));
        let mut plugins = Vec::new();
        loop {
            let (found, _) = self.inner.backend.scan(&names::root(), after.as_deref(), 1).await?;
            let Some(first) = found.into_iter().next() else {
                return Ok(Page { items: plugins, next: None });
            };
            let (plugin, _) = names::parse(&first.name)?;
            if plugins.len() == page.size() {
                let next =
                    plugins.last().map(|(last, _): &(PluginId, Usage)| token(last.as_str().as_bytes()));
                return Ok(Page { items: plugins, next: next.transpose()? });
            }
            after = Some(names::end(&plugin));
            let usage = self.usage(&plugin).await?;
            plugins.push((plugin, usage));
        }
    }
}

#[cfg(test)]
#[path = "key_values_tests.rs"]
mod tests;
