//! Services over a scripted launcher, in paused time.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use talon_plugin_config::spec::SandboxSettings;
use talon_sanitize::Sanitized;
use tokio::time::Instant;

use super::*;
use crate::driver::fake_launcher::{
    FakeBehavior, FakeLauncher, LaunchPlan, WELL_BEHAVED, registry, spec as plugin_spec,
};
use crate::registry::Registry;

const GRACE: Duration = Duration::from_secs(4);

/// The calls to the hooks, in order.
#[derive(Debug, Default)]
struct Told {
    log: Mutex<VecDeque<String>>,
    news: tokio::sync::Notify,
    control: Mutex<Option<OwnedFd>>,
    waits: Mutex<Vec<Duration>>,
}

impl Told {
    fn say(&self, text: String) {
        self.log.lock().push_back(text);
        self.news.notify_one();
    }

    async fn next(&self) -> String {
        loop {
            if let Some(text) = self.log.lock().pop_front() {
                return text;
            }
            self.news.notified().await;
        }
    }

    fn last_wait(&self) -> Duration {
        *self.waits.lock().last().unwrap()
    }
}

struct TestLink {
    told: Arc<Told>,
    /// The script whose latest process exits when it is asked to.
    polite: Option<Arc<FakeLauncher>>,
}

impl ServiceHooks for TestLink {
    fn on_started(&self, control: OwnedFd, pid: u32, uid: u32) {
        *self.told.control.lock() = Some(control);
        self.told.say(format!("started {pid} {uid}"));
    }

    fn on_stopping(&self) {
        *self.told.control.lock() = None;
        self.told.say("stopping".to_owned());
        if let Some(script) = &self.polite {
            script.latest().exit("exit code 0");
        }
    }

    fn on_ended(&self, how: &Sanitized, again_in: Option<Duration>) {
        self.told.waits.lock().extend(again_in);
        let again = if again_in.is_some() { "again" } else { "over" };
        self.told.say(format!("{how} ({again})"));
    }
}

fn spec() -> ServiceSpec {
    ServiceSpec {
        name: PluginName::reserved("talon-state"),
        program: PathBuf::from("/nowhere"),
        args: Vec::new(),
        home: Home { dir: PathBuf::from("/nowhere"), identity: None },
        sandbox: SandboxSettings::default(),
        readable_paths: Vec::new(),
        grace_period: GRACE,
        backoff_initial: Duration::from_millis(100),
        backoff_max: Duration::from_secs(10),
    }
}

fn serve(script: &Arc<FakeLauncher>, polite: bool) -> (Registry, Service, Arc<Told>) {
    let registry = registry(script);
    let told = Arc::new(Told::default());
    let link = TestLink { told: told.clone(), polite: polite.then(|| script.clone()) };
    let service = registry.service(spec(), Arc::new(link));
    (registry, service, told)
}

// Promises: STATE-8
#[tokio::test(start_paused = true)]
async fn it_is_started_again_for_ever_and_later_each_time() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let (_registry, service, told) = serve(&script, true);
    let mut waits = Vec::new();
    for round in 0..100 {
        assert_eq!(told.next().await, "started 100 70000");
        let status = service.status();
        assert_eq!((status.running, status.restarts, status.pid), (true, round, Some(100)));
        script.latest().exit("killed by SIGSEGV");
        assert_eq!(told.next().await, "ended with killed by SIGSEGV; its last words: farewell (again)");
        waits.push(told.last_wait());
    }
    assert!(waits[0] <= Duration::from_millis(100) && waits[3] >= Duration::from_millis(400), "{waits:?}");
    let longest = waits.iter().max().unwrap();
    assert!(*longest <= Duration::from_secs(10) && waits[99] >= Duration::from_secs(5), "{waits:?}");
    assert_eq!(service.status().last_end.unwrap(), "ended with killed by SIGSEGV; its last words: farewell");
    assert!(!service.status().running && service.status().pid.is_none());

    // After a long run the restart comes soon.
    assert_eq!(told.next().await, "started 100 70000");
    tokio::time::sleep(Duration::from_secs(301)).await;
    script.latest().exit("exit code 1");
    told.next().await;
    assert!(told.last_wait() <= Duration::from_millis(100), "{:?}", told.last_wait());
}

