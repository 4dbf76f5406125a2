//! Notifications of changes to one client, in its own revision's way.

use std::collections::BTreeSet;

use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionSendError, SubscriptionSink};

use crate::list_changes::ListChanges;

/// Where they go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Notifications<'c> {
    /// Before 2026-07-28: to the client.
    Client(&'c Peer<RoleServer>),
    /// From then on: to a subscription of the client.
    Stream(&'c SubscriptionSink),
}

impl Notifications<'_> {
    /// # Errors
    /// The client is gone.
    pub(crate) async fn lists(self, changes: ListChanges) -> Result<(), SubscriptionSendError> {
        if changes.tools {
            match self {
                Self::Client(client) => client.notify_tool_list_changed().await?,
                Self::Stream(stream) => stream.notify_tool_list_changed().await?,
            }
        }
        if changes.resources {
            match self {
                Self::Client(client) => client.notify_resource_list_changed().await?,
                Self::Stream(stream) => stream.notify_resource_list_changed().await?,
            }
        }
        if changes.prompts {
            match self {
                Self::Client(client) => client.notify_prompt_list_changed().await?,
                Self::Stream(stream) => stream.notify_prompt_list_changed().await?,
            }
        }
        Ok(())
    }

    /// Resources at these addresses of the client changed.
    ///
    /// # Errors
    /// The client is gone.
    pub(crate) async fn resources(self, uris: BTreeSet<String>) -> Result<(), SubscriptionSendError> {
        for uri in uris {
            match self {
                Self::Client(client) => {
                    client.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await?;
                }
                Self::Stream(stream) => stream.notify_resource_updated(uri).await?,
            }
        }
        Ok(())
    }
}
