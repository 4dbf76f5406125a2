//! With scripted processes, in paused time.

use parking_lot::Mutex;

use talon_proto::notices::{CapabilitiesChanged, Progress as Told};
use tokio::sync::{broadcast, mpsc};

use super::*;
use crate::driver::fake_launcher::{FakeBehavior, FakeLauncher, WELL_BEHAVED, call, registry, spec};
use crate::execute::ProgressObserver;
use crate::plugin::Plugin;
use crate::{Event, State};

struct Fixture {
    script: Arc<FakeLauncher>,
    plugin: Plugin,
    tell: mpsc::UnboundedSender<Notice>,
    events: broadcast::Receiver<Arc<Event>>,
}

/// A plugin whose calls wait for a permit.
async fn fixture() -> Fixture {
    let script = FakeLauncher::new(FakeBehavior { gated: true, ..WELL_BEHAVED });
    let (tell, notices) = mpsc::unbounded_channel();
    *script.notices.lock() = Some(notices);
    let registry = registry(&script);
    let events = registry.events().subscribe();
    let plugin = registry.register(spec("hello")).unwrap();
    plugin.wait_until(|view| view.state == State::Ready).await;
    Fixture { script, plugin, tell, events }
}

fn told(call_id: &str, progress: f64) -> Notice {
    let told = Told { call_id: call_id.to_owned(), progress, total: Some(9.0), message: String::new() };
    Notice { kind: Some(Kind::Progress(told)) }
}

fn changed() -> Notice {
    Notice { kind: Some(Kind::CapabilitiesChanged(CapabilitiesChanged {})) }
}

impl Fixture {
    /// Runs a call and releases it; returns the progress that its observer receives.
    async fn call(&self, id: &str) -> Arc<Mutex<Vec<f64>>> {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = heard.clone();
        let mut request = call("greet", None);
        request.message.id = id.to_owned();
        request.observer = Some(ProgressObserver::new(move |progress| ear.lock().push(progress.progress)));
        let executor = self.plugin.executor();
        let before = executor.in_flight();
        tokio::spawn(async move { executor.execute(request).await });
        while self.plugin.executor().in_flight() == before {
            tokio::task::yield_now().await;
        }
        heard
    }

    /// Gives everybody a turn, without time going on for longer than this.
    async fn rest(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn told(&mut self, kind: EventKind) -> Vec<Arc<Event>> {
        let mut told = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            told.extend((event.kind == kind).then_some(event));
        }
        told
    }
}

#[tokio::test(start_paused = true)]
async fn progress_reaches_the_follower_of_its_call_and_nobody_else() {
    let mut f = fixture().await;
    let (one, other) = (f.call("c.1").await, f.call("c.2").await);
    for (id, progress) in
        [("c.1", 1.0), ("c.3", 2.0), ("", 3.0), ("c", 4.0), ("c.1", f64::NAN), ("c.1", -1.0), ("c.1", 5.0)]
    {
        f.tell.send(told(id, progress)).unwrap();
    }
    f.rest(Duration::from_millis(1)).await;
    assert_eq!(*one.lock(), [1.0, 5.0]);
    assert!(other.lock().is_empty());
    let events = f.told(EventKind::CallProgress);
    let fields = |event: &Event| (event.fields["call_id"].to_string(), event.fields["progress"].to_string());
    assert_eq!(
        events.iter().map(|event| fields(event)).collect::<Vec<_>>(),
        [("c.1".to_owned(), "1".to_owned()), ("c.1".to_owned(), "5".to_owned())]
    );
    f.script.gate.add_permits(2);
    f.rest(Duration::from_millis(1)).await;
    f.tell.send(told("c.1", 6.0)).unwrap();
    f.rest(Duration::from_millis(1)).await;
    assert_eq!(one.lock().len(), 2, "it is over");
}

#[tokio::test(start_paused = true)]
async fn the_latest_of_a_flood_arrives_and_the_rest_is_counted() {
    let f = fixture().await;
    let heard = f.call("c").await;
    for step in 0..200 {
        f.tell.send(told("c", f64::from(step))).unwrap();
    }
    f.rest(Duration::from_millis(1)).await;
    assert_eq!(heard.lock().len(), 10);
    f.rest(WINDOW).await;
    assert_eq!(heard.lock().last(), Some(&199.0));
    for _ in 0..100_000 {
        f.tell.send(told("elsewhere", 1.0)).unwrap();
    }
    f.rest(2 * DROP_REPORT_INTERVAL).await;
    let log = f.plugin.logs().recent;
    let note = log.iter().find(|line| line.text.as_str().contains("notices were dropped"));
    assert!(note.is_some(), "{log:?}");
    f.tell.send(told("c", 500.0)).unwrap();
    f.rest(WINDOW).await;
    assert_eq!(heard.lock().last(), Some(&500.0), "it is heard again");
}

#[tokio::test(start_paused = true)]
async fn a_change_is_looked_into_and_not_more_often_than_now_and_then() {
    let mut f = fixture().await;
    f.told(EventKind::CapabilitiesChanged);
    f.tell.send(changed()).unwrap();
    f.rest(Duration::from_millis(1)).await;
    assert!(f.plugin.capability().unwrap().actions.contains_key("refreshed"));
    assert_eq!(f.told(EventKind::CapabilitiesChanged).len(), 1);
    // Each answer of the plugin would differ from the previous one.
    let mut seen = 0;
    for step in 0..600 {
        f.script.declared.lock().description = format!("step {step}");
        f.tell.send(changed()).unwrap();
        f.rest(Duration::from_millis(100)).await;
        seen += f.told(EventKind::CapabilitiesChanged).len();
    }
    assert!((3..10).contains(&seen), "{seen} within a minute");
    f.rest(2 * REFRESH_PAUSE_MAX).await;
    assert_eq!(f.plugin.capability().unwrap().raw.description, "step 599", "the last one counts");
}

#[tokio::test(start_paused = true)]
async fn without_the_service_nothing_is_kept_of_calls() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let plugin = registry(&script).register(spec("hello")).unwrap();
    plugin.wait_until(|view| view.state == State::Ready).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(plugin.executor().execute(call("greet", None)).await.is_ok());
}
