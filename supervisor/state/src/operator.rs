//! `talon.state.v1.Operator`: an operator's access to stored state. The connection gives access to all of it.

mod copies;
mod entries;
mod files;
mod scratch;
mod stream;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use talon_error_chain::error_chain;
use talon_proto::state::operator_server::Operator;
use talon_proto::state::{
    BackupChunk, BackupRequest, DeleteEntryRequest, DeleteEntryResponse, DescribeRequest, DescribeResponse,
    ExportChunk, ExportRequest, GetEntryRequest, GetEntryResponse, ImportChunk, ImportReport,
    ListEntriesRequest, ListEntriesResponse, ListPluginsRequest, ListPluginsResponse, PurgeRequest,
    PurgeResponse, RestoreChunk, RestoreResponse, SetEntryRequest, SetEntryResponse,
};
use talon_store::Error;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::database::Database;
use crate::failure::Requester;

pub(crate) use scratch::ScratchDir;
use stream::ResponseStream;

/// Serves one connection of an operator.
pub(crate) struct Service {
    database: Arc<Database>,
    /// Ends the streams when the process ends; what they have done by then stays.
    closed: CancellationToken,
}

impl Service {
    pub(crate) fn new(database: Arc<Database>, closed: CancellationToken) -> Self {
        Self { database, closed }
    }

    fn failed(&self, error: &Error) -> Status {
        self.database.failed(error, Requester::Operator)
    }
}

#[tonic::async_trait]
impl Operator for Service {
    async fn describe(
        &self,
        request: Request<DescribeRequest>,
    ) -> Result<Response<DescribeResponse>, Status> {
        // The problem is part of the answer.
        let problem = if request.get_ref().unchecked {
            Some(self.database.problem())
        } else {
            self.database.check().await.err().map(|error| error_chain(&error))
        };
        let (engine, place, schema_version) = self.database.describe();
        let counters = self.database.counters();
        Ok(Response::new(DescribeResponse {
            engine: engine.to_owned(),
            place,
            layers: self.database.layers.into(),
            schema_version,
            problem: problem.unwrap_or_else(|| self.database.lasting_problem()),
            writes: counters.writes,
            commits: counters.commits,
            sockets: self.database.sockets.load(Ordering::Relaxed),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }))
    }

    async fn list_plugins(
        &self,
        request: Request<ListPluginsRequest>,
    ) -> Result<Response<ListPluginsResponse>, Status> {
        self.list_plugins(request.into_inner()).await.map(Response::new)
    }

    async fn list_entries(
        &self,
        request: Request<ListEntriesRequest>,
    ) -> Result<Response<ListEntriesResponse>, Status> {
        self.list_entries(request.into_inner()).await.map(Response::new)
    }

    async fn get_entry(
        &self,
        request: Request<GetEntryRequest>,
    ) -> Result<Response<GetEntryResponse>, Status> {
        self.get_entry(request.into_inner()).await.map(Response::new)
    }

    async fn set_entry(
        &self,
        request: Request<SetEntryRequest>,
    ) -> Result<Response<SetEntryResponse>, Status> {
        self.set_entry(request.into_inner()).await.map(Response::new)
    }

    async fn delete_entry(
        &self,
        request: Request<DeleteEntryRequest>,
    ) -> Result<Response<DeleteEntryResponse>, Status> {
        self.delete_entry(request.into_inner()).await.map(Response::new)
    }

    async fn purge(&self, request: Request<PurgeRequest>) -> Result<Response<PurgeResponse>, Status> {
        self.purge(request.into_inner()).await.map(Response::new)
    }

    type ExportStream = ResponseStream<ExportChunk>;

    async fn export(&self, _request: Request<ExportRequest>) -> Result<Response<Self::ExportStream>, Status> {
        files::export(Arc::clone(&self.database), self.closed.clone()).map(Response::new)
    }

    type ImportStream = ResponseStream<ImportReport>;

    async fn import(
        &self,
        request: Request<Streaming<ImportChunk>>,
    ) -> Result<Response<Self::ImportStream>, Status> {
        let from = request.into_inner();
        files::import(Arc::clone(&self.database), from, self.closed.clone()).map(Response::new)
    }

    type BackupStream = ResponseStream<BackupChunk>;

    async fn backup(&self, _request: Request<BackupRequest>) -> Result<Response<Self::BackupStream>, Status> {
        copies::backup(Arc::clone(&self.database)).await.map(Response::new)
    }

    async fn restore(
        &self,
        request: Request<Streaming<RestoreChunk>>,
    ) -> Result<Response<RestoreResponse>, Status> {
        copies::restore(&self.database, request.into_inner()).await.map(Response::new)
    }
}
