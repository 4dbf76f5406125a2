//! Key-values in PostgreSQL.

use async_trait::async_trait;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::change::{PluginRow, usage};
use super::for_each_row::for_each_row;
use super::integers::unsigned;
use crate::change::{Change, stored_key};
use crate::error::Error;
use crate::id::{Key, PluginId};
use crate::key_values::{Entry, KeySize, KeyValues, Namespace, SwapResult, Usage, prefix_end};
use crate::page::{Page, PageBuilder, PageRequest};

/// The columns that [`PostgresStore::list_page`] reads.
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
        self.change(Change::set(namespace, key, value)?).await.map(drop)
    }

    async fn delete(&self, plugin: &PluginId, key: &Key) -> Result<bool, Error> {
        Ok(self.change(Change::delete(plugin, key)).await?.is_applied())
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
        let mut client = self.client().await?;
        let purged = async {
            let transaction = client.transaction().await?;
            let Some(plugin_row) = PluginRow::lock(&transaction, plugin).await? else {
                return Ok(Usage::default());
            };
            // Deleting a plugin deletes its keys.
            transaction.execute("DELETE FROM talon.plugins WHERE id = $1", &[&plugin_row.id]).await?;
            self.commit(transaction, 1).await?;
            Ok(plugin_row.usage)
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

fn read_key(row: &Row) -> Result<Key, Error> {
    stored_key(row.try_get(0)?)
}
