//! `talon.state.v1.State`: one plugin's key-values. The message that passed the socket says which plugin it
//! is for.

use std::sync::Arc;

use talon_proto::state::state_server::State;
use talon_proto::state::{
    CompareAndSetRequest, CompareAndSetResponse, DeleteRequest, DeleteResponse, GetRequest, GetResponse,
    KeysRequest, KeysResponse, SetRequest, SetResponse,
};
use talon_store::{Error, Key, KeyValues, Namespace, Page, PageRequest, PageToken, SwapResult};
use tonic::{Request, Response, Status};

use crate::database::Database;
use crate::failure::Requester;
use crate::gate::RequestBudget;

/// Serves one namespace.
pub(crate) struct Service {
    database: Arc<Database>,
    key_values: Arc<dyn KeyValues>,
    namespace: Namespace,
    request_budget: Arc<RequestBudget>,
}

impl Service {
    pub(crate) fn new(
        database: Arc<Database>,
        key_values: Arc<dyn KeyValues>,
        namespace: Namespace,
        request_budget: Arc<RequestBudget>,
    ) -> Self {
        Self { database, key_values, namespace, request_budget }
    }

    fn failed(&self, error: &Error) -> Status {
        self.database.failed(error, Requester::Plugin)
    }

    fn key(&self, key: String) -> Result<Key, Status> {
        Key::new(key).map_err(|error| self.failed(&error.into()))
    }
}

#[tonic::async_trait]
impl State for Service {
    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let key = self.key(request.into_inner().key)?;
        let value = self.key_values.get(&self.namespace.plugin, &key).await;
        let value = value.map_err(|error| self.failed(&error))?;
        Ok(Response::new(GetResponse { value }))
    }

    async fn set(&self, request: Request<SetRequest>) -> Result<Response<SetResponse>, Status> {
        let SetRequest { key, value } = request.into_inner();
        let key = self.key(key)?;
        let _turn = self.request_budget.write().await;
        self.key_values.set(&self.namespace, &key, value).await.map_err(|error| self.failed(&error))?;
        Ok(Response::new(SetResponse {}))
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<DeleteResponse>, Status> {
        let key = self.key(request.into_inner().key)?;
        let _turn = self.request_budget.write().await;
        let existed = self.key_values.delete(&self.namespace.plugin, &key).await;
        let existed = existed.map_err(|error| self.failed(&error))?;
        Ok(Response::new(DeleteResponse { existed }))
    }

    async fn keys(&self, request: Request<KeysRequest>) -> Result<Response<KeysResponse>, Status> {
        let KeysRequest { prefix, page_token, page_size } = request.into_inner();
        let found = async {
            let page = page(&page_token, page_size)?;
            self.key_values.keys(&self.namespace.plugin, &prefix, &page).await
        };
        let Page { items, next } = found.await.map_err(|error| self.failed(&error))?;
        let keys = items.into_iter().map(String::from).collect();
        Ok(Response::new(KeysResponse { keys, next_page_token: token(next) }))
    }

    async fn compare_and_set(
        &self,
        request: Request<CompareAndSetRequest>,
    ) -> Result<Response<CompareAndSetResponse>, Status> {
        let CompareAndSetRequest { key, expected, value } = request.into_inner();
        let key = self.key(key)?;
        let _turn = self.request_budget.write().await;
        let swap = self.key_values.compare_and_set(&self.namespace, &key, expected, value).await;
        let response = match swap.map_err(|error| self.failed(&error))? {
            SwapResult::Swapped => CompareAndSetResponse { swapped: true, current: None },
            SwapResult::Conflict(current) => CompareAndSetResponse { swapped: false, current },
        };
        Ok(Response::new(response))
    }
}

/// Parses the requested page.
///
/// # Errors
/// [`Error::Invalid`] for an invalid token.
pub(crate) fn page(token: &str, size: u32) -> Result<PageRequest, Error> {
    if token.is_empty() {
        return Ok(PageRequest::first(size));
    }
    Ok(PageRequest::after(PageToken::parse(token)?, size))
}

/// The token of the next page, in the form of the wire.
pub(crate) fn token(next: Option<PageToken>) -> String {
    next.map(|token| token.to_string()).unwrap_or_default()
}
