//! Events of a plugin that keeps none of an event source's rules, one at a time.

use std::collections::BTreeSet;

use bytes::{BufMut, Bytes, BytesMut};
use clap::ValueEnum;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use parking_lot::Mutex;
use prost::Message as _;
use talon_proto::notices::{AcknowledgeEventsRequest, PluginEvent};
use tokio::sync::watch;

use crate::reply::Reply;

/// How many events it has.
const EVENTS: usize = 3;
/// How often one comes that repeats.
const REPEATS: usize = 10_000;
/// More than an event may have.
const HUGE_BYTES: usize = 1 << 20;

/// What is wrong with its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventFault {
    /// Nothing.
    None,
    /// Events that were sent are not sent again.
    Forgetful,
    /// Events that were acknowledged are sent again.
    Deaf,
    /// Acknowledgements are never answered.
    Silent,
    /// An acknowledgement of an event that was not sent is an error.
    Picky,
    /// An event is too large.
    Huge,
    /// One event comes ten thousand times.
    Repeats,
    /// Events come without end, as fast as they are taken.
    Endless,
}

/// What it knows of its events.
pub(crate) struct Events {
    fault: EventFault,
    settled: Mutex<BTreeSet<String>>,
    /// Counts the streams: an earlier one ends.
    turn: watch::Sender<u64>,
}

impl Events {
    pub(crate) fn new(fault: EventFault) -> Self {
        Self { fault, settled: Mutex::default(), turn: watch::Sender::new(0) }
    }

    pub(crate) fn subscribe(&self) -> Reply {
        let mut turn = self.turn.subscribe();
        self.turn.send_modify(|turn| *turn += 1);
        let own = *turn.borrow_and_update();
        let ended = async move { drop(turn.wait_for(|turn| *turn != own).await) };
        Reply::Messages(self.told().chain(stream::pending()).take_until(Box::pin(ended)).boxed())
    }

    fn told(&self) -> BoxStream<'static, Bytes> {
        let few: Vec<Bytes> = (0..EVENTS).map(event).filter(|event| self.is_due(event)).map(framed).collect();
        match self.fault {
            EventFault::Huge => {
                let huge = PluginEvent { details: "x".repeat(HUGE_BYTES), ..event(EVENTS) };
                stream::iter(few.into_iter().chain([framed(huge)])).boxed()
            }
            EventFault::Repeats => stream::iter(
                (0..REPEATS).map(|at| framed(PluginEvent { summary: at.to_string(), ..event(0) })),
            )
            .boxed(),
            EventFault::Endless => stream::iter((0..).map(|at| framed(event(at)))).boxed(),
            _ => stream::iter(few).boxed(),
        }
    }

    fn is_due(&self, event: &PluginEvent) -> bool {
        let mut settled = self.settled.lock();
        match self.fault {
            EventFault::Forgetful => settled.insert(event.id.clone()),
            EventFault::Deaf => true,
            _ => !settled.contains(&event.id),
        }
    }

    pub(crate) fn acknowledge(&self, message: Bytes) -> Reply {
        if self.fault == EventFault::Silent {
            return Reply::Never;
        }
        let AcknowledgeEventsRequest { ids, refused } =
            AcknowledgeEventsRequest::decode(message).unwrap_or_default();
        let known: BTreeSet<String> = (0..EVENTS).map(|at| event(at).id).collect();
        if self.fault == EventFault::Picky && ids.iter().any(|id| !known.contains(id)) {
            return Reply::Status { code: 5, message: "there is no such event".into() };
        }
        self.settled.lock().extend(ids.into_iter().chain(refused.into_iter().map(|refused| refused.id)));
        Reply::Message(Bytes::new())
    }
}

fn event(at: usize) -> PluginEvent {
    let summary = format!("event {at}");
    PluginEvent {
        id: format!("misbehave/{at}"),
        topic: "misbehave".into(),
        summary,
        ..PluginEvent::default()
    }
}

/// A message as it stands in a stream.
pub(crate) fn framed(message: impl prost::Message) -> Bytes {
    let message = message.encode_to_vec();
    let mut framed = BytesMut::with_capacity(message.len() + 5);
    framed.put_u8(0);
    // Far below the limit of the type.
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.put_slice(&message);
    framed.freeze()
}
