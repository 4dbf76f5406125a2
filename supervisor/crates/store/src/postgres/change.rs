//! Applies a change of one key, and updates the plugin's usage.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::integers::{signed, unsigned};
use crate::change::{Change, ChangeResult, Current, Effect};
use crate::error::Error;
use crate::id::{Key, PluginId};
use crate::key_values::{Namespace, Usage};

/// Applies a change within a transaction.
pub(super) async fn apply(change: &Change, db: &Transaction<'_>) -> Result<ChangeResult, Error> {
    let Change { namespace, key, .. } = change;
    let plugin_row = if change.creates_plugin() {
        PluginRow::of(db, &namespace.plugin).await?
    } else {
        match PluginRow::lock(db, &namespace.plugin).await? {
            Some(plugin_row) => plugin_row,
            None => return Ok(ChangeResult::NotApplied(None)),
        }
    };
    let current = if change.compares_value() {
        Current::Value(value(db, plugin_row.id, key).await?)
    } else {
        Current::Length(length(db, plugin_row.id, key).await?)
    };
    match change.effect(current) {
        Effect::Replace { old, new } => {
            plugin_row.replace(db, namespace, key, old, new).await?;
            Ok(ChangeResult::Applied)
        }
        Effect::Leave(result) => Ok(result),
    }
}

/// A plugin's row, locked until the transaction ends.
pub(super) struct PluginRow {
    pub(super) id: i64,
    pub(super) usage: Usage,
}

impl PluginRow {
    pub(super) async fn lock(db: &Transaction<'_>, plugin: &PluginId) -> Result<Option<Self>, Error> {
        let sql = "SELECT id, bytes, keys FROM talon.plugins WHERE name = $1 FOR UPDATE";
        let row = db.query_opt(&db.prepare_cached(sql).await?, &[&plugin.as_str()]).await?;
        Ok(row.map(|row| Self { id: row.get(0), usage: usage(&row, 1) }))
    }

    /// Its row, created if there is none.
    async fn of(db: &Transaction<'_>, plugin: &PluginId) -> Result<Self, Error> {
        if let Some(plugin_row) = Self::lock(db, plugin).await? {
            return Ok(plugin_row);
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

pub(super) fn usage(row: &Row, first: usize) -> Usage {
    Usage { bytes: unsigned(row.get(first)), keys: unsigned(row.get(first + 1)) }
}
