//! `WatchEvents` and `Logs`: streams of events and log lines.
//!
//! There is no queue per follower, only a position in a bounded broadcast. A follower that reads too slowly
//! loses the oldest items and learns how many.

use std::time::SystemTime;

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use talon_listen::ConnectionPermit;
use talon_plugin::{Event, EventKind, LogLine};
use talon_proto::host;
use talon_proto::host::{LogsRequest, WatchEventsRequest};
use talon_sanitize::{Sanitized, sanitized};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tonic::codegen::http::Extensions;
use tonic::{Request, Response, Status};

use super::context::HostContext;
use crate::config::Role;
use crate::dispatch::requested_id;
use crate::peer::{Peer, Principal, require};
use crate::to_wire::{unix_ms, wire};

type ResponseStream<T> = BoxStream<'static, Result<T, Status>>;

pub(super) fn events(
    context: &HostContext,
    request: Request<WatchEventsRequest>,
) -> Result<Response<ResponseStream<host::Event>>, Status> {
    // The agent looks at what plugins declare when one changed, and of calls it learns nothing here.
    let is_agent = request.extensions().get::<Peer>().is_some_and(Peer::is_agent);
    let place = match is_agent && request.get_ref().without_calls {
        // People's clients cannot take the places of our own services; those have a connection with a bound of its own.
        true => None,
        false => {
            require(&request, Role::Operate)?;
            Some(context.follower_permit(request.extensions())?)
        }
    };
    let WatchEventsRequest { plugin: wanted, without_calls } = request.into_inner();
    let only = (!wanted.is_empty())
        .then(|| context.plugin(&wanted))
        .transpose()?
        .map(|plugin| plugin.name().clone());
    let events = context.events.clone();
    let followed = match without_calls {
        true => context.events.subscribe_without_calls(),
        false => context.events.subscribe(),
    };
    let stream = follow(followed).filter_map(move |next| {
        let event = match next {
            StreamItem::Item(event) => {
                let wanted = only.is_none() || event.plugin == only;
                wanted.then(|| event_on_wire(&event))
            }
            StreamItem::Missed(count) => {
                events.record_lost(count);
                Some(missed_events(count))
            }
        };
        std::future::ready(event.map(Ok))
    });
    Ok(Response::new(context.until_closing(stream, place)))
}

pub(super) fn logs(
    context: &HostContext,
    request: Request<LogsRequest>,
) -> Result<Response<ResponseStream<host::LogLine>>, Status> {
    require(&request, Role::Operate)?;
    let place = context.follower_permit(request.extensions())?;
    let request = request.into_inner();
    let plugin = context.plugin(&request.plugin)?;
    let tail = plugin.logs();
    let skip = tail_start(tail.recent.len(), request.tail);
    let kept = tail.recent.into_iter().skip(skip).map(StreamItem::Item);
    let lines: BoxStream<'static, StreamItem<LogLine>> = if request.follow {
        stream::iter(kept).chain(follow(tail.live)).boxed()
    } else {
        stream::iter(kept).boxed()
    };
    let name = plugin.name().to_string();
    let stream = lines.map(move |next| {
        Ok(match next {
            StreamItem::Item(line) => line_on_wire(line),
            StreamItem::Missed(count) => missed_lines(&name, count),
        })
    });
    Ok(Response::new(context.until_closing(stream, place)))
}

/// The index of the first of the last `tail` lines; 0 means all lines.
fn tail_start(len: usize, tail: u32) -> usize {
    match usize::try_from(tail) {
        Ok(0) | Err(_) => 0,
        Ok(tail) => len.saturating_sub(tail),
    }
}

enum StreamItem<T> {
    Item(T),
    Missed(u64),
}

/// A broadcast as a stream that ends with its sender.
fn follow<T: Clone + Send + 'static>(receiver: Receiver<T>) -> impl Stream<Item = StreamItem<T>> + Send {
    stream::unfold(receiver, |mut receiver| async move {
        let next = match receiver.recv().await {
            Ok(item) => StreamItem::Item(item),
            Err(RecvError::Lagged(count)) => StreamItem::Missed(count),
            Err(RecvError::Closed) => return None,
        };
        Some((next, receiver))
    })
}

