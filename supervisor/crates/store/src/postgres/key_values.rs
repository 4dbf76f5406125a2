//! Key-values in PostgreSQL.

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::for_each_row::for_each_row;
use super::{PostgresStore, signed, unsigned};
use crate::error::Error;
use crate::id::{Key, PluginId};
use crate::key_values::{Entry, KeySize, KeyValues, Namespace, SwapResult, Usage, check_value, prefix_end};
use crate::page::{Page, PageBuilder, PageRequest};

/// The columns that [`PostgresStore::listed`] reads.
macro_rules! listing {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM talon.key_values WHERE plugin = (SELECT id FROM talon.plugins WHERE name = $1) AND key >= $2
                AND ($3::bytea IS NULL OR key < $3) AND ($4::bytea IS NULL OR key > $4)
            ORDER BY key LIMIT $5"
        )
    };
}

#[async_trait]
impl KeyValues for PostgresStore {
    async fn get(&self, plugin: &PluginId, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        let client = self.client().await?;
        let found = async {
            let sql = "SELECT value FROM talon.key_values
                WHERE plugin = (SELECT id FROM talon.plugins WHERE name = $1) AND key = $2";
            let sql = client.prepare_cached(sql).await?;
            let row = client.query_opt(&sql, &[&plugin.as_str(), &key.as_bytes()]).await?;
            Ok(row.map(|row| row.try_get(0)).transpose()?)
        };
        self.inspect_result(found.await)
    }

    async fn set(&self, namespace: &Namespace, key: &Key, value: Vec<u8>) -> Result<(), Error> {
        check_value(&value)?;
        let (namespace, key) = (namespace.clone(), key.clone());
        self.change(Change { namespace, key, kind: ChangeKind::Set(value) }).await.map(drop)
    }

    async fn delete(&self, plugin: &PluginId, key: &Key) -> Result<bool, Error> {
        // A quota never prevents freeing space.
        let (namespace, key) = (Namespace::of(plugin.clone()), key.clone());
        let deleted = self.change(Change { namespace, key, kind: ChangeKind::Delete }).await?;
        Ok(deleted == ChangeResult::Applied)
    }

    async fn keys(&self, plugin: &PluginId, prefix: &str, page: &PageRequest) -> Result<Page<Key>, Error> {
        let listed = |row: &Row| Ok((read_key(row)?, 0));
        self.list_page(listing!("key"), plugin, prefix, page, listed, |key| key).await
    }

    async fn sizes(
        &self,
        plugin: &PluginId,
        prefix: &str,
        page: &PageRequest,
    ) -> Result<Page<KeySize>, Error> {
        let listed = |row: &Row| {
            Ok((KeySize { key: read_key(row)?, bytes: unsigned(row.get::<_, i32>(1).into()) }, 0))
        };
        self.list_page(listing!("key, length(value)"), plugin, prefix, page, listed, |size| &size.key).await
    }

    async fn entries(
        &self,
        plugin: &PluginId,
        prefix: &str,
        page: &PageRequest,
    ) -> Result<Page<Entry>, Error> {
        let listed = |row: &Row| {
            let entry = Entry { key: read_key(row)?, value: row.try_get(1)? };
            let weight = entry.weight();
            Ok((entry, weight))
        };
        self.list_page(listing!("key, value"), plugin, prefix, page, listed, |entry| &entry.key).await
    }

    async fn import(&self, namespace: &Namespace, key: &Key, value: Vec<u8>) -> Result<bool, Error> {
        check_value(&value)?;
        let (namespace, key) = (namespace.clone(), key.clone());
        let imported = self.change(Change { namespace, key, kind: ChangeKind::Import(value) }).await?;
        Ok(imported == ChangeResult::Applied)
    }

    async fn compare_and_set(
        &self,
        namespace: &Namespace,
        key: &Key,
        expected: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
    ) -> Result<SwapResult, Error> {
        value.as_deref().map_or(Ok(()), check_value)?;
        let (namespace, key) = (namespace.clone(), key.clone());
        Ok(match self.change(Change { namespace, key, kind: ChangeKind::Swap(expected, value) }).await? {
            ChangeResult::Applied => SwapResult::Swapped,
            ChangeResult::NotApplied(current) => SwapResult::Conflict(current),
        })
    }

