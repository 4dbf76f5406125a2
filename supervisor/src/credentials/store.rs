//! Where records survive a restart: `talon-state`, under the name that no plugin can have.

use std::time::Duration;

use talon_proto::state::operator_client::OperatorClient;
use talon_proto::state::{DeleteEntryRequest, GetEntryRequest, ListEntriesRequest, SetEntryRequest};
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::record::CredentialRecord;
use crate::state::StateSupervisor;

/// The namespace. It is [reserved](talon_plugin_config::name::RESERVED_NAMES), so no plugin reads or writes it.
const NAMESPACE: &str = "talon-gateway";
/// The prefix of the keys, which go on with the credential's id.
const PREFIX: &str = "credential/";
/// How long one request may take: the service is beside us, and may just be starting again.
const WITHIN: Duration = Duration::from_secs(20);
/// Records that are listed at once.
const PAGE: u32 = 500;

/// Stores records in `talon-state`.
#[derive(Debug, Clone)]
pub struct StateStore {
    client: OperatorClient<Channel>,
}

impl StateStore {
    /// Must be called within a tokio runtime.
    #[must_use]
    pub fn new(state: &StateSupervisor) -> Self {
        Self { client: OperatorClient::new(state.channel()) }
    }

    /// All records, also where the limit is lower now than when they were made: a token that is not read could not be listed or revoked. One
    /// that cannot be read is left out and reported: it opens nothing then.
    pub(super) async fn load(&self) -> Result<Vec<CredentialRecord>, Status> {
        let mut records = Vec::new();
        let mut page_token = String::new();
        loop {
            let mut client = self.client.clone();
            let (plugin, prefix) = (NAMESPACE.to_owned(), PREFIX.to_owned());
            let request = ListEntriesRequest { plugin, prefix, page_token, page_size: PAGE };
            let listed = match within(client.list_entries(request)).await {
                Ok(listed) => listed,
                // Nothing was stored yet.
                Err(status) if status.code() == Code::NotFound => return Ok(records),
                Err(status) => return Err(status),
            };
            for entry in listed.entries {
                records.extend(self.get(&entry.key).await?);
            }
            page_token = listed.next_page_token;
            if page_token.is_empty() {
                return Ok(records);
            }
        }
    }

    async fn get(&self, key: &str) -> Result<Option<CredentialRecord>, Status> {
        let request = GetEntryRequest { plugin: NAMESPACE.to_owned(), key: key.to_owned() };
        let Some(value) = within(self.client.clone().get_entry(request)).await?.value else {
            return Ok(None);
        };
        match serde_json::from_slice::<CredentialRecord>(&value) {
            Ok(record) if key.strip_prefix(PREFIX) == Some(&record.id) => Ok(Some(record)),
            Ok(_) => {
                tracing::error!(
                    key,
                    "a credential that was stored is that of another key, and holds no more"
                );
                Ok(None)
            }
            Err(error) => {
                tracing::error!(key, %error, "a credential that was stored cannot be read, and holds no more");
                Ok(None)
            }
        }
    }

    pub(super) async fn put(&self, record: &CredentialRecord) -> Result<(), Status> {
        // A record of texts and numbers always serializes.
        let value = serde_json::to_vec(record).unwrap_or_default();
        let request = SetEntryRequest { plugin: NAMESPACE.to_owned(), key: key(&record.id), value };
        within(self.client.clone().set_entry(request)).await.map(drop)
    }

    pub(super) async fn delete(&self, id: &str) -> Result<(), Status> {
        let request = DeleteEntryRequest { plugin: NAMESPACE.to_owned(), key: key(id) };
        match within(self.client.clone().delete_entry(request)).await {
            Err(status) if status.code() == Code::NotFound => Ok(()),
            deleted => deleted.map(drop),
        }
    }
}

fn key(id: &str) -> String {
    format!("{PREFIX}{id}")
}

async fn within<T>(request: impl Future<Output = Result<tonic::Response<T>, Status>>) -> Result<T, Status> {
    match timeout(WITHIN, request).await {
        Ok(answered) => answered.map(tonic::Response::into_inner),
        Err(_) => Err(Status::unavailable("the state service does not answer: see `talon status`")),
    }
}
