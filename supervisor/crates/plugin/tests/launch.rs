//! Starts of real processes, and how they fail.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use talon_plugin::{
    Events, ExecuteRequest, LogLimits, Plugin, Registry, Settings, SetupError, State, StateSockets,
};
use talon_plugin_config::discover::{SpecDefaults, scan};
use talon_plugin_config::spec::NetworkAccess;
use talon_plugin_config::{DEFAULT_ENV_ALLOW_LIST, PluginName, PluginSpec};
use talon_proto::plugin::{ToolCallRequest, ToolResultResponse};

#[path = "launch/handover.rs"]
mod handover;
#[path = "launch/jail.rs"]
mod jail;
#[path = "launch/last_good.rs"]
mod last_good;
#[path = "launch/service.rs"]
mod service;
#[path = "launch/state.rs"]
mod state;
#[path = "launch/successor.rs"]
mod successor;

const FIXTURE: &str = env!("CARGO_BIN_EXE_plugin-fixture");

struct Host {
    dir: tempfile::TempDir,
    registry: Registry,
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A range for each test, because a uid's limit on processes counts over all of them.
fn settings(dir: &Path, range: u32) -> Settings {
    let first = 72_000 + 10 * range;
    Settings {
        runtime_dir: dir.join("run"),
        log_dir: Some(dir.join("logs")),
        data_dir: dir.join("data"),
        uid_range: is_root().then_some(first..=first + 9),
        start_concurrency: 4,
        frames: Default::default(),
        env_allow_list: DEFAULT_ENV_ALLOW_LIST.map(str::to_owned).to_vec(),
        log_limits: LogLimits::default(),
        state: None,
        models: None,
    }
}

fn registry(settings: Settings) -> Result<Registry, SetupError> {
    let stage = talon_jail::Stage::from_image(std::fs::File::open(FIXTURE).unwrap()).unwrap();
    Registry::new(settings, Arc::new(stage), Events::new())
}

fn host(range: u32) -> Host {
    host_with(range, None)
}

fn host_with(range: u32, state: Option<Arc<dyn StateSockets>>) -> Host {
    let dir = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let registry = registry(Settings { state, ..settings(dir.path(), range) }).unwrap();
    Host { dir, registry }
}

fn name(text: &str) -> PluginName {
    PluginName::new(text).unwrap()
}

fn spec(what: &str) -> PluginSpec {
    let mut spec = SpecDefaults::default().spec(name(what), "test", FIXTURE);
    spec.args = vec![what.to_owned()];
    spec.enabled = false;
    spec.lifecycle.restart_on_failure = false;
    spec
}

impl Host {
    /// Starts a plugin that must become ready.
    async fn up(&self, spec: PluginSpec) -> Plugin {
        let plugin = self.registry.register(spec).unwrap();
        if let Err(error) = plugin.start().await {
            panic!("{error}; it logged {:#?}", plugin.logs().recent);
        }
        plugin
    }

    /// Why a plugin does not start. All of it is gone then.
    async fn refusal(&self, spec: PluginSpec) -> (Plugin, String) {
        let plugin = self.registry.register(spec).unwrap();
        let error = plugin.start().await.unwrap_err().to_string();
        assert!(error.len() < 3000 && !error.contains('\u{1b}'), "{error}");
        assert_eq!(self.private_dirs(), Vec::<PathBuf>::new());
        (plugin, error)
    }

    async fn refused(&self, spec: PluginSpec, says: &[&str]) -> Plugin {
        let (plugin, error) = self.refusal(spec).await;
        for expected in says {
            assert!(error.contains(expected), "{expected:?} is not in {error:?}");
        }
        plugin
    }

