//! A server that is gone and comes back.

use talon_proto::state::from_state::Kind;
use talon_proto::state::{BackupRequest, DescribeRequest, RestoreChunk};
use talon_store::{POSTGRES_BACKUP, POSTGRES_RESTORE};
use tonic::Code;

use crate::plugin::{get, set};
use crate::support::{self, Place, Service};

/// The store's own way to a server. What it takes from around it, it finds here.
#[path = "../../../crates/store/tests/conformance/support/postgres.rs"]
#[expect(dead_code, reason = "only the store tries TLS")]
mod server;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

use support::skip;

async fn availability(service: &Service) -> String {
    match service.hear().await {
        Some(Kind::Availability(availability)) => availability.problem,
        other => panic!("{other:?}: {}", service.log()),
    }
}

// Promises: STATE-17
#[test]
fn an_unreachable_server_is_a_problem_and_its_return_is_noticed() {
    let test = "an_unreachable_server_is_a_problem_and_its_return_is_noticed";
    let Some(mut server) = server::Server::start(test) else { return };
    let url = server.database();
    server.stop();
    let place = Place::new();
    let runtime = runtime();
    let (service, mut plugin) = runtime.block_on(async {
        let (service, ready) = Service::with(&place, support::postgres(url)).await;
        assert_eq!(ready.engine, "postgres");
        assert!(ready.problem.contains("cannot be reached"), "{ready:?}");
        let mut plugin = service.plugin(&place, 1, "hello").await;
        let gone = get(&mut plugin, "a").await.unwrap_err();
        assert_eq!(gone.code(), Code::Unavailable, "{gone:?}");
        assert!(gone.metadata().contains_key("grpc-retry-pushback-ms"), "{gone:?}");
        let mut operator = service.operator().await;
        let described = operator.describe(DescribeRequest::default()).await.unwrap().into_inner();
        assert!(described.problem.contains("cannot be reached"), "{described:?}");
        (service, plugin)
    });
    server.run();
    runtime.block_on(async {
        assert_eq!(availability(&service).await, "");
        set(&mut plugin, "a", b"x").await.unwrap();
    });
    server.stop();
    runtime.block_on(async {
        while get(&mut plugin, "a").await.is_ok() {}
        assert!(availability(&service).await.contains("cannot be reached"));
    });
    server.run();
    runtime.block_on(async {
        assert_eq!(availability(&service).await, "");
        assert_eq!(get(&mut plugin, "a").await.unwrap().unwrap(), b"x");
    });
}

#[test]
fn an_operator_hears_how_a_server_is_backed_up_and_restored() {
    let test = "an_operator_hears_how_a_server_is_backed_up_and_restored";
    let Some(server) = server::Server::start(test) else { return };
    let (place, url) = (Place::new(), server.database());
    runtime().block_on(async {
        let (service, _) = Service::with(&place, support::postgres(url)).await;
        let mut operator = service.operator().await;
        let refused = operator.backup(BackupRequest {}).await.map(drop).unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::FailedPrecondition, POSTGRES_BACKUP));
        let nothing = tokio_stream::empty::<RestoreChunk>();
        let refused = operator.restore(nothing).await.unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::FailedPrecondition, POSTGRES_RESTORE));
    });
}
