//! Real processes that die, freeze and are stopped.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use talon_plugin::{EventKind, Events, ExecuteRequest, LogLimits, Plugin, Registry, Settings, State};
use talon_plugin_client::ExecuteError;
use talon_plugin_config::discover::SpecDefaults;
use talon_plugin_config::{DEFAULT_ENV_ALLOW_LIST, PluginName, PluginSpec};
use talon_proto::plugin::{ToolCallRequest, ToolResultResponse};
use tokio::time::Instant;

const FIXTURE: &str = env!("CARGO_BIN_EXE_plugin-fixture");

/// Longer than anything here takes on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

struct Host {
    _dir: tempfile::TempDir,
    registry: Registry,
}

/// `range` keeps the uids of tests apart, because a uid's limit on processes counts over all of them.
fn host(range: u32) -> Host {
    let dir = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let first = 73_000 + 10 * range;
    let settings = Settings {
        runtime_dir: dir.path().join("run"),
        log_dir: None,
        data_dir: dir.path().join("data"),
        uid_range: geteuid().is_root().then_some(first..=first + 9),
        start_concurrency: 4,
        frames: Default::default(),
        env_allow_list: DEFAULT_ENV_ALLOW_LIST.map(str::to_owned).to_vec(),
        log_limits: LogLimits::default(),
        state: None,
        models: None,
    };
    let stage = talon_jail::Stage::from_image(std::fs::File::open(FIXTURE).unwrap()).unwrap();
    Host { _dir: dir, registry: Registry::new(settings, Arc::new(stage), Events::new()).unwrap() }
}

fn spec() -> PluginSpec {
    let name = PluginName::new("fixture").unwrap();
    let mut spec = SpecDefaults::default().spec(name, "test", FIXTURE);
    spec.args = vec!["serve".to_owned()];
    spec.lifecycle.backoff_initial = Duration::from_millis(20);
    spec.lifecycle.ready_wait = PATIENCE;
    spec.lifecycle.grace_period = Duration::from_millis(400);
    spec
}

impl Host {
    async fn ready(&self, spec: PluginSpec) -> Plugin {
        let plugin = self.registry.register(spec).unwrap();
        plugin.settled().await;
        assert_eq!(plugin.snapshot().state, State::Ready, "{:#?}", plugin.logs().recent);
        plugin
    }
}

async fn call(plugin: &Plugin, action: &str, args: &[(&str, &str)]) -> Result<String, ExecuteError> {
    let args = args.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let message =
        ToolCallRequest { id: "1".to_owned(), action: action.to_owned(), args, ..Default::default() };
    let request = ExecuteRequest { message, deadline: Some(Instant::now() + PATIENCE), ..Default::default() };
    let answer = plugin.executor().execute(request).await?;
    Ok(ToolResultResponse::decode(answer).unwrap().content)
}