    async fn purge(&self, plugin: &PluginId) -> Result<Usage, Error> {
        let mut client = self.client().await?;
        let purged = async {
            let transaction = client.transaction().await?;
            let Some(counted) = PluginRow::lock(&transaction, plugin).await? else {
                return Ok(Usage::default());
            };
            // Deleting a plugin deletes its keys.
            transaction.execute("DELETE FROM talon.plugins WHERE id = $1", &[&counted.id]).await?;
            self.commit(transaction, 1).await?;
            Ok(counted.usage)
        };
        self.inspect_result(purged.await)
    }

    async fn usage(&self, plugin: &PluginId) -> Result<Usage, Error> {
        let client = self.client().await?;
        let used = async {
            let sql = client.prepare_cached("SELECT bytes, keys FROM talon.plugins WHERE name = $1").await?;
            let row = client.query_opt(&sql, &[&plugin.as_str()]).await?;
            Ok(row.map_or_else(Usage::default, |row| usage(&row, 0)))
        };
        self.inspect_result(used.await)
    }

    async fn plugins(&self, page: &PageRequest) -> Result<Page<(PluginId, Usage)>, Error> {
        let last = page.last_text()?.unwrap_or_default();
        let client = self.client().await?;
        let listed = async {
            let sql = "SELECT name, bytes, keys FROM talon.plugins WHERE keys > 0 AND name > $1 ORDER BY name LIMIT $2";
            let sql = client.prepare_cached(sql).await?;
            let mut plugins = PageBuilder::new(page);
            for row in client.query(&sql, &[&last, &page.fetch_limit()]).await? {
                let plugin = PluginId::new(row.try_get(0)?)
                    .map_err(|error| Error::unreadable("plugin's id", error))?;
                plugins.push((plugin, usage(&row, 1)), 0);
            }
            Ok(plugins.finish(|(plugin, _)| plugin.as_str().into()))
        };
        self.inspect_result(listed.await)
    }
}

impl PostgresStore {
    /// A page of a plugin's keys, each with the other selected columns and its size.
    async fn list_page<T: Send>(
        &self,
        sql: &'static str,
        plugin: &PluginId,
        prefix: &str,
        page: &PageRequest,
        item: impl Fn(&Row) -> Result<(T, usize), Error> + Send,
        key: impl Fn(&T) -> &Key + Send,
    ) -> Result<Page<T>, Error> {
        let client = self.client().await?;
        let listed = async {
            let sql = client.prepare_cached(sql).await?;
            let end = prefix_end(prefix.as_bytes());
            let (plugin, prefix, last, probe) =
                (plugin.as_str(), prefix.as_bytes(), page.last(), page.fetch_limit());
            let mut items = PageBuilder::new(page);
            let fill = |row: &Row| {
                let (item, weight) = item(row)?;
                Ok(items.push(item, weight))
            };
            let params: [&(dyn ToSql + Sync); 5] = [&plugin, &prefix, &end, &last, &probe];
            for_each_row(&client, &sql, &params, fill).await?;
            Ok(items.finish(|item| key(item).as_bytes().to_vec()))
        };
        self.inspect_result(listed.await)
    }
}

/// A change of one key.
pub(super) struct Change {
    pub(super) namespace: Namespace,
    pub(super) key: Key,
    pub(super) kind: ChangeKind,
}

pub(super) enum ChangeKind {
    Set(Vec<u8>),
    /// As `Set`, but only if the value differs.
    Import(Vec<u8>),
    Delete,
    Swap(Option<Vec<u8>>, Option<Vec<u8>>),
}

/// The result of a change.
#[derive(PartialEq)]
pub(super) enum ChangeResult {
    Applied,
    /// Not applied, since this is the current value.
    NotApplied(Option<Vec<u8>>),
}

impl Change {
    pub(super) async fn apply(&self, db: &Transaction<'_>) -> Result<ChangeResult, Error> {
        let Self { namespace, key, kind } = self;
        match kind {
            ChangeKind::Set(value) => {
                let counted = PluginRow::of(db, &namespace.plugin).await?;
                let old = length(db, counted.id, key).await?;
                counted.replace(db, namespace, key, old, Some(value)).await?;
            }
            ChangeKind::Import(value) => {
                let counted = PluginRow::of(db, &namespace.plugin).await?;
                let current = self::value(db, counted.id, key).await?;
                if current.as_ref() == Some(value) {
                    return Ok(ChangeResult::NotApplied(None));
                }
                let old = current.map(|value| value.len() as u64);
                counted.replace(db, namespace, key, old, Some(value)).await?;
            }
            ChangeKind::Delete => {
                let Some(counted) = PluginRow::lock(db, &namespace.plugin).await? else {
                    return Ok(ChangeResult::NotApplied(None));
                };
                let Some(old) = length(db, counted.id, key).await? else {
                    return Ok(ChangeResult::NotApplied(None));
                };
                counted.replace(db, namespace, key, Some(old), None).await?;
            }
            ChangeKind::Swap(expected, value) => {
                let counted = PluginRow::of(db, &namespace.plugin).await?;
                let current = self::value(db, counted.id, key).await?;
                if current != *expected {
                    return Ok(ChangeResult::NotApplied(current));
                }
                let old = current.map(|value| value.len() as u64);
                counted.replace(db, namespace, key, old, value.as_deref()).await?;
            }
        }
        Ok(ChangeResult::Applied)
    }
}