    fn private_dirs(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.dir.path().join("run/p")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    async fn done(self) {
        self.registry.shutdown(Duration::from_secs(10)).await;
        assert_eq!(self.private_dirs(), Vec::<PathBuf>::new());
    }
}

async fn call(plugin: &Plugin, action: &str) -> String {
    call_with(plugin, action, &[]).await
}

async fn call_with(plugin: &Plugin, action: &str, args: &[(&str, &str)]) -> String {
    let args = args.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let message =
        ToolCallRequest { id: "7".to_owned(), action: action.to_owned(), args, ..Default::default() };
    let request = ExecuteRequest { message, ..Default::default() };
    let answer = ToolResultResponse::decode(plugin.executor().execute(request).await.unwrap()).unwrap();
    assert_eq!(answer.call_id, "7");
    answer.content
}

// Promises: LAUNCH-13
#[tokio::test]
async fn a_plugin_comes_up_answers_and_leaves_nothing() {
    let host = host(0);
    let plugin = host.up(spec("serve")).await;
    let snapshot = plugin.snapshot();
    assert_eq!(snapshot.state, State::Ready);
    assert_eq!(snapshot.declared_name.as_deref(), Some("fixture"));
    let expected = sha256(&std::fs::read(FIXTURE).unwrap());
    assert_eq!(snapshot.digest, Some(expected));
    let text = call(&plugin, "where").await;
    let (cwd, uid) = text.rsplit_once(' ').unwrap();
    let own = if is_root() { 72_000 } else { rustix::process::geteuid().as_raw() };
    assert_eq!(uid, own.to_string());
    assert!(cwd.starts_with(host.dir.path().to_str().unwrap()) && cwd.ends_with("/h"), "{cwd}");
    assert_eq!(host.private_dirs().len(), 1);
    host.done().await;
}

// Promises: HAND-3
#[tokio::test]
async fn the_environment_is_what_we_say() {
    let host = host(1);
    let plugin =
        host.up(PluginSpec { env: [("LOG".to_owned(), "debug".to_owned())].into(), ..spec("serve") }).await;
    let env = call(&plugin, "env").await;
    let names: Vec<_> = env.lines().map(|line| line.split('=').next().unwrap()).collect();
    for expected in ["HOME", "LOG", "PATH", "TMPDIR", "TALON_PLUGIN_MAGIC_COOKIE", "PLUGIN_UNIX_SOCKET_DIR"] {
        assert!(names.contains(&expected), "{expected} is not in {names:?}");
    }
    for name in names {
        assert!(!name.starts_with("CARGO") && name != "PLUGIN_MULTIPLEX_GRPC", "{name}");
    }
    host.done().await;
}

#[tokio::test]
async fn both_dialects_and_a_banner_are_understood() {
    let host = host(2);
    for what in ["opentalon", "banner"] {
        let plugin = host.up(spec(what)).await;
        assert!(call(&plugin, "where").await.contains("/h "));
    }
    let banner: Vec<_> = host.registry.get("banner").unwrap().logs().recent;
    let texts: Vec<_> = banner.iter().map(|line| line.text.as_str()).collect();
    assert!(texts.contains(&"welcome") && texts.contains(&"to ␛[1mthis␛[0m plugin"), "{texts:?}");
    host.done().await;
}

// Promises: HAND-27
#[tokio::test]
async fn what_it_says_is_logged_with_its_level() {
    let host = host(3);
    let plugin = host.up(spec("serve")).await;
    // Separate tasks read the streams.
    while plugin
        .logs()
        .recent
        .iter()
        .filter(|l| l.text.contains("streamed") || l.text.contains("up and"))
        .count()
        < 3
    {
        tokio::task::yield_now().await;
    }
    plugin.stop().await.unwrap();
    let line = plugin.logs().recent.into_iter().find(|line| line.text.contains("up and running")).unwrap();
    assert_eq!(line.level, talon_plugin::Level::Warn);
    assert_eq!(line.stream, talon_plugin::Stream::Stderr);
    // And what go-plugin sends over its own stream instead of its pipes.
    let has = |stream, level, text: &str| {
        plugin.logs().recent.iter().any(|l| (l.stream, l.level, l.text.as_str()) == (stream, level, text))
    };
    assert!(has(talon_plugin::Stream::Stdout, talon_plugin::Level::Info, "streamed in pieces"));
    assert!(has(talon_plugin::Stream::Stderr, talon_plugin::Level::Error, "[ERROR] streamed"));
    host.done().await;
}

// Promises: LAUNCH-26
#[tokio::test]
async fn a_plugin_that_exits_says_how_and_its_last_words() {
    let host = host(4);
    host.refused(spec("die"), &["exit code 3", "no such table: users"]).await;
    host.refused(spec("nothing"), &["exit code 0", "no plugin"]).await;
    host.done().await;
}

// Promises: HAND-8
#[tokio::test]
async fn a_plugin_that_hangs_is_given_up_at_its_start_timeout() {
    let host = host(5);
    let mut hang = spec("hang");
    hang.lifecycle.start_timeout = Duration::from_secs(3);
    host.refused(hang, &["not ready within 3 s", "handshake was awaited", "half a line"]).await;
    host.done().await;
}

// Promises: HAND-5, HAND-7
#[tokio::test]
async fn an_output_without_a_handshake_is_given_up_early() {
    let host = host(6);
    host.refused(spec("noise"), &["more than 64 lines"]).await;
    host.refused(spec("flood"), &["longer than 4096 bytes"]).await;
    host.refused(spec("close"), &["closed its standard output"]).await;
    host.done().await;
}

// Promises: HAND-10, HAND-11
#[tokio::test]
async fn wrong_versions_say_which_both_sides_speak_and_are_not_tried_again() {
    let host = host(7);
    for (what, says) in [
        ("core", ["speaks version 2 of the handshake", "speaks version 1"]),
        ("app", ["version 9 of the application protocol", "offered it 1"]),
        ("netrpc", ["netrpc", "only grpc"]),
    ] {
        let mut spec = spec(what);
        spec.lifecycle.restart_on_failure = true;
        let plugin = host.refused(spec, &says).await;
        assert_eq!(plugin.snapshot().state, State::Refused);
    }
    host.done().await;
}

// Promises: LIFE-32
#[tokio::test]
async fn a_wrong_cookie_service_or_setting_is_not_tried_again() {
    let host = host(34);
    let cookie = spec("cookie");
    let mut service = spec("serve");
    (service.name, service.service) = (name("service"), "proto.KV".to_owned());
    let mut setting = spec("serve");
    setting.name = name("setting");
    setting.config.insert("root".to_owned(), "/nowhere".into());
    for (mut spec, says) in [
        (cookie, ["its own magic cookie", "set `cookie`"]),
        (service, ["does not serve PluginService as proto.KV", "set its `service` to the full name"]),
        (setting, ["refused its settings", "correct its config"]),
    ] {
        spec.lifecycle.restart_on_failure = true;
        let plugin = host.refused(spec, &says).await;
        assert_eq!(plugin.snapshot().state, State::Refused, "{}", plugin.name());
    }
    host.done().await;
}

// Promises: HAND-14
#[tokio::test]
async fn an_address_that_is_not_its_own_is_refused() {
    let host = host(8);
    host.refused(spec("elsewhere"), &["/run/dbus/system_bus_socket", "PLUGIN_UNIX_SOCKET_DIR"]).await;
    host.refused(spec("link"), &["link"]).await;
    host.refused(spec("absent"), &["cannot be opened"]).await;
    let mut tcp = spec("tcp");
    tcp.sandbox.network = NetworkAccess::Full;
    host.refused(tcp, &["allow_tcp"]).await;
    host.done().await;
}

// Promises: HAND-19
#[tokio::test]
async fn tcp_works_where_it_is_allowed() {
    let host = host(9);
    let mut inside = PluginSpec { allow_tcp: true, ..spec("tcp") };
    inside.name = name("inside");
    inside.sandbox.network = NetworkAccess::Loopback;
    host.refused(inside, &["its own network", "sandbox.network"]).await;
    let mut outside = PluginSpec { allow_tcp: true, connections: 2, ..spec("tcp") };
    outside.sandbox.network = NetworkAccess::Full;
    let plugin = host.up(outside).await;
    call(&plugin, "where").await;
    host.done().await;
}

// Promises: HAND-29
#[tokio::test]
async fn settings_that_the_plugin_refuses_are_told() {
    let host = host(10);
    let mut refusing = spec("serve");
    refusing.config.insert("root".to_owned(), "/nowhere".into());
    host.refused(refusing, &["refused its settings", r#"{"root":"/nowhere"}"#]).await;
    let mut dying = SpecDefaults::default().spec(name("dying"), "test", FIXTURE);
    (dying.args, dying.enabled, dying.lifecycle.restart_on_failure) =
        (vec!["serve".to_owned()], false, false);
    dying.config.insert("exit".to_owned(), 5.into());
    host.refused(dying, &["exit code 5 while it was given its settings", "up and running"]).await;
    host.done().await;
}

#[tokio::test]
async fn a_grandchild_goes_with_its_plugin() {
    let host = host(11);
    let plugin = host.up(spec("grandchild")).await;
    // The pid that it prints is from its own pid namespace.
    let parent = plugin.snapshot().instances[0].pid.unwrap();
    let children = format!("/proc/{parent}/task/{parent}/children");
    let grandchild = std::fs::read_to_string(children).unwrap();
    let stat = format!("/proc/{}/stat", grandchild.trim());
    assert!(std::fs::read_to_string(&stat).unwrap().contains("(sleep)"));
    plugin.stop().await.unwrap();
    let stat = std::fs::read_to_string(stat);
    assert!(stat.is_err() || stat.unwrap().contains(") Z "));
    host.done().await;
}

// Promises: LAUNCH-26
#[tokio::test]
async fn a_start_that_is_called_off_leaves_nothing() {
    let host = host(12);
    let plugin = host.registry.register(spec("hang")).unwrap();
    let starting = tokio::spawn({
        let plugin = plugin.clone();
        async move { plugin.start().await }
    });
    while host.private_dirs().is_empty() {
        tokio::task::yield_now().await;
    }
    plugin.stop().await.unwrap();
    assert_eq!(host.private_dirs(), Vec::<PathBuf>::new());
    assert!(starting.await.unwrap().is_err());
    host.done().await;
}

// Promises: DISC-11
#[tokio::test]
async fn scripts_and_directories_run_from_a_view() {
    let host = host(13);
    let plugins = host.dir.path().join("plugins");
    let directory = plugins.join("in_dir");
    std::fs::create_dir_all(&directory).unwrap();
    let write = |path: &Path, text: &str, mode: u32| {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let fixture = directory.join("fixture");
    std::fs::copy(FIXTURE, &fixture).unwrap();
    write(&directory.join("run"), "#!/bin/sh\nexec ./fixture \"$1\"\n", 0o755);
    write(&directory.join("plugin.yaml"), "command: run\nargs: [serve]\n", 0o644);
    let script = format!("#!/bin/sh\nexec {} serve\n", fixture.display());
    write(&plugins.join("script.sh"), &script, 0o755);
    // The script runs what lies elsewhere, which it has to be granted.
    let mut defaults = SpecDefaults::default();
    defaults.sandbox.fs.execute = Some(vec![directory.clone()]);
    let discovered = scan(&plugins, &defaults);
    assert_eq!(discovered.refused, []);
    for spec in discovered.plugins {
        let name = spec.name.clone();
        let digest = spec.directory.is_none().then(|| sha256(script.as_bytes()));
        let plugin = host.up(PluginSpec { enabled: false, ..spec }).await;
        let text = call(&plugin, "where").await;
        if let Some(digest) = digest {
            assert_eq!(plugin.snapshot().digest, Some(digest));
        } else {
            assert!(text.contains("/data/views/"), "{name}: {text}");
        }
    }
    // What was checked runs: a later change of the source needs a new start to count.
    let (plugin, before) =
        (host.registry.get("in-dir").unwrap(), host.registry.get("in-dir").unwrap().snapshot().digest);
    write(&directory.join("run"), "#!/bin/sh\necho changed >&2; exec ./fixture \"$1\"\n", 0o755);
    plugin.restart().await.unwrap();
    assert_ne!(plugin.snapshot().digest, before);
    host.done().await;
}

// Promises: DISC-9
#[tokio::test]
async fn a_changed_program_is_refused() {
    let host = host(14);
    let spec = PluginSpec { sha256: Some("0".repeat(64)), ..spec("serve") };
    let plugin =
        host.refused(spec, &["somebody changed it", &sha256(&std::fs::read(FIXTURE).unwrap())]).await;
    assert_eq!(plugin.snapshot().state, State::Refused);
    host.done().await;
}

// Promises: BAD-14
#[tokio::test]
async fn a_second_supervisor_is_refused_and_a_crashed_one_is_cleared_up_after() {
    let host = host(15);
    let second = registry(settings(host.dir.path(), 15)).unwrap_err().to_string();
    assert!(second.contains(&std::process::id().to_string()), "{second}");
    let dir = host.dir.path().to_owned();
    host.registry.shutdown(Duration::from_secs(10)).await;
    drop(host.registry);
    std::fs::create_dir_all(dir.join("run/p/abc/s")).unwrap();
    std::fs::write(dir.join("run/p/abc/s/plugin1"), "").unwrap();
    let third = registry(settings(&dir, 15)).unwrap();
    assert!(!dir.join("run/p/abc").exists());
    third.shutdown(Duration::from_secs(10)).await;
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;

    hex::encode(sha2::Sha256::digest(bytes))
}
