//! Checks of the events that a plugin tells.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use talon_plugin::SourceEvent;
use talon_plugin_client::describe_status;
use talon_proto::notices::PluginEvent;
use talon_sanitize::{Raw, Sanitized, sanitized};
use tokio::time::timeout;
use tonic::{Code, Status};

use crate::harness::{ANSWER_TIMEOUT, Finding, Harness, Session};

/// How long events are waited for that may be none.
const LISTEN: Duration = Duration::from_secs(2);
/// How many are looked at.
const MAX_EVENTS: usize = 64;
/// An id that no plugin sent.
const UNKNOWN: &str = "talon.conformance/nothing";

type Stream = BoxStream<'static, Result<PluginEvent, Status>>;

pub(super) async fn resent(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let session = harness.ensure_session().await?;
    let mut first = open(session).await?;
    let events = listen(&mut first, LISTEN).await?;
    let mut second = open(session).await?;
    for event in &events {
        match timeout(ANSWER_TIMEOUT, second.next()).await {
            Ok(Some(Ok(again))) if again.id == event.id => {}
            Ok(Some(Ok(other))) => {
                return Err(fail(sanitized!("it sent {} in place of {}", id(&other), id(event))));
            }
            Ok(Some(Err(why))) => {
                return Err(fail(sanitized!("its second stream broke: {}", describe_status(&why))));
            }
            Ok(None) | Err(_) => return Err(fail(sanitized!("it did not send {} again", id(event)))),
        }
    }
    // Whatever it had left comes first.
    let ended = async { while let Some(Ok(_)) = first.next().await {} };
    if timeout(ANSWER_TIMEOUT, ended).await.is_err() {
        return Err(fail("the first stream goes on beside the second one".into()));
    }
    acknowledge(session, UNKNOWN).await?;
    let Some(oldest) = events.first() else {
        return Ok(Finding::Pass("it told no event while it was listened to".into()));
    };
    acknowledge(session, &oldest.id).await?;
    let mut third = open(session).await?;
    // Without others there may be none.
    let patience = if events.len() > 1 { ANSWER_TIMEOUT } else { LISTEN };
    match timeout(patience, third.next()).await {
        Ok(Some(Ok(event))) if event.id == oldest.id => {
            Err(fail(sanitized!("it sent {} again, which was acknowledged", id(&event))))
        }
        _ => Ok(Finding::Pass(sanitized!("{} events", events.len()))),
    }
}

fn fail(text: Sanitized) -> Finding {
    Finding::Fail(text)
}

fn id(event: &PluginEvent) -> Sanitized {
    Raw::from(event.id.as_str()).line_within(64)
}

fn tells_none() -> Finding {
    Finding::Skip("it tells no events".into())
}

async fn open(session: &Session) -> Result<Stream, Finding> {
    session.client.events().await.ok_or_else(tells_none)
}

async fn acknowledge(session: &Session, id: &str) -> Result<(), Finding> {
    let answered = session.client.acknowledge_events(vec![id.to_owned()], ANSWER_TIMEOUT).await;
    answered.map_err(|why| fail(sanitized!("it does not take an acknowledgement: {}", why)))
}

/// The events that come until none does for a while.
async fn listen(stream: &mut Stream, idle: Duration) -> Result<Vec<PluginEvent>, Finding> {
    let mut events = Vec::new();
    while events.len() < MAX_EVENTS {
        match timeout(idle, stream.next()).await {
            Err(_) => break,
            Ok(None) => return Err(fail("its stream of events ended by itself".into())),
            Ok(Some(Err(status))) if status.code() == Code::Unimplemented => return Err(tells_none()),
            Ok(Some(Err(why))) => {
                return Err(fail(sanitized!("its stream of events broke: {}", describe_status(&why))));
            }
            Ok(Some(Ok(event))) => {
                if let Err(why) = SourceEvent::check(&event, std::time::SystemTime::now()) {
                    return Err(fail(sanitized!("no host takes an event of it: {}", Raw::of(why).line())));
                }
                events.push(event);
            }
        }
    }
    Ok(events)
}