fn pid(plugin: &Plugin, instance: usize) -> Pid {
    let pid = plugin.snapshot().instances[instance].pid.unwrap();
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

fn exists(pid: Pid) -> bool {
    std::path::Path::new(&format!("/proc/{}", pid.as_raw_nonzero())).exists()
}

/// Waits for the next event of that kind and gives its message.
async fn heard(
    events: &mut tokio::sync::broadcast::Receiver<Arc<talon_plugin::Event>>,
    kind: EventKind,
) -> String {
    loop {
        let event = tokio::time::timeout(PATIENCE, events.recv()).await.unwrap().unwrap();
        if event.kind == kind {
            return event.message.to_string();
        }
    }
}

// Promises: LIFE-4
#[tokio::test]
async fn a_crash_fails_the_call_at_once_and_the_next_call_finds_a_new_process() {
    let host = host(0);
    let mut events = host.registry.events().subscribe();
    let plugin = host.ready(spec()).await;
    let before = pid(&plugin, 0);
    let error = call(&plugin, "exit", &[("code", "7")]).await.unwrap_err();
    assert!(
        matches!(&error, ExecuteError::Died { exit, restarting: true } if exit == "exit code 7"),
        "{error:?}"
    );
    assert!(!call(&plugin, "where", &[]).await.unwrap().is_empty());
    let snapshot = plugin.snapshot();
    assert_eq!((snapshot.instances[0].generation, snapshot.deaths, snapshot.starts), (2, 1, 2));
    assert_ne!(pid(&plugin, 0), before);
    assert!(!exists(before));
    assert_eq!(heard(&mut events, EventKind::PluginExited).await, "exit code 7");
    host.registry.shutdown(PATIENCE).await;
}

#[tokio::test]
async fn a_plugin_that_is_killed_too_often_is_failed_until_it_is_started_again() {
    let host = host(1);
    let mut spec = spec();
    spec.lifecycle.max_restarts = 2;
    let plugin = host.ready(spec).await;
    for death in 1..=3 {
        let generation = plugin.snapshot().instances[0].generation;
        assert_eq!(generation, death);
        kill_process(pid(&plugin, 0), Signal::KILL).unwrap();
        while plugin.snapshot().instances[0].generation == generation
            && plugin.snapshot().state != State::Failed
        {
            tokio::task::yield_now().await;
        }
        plugin.settled().await;
    }
    let snapshot = plugin.snapshot();
    assert_eq!(snapshot.state, State::Failed);
    assert_eq!(
        snapshot.reason.unwrap(),
        "died 3 times within 5 min; last: killed by SIGKILL; see `talon plugin logs fixture`, then \
         `talon plugin start fixture`"
    );
    let error = call(&plugin, "where", &[]).await.unwrap_err();
    assert!(matches!(error, ExecuteError::Unavailable { retryable: false, .. }), "{error:?}");
    plugin.start().await.unwrap();
    assert!(!call(&plugin, "where", &[]).await.unwrap().is_empty());
    host.registry.shutdown(PATIENCE).await;
}

// Promises: LIFE-14
#[tokio::test]
async fn a_frozen_plugin_is_found_out_by_its_health_and_replaced() {
    let host = host(2);
    let mut spec = spec();
    spec.lifecycle.health_check_interval = Duration::from_millis(50);
    spec.lifecycle.health_check_timeout = Duration::from_millis(200);
    let plugin = host.ready(spec).await;
    let mut events = host.registry.events().subscribe();
    let frozen = pid(&plugin, 0);
    kill_process(frozen, Signal::STOP).unwrap();
    heard(&mut events, EventKind::HealthFailed).await;
    // A call waits for the one that comes.
    assert!(!call(&plugin, "where", &[]).await.unwrap().is_empty());
    assert_ne!(pid(&plugin, 0), frozen);
    assert!(!exists(frozen));
    host.registry.shutdown(PATIENCE).await;
}

// Promises: LIFE-22
#[tokio::test]
async fn a_stop_leaves_no_process_though_the_plugin_is_frozen_in_a_call() {
    let host = host(3);
    let plugin = host.ready(spec()).await;
    let frozen = pid(&plugin, 0);
    kill_process(frozen, Signal::STOP).unwrap();
    let stuck = tokio::spawn({
        let plugin = plugin.clone();
        async move { call(&plugin, "where", &[]).await }
    });
    while plugin.snapshot().calls_in_flight == 0 {
        tokio::task::yield_now().await;
    }
    plugin.stop().await.unwrap();
    assert!(!exists(frozen));
    assert!(matches!(stuck.await.unwrap(), Err(ExecuteError::Stopped)));
    assert_eq!(plugin.snapshot().state, State::Stopped);
    plugin.start().await.unwrap();
    assert!(!call(&plugin, "where", &[]).await.unwrap().is_empty());
    host.registry.shutdown(PATIENCE).await;
}

// Promises: LIFE-24
#[tokio::test]
async fn with_several_instances_calls_go_on_while_one_is_killed() {
    let host = host(4);
    let plugin = host.ready(PluginSpec { instances: 3, ..spec() }).await;
    let pids: Vec<_> = (0..3).map(|instance| pid(&plugin, instance)).collect();
    for victim in [0, 2] {
        kill_process(pids[victim], Signal::KILL).unwrap();
        while exists(pids[victim]) {
            // A call may be on its way to the victim itself; all others are answered.
            match call(&plugin, "where", &[]).await {
                Ok(_) | Err(ExecuteError::Died { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    while plugin.snapshot().starts < 5 {
        tokio::task::yield_now().await;
    }
    plugin.settled().await;
    host.registry.shutdown(PATIENCE).await;
    for pid in pids {
        assert!(!exists(pid));
    }
}

// Promises: LIFE-23, WIRE-4
#[tokio::test]
async fn a_restart_gives_new_processes_and_counts_no_death() {
    let host = host(5);
    let plugin = host.ready(PluginSpec { instances: 2, ..spec() }).await;
    let before = [pid(&plugin, 0), pid(&plugin, 1)];
    plugin.restart().await.unwrap();
    assert!(before.iter().all(|pid| !exists(*pid)));
    assert_eq!((plugin.snapshot().deaths, plugin.snapshot().starts), (0, 4));
    assert!(!plugin.refresh_capabilities().await.unwrap(), "it does not implement that");
    assert!(host.registry.has_action("fixture", "where"));
    host.registry.shutdown(PATIENCE).await;
}
