//! `Subscribe` and `AckEvents`: the events for an operator, numbered and kept.

use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;
use talon_event_log::AcknowledgeError;
use talon_proto::host::{AckEventsRequest, AckEventsResponse, HostEvent, SubscribeRequest};
use tonic::{Code, Request, Response, Status};

use super::context::HostContext;
use crate::config::Role;
use crate::events::FeedError;
use crate::peer::{Peer, require};
use crate::to_wire::status_text;

/// The name under which the agent acknowledges.
const AGENT: &str = "agent";

pub(super) fn subscribe(
    context: &HostContext,
    request: Request<SubscribeRequest>,
) -> Result<Response<BoxStream<'static, Result<HostEvent, Status>>>, Status> {
    let service = service(&request);
    // People's clients cannot take the places of our own services; those have a connection with a bound of its own.
    let place = match service {
        Some(_) => None,
        None => {
            require(&request, Role::Operate)?;
            Some(context.follower_permit(request.extensions())?)
        }
    };
    let SubscribeRequest { after, kept_only, source } = request.into_inner();
    let recorder = &context.info.recorder;
    let events = match EventSource::named(&source)? {
        EventSource::Supervisor => recorder.feed(service, after, kept_only),
        EventSource::Plugins => recorder.plugins().feed(service, after, kept_only),
    };
    let events = events.map_err(|error| status(&error))?;
    Ok(Response::new(context.until_closing(events.map_err(|error| status(&error)), place)))
}

pub(super) async fn acknowledge(
    context: &HostContext,
    request: Request<AckEventsRequest>,
) -> Result<Response<AckEventsResponse>, Status> {
    let Some(service) = service(&request) else {
        return Err(Status::permission_denied(
            "only the supervisor's own services acknowledge events: read them with `talon event list --source host --after NUMBER`",
        ));
    };
    let AckEventsRequest { through, source } = request.into_inner();
    let recorder = &context.info.recorder;
    let acknowledged = match EventSource::named(&source)? {
        EventSource::Supervisor => recorder.acknowledge(service, through).await,
        EventSource::Plugins => recorder.plugins().acknowledge(service, through).await,
    };
    match acknowledged {
        Some(Ok(through)) => Ok(Response::new(AckEventsResponse { through })),
        Some(Err(error @ AcknowledgeError::Unknown { .. })) => {
            Err(Status::out_of_range(status_text(error.to_string())))
        }
        Some(Err(error)) => Err(Status::unavailable(status_text(error.to_string()))),
        None => Err(Status::unavailable("the event log is not open: ask again")),
    }
}

/// Whose events are asked for.
#[derive(Debug, Clone, Copy)]
enum EventSource {
    Supervisor,
    Plugins,
}

impl EventSource {
    fn named(name: &str) -> Result<Self, Status> {
        match name {
            "" => Ok(Self::Supervisor),
            "plugins" => Ok(Self::Plugins),
            _ => Err(Status::invalid_argument(
                "there is no such source of events: leave it empty, or write plugins",
            )),
        }
    }
}

/// The service of our own that asks, by its connection.
fn service<T>(request: &Request<T>) -> Option<&'static str> {
    request.extensions().get::<Peer>().filter(|peer| peer.is_agent()).map(|_| AGENT)
}

fn status(error: &FeedError) -> Status {
    let code = match error {
        FeedError::Unavailable(_) => Code::Unavailable,
        FeedError::Io(_) => Code::DataLoss,
        FeedError::Unknown { .. } => Code::OutOfRange,
    };
    Status::new(code, status_text(error.to_string()))
}
