//! State in memory, for tests. It has the host's limits, so that a test meets the errors that the plugin
//! will.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::Swap;
use super::error::{StateError, StateResource};

/// The longest key, in bytes, as in the host's store.
const MAX_KEY_BYTES: usize = 512;
/// The largest value, in bytes, as in the host's store.
pub(crate) const MAX_VALUE_BYTES: usize = 1 << 20;
/// Bytes of keys and values that a plugin has when the operator says nothing, as in the host's store.
const QUOTA_BYTES: u64 = 64 << 20;
/// Keys that a plugin has when the operator says nothing, as in the host's store.
const QUOTA_KEYS: u64 = 100_000;

#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<MemoryInner>);

#[derive(Debug)]
struct MemoryInner {
    map: BTreeMap<String, Vec<u8>>,
    /// Of keys and values together.
    bytes: u64,
    quota_bytes: u64,
    quota_keys: u64,
    available: bool,
}

impl Default for MemoryInner {
    fn default() -> Self {
        let (quota_bytes, quota_keys) = (QUOTA_BYTES, QUOTA_KEYS);
        Self { map: BTreeMap::new(), bytes: 0, quota_bytes, quota_keys, available: true }
    }
}

impl Memory {
    fn with<T>(&self, work: impl FnOnce(&mut MemoryInner) -> T) -> T {
        work(&mut self.0.lock())
    }

    /// Like [`Memory::with`], for requests of a plugin: fails while the state is unavailable.
    fn with_available<T>(
        &self,
        work: impl FnOnce(&mut MemoryInner) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        self.with(|kept| {
            if !kept.available {
                return Err(StateError::Unavailable { message: "the test says so".to_owned() });
            }
            work(kept)
        })
    }

    pub(crate) fn set_quota(&self, bytes: u64, keys: u64) {
        self.with(|kept| (kept.quota_bytes, kept.quota_keys) = (bytes, keys));
    }

    pub(crate) fn set_available(&self, available: bool) {
        self.with(|kept| kept.available = available);
    }

    /// The stored value, even while the state is unavailable.
    pub(crate) fn peek(&self, key: &str) -> Option<Vec<u8>> {
        self.with(|kept| kept.map.get(key).cloned())
    }

    /// Sets a value as an operator does: also beyond the quota.
    pub(crate) fn put(&self, key: &str, value: Vec<u8>) -> Result<(), StateError> {
        check(key, Some(&value))?;
        self.with(|kept| kept.put(key, Some(value)));
        Ok(())
    }

    pub(crate) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StateError> {
        check(key, None)?;
        self.with_available(|kept| Ok(kept.map.get(key).cloned()))
    }

    pub(crate) fn set(&self, key: &str, value: Vec<u8>) -> Result<(), StateError> {
        check(key, Some(&value))?;
        self.with_available(|kept| kept.change(key, Some(value)))
    }

    pub(crate) fn delete(&self, key: &str) -> Result<bool, StateError> {
        check(key, None)?;
        self.with_available(|kept| {
            let existed = kept.map.contains_key(key);
            kept.change(key, None)?;
            Ok(existed)
        })
    }

    pub(crate) fn keys(&self, prefix: &str) -> Result<Vec<String>, StateError> {
        self.with_available(|kept| {
            let from = kept.map.range(prefix.to_owned()..).map(|(key, _)| key);
            Ok(from.take_while(|key| key.starts_with(prefix)).cloned().collect())
        })
    }

    pub(crate) fn compare_and_set(
        &self,
        key: &str,
        expected: Option<&Vec<u8>>,
        value: Option<Vec<u8>>,
    ) -> Result<Swap, StateError> {
        check(key, value.as_deref())?;
        self.with_available(|kept| {
            if kept.map.get(key) != expected {
                return Ok(Swap::Lost(kept.map.get(key).cloned()));
            }
            kept.change(key, value)?;
            Ok(Swap::Done)
        })
    }
}

impl MemoryInner {
    /// Only growth is refused: a plugin above a lowered quota can still delete.
    fn change(&mut self, key: &str, value: Option<Vec<u8>>) -> Result<(), StateError> {
        let (bytes, keys) = self.usage_after(key, value.as_deref());
        let (had_bytes, had_keys) = (self.bytes, self.map.len() as u64);
        let refuse =
            |resource, used, limit, wanted| Err(StateError::QuotaExceeded { resource, used, limit, wanted });
        if bytes > self.quota_bytes && bytes > had_bytes {
            return refuse(StateResource::Bytes, had_bytes, self.quota_bytes, bytes);
        }
        if keys > self.quota_keys && keys > had_keys {
            return refuse(StateResource::Keys, had_keys, self.quota_keys, keys);
        }
        self.put(key, value);
        Ok(())
    }

    fn put(&mut self, key: &str, value: Option<Vec<u8>>) {
        self.bytes = self.usage_after(key, value.as_deref()).0;
        match value {
            Some(value) => self.map.insert(key.to_owned(), value),
            None => self.map.remove(key),
        };
    }

    /// How many bytes and keys there would be after the change.
    fn usage_after(&self, key: &str, value: Option<&[u8]>) -> (u64, u64) {
        let cost = |value: Option<usize>| value.map_or(0, |bytes| (bytes + key.len()) as u64);
        let old = self.map.get(key).map(Vec::len);
        let bytes = self.bytes + cost(value.map(<[u8]>::len)) - cost(old);
        let keys = self.map.len() as u64 + u64::from(value.is_some()) - u64::from(old.is_some());
        (bytes, keys)
    }
}

fn check(key: &str, value: Option<&[u8]>) -> Result<(), StateError> {
    if key.is_empty() || key.len() > MAX_KEY_BYTES {
        let message = format!("a key must have 1 to {MAX_KEY_BYTES} bytes, not {}", key.len());
        return Err(StateError::Invalid { message });
    }
    match value.map(<[u8]>::len) {
        Some(bytes) if bytes > MAX_VALUE_BYTES => {
            let message = format!("a value must have at most {MAX_VALUE_BYTES} bytes, not {bytes}");
            Err(StateError::Invalid { message })
        }
        _ => Ok(()),
    }
}
