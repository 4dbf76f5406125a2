//! The plugins' key-values, one by one.

use talon_proto::state::{
    DeleteEntryRequest, DeleteEntryResponse, EntrySize, GetEntryRequest, GetEntryResponse,
    ListEntriesRequest, ListEntriesResponse, ListPluginsRequest, ListPluginsResponse, PluginUsage,
    PurgeRequest, PurgeResponse, SetEntryRequest, SetEntryResponse,
};
use talon_store::{Error, Key, KeySize, Namespace, Page, PluginId, Quota, Usage};
use tonic::Status;

use super::Service;
use crate::plugin::{page, token};

/// An operator is not bound by the quota: an operator who sets it may exceed it.
const NO_QUOTA: Quota = Quota { bytes: u64::MAX, keys: u64::MAX };

impl Service {
    pub(super) async fn list_plugins(
        &self,
        request: ListPluginsRequest,
    ) -> Result<ListPluginsResponse, Status> {
        let key_values = self.database.key_values()?;
        let found = async { key_values.plugins(&page(&request.page_token, request.page_size)?).await };
        let Page { items, next } = found.await.map_err(|error| self.failed(&error))?;
        let plugins = items.iter().map(|(plugin, usage)| plugin_usage(plugin, *usage)).collect();
        Ok(ListPluginsResponse { plugins, next_page_token: token(next) })
    }

    pub(super) async fn list_entries(
        &self,
        request: ListEntriesRequest,
    ) -> Result<ListEntriesResponse, Status> {
        let key_values = self.database.key_values()?;
        let found = async {
            let plugin = PluginId::new(&request.plugin)?;
            let page = page(&request.page_token, request.page_size)?;
            let Page { items, next } = key_values.sizes(&plugin, &request.prefix, &page).await?;
            let size = |KeySize { key, bytes }| EntrySize { key: key.into(), value_bytes: bytes };
            let entries = items.into_iter().map(size).collect();
            let usage = Some(plugin_usage(&plugin, key_values.usage(&plugin).await?));
            Ok(ListEntriesResponse { entries, next_page_token: token(next), usage })
        };
        found.await.map_err(|error: Error| self.failed(&error))
    }

    pub(super) async fn get_entry(&self, request: GetEntryRequest) -> Result<GetEntryResponse, Status> {
        let key_values = self.database.key_values()?;
        let found = async { key_values.get(&PluginId::new(&request.plugin)?, &Key::new(request.key)?).await };
        let value = found.await.map_err(|error| self.failed(&error))?;
        Ok(GetEntryResponse { value })
    }

    pub(super) async fn set_entry(&self, request: SetEntryRequest) -> Result<SetEntryResponse, Status> {
        let key_values = self.database.key_values()?;
        let set = async {
            let namespace = Namespace { plugin: PluginId::new(&request.plugin)?, quota: NO_QUOTA };
            key_values.set(&namespace, &Key::new(request.key)?, request.value).await
        };
        set.await.map_err(|error| self.failed(&error))?;
        Ok(SetEntryResponse {})
    }

    pub(super) async fn delete_entry(
        &self,
        request: DeleteEntryRequest,
    ) -> Result<DeleteEntryResponse, Status> {
        let key_values = self.database.key_values()?;
        let deleted =
            async { key_values.delete(&PluginId::new(&request.plugin)?, &Key::new(request.key)?).await };
        let existed = deleted.await.map_err(|error| self.failed(&error))?;
        Ok(DeleteEntryResponse { existed })
    }

    pub(super) async fn purge(&self, request: PurgeRequest) -> Result<PurgeResponse, Status> {
        let key_values = self.database.key_values()?;
        let purged = async {
            let plugin = PluginId::new(&request.plugin)?;
            let usage = key_values.purge(&plugin).await?;
            tracing::info!(%plugin, bytes = usage.bytes, keys = usage.keys, "all of a plugin's state was purged");
            Ok(PurgeResponse { purged: Some(plugin_usage(&plugin, usage)) })
        };
        purged.await.map_err(|error: Error| self.failed(&error))
    }
}

fn plugin_usage(plugin: &PluginId, usage: Usage) -> PluginUsage {
    PluginUsage { plugin: plugin.to_string(), bytes: usage.bytes, keys: usage.keys }
}
