//! Streams of events as one, oldest first.

use talon_proto::host::HostEvent;
use tonic::{Status, Streaming};

/// The kept events of several sources. Each is read only as far as it is printed.
pub(super) struct Merged<S> {
    heads: Vec<Head<S>>,
}

struct Head<S> {
    stream: S,
    /// The next event of it; `None`: it has no more.
    next: Option<HostEvent>,
}

/// Gives events, one after the other.
pub(super) trait EventStream {
    async fn next(&mut self) -> Result<Option<HostEvent>, Status>;
}

impl EventStream for Streaming<HostEvent> {
    async fn next(&mut self) -> Result<Option<HostEvent>, Status> {
        self.message().await
    }
}

impl<S: EventStream> Merged<S> {
    pub(super) async fn new(streams: Vec<S>) -> Result<Self, Status> {
        let mut heads = Vec::with_capacity(streams.len());
        for mut stream in streams {
            let next = stream.next().await?;
            heads.push(Head { stream, next });
        }
        Ok(Self { heads })
    }

    /// The oldest event that was not given yet, with the place of its stream. The order within a stream stays, also where its times
    /// do not go up.
    pub(super) async fn next(&mut self) -> Result<Option<(usize, HostEvent)>, Status> {
        let heads = self.heads.iter_mut().enumerate();
        let oldest = heads
            .filter_map(|(at, head)| Some((head.next.as_ref()?.time_unix_ms, at, head)))
            .min_by_key(|(time, at, _)| (*time, *at));
        let Some((_, at, head)) = oldest else { return Ok(None) };
        let following = head.stream.next().await?;
        Ok(std::mem::replace(&mut head.next, following).map(|event| (at, event)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    impl EventStream for VecDeque<HostEvent> {
        async fn next(&mut self) -> Result<Option<HostEvent>, Status> {
            Ok(self.pop_front())
        }
    }

    fn stream(times: &[i64]) -> VecDeque<HostEvent> {
        let numbered = (1..).zip(times);
        numbered
            .map(|(number, time)| HostEvent { number, time_unix_ms: *time, ..HostEvent::default() })
            .collect()
    }

    // Promises: EXT-184
    #[tokio::test]
    async fn the_oldest_comes_first_and_each_stream_keeps_its_order() {
        let mut merged = Merged::new(vec![stream(&[1, 5, 9]), stream(&[2, 7, 3, 9]), stream(&[])])
            .await
            .expect("streams that do not fail");
        let mut seen = Vec::new();
        while let Some((at, event)) = merged.next().await.expect("streams that do not fail") {
            seen.push((at, event.number));
        }
        assert_eq!(seen, [(0, 1), (1, 1), (0, 2), (1, 2), (1, 3), (0, 3), (1, 4)]);
    }
}