/// A plugin's row, locked until the transaction ends.
struct PluginRow {
    id: i64,
    usage: Usage,
}

impl PluginRow {
    async fn lock(db: &Transaction<'_>, plugin: &PluginId) -> Result<Option<Self>, Error> {
        let sql = "SELECT id, bytes, keys FROM talon.plugins WHERE name = $1 FOR UPDATE";
        let row = db.query_opt(&db.prepare_cached(sql).await?, &[&plugin.as_str()]).await?;
        Ok(row.map(|row| Self { id: row.get(0), usage: usage(&row, 1) }))
    }

    /// Its row, created if there is none.
    async fn of(db: &Transaction<'_>, plugin: &PluginId) -> Result<Self, Error> {
        if let Some(counted) = Self::lock(db, plugin).await? {
            return Ok(counted);
        }
        // If another transaction created it in between, this waits for its end and then locks the same row.
        let sql = "INSERT INTO talon.plugins (name) VALUES ($1)
            ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id, bytes, keys";
        let row = db.query_one(&db.prepare_cached(sql).await?, &[&plugin.as_str()]).await?;
        Ok(Self { id: row.get(0), usage: usage(&row, 1) })
    }

    /// Replaces or removes a key's value, and updates the usage.
    async fn replace(
        &self,
        db: &Transaction<'_>,
        namespace: &Namespace,
        key: &Key,
        old: Option<u64>,
        new: Option<&[u8]>,
    ) -> Result<(), Error> {
        let then = self.usage.after_change(namespace, key, old, new.map(|value| value.len() as u64))?;
        if let Some(value) = new {
            let sql = "INSERT INTO talon.key_values (plugin, key, value) VALUES ($1, $2, $3)
                ON CONFLICT (plugin, key) DO UPDATE SET value = excluded.value";
            db.execute(&db.prepare_cached(sql).await?, &[&self.id, &key.as_bytes(), &value]).await?;
        } else {
            let sql = "DELETE FROM talon.key_values WHERE plugin = $1 AND key = $2";
            db.execute(&db.prepare_cached(sql).await?, &[&self.id, &key.as_bytes()]).await?;
        }
        let sql = "UPDATE talon.plugins SET bytes = $2, keys = $3 WHERE id = $1";
        let sql = db.prepare_cached(sql).await?;
        db.execute(&sql, &[&self.id, &signed(then.bytes), &signed(then.keys)]).await?;
        Ok(())
    }
}

async fn value(db: &Transaction<'_>, plugin: i64, key: &Key) -> Result<Option<Vec<u8>>, Error> {
    let sql = "SELECT value FROM talon.key_values WHERE plugin = $1 AND key = $2";
    let row = db.query_opt(&db.prepare_cached(sql).await?, &[&plugin, &key.as_bytes()]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

async fn length(db: &Transaction<'_>, plugin: i64, key: &Key) -> Result<Option<u64>, Error> {
    let sql = "SELECT length(value) FROM talon.key_values WHERE plugin = $1 AND key = $2";
    let row = db.query_opt(&db.prepare_cached(sql).await?, &[&plugin, &key.as_bytes()]).await?;
    Ok(row.map(|row| unsigned(row.get::<_, i32>(0).into())))
}

fn usage(row: &Row, first: usize) -> Usage {
    Usage { bytes: unsigned(row.get(first)), keys: unsigned(row.get(first + 1)) }
}

fn read_key(row: &Row) -> Result<Key, Error> {
    let unreadable = |error: &dyn std::fmt::Display| Error::unreadable("key", error);
    let text = String::from_utf8(row.try_get(0)?).map_err(|error| unreadable(&error))?;
    Key::new(text).map_err(|error| unreadable(&error))
}
