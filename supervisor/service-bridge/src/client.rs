//! The client of the program's socket: the service's own methods, and go-plugin's.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use talon_proto::goplugin::grpc_broker_client::GrpcBrokerClient;
use talon_proto::goplugin::grpc_controller_client::GrpcControllerClient;
use talon_proto::goplugin::grpc_stdio_client::GrpcStdioClient;
use talon_proto::goplugin::{Empty, StdioData};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tower::service_fn;

use crate::command::HealthSettings;
use crate::raw_codec::RawCodec;

/// How long `Shutdown` may take; go-plugin's hosts wait as long for the end that follows.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection to the program.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    channel: Channel,
    max_message_bytes: usize,
}

impl Client {
    /// Connects to the socket that the program named.
    pub(crate) async fn connect(
        socket: &Path,
        max_message_bytes: usize,
    ) -> Result<Self, tonic::transport::Error> {
        let socket: PathBuf = socket.to_owned();
        let connector = service_fn(move |_| {
            let socket = socket.clone();
            async move { Ok::<_, io::Error>(TokioIo::new(UnixStream::connect(socket).await?)) }
        });
        let channel = Endpoint::from_static("http://localhost").connect_with_connector(connector).await?;
        Ok(Self { channel, max_message_bytes })
    }

    /// Calls a method. Dropping the future cancels the call in the program.
    pub(crate) async fn call(
        &self,
        path: PathAndQuery,
        message: Vec<u8>,
        remaining: Option<Duration>,
    ) -> Result<Bytes, Status> {
        let mut client = Grpc::new(self.channel.clone()).max_decoding_message_size(self.max_message_bytes);
        client
            .ready()
            .await
            .map_err(|error| Status::unavailable(format!("the program cannot be reached: {error}")))?;
        let mut request = Request::new(message);
        if let Some(remaining) = remaining {
            request.set_timeout(remaining);
        }
        client.unary(request, path, RawCodec).await.map(tonic::Response::into_inner)
    }

    /// Checks the program's health until it has failed too often, and gives the last reason.
    pub(crate) async fn watch_health(&self, settings: HealthSettings) -> String {
        let mut failed = 0;
        loop {
            sleep(settings.interval).await;
            match self.check(settings.timeout).await {
                Ok(()) => failed = 0,
                Err(reason) => {
                    failed += 1;
                    if failed >= settings.threshold {
                        return reason;
                    }
                }
            }
        }
    }

    /// Checks its health once, as go-plugin's hosts do. A program without a health service is taken for healthy.
    pub(crate) async fn check(&self, limit: Duration) -> Result<(), String> {
        let mut client = HealthClient::new(self.channel.clone());
        let question = HealthCheckRequest { service: talon_proto::HEALTH_SERVICE.to_owned() };
        match timeout(limit, client.check(question)).await {
            Ok(Ok(answer)) if answer.get_ref().status() == ServingStatus::Serving => Ok(()),
            Ok(Ok(answer)) => Err(format!("its health is {:?}", answer.get_ref().status())),
            Ok(Err(status)) if status.code() == Code::Unimplemented => Ok(()),
            Ok(Err(status)) => Err(format!("its health check fails: {:?}", status.code())),
            Err(_) => Err(format!("its health check got no answer within {limit:?}")),
        }
    }

    /// Asks it to end. go-plugin stops its server inside the handler, so that a broken connection is a yes, and
    /// a program that knows no such request is ended by a signal.
    pub(crate) async fn shutdown(&self) {
        let mut client = GrpcControllerClient::new(self.channel.clone());
        let _ = timeout(SHUTDOWN_TIMEOUT, client.shutdown(Empty {})).await;
    }

    /// Passes on what it prints over the connection: go-plugin's programs block when nothing reads it.
    pub(crate) async fn forward_output(&self, forward: impl Fn(StdioData)) {
        let mut client = GrpcStdioClient::new(self.channel.clone());
        // A program without that service prints directly.
        let Ok(answer) = client.stream_stdio(()).await else { return };
        let mut pieces = answer.into_inner();
        while let Ok(Some(piece)) = pieces.message().await {
            forward(piece);
        }
    }

    /// Holds the broker open, because programs that use it wait for a host; what it offers is discarded.
    pub(crate) async fn hold_broker_open(&self) {
        let mut client = GrpcBrokerClient::new(self.channel.clone());
        let Ok(answer) = client.start_stream(futures_util::stream::pending()).await else { return };
        let mut offers = answer.into_inner();
        while let Ok(Some(_)) = offers.message().await {}
    }
}
