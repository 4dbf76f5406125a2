//! The events that a plugin tells, for tests.

use talon_proto::notices as wire;
use talon_proto::notices::event_source_client::EventSourceClient;
use talon_proto::notices::{AcknowledgeEventsRequest, RefusedEvent, SubscribeEventsRequest};
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::event_source::SourceEvent;

/// The largest event that is read, as in real hosts.
const MAX_EVENT_BYTES: usize = 64 << 10;

/// The events of a plugin, the oldest first; see [`Host::events`](super::Host::events). Nothing is acknowledged by itself.
#[derive(Debug)]
pub struct Events {
    client: EventSourceClient<Channel>,
    stream: Streaming<wire::PluginEvent>,
}

impl Events {
    pub(super) async fn subscribe(channel: Channel) -> Result<Self, Status> {
        let mut client = EventSourceClient::new(channel).max_decoding_message_size(MAX_EVENT_BYTES);
        let stream = client.subscribe(SubscribeEventsRequest {}).await?.into_inner();
        Ok(Self { client, stream })
    }

    /// Waits for the next event; `None` once the plugin ends, or another client subscribes. There is no timeout: set one yourself, or
    /// rely on the test runner's.
    ///
    /// # Errors
    /// The gRPC status.
    pub async fn next(&mut self) -> Result<Option<SourceEvent>, Status> {
        Ok(self.stream.message().await?.map(SourceEvent::from_wire))
    }

    /// Acknowledges an event, as a host does that has it on its disk.
    ///
    /// # Errors
    /// The gRPC status.
    pub async fn acknowledge(&mut self, id: &str) -> Result<(), Status> {
        self.settle(AcknowledgeEventsRequest { ids: vec![id.to_owned()], refused: Vec::new() }).await
    }

    /// Refuses an event, as a host does that never takes it.
    ///
    /// # Errors
    /// The gRPC status.
    pub async fn refuse(&mut self, id: &str, reason: &str) -> Result<(), Status> {
        let refused = RefusedEvent { id: id.to_owned(), reason: reason.to_owned() };
        self.settle(AcknowledgeEventsRequest { ids: Vec::new(), refused: vec![refused] }).await
    }

    async fn settle(&mut self, request: AcknowledgeEventsRequest) -> Result<(), Status> {
        self.client.acknowledge(request).await.map(drop)
    }
}
