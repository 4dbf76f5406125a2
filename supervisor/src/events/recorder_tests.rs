use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use talon_plugin::{EventKind, NewEvent};
use talon_plugin_config::PluginName;
use tempfile::TempDir;

use super::super::feed::FeedError;
use super::super::queue::MAX_WAITING;
use super::*;

/// A bound on hanging, not an expectation of speed.
const PATIENCE: Duration = Duration::from_secs(60);

fn settings(dir: &TempDir) -> Settings {
    Settings { dir: dir.path().join("events"), max_bytes: 1 << 20, max_events: 16, first_number: 1 }
}

fn start(settings: Settings, window: Duration, events: &Events) -> EventRecorder {
    let plugins = Settings { dir: settings.dir.with_extension("plugins"), ..settings.clone() };
    let plugins = super::super::plugin_log::PluginEventLog::with(plugins);
    EventRecorder::start_with(settings, plugins, window, events, events.subscribe_without_calls())
}

fn quarantined(plugin: &str) -> NewEvent {
    NewEvent::new(EventKind::Quarantined, "quarantined").plugin(&PluginName::new(plugin).unwrap())
}

type Feed = BoxStream<'static, Result<HostEvent, FeedError>>;

async fn next(feed: &mut Feed) -> HostEvent {
    timeout(PATIENCE, feed.next()).await.expect("an event comes").expect("the stream goes on").unwrap()
}

/// The events that are kept.
async fn kept(recorder: &EventRecorder, subscriber: Option<&str>, after: u64) -> Vec<HostEvent> {
    let feed = recorder.feed(subscriber, after, true).unwrap();
    timeout(PATIENCE, feed.map(Result::unwrap).collect()).await.expect("it ends")
}

// Promises: EXT-65
#[tokio::test]
async fn events_get_numbers_without_a_hole_over_a_close_and_another_recorder() {
    let dir = TempDir::new().unwrap();
    let events = Events::new();
    let recorder = start(settings(&dir), Duration::ZERO, &events);
    let mut feed = recorder.feed(None, 0, false).unwrap();
    events.emit(quarantined("a"));
    let first = next(&mut feed).await;
    assert_eq!((first.kind.as_str(), first.fields["plugin"].as_str()), ("plugin.quarantined", "a"));
    recorder.close().await;
    assert!(matches!(recorder.feed(None, 0, false), Err(FeedError::Unavailable(_))));
    assert!(matches!(feed.next().await, Some(Err(FeedError::Unavailable(_)))));
    // While it is closed, events wait.
    events.emit(quarantined("b"));

    let others = Events::new();
    let other = start(settings(&dir), Duration::ZERO, &others);
    let mut feed = other.feed(None, first.number, false).unwrap();
    others.emit(quarantined("c"));
    let second = next(&mut feed).await;
    assert_eq!((second.number, second.fields["plugin"].as_str()), (first.number + 1, "c"));
    other.close().await;

    recorder.resume().await;
    let mut state = recorder.subscribe();
    let opened = state.wait_for(|state| state.reader.is_some());
    timeout(PATIENCE, opened).await.expect("it is opened again").unwrap();
    let mut feed = recorder.feed(None, second.number, false).unwrap();
    let third = next(&mut feed).await;
    assert_eq!((third.number, third.fields["plugin"].as_str()), (first.number + 2, "b"));
}

// Promises: EXT-67
#[tokio::test]
async fn what_was_not_acknowledged_and_is_gone_is_a_gap() {
    let dir = TempDir::new().unwrap();
    let events = Events::new();
    let recorder = start(settings(&dir), Duration::ZERO, &events);
    let mut feed = recorder.feed(None, 0, false).unwrap();
    let mut numbers = Vec::new();
    for count in 0..40 {
        events.emit(quarantined(&format!("p{count}")));
        numbers.push(next(&mut feed).await.number);
    }
    let (first, last) = (numbers[0], numbers[39]);
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));

    let for_agent = kept(&recorder, Some("agent"), 0).await;
    let gap = &for_agent[0];
    assert_eq!((gap.kind.as_str(), gap.fields["from"].as_str()), ("events.gap", first.to_string().as_str()));
    assert_eq!(gap.number + 1, for_agent[1].number);
    assert_eq!(gap.fields["dropped"], (gap.number + 1 - first).to_string());
    // People see what is kept; one who had come so far is told, too.
    assert_eq!(kept(&recorder, None, 0).await, for_agent[1..]);
    assert_eq!(kept(&recorder, None, first).await[0].fields["from"], (first + 1).to_string());

    let acknowledged = recorder.acknowledge("agent", last).await.expect("the log is open");
    assert_eq!(acknowledged.unwrap(), last);
    assert_eq!(kept(&recorder, Some("agent"), 0).await, for_agent[1..], "what it acknowledged is no gap");
    assert_eq!(kept(&recorder, Some("agent"), last).await, []);
    let unknown = recorder.acknowledge("agent", last + 1).await.expect("the log is open");
    assert!(matches!(unknown, Err(AcknowledgeError::Unknown { .. })));
    assert!(matches!(recorder.feed(None, last + 1, true), Err(FeedError::Unknown { .. })));
    // A number of a log that is lost.
    let other = kept(&recorder, Some("agent"), 7).await;
    assert_eq!((other[0].kind.as_str(), other[0].fields.get("dropped")), ("events.gap", None));
}

// Promises: EXT-69
#[tokio::test]
async fn a_flood_is_bounded_and_what_it_cost_is_told() {
    let dir = TempDir::new().unwrap();
    let events = Events::new();
    let recorder = start(settings(&dir), Duration::from_secs(3600), &events);
    let mut feed = recorder.feed(None, 0, false).unwrap();
    // The task does not run meanwhile: this test has one thread. So the broadcast overflows.
    let event = quarantined("p");
    for _ in 0..100_000 {
        events.emit(event.clone());
    }
    let gap = next(&mut feed).await;
    let first = next(&mut feed).await;
    assert_eq!((gap.kind.as_str(), first.kind.as_str()), ("events.gap", "plugin.quarantined"));
    recorder.close().await;
    recorder.resume().await;
    let mut state = recorder.subscribe();
    timeout(PATIENCE, state.wait_for(|state| state.reader.is_some())).await.expect("it opens").unwrap();
    let all = kept(&recorder, None, 0).await;
    assert_eq!(all.len(), 3, "the rest is one event: {all:?}");
    let stood_for: u64 = all[1..].iter().map(|event| event.fields["count"].parse::<u64>().unwrap()).sum();
    assert_eq!(stood_for + all[0].fields["dropped"].parse::<u64>().unwrap(), 100_000);
}

#[tokio::test]
async fn a_log_that_cannot_be_opened_is_tried_again_and_nothing_else_waits() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("events");
    std::fs::write(&path, "no directory").unwrap();
    let events = Events::new();
    let recorder = start(settings(&dir), Duration::ZERO, &events);
    assert!(matches!(recorder.feed(None, 0, false), Err(FeedError::Unavailable(_))));
    let over = MAX_WAITING + 100;
    for count in 0..over {
        events.emit(quarantined(&format!("p{count}")));
        tokio::task::yield_now().await;
    }
    std::fs::remove_file(&path).unwrap();
    let mut state = recorder.subscribe();
    timeout(PATIENCE, state.wait_for(|state| state.reader.is_some())).await.expect("it opens").unwrap();
    let mut feed = recorder.feed(Some("agent"), 0, false).unwrap();
    let last = format!("p{}", over - 1);
    loop {
        let event = next(&mut feed).await;
        if event.fields.get("plugin") == Some(&last) {
            break;
        }
    }
}