impl HostContext {
    /// A place for a stream of whom a request is for.
    pub(super) fn follower_permit(
        &self,
        extensions: &Extensions,
    ) -> Result<ConnectionPermit<Principal>, Status> {
        let peer = extensions.get::<Peer>().ok_or_else(|| Status::internal("a request without a peer"))?;
        self.followers.acquire(peer.principal()).map_err(|limit| {
            let keys = ["host.limits.follows", "host.limits.follows_per_user"];
            limit.status("streams of events and logs", "end one of them first", keys)
        })
    }

    /// The stream until the supervisor ends; it holds its permit for that time.
    pub(super) fn until_closing<T: Send + 'static>(
        &self,
        stream: impl Stream<Item = Result<T, Status>> + Send + 'static,
        place: impl Into<Option<ConnectionPermit<Principal>>>,
    ) -> ResponseStream<T> {
        let place = place.into();
        let closing = self.closing.clone();
        let last_word = stream::once(async move { closing.final_status() });
        stream
            .take_until(self.closing.ended())
            .chain(last_word.filter_map(|status| std::future::ready(status.map(Err))))
            .map(move |item| {
                let _held = &place;
                item
            })
            .boxed()
    }
}

fn event_on_wire(event: &Event) -> host::Event {
    host::Event {
        sequence: event.sequence,
        unix_ms: unix_ms(event.at),
        plugin: event.plugin.as_ref().map(ToString::to_string).unwrap_or_default(),
        instance: event.instance.unwrap_or_default(),
        kind: event.kind.as_str().to_owned(),
        message: wire(&event.message),
        fields: event
            .fields
            .iter()
            .map(|(key, value)| ((*key).to_owned(), field(event, key, value)))
            .collect(),
    }
}

/// Progress events show the id that the caller uses, as `ExecuteStreaming` does.
fn field(event: &Event, key: &str, value: &Sanitized) -> String {
    let value = wire(value);
    match (event.kind, key) {
        (EventKind::CallProgress, "call_id") => requested_id(&value).to_owned(),
        _ => value,
    }
}

fn missed_events(count: u64) -> host::Event {
    host::Event {
        unix_ms: unix_ms(SystemTime::now()),
        kind: EventKind::Supervisor.as_str().to_owned(),
        message: wire(sanitized!("{} events are missing here: this reader is too slow", count)),
        fields: [("missed".to_owned(), count.to_string())].into(),
        ..host::Event::default()
    }
}

fn line_on_wire(line: LogLine) -> host::LogLine {
    host::LogLine {
        unix_ms: unix_ms(line.at),
        plugin: line.plugin.to_string(),
        instance: line.instance,
        level: line.level.as_str().to_owned(),
        stream: line.stream.as_str().to_owned(),
        text: wire(line.text),
    }
}

fn missed_lines(plugin: &str, count: u64) -> host::LogLine {
    host::LogLine {
        unix_ms: unix_ms(SystemTime::now()),
        plugin: plugin.to_owned(),
        level: "warn".to_owned(),
        stream: "talon".to_owned(),
        text: wire(sanitized!("{} lines are missing here: this reader is too slow", count)),
        ..host::LogLine::default()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast;

    use super::*;

    // Promises: HOST-12
    #[tokio::test]
    async fn a_slow_reader_is_told_how_much_it_missed_and_goes_on() {
        let (sender, receiver) = broadcast::channel(2);
        let mut stream = Box::pin(follow(receiver));
        for item in 1..=5 {
            sender.send(item).unwrap();
        }
        assert!(matches!(stream.next().await, Some(StreamItem::Missed(3))));
        assert!(matches!(stream.next().await, Some(StreamItem::Item(4))));
        drop(sender);
        assert!(matches!(stream.next().await, Some(StreamItem::Item(5))));
        assert!(stream.next().await.is_none());
    }

    #[test]
    fn the_tail_is_at_the_end() {
        assert_eq!([tail_start(10, 3), tail_start(2, 3), tail_start(10, 0)], [7, 0, 0]);
    }
}
