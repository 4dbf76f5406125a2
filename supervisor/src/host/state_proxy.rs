//! Forwards operators' requests from `host.sock` to the state service. The peer's role is checked here; the
//! request itself is not parsed. Only the state service reads it, and that process has access to nothing but
//! the state.

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, Either};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::transport::Channel;
use tower::{Service, ServiceExt};

use crate::audit::Audit;
use crate::config::Role;
use crate::peer::Peer;
use crate::peer::authorize;
use crate::state::StateSupervisor;

/// Path prefix of these requests.
pub(super) const PATH_PREFIX: &str = "/talon.state.v1.Operator/";

/// The methods that stream.
const STREAMS: [&str; 4] = ["Export", "Import", "Backup", "Restore"];

type Request = http::Request<Body>;
type Response = http::Response<Body>;

/// Forwards operators' requests.
#[derive(Clone)]
pub struct StateProxy {
    upstream: Option<Upstream>,
    audit: Audit,
}

#[derive(Clone)]
struct Upstream {
    supervisor: StateSupervisor,
    channel: Channel,
}

impl StateProxy {
    /// Forwards to this supervisor's service; with `None` it answers that this supervisor stores no state.
    /// Must be called within a tokio runtime.
    #[must_use]
    pub fn new(keeper: Option<StateSupervisor>) -> Self {
        let upstream = keeper.map(|keeper| Upstream { channel: keeper.bulk_channel(), supervisor: keeper });
        Self { upstream, audit: Audit::default() }
    }

    /// Records each request in the audit log.
    #[must_use]
    pub fn with_audit(self, audit: Audit) -> Self {
        Self { audit, ..self }
    }

    /// Answers a request.
    fn answer(&self, request: Request) -> BoxFuture<'static, Result<Response, Infallible>> {
        let way = self.upstream.clone();
        let method = request.uri().path().trim_start_matches(PATH_PREFIX).to_owned();
        let peer = request.extensions().get::<Peer>().filter(|peer| peer.rights.is_some());
        let recording = peer.map(|peer| self.audit.operation(Some(peer), "state", &method));
        Box::pin(async move {
            let permitted = authorize(request.extensions(), Role::Admin);
            if let Some(recording) = recording {
                match &permitted {
                    // Only the state service knows how it ends.
                    Ok(_) => recording.forwarded(),
                    denied => recording.finish(denied),
                }
            }
            if let Err(status) = permitted {
                return Ok(status.into_http());
            }
            let Some(Upstream { supervisor: keeper, channel }) = way else {
                let text = "this supervisor keeps no state (state.engine: off): set another engine and start it again";
                return Ok(Status::failed_precondition(text).into_http());
            };
            // A streaming request gets a separate connection, so that a slow reader does not block other
            // requests.
            let streams = STREAMS.contains(&method.as_str());
            let channel = if streams { keeper.bulk_channel() } else { channel };
            Ok(forward(channel, request).await.unwrap_or_else(|_| unavailable(&keeper).into_http()))
        })
    }
}

async fn forward(mut channel: Channel, request: Request) -> Result<Response, tonic::transport::Error> {
    let (mut parts, body) = request.into_parts();
    // The extensions describe the connection that the request came from.
    parts.extensions.clear();
    channel.ready().await?.call(Request::from_parts(parts, body)).await
}

fn unavailable(keeper: &StateSupervisor) -> Status {
    let status = keeper.status();
    let why = status.problem.map_or_else(String::new, |problem| format!(": {problem}"));
    Status::unavailable(format!(
        "the state service does not answer ({}){why}; see `talon status`, and its lines in the supervisor's log \
         (plugin=talon-state)",
        status.state.as_str()
    ))
}

/// The services on `host.sock`: the host service, and operators' requests beside it.
#[derive(Clone)]
pub(super) struct HostRoutes<H> {
    pub(super) host: H,
    pub(super) operators: StateProxy,
}

impl<H> Service<Request> for HostRoutes<H>
where
    H: Service<Request, Response = Response, Error = Infallible>,
    H::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<BoxFuture<'static, Result<Response, Infallible>>, H::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.host.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if request.uri().path().starts_with(PATH_PREFIX) {
            Either::Left(self.operators.answer(request))
        } else {
            Either::Right(self.host.call(request))
        }
    }
}
