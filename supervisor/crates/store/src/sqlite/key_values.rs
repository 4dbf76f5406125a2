//! Key-values in SQLite.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::SqliteStore;
use crate::change::{Change, ChangeResult, Current, Effect, stored_key};
use crate::error::Error;
use crate::id::{Key, PluginId};
use crate::key_values::{Entry, KeySize, KeyValues, Namespace, SwapResult, Usage, prefix_end};
use crate::page::{Page, PageBuilder, PageRequest};

/// The columns that [`SqliteStore::list_page`] reads.
macro_rules! listing {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM key_values WHERE plugin = (SELECT id FROM plugins WHERE name = ?1)
                AND key >= ?2 AND (?3 IS NULL OR key < ?3) AND (?4 IS NULL OR key > ?4)
            ORDER BY key LIMIT ?5"
        )
    };
}

#[async_trait]
impl KeyValues for SqliteStore {
    async fn get(&self, plugin: &PluginId, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        let (plugin, key) = (plugin.clone(), key.clone());
        self.read(move |db| {
            let value = "SELECT value FROM key_values
                WHERE plugin = (SELECT id FROM plugins WHERE name = ?1) AND key = ?2";
            let mut found = db.prepare_cached(value)?;
            Ok(found.query_row((plugin.as_str(), key.as_bytes()), |row| row.get(0)).optional()?)
        })
        .await
    }

    async fn set(&self, namespace: &Namespace, key: &Key, value: Vec<u8>) -> Result<(), Error> {
        self.change(Change::set(namespace, key, value)?).await.map(drop)
    }

    async fn delete(&self, plugin: &PluginId, key: &Key) -> Result<bool, Error> {
        Ok(self.change(Change::delete(plugin, key)).await?.is_applied())
    }

    async fn keys(&self, plugin: &PluginId, prefix: &str, page: &PageRequest) -> Result<Page<Key>, Error> {
        let listed = |row: &Row<'_>| Ok((read_key(row)?, 0));
        self.list_page(listing!("key"), plugin, prefix, page, listed, |key| key).await
    }

    async fn sizes(
        &self,
        plugin: &PluginId,
        prefix: &str,
        page: &PageRequest,
    ) -> Result<Page<KeySize>, Error> {
        let listed = |row: &Row<'_>| Ok((KeySize { key: read_key(row)?, bytes: row.get(1)? }, 0));
        self.list_page(listing!("key, length(value)"), plugin, prefix, page, listed, |size| &size.key).await
    }

    async fn entries(
        &self,
        plugin: &PluginId,
        prefix: &str,
        page: &PageRequest,
    ) -> Result<Page<Entry>, Error> {
        let listed = |row: &Row<'_>| {
            let entry = Entry { key: read_key(row)?, value: row.get(1)? };
            let weight = entry.weight();
            Ok((entry, weight))
        };
        self.list_page(listing!("key, value"), plugin, prefix, page, listed, |entry| &entry.key).await
    }

    async fn import(&self, namespace: &Namespace, key: &Key, value: Vec<u8>) -> Result<bool, Error> {
        Ok(self.change(Change::import(namespace, key, value)?).await?.is_applied())
    }

    async fn compare_and_set(
        &self,
        namespace: &Namespace,
        key: &Key,
        expected: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
    ) -> Result<SwapResult, Error> {
        Ok(self.change(Change::swap(namespace, key, expected, value)?).await?.into())
    }

    async fn purge(&self, plugin: &PluginId) -> Result<Usage, Error> {
        let plugin = plugin.clone();
        self.write(move |db| {
            let Some(plugin_row) = PluginRow::find(db, &plugin)? else { return Ok(Usage::default()) };
            db.prepare_cached("DELETE FROM key_values WHERE plugin = ?1")?.execute([plugin_row.id])?;
            db.prepare_cached("DELETE FROM plugins WHERE id = ?1")?.execute([plugin_row.id])?;
            Ok(plugin_row.usage)
        })
        .await
    }

    async fn usage(&self, plugin: &PluginId) -> Result<Usage, Error> {
        let plugin = plugin.clone();
        self.read(move |db| {
            Ok(PluginRow::find(db, &plugin)?.map(|plugin_row| plugin_row.usage).unwrap_or_default())
        })
        .await
    }

    async fn plugins(&self, page: &PageRequest) -> Result<Page<(PluginId, Usage)>, Error> {
        let page = page.clone();
        self.read(move |db| {
            let last = page.last_text()?.unwrap_or_default();
            let mut rows = db.prepare_cached(
                "SELECT name, bytes, keys FROM plugins WHERE keys > 0 AND name > ?1 ORDER BY name LIMIT ?2",
            )?;
            let mut rows = rows.query((last, page.fetch_limit()))?;
            let mut plugins = PageBuilder::new(&page);
            while let Some(row) = rows.next()? {
                let name: String = row.get(0)?;
                let plugin = PluginId::new(&name).map_err(|error| Error::unreadable("plugin's id", error))?;
                plugins.push((plugin, Usage { bytes: row.get(1)?, keys: row.get(2)? }), 0);
            }
            Ok(plugins.finish(|(plugin, _)| plugin.as_str().into()))
        })
        .await
    }
}

