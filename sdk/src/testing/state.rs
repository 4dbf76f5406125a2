//! State in memory, for tests: in-process, or served to a plugin binary as a host would.

use std::sync::Arc;

use talon_proto::state::state_server::State as Service;
use talon_proto::state::{
    CompareAndSetRequest, CompareAndSetResponse, DeleteRequest, DeleteResponse, GetRequest, GetResponse,
    KeysRequest, KeysResponse, SetRequest, SetResponse,
};
use tonic::{Request, Response, Status};

use crate::state::{Memory, Swap, memory_keys};

/// Keys on one page when the client does not say; small, so that tests turn pages.
const PAGE_KEYS: usize = 100;

/// A plugin's key-values in memory. Clones share them, so a test can look at what a tool left.
#[derive(Debug, Clone, Default)]
pub struct MemoryState(Arc<Memory>);

impl MemoryState {
    /// Empty state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.0.with(|map| map.get(key).cloned())
    }

    /// Gives a key a value.
    pub fn set(&self, key: &str, value: impl Into<Vec<u8>>) {
        self.0.with(|map| map.insert(key.to_owned(), value.into()));
    }

    pub(super) fn shared(&self) -> Arc<Memory> {
        Arc::clone(&self.0)
    }
}

#[tonic::async_trait]
impl Service for MemoryState {
    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let value = Self::get(self, &request.into_inner().key);
        Ok(Response::new(GetResponse { value }))
    }

    async fn set(&self, request: Request<SetRequest>) -> Result<Response<SetResponse>, Status> {
        let SetRequest { key, value } = request.into_inner();
        Self::set(self, &key, value);
        Ok(Response::new(SetResponse {}))
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<DeleteResponse>, Status> {
        let existed = self.0.with(|map| map.remove(&request.into_inner().key).is_some());
        Ok(Response::new(DeleteResponse { existed }))
    }

    async fn keys(&self, request: Request<KeysRequest>) -> Result<Response<KeysResponse>, Status> {
        let KeysRequest { prefix, page_token, page_size } = request.into_inner();
        let size = if page_size == 0 { PAGE_KEYS } else { page_size as usize };
        // The token is the last key of the page before.
        let all = self.0.with(|map| memory_keys(map, &prefix));
        let mut rest = all.into_iter().filter(|key| page_token.is_empty() || *key > page_token);
        let keys: Vec<String> = rest.by_ref().take(size).collect();
        let more = rest.next().is_some();
        let next_page_token = keys.last().filter(|_| more).cloned().unwrap_or_default();
        Ok(Response::new(KeysResponse { keys, next_page_token }))
    }

    async fn compare_and_set(
        &self,
        request: Request<CompareAndSetRequest>,
    ) -> Result<Response<CompareAndSetResponse>, Status> {
        let CompareAndSetRequest { key, expected, value } = request.into_inner();
        Ok(Response::new(match self.0.compare_and_set(&key, expected.as_ref(), value) {
            Swap::Done => CompareAndSetResponse { swapped: true, current: None },
            Swap::Lost(current) => CompareAndSetResponse { swapped: false, current },
        }))
    }
}
