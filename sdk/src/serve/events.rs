//! `talon.plugin.v1.EventSource`, served from the plugin's queue of events.

use talon_proto::notices::{
    AcknowledgeEventsRequest, AcknowledgeEventsResponse, PluginEvent, SubscribeEventsRequest,
    event_source_server,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::event_source::{EventListener, EventSource};

/// How many events wait for the connection.
const CHANNEL_CAPACITY: usize = 16;

/// Serves the host.
pub(super) struct EventsService {
    /// `None`: the plugin tells no events.
    pub(super) source: Option<EventSource>,
    /// The stream would never end without it, and the server waits for all streams at shutdown.
    pub(super) stop: CancellationToken,
}

impl EventsService {
    fn source(&self) -> Result<&EventSource, Status> {
        self.source.as_ref().ok_or_else(|| Status::unimplemented("this plugin tells no events"))
    }
}

#[tonic::async_trait]
impl event_source_server::EventSource for EventsService {
    type SubscribeStream = ReceiverStream<Result<PluginEvent, Status>>;

    async fn subscribe(
        &self,
        _: Request<SubscribeEventsRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let (to, stream) = mpsc::channel(CHANNEL_CAPACITY);
        tokio::spawn(forward(self.source()?.listen(), self.stop.clone(), to));
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn acknowledge(
        &self,
        request: Request<AcknowledgeEventsRequest>,
    ) -> Result<Response<AcknowledgeEventsResponse>, Status> {
        self.source()?.acknowledge(request.into_inner());
        Ok(Response::new(AcknowledgeEventsResponse {}))
    }
}

/// Until the plugin is asked to end, the host disconnects, or another host listens.
async fn forward(
    mut listener: EventListener,
    stop: CancellationToken,
    to: mpsc::Sender<Result<PluginEvent, Status>>,
) {
    let told = async {
        while let Ok(room) = to.reserve().await {
            let Some(event) = listener.next().await else { return };
            room.send(Ok(event));
        }
    };
    tokio::select! {
        () = told => {}
        () = to.closed() => {}
        () = stop.cancelled() => {}
    }
}
