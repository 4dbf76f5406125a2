//! Finds the gRPC service that a request is for. There is no reflection: a host knows the contract.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use talon_proto::goplugin::grpc_controller_server::GrpcControllerServer;
use talon_proto::notices::event_source_server::EventSourceServer;
use talon_proto::notices::notices_server::NoticesServer;
use talon_proto::plugin::plugin_service_server::PluginServiceServer;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::server::NamedService;
use tonic_health::pb::health_server::{Health, HealthServer};
use tower::Service;

use super::drain::Controller;
use super::events::EventsService;
use super::notices::NoticesService;
use super::service::ServedPlugin;

/// All services of a plugin.
pub(super) struct Router<H> {
    pub(super) wire: Arc<ServedPlugin>,
    pub(super) plugin: PluginServiceServer<ServedPlugin>,
    pub(super) notices: NoticesServer<NoticesService>,
    pub(super) events: EventSourceServer<EventsService>,
    pub(super) controller: GrpcControllerServer<Controller>,
    pub(super) health: HealthServer<H>,
}

/// By hand, because a derive would require `H: Clone`.
impl<H> Clone for Router<H> {
    fn clone(&self) -> Self {
        Self {
            wire: self.wire.clone(),
            plugin: self.plugin.clone(),
            notices: self.notices.clone(),
            events: self.events.clone(),
            controller: self.controller.clone(),
            health: self.health.clone(),
        }
    }
}

impl<H: Health> Service<Request<Body>> for Router<H> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Generated servers are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path();
        let service =
            path.strip_prefix('/').and_then(|path| path.split_once('/')).map(|(service, _)| service);
        match service {
            Some(<PluginServiceServer<ServedPlugin> as NamedService>::NAME) => self.plugin.call(request),
            Some(<NoticesServer<NoticesService> as NamedService>::NAME) => self.notices.call(request),
            Some(<EventSourceServer<EventsService> as NamedService>::NAME) => self.events.call(request),
            Some(<HealthServer<H> as NamedService>::NAME) => self.health.call(request),
            Some(<GrpcControllerServer<Controller> as NamedService>::NAME) => self.controller.call(request),
            _ => Box::pin(async { Ok(Status::unimplemented("no such service").into_http()) }),
        }
    }
}