impl SqliteStore {
    async fn change(&self, change: Change) -> Result<ChangeResult, Error> {
        self.write(move |db| apply(&change, db)).await
    }

    /// A page of a plugin's keys, each with the other selected columns and its size.
    async fn list_page<T: Send + 'static>(
        &self,
        sql: &'static str,
        plugin: &PluginId,
        prefix: &str,
        page: &PageRequest,
        item: impl Fn(&Row<'_>) -> Result<(T, usize), Error> + Send + 'static,
        key: impl Fn(&T) -> &Key + Send + 'static,
    ) -> Result<Page<T>, Error> {
        let (plugin, page) = (plugin.clone(), page.clone());
        let (from, end) = (prefix.as_bytes().to_vec(), prefix_end(prefix.as_bytes()));
        self.read(move |db| {
            let mut rows = db.prepare_cached(sql)?;
            let mut rows = rows.query((plugin.as_str(), from, end, page.last(), page.fetch_limit()))?;
            let mut items = PageBuilder::new(&page);
            while let Some(row) = rows.next()? {
                let (item, weight) = item(row)?;
                if !items.push(item, weight) {
                    break;
                }
            }
            Ok(items.finish(|item| key(item).as_bytes().to_vec()))
        })
        .await
    }
}

/// Applies a change within a transaction.
fn apply(change: &Change, db: &Connection) -> Result<ChangeResult, Error> {
    let Change { namespace, key, .. } = change;
    let plugin_row = if change.creates_plugin() {
        PluginRow::of(db, &namespace.plugin)?
    } else {
        match PluginRow::find(db, &namespace.plugin)? {
            Some(plugin_row) => plugin_row,
            None => return Ok(ChangeResult::NotApplied(None)),
        }
    };
    let current = if change.compares_value() {
        Current::Value(value(db, plugin_row.id, key)?)
    } else {
        Current::Length(length(db, plugin_row.id, key)?)
    };
    match change.effect(current) {
        Effect::Replace { old, new } => {
            plugin_row.replace(db, namespace, key, old, new)?;
            Ok(ChangeResult::Applied)
        }
        Effect::Leave(result) => Ok(result),
    }
}

/// A plugin's row.
struct PluginRow {
    id: i64,
    usage: Usage,
}

impl PluginRow {
    fn find(db: &Connection, plugin: &PluginId) -> Result<Option<Self>, Error> {
        let mut found = db.prepare_cached("SELECT id, bytes, keys FROM plugins WHERE name = ?1")?;
        let plugin_row = |row: &Row<'_>| {
            Ok(Self { id: row.get(0)?, usage: Usage { bytes: row.get(1)?, keys: row.get(2)? } })
        };
        Ok(found.query_row([plugin.as_str()], plugin_row).optional()?)
    }

    /// Its row, created if there is none.
    fn of(db: &Connection, plugin: &PluginId) -> Result<Self, Error> {
        if let Some(plugin_row) = Self::find(db, plugin)? {
            return Ok(plugin_row);
        }
        db.prepare_cached("INSERT INTO plugins (name) VALUES (?1)")?.execute([plugin.as_str()])?;
        Ok(Self { id: db.last_insert_rowid(), usage: Usage::default() })
    }

    /// Replaces or removes a key's value, and updates the usage.
    fn replace(
        &self,
        db: &Connection,
        namespace: &Namespace,
        key: &Key,
        old: Option<u64>,
        new: Option<&[u8]>,
    ) -> Result<(), Error> {
        let then = self.usage.after_change(namespace, key, old, new.map(|value| value.len() as u64))?;
        match new {
            Some(value) => db
                .prepare_cached(
                    "INSERT INTO key_values (plugin, key, value) VALUES (?1, ?2, ?3)
                    ON CONFLICT (plugin, key) DO UPDATE SET value = excluded.value",
                )?
                .execute((self.id, key.as_bytes(), value))?,
            None => db
                .prepare_cached("DELETE FROM key_values WHERE plugin = ?1 AND key = ?2")?
                .execute((self.id, key.as_bytes()))?,
        };
        db.prepare_cached("UPDATE plugins SET bytes = ?2, keys = ?3 WHERE id = ?1")?
            .execute((self.id, then.bytes, then.keys))?;
        Ok(())
    }
}

fn value(db: &Connection, plugin: i64, key: &Key) -> Result<Option<Vec<u8>>, Error> {
    let mut found = db.prepare_cached("SELECT value FROM key_values WHERE plugin = ?1 AND key = ?2")?;
    Ok(found.query_row((plugin, key.as_bytes()), |row| row.get(0)).optional()?)
}

/// The length of a value, which SQLite knows without reading it.
fn length(db: &Connection, plugin: i64, key: &Key) -> Result<Option<u64>, Error> {
    let mut found =
        db.prepare_cached("SELECT length(value) FROM key_values WHERE plugin = ?1 AND key = ?2")?;
    Ok(found.query_row((plugin, key.as_bytes()), |row| row.get(0)).optional()?)
}

fn read_key(row: &Row<'_>) -> Result<Key, Error> {
    stored_key(row.get(0)?)
}
