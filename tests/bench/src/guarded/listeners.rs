//! Listeners to a supervisor's events, each on a separate connection, and calls that cause events. The next
//! calls are made once every listener has received the events of the last ones, so that all counted events
//! were delivered.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use talon_client::Client;
use talon_proto::host::WatchEventsRequest;
use tokio::sync::watch;
use tonic::Streaming;

use super::{PLUGIN, host};
use crate::load::Caller;

/// Concurrent calls, each of which causes one event: far fewer than a supervisor buffers for a slow reader,
/// and enough that their round trips do not dominate.
pub const EVENTS: usize = 128;

/// The event that every call causes.
const KIND: &str = "call_finished";

#[derive(Clone)]
pub(super) struct EventFanOut {
    client: Arc<Client>,
    /// How many events each listener has received.
    heard: Vec<watch::Receiver<u64>>,
    made: u64,
}

impl EventFanOut {
    pub(super) async fn of(socket: PathBuf, count: usize) -> Result<Self> {
        let client = Arc::new(Client::connect(socket.clone()).await?);
        let mut heard = Vec::with_capacity(count);
        for _ in 0..count {
            let listener = Client::connect(socket.clone()).await?;
            let request = WatchEventsRequest { plugin: PLUGIN.to_owned(), ..WatchEventsRequest::default() };
            let stream = listener.host().watch_events(request).await?.into_inner();
            let (tell, told) = watch::channel(0);
            heard.push(told);
            tokio::spawn(async move {
                // When the task ends the sender is dropped, which its receiver notices.
                if let Err(error) = listen(stream, tell).await {
                    eprintln!("a listener: {error:#}");
                }
            });
        }
        Ok(Self { client, heard, made: 0 })
    }
}

async fn listen(mut stream: Streaming<talon_proto::host::Event>, tell: watch::Sender<u64>) -> Result<()> {
    while let Some(event) = stream.message().await? {
        ensure!(!event.fields.contains_key("missed"), "{}", event.message);
        if event.kind == KIND {
            tell.send_modify(|count| *count += 1);
        }
    }
    bail!("the supervisor ended its stream")
}

impl Caller for EventFanOut {
    /// All events of one turn.
    async fn call(&mut self, content_bytes: usize) -> Result<()> {
        // A clone may have made some calls before.
        self.made = self.made.max(self.heard.iter().map(|heard| *heard.borrow()).max().unwrap_or(0));
        let calls: Vec<_> = (0..EVENTS)
            .map(|_| {
                let client = self.client.clone();
                tokio::spawn(async move { host::say(&client, PLUGIN, content_bytes).await })
            })
            .collect();
        for call in calls {
            call.await.context("a call panicked")??;
        }
        self.made += EVENTS as u64;
        for heard in &mut self.heard {
            heard.wait_for(|count| *count >= self.made).await.context("a listener ended")?;
        }
        Ok(())
    }
}
