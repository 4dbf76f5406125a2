//! A go-plugin program's broker: what it offers is taken, and nothing waits for it at the end.

use std::pin::Pin;

use goplugin::ConnInfo;
use goplugin::grpc_broker_server::{GrpcBroker, GrpcBrokerServer};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::{Request, Response, Streaming};

use super::*;
use crate::handshake::Address;
use crate::socket_dir::testing::scratch;

/// Gives each stream that is opened to the test, which then offers.
struct Offering(mpsc::UnboundedSender<mpsc::Sender<Result<ConnInfo, Status>>>);

#[tonic::async_trait]
impl GrpcBroker for Offering {
    type StartStreamStream = Pin<Box<dyn Stream<Item = Result<ConnInfo, Status>> + Send>>;

    async fn start_stream(
        &self,
        _: Request<Streaming<ConnInfo>>,
    ) -> Result<Response<Self::StartStreamStream>, Status> {
        let (offers, offered) = mpsc::channel(1);
        self.0.send(offers).unwrap();
        Ok(Response::new(Box::pin(ReceiverStream::new(offered))))
    }
}

#[tokio::test]
async fn offers_are_taken_until_the_plugin_is_asked_to_end() {
    let dir = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
    let private = scratch(dir.path());
    let socket = private.path().join("s/plugin1");
    let listener = UnixListenerStream::new(UnixListener::bind(&socket).unwrap());
    let (opens, mut opened) = mpsc::unbounded_channel();
    let broker = GrpcBrokerServer::new(Offering(opens));
    tokio::spawn(tonic::transport::Server::builder().serve_with_incoming(broker, listener));
    let uid = rustix::process::geteuid().as_raw();
    let target = Target::new(&Address::Unix(socket), &private, uid, std::process::id(), false).unwrap();
    let name = PluginName::new("gopher").unwrap();
    let client = Client::connect(name, Methods::default(), target, 1).await.unwrap();

    let held = tokio::spawn({
        let client = client.clone();
        async move { client.drain_broker().await }
    });
    let offers = opened.recv().await.unwrap();
    for service_id in 0..2 * BROKER_OFFERS {
        offers.send(Ok(ConnInfo { service_id, network: "unix".into(), ..Default::default() })).await.unwrap();
    }
    assert!(!held.is_finished());
    // It has no Shutdown here, which it reports by a gRPC status; what counts is that no holder of its stream
    // is left.
    client.shutdown(Duration::from_secs(5)).await;
    offers.closed().await;
    assert!(!held.await.unwrap(), "it is not opened again");
    assert!(!client.drain_broker().await, "nor by anybody else");
}
