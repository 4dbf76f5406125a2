//! State in memory, for tests: in-process, or served to a plugin binary as a host would.

use std::sync::Arc;

use talon_proto::state::state_server::State as Service;
use talon_proto::state::{
    CompareAndSetRequest, CompareAndSetResponse, DeleteRequest, DeleteResponse, GetRequest, GetResponse,
    KeysRequest, KeysResponse, QuotaExceeded, SetRequest, SetResponse,
};
use tonic::{Request, Response, Status};

use crate::state::memory::Memory;
use crate::state::{StateError, Swap};

/// Keys on one page when the client sets no size; small, so that tests use several pages.
const PAGE_KEYS: usize = 100;

/// A plugin's key-value state in memory. Clones share it, so a test can check what a tool wrote. It has the
/// limits of a real host: the quota is 64 MiB and 100,000 keys until the test sets another.
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
        self.0.peek(key)
    }

    /// Sets a value as an operator does: without regard to the quota.
    ///
    /// # Panics
    /// When no host would accept such a key or value: a mistake in the test.
    pub fn set(&self, key: &str, value: impl Into<Vec<u8>>) {
        self.0.put(key, value.into()).expect("a test sets what a host would keep");
    }

    /// Sets the plugin's quota, as an operator does: the bytes of keys and values together, and the number of
    /// keys.
    pub fn set_quota(&self, bytes: u64, keys: u64) {
        self.0.set_quota(bytes, keys);
    }

    /// With `false`, all operations of the plugin fail with [`StateError::Unavailable`] until it is `true`
    /// again.
    pub fn set_available(&self, available: bool) {
        self.0.set_available(available);
    }

    pub(crate) fn shared(&self) -> Arc<Memory> {
        Arc::clone(&self.0)
    }
}

/// The status that a host would return.
fn status(error: StateError) -> Status {
    let text = error.to_string();
    match error {
        StateError::QuotaExceeded { resource, used, limit, wanted } => {
            QuotaExceeded { resource: resource.to_string(), used, limit, wanted }.into_status(text)
        }
        StateError::Invalid { message } => Status::invalid_argument(message),
        StateError::Unavailable { message } => Status::unavailable(message),
        _ => Status::internal(text),
    }
}

#[tonic::async_trait]
impl Service for MemoryState {
    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let value = self.0.get(&request.into_inner().key).map_err(status)?;
        Ok(Response::new(GetResponse { value }))
    }

    async fn set(&self, request: Request<SetRequest>) -> Result<Response<SetResponse>, Status> {
        let SetRequest { key, value } = request.into_inner();
        self.0.set(&key, value).map_err(status)?;
        Ok(Response::new(SetResponse {}))
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<DeleteResponse>, Status> {
        let existed = self.0.delete(&request.into_inner().key).map_err(status)?;
        Ok(Response::new(DeleteResponse { existed }))
    }

    async fn keys(&self, request: Request<KeysRequest>) -> Result<Response<KeysResponse>, Status> {
        let KeysRequest { prefix, page_token, page_size } = request.into_inner();
        let size = if page_size == 0 { PAGE_KEYS } else { page_size as usize };
        // The token is the last key of the page before.
        let all = self.0.keys(&prefix).map_err(status)?;
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
        let swap = self.0.compare_and_set(&key, expected.as_ref(), value).map_err(status)?;
        Ok(Response::new(match swap {
            Swap::Done => CompareAndSetResponse { swapped: true, current: None },
            Swap::Lost(current) => CompareAndSetResponse { swapped: false, current },
        }))
    }
}