// Promises: STATE-37
#[tokio::test(start_paused = true)]
async fn the_first_exit_for_long_is_followed_by_a_start_at_once() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let (_registry, service, told) = serve(&script, true);
    for _ in 0..2 {
        assert_eq!(told.next().await, "started 100 70000");
        script.latest().exit("killed by SIGKILL");
        assert_eq!(told.next().await, "ended with killed by SIGKILL; its last words: farewell (again)");
        assert_eq!(told.last_wait(), Duration::ZERO);
        // A second exit within the window waits as before.
        assert_eq!(told.next().await, "started 100 70000");
        script.latest().exit("killed by SIGKILL");
        told.next().await;
        assert!(told.last_wait() >= Duration::from_millis(100), "{:?}", told.last_wait());
        assert_eq!(told.next().await, "started 100 70000");
        tokio::time::sleep(Duration::from_secs(301)).await;
        script.latest().exit("exit code 0");
        told.next().await;
        assert_eq!(told.last_wait(), Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(301)).await;
    }
    let lines: Vec<_> = service.logs().recent.into_iter().map(|line| line.text).collect();
    assert!(lines.iter().any(|line| line.ends_with("; it is started again at once")), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_start_is_tried_again() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    script.plan([LaunchPlan::Refused, LaunchPlan::Fails]);
    let (_registry, service, told) = serve(&script, true);
    for _ in 0..2 {
        assert_eq!(told.next().await, "could not be started: no jail (again)");
    }
    assert_eq!(told.next().await, "started 100 70000");
    assert_eq!(service.status().restarts, 2);
    let lines: Vec<_> = service.logs().recent.into_iter().map(|line| line.text).collect();
    assert!(lines[0].starts_with("could not be started: no jail; it is started again in "), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn it_is_asked_first_and_then_made_to_stop() {
    const RUDE: FakeBehavior = FakeBehavior { heeds_signals: false, ..WELL_BEHAVED };
    for (manners, polite, signals, how, took) in [
        (WELL_BEHAVED, true, &["SIGKILL"][..], "exit code 0", Duration::ZERO),
        (WELL_BEHAVED, false, &["SIGTERM", "SIGKILL"], "killed by SIGTERM", GRACE),
        (RUDE, false, &["SIGTERM", "SIGKILL", "SIGKILL"], "killed by SIGKILL", 2 * GRACE),
    ] {
        let script = FakeLauncher::new(manners);
        let (_registry, service, told) = serve(&script, polite);
        told.next().await;
        let began = Instant::now();
        service.stop().await;
        assert_eq!(began.elapsed(), took);
        // Its child processes are killed in any case.
        assert_eq!(*script.latest().received.lock(), signals);
        assert_eq!(told.next().await, "stopping");
        assert_eq!(told.next().await, format!("ended with {how} (over)"));
        assert_eq!((script.alive(), service.status().running), (0, false));
        service.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_stopped_while_it_waits_to_be_started_again() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    script.plan([LaunchPlan::Fails]);
    let (_registry, service, told) = serve(&script, true);
    told.next().await;
    service.stop().await;
    assert_eq!((script.launched(), service.status().running), (0, false));
}

#[tokio::test(start_paused = true)]
async fn it_is_no_plugin_and_goes_after_them() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let (registry, service, told) = serve(&script, false);
    told.next().await;
    let state = script.latest();
    let plugin = registry.register(plugin_spec("hello")).unwrap();
    plugin.settled().await;
    assert_eq!(registry.list().len(), 1);
    assert!(registry.get("talon-state").is_none());
    let began = Instant::now();
    registry.shutdown(Duration::from_secs(1)).await;
    // Within the time of the shutdown, not its own grace period.
    assert!(began.elapsed() < GRACE, "{:?}", began.elapsed());
    assert_eq!(state.received.lock().first(), Some(&"SIGTERM"));
    assert!(service.has_ended());
    assert_eq!(script.alive(), 0);
    let late = registry.service(spec(), Arc::new(TestLink { told: told.clone(), polite: None }));
    late.stop().await;
    assert_eq!((script.launched(), late.status().running), (2, false));
}

#[tokio::test(start_paused = true)]
async fn nobody_keeps_a_service_that_nobody_holds() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let (registry, service, told) = serve(&script, true);
    told.next().await;
    drop((registry, service));
    assert_eq!(told.next().await, "stopping");
    assert!(told.next().await.ends_with("(over)"));
}
