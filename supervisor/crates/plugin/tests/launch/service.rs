//! Services: real programs of the supervisor's own, in their jails.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use talon_control::Control;
use talon_plugin::{AttachedSocket, Home, Service, ServiceHooks, ServiceSpec, StateSockets};
use talon_plugin_config::PluginName;
use talon_plugin_config::spec::SandboxSettings;
use talon_proto::state::{AttachPlugin, FromState, ToState, to_state};
use talon_sanitize::Sanitized;
use tokio::sync::mpsc;

use super::{FIXTURE, Host, host, is_root, name};

/// A Python with SQLite, which is a real database in a real jail.
const PYTHON: &str = "/usr/bin/python3";

/// What SQLite does in WAL mode: shared memory, locks, syncs, checkpoints, and two connections at once.
const WAL: &str = r#"
import sqlite3, sys
path = sys.argv[1] + "/state.db"
def connect():
    c = sqlite3.connect(path, isolation_level=None)
    c.execute("pragma busy_timeout = 1000")
    return c
one, two = connect(), connect()
print("mode", one.execute("pragma journal_mode = wal").fetchone()[0])
one.execute("pragma synchronous = full")
one.execute("pragma mmap_size = 1048576")
one.execute("create table if not exists t (k text primary key, v blob)")
one.execute("begin immediate")
one.executemany("insert or replace into t values (?, ?)", [(str(i), b"x" * 1000) for i in range(500)])
one.execute("commit")
print("seen", two.execute("select count(*) from t").fetchone()[0])
print("checkpoint", one.execute("pragma wal_checkpoint(truncate)").fetchone())
one.execute("vacuum")
print("integrity", two.execute("pragma integrity_check").fetchone()[0])
import os
print("files", *sorted(os.listdir(sys.argv[1])))
print("done", flush=True)
sys.stdin.buffer.raw.read(1)
"#;

enum HookEvent {
    Started(u32, u32),
    Ended(String, bool),
}

struct TestHooks {
    news: mpsc::UnboundedSender<HookEvent>,
    control: Mutex<Option<OwnedFd>>,
}

impl ServiceHooks for TestHooks {
    fn on_started(&self, control: OwnedFd, pid: u32, uid: u32) {
        *self.control.lock() = Some(control);
        let _ = self.news.send(HookEvent::Started(pid, uid));
    }

    fn on_stopping(&self) {
        *self.control.lock() = None;
    }

    fn on_ended(&self, how: &Sanitized, again_in: Option<Duration>) {
        let _ = self.news.send(HookEvent::Ended(how.as_str().to_owned(), again_in.is_some()));
    }
}

struct Scene {
    host: Host,
    service: Service,
    link: Arc<TestHooks>,
    news: mpsc::UnboundedReceiver<HookEvent>,
    home: PathBuf,
}

fn home(host: &Host, range: u32) -> Home {
    let settings = super::settings(host.dir.path(), range);
    Home::prepare(&settings.data_dir, &PluginName::reserved("talon-state"), "state", settings.uid_range)
        .unwrap()
}

fn spec(home: Home, program: &str, args: &[&str]) -> ServiceSpec {
    ServiceSpec {
        name: PluginName::reserved("talon-state"),
        program: program.into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        home,
        sandbox: SandboxSettings::default(),
        readable_paths: Vec::new(),
        grace_period: Duration::from_secs(5),
        backoff_initial: Duration::from_millis(20),
        backoff_max: Duration::from_millis(100),
    }
}

fn served(host: Host, spec: ServiceSpec) -> Scene {
    let (sender, news) = mpsc::unbounded_channel();
    let link = Arc::new(TestHooks { news: sender, control: Mutex::default() });
    let home = spec.home.dir.clone();
    let service = host.registry.service(spec, link.clone());
    Scene { host, service, link, news, home }
}

/// The fixture as a service with this behaviour.
fn scene(range: u32, manner: &str) -> Scene {
    let host = host(range);
    let home = home(&host, range);
    let secret = host.dir.path().join("data/secret");
    std::fs::write(&secret, "of another").unwrap();
    let path = home.dir.display().to_string();
    let spec = spec(home, FIXTURE, &["service", &path, secret.to_str().unwrap(), manner]);
    served(host, spec)
}

impl Scene {
    async fn started(&mut self) -> (u32, u32) {
        match self.news.recv().await.unwrap() {
            HookEvent::Started(pid, uid) => (pid, uid),
            HookEvent::Ended(how, _) => panic!("{how}; it logged {:#?}", self.service.logs().recent),
        }
    }

    async fn ended(&mut self) -> (String, bool) {
        match self.news.recv().await.unwrap() {
            HookEvent::Ended(how, again) => (how, again),
            HookEvent::Started(..) => panic!("it was started"),
        }
    }

    /// Its lines up to this one.
    async fn until(&self, last: &str) -> Vec<String> {
        let mut tail = self.service.logs();
        let mut lines: Vec<_> = tail.recent.iter().map(|line| line.text.to_string()).collect();
        while !lines.iter().any(|line| line == last) {
            lines.push(tail.live.recv().await.unwrap().text.to_string());
        }
        lines
    }
}

// Promises: STATE-7
#[tokio::test]
async fn a_service_has_its_home_and_nothing_else_of_ours() {
    let mut scene = scene(40, "work");
    let (pid, uid) = scene.started().await;
    let lines = scene.until("done").await;
    let line = |start: &str| lines.iter().find(|line| line.starts_with(start)).cloned().unwrap_or_default();
    assert_eq!(line("work "), "work fine", "{lines:#?}");
    assert!(line("other ").contains("No such file"), "{lines:#?}");
    // The directory above has nothing but its home.
    assert_eq!(line("above "), "above 1");
    for name in ["HOME", "PATH", "TMPDIR"] {
        assert!(line("names ").contains(name), "{lines:#?}");
    }
    assert!(!line("names ").contains("PLUGIN") && !line("names ").contains("CARGO"), "{lines:#?}");
    assert_eq!(line("uid "), format!("uid {uid}"));
    let owner = scene.home.metadata().unwrap().uid();
    assert_eq!((uid, uid != rustix::process::geteuid().as_raw()), (owner, is_root()));
    let status = scene.service.status();
    assert_eq!((status.pid, status.uid, status.running, status.restarts), (Some(pid), uid, true, 0));
    for name in ["filesystem", "namespaces", "system-calls", "network"] {
        assert!(!status.not_enforced.iter().any(|text| text.starts_with(name)), "{status:?}");
    }
    assert!(scene.host.registry.list().is_empty());
    assert!(scene.host.registry.get("talon-state").is_none());
    scene.service.stop().await;
    let (how, again) = scene.ended().await;
    assert!(!again && how == "ended with exit code 0", "{how}");
    scene.host.done().await;
}

#[tokio::test]
async fn sqlite_in_wal_mode_works_under_the_strict_profile() {
    let there = std::process::Command::new(PYTHON).args(["-c", "import sqlite3"]).status();
    if !there.is_ok_and(|status| status.success()) {
        println!("SKIPPED sqlite_in_wal_mode_works_under_the_strict_profile: no {PYTHON} with SQLite");
        return;
    }
    let host = host(41);
    let home = home(&host, 41);
    let path = home.dir.display().to_string();
    let mut scene = served(host, spec(home, PYTHON, &["-c", WAL, &path]));
    scene.started().await;
    let lines = scene.until("done").await;
    for expected in [
        "mode wal",
        "seen 500",
        "checkpoint (0, 0, 0)",
        "integrity ok",
        "files state.db state.db-shm state.db-wal",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected} is not in {lines:#?}");
    }
    scene.service.stop().await;
    scene.host.done().await;
}

#[tokio::test]
async fn one_that_ends_is_started_again_and_says_why_it_ended() {
    let mut scene = scene(42, "die");
    for _ in 0..3 {
        scene.started().await;
        let (how, again) = scene.ended().await;
        assert!(how.starts_with("ended with exit code 3; its last words: "), "{how}");
        assert!(again && how.contains("the disk is on fire"), "{how}");
    }
    scene.service.stop().await;
    assert_eq!(scene.host.private_dirs(), Vec::<PathBuf>::new());
    scene.host.done().await;
}

#[tokio::test]
async fn one_that_is_killed_is_back_with_another_socket() {
    let mut scene = scene(43, "work");
    let (first, _) = scene.started().await;
    scene.until("done").await;
    let pid = rustix::process::Pid::from_raw(i32::try_from(first).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert!(scene.ended().await.0.starts_with("ended with killed by SIGKILL"));
    let (second, _) = scene.started().await;
    assert_ne!(first, second);
    assert_eq!(scene.service.status().restarts, 1);
    // Closing its socket ends it, too: the peer decides.
    *scene.link.control.lock() = None;
    let (how, again) = scene.ended().await;
    assert!(again && how.starts_with("ended with exit code 0"), "{how}");
    scene.host.done().await;
}

#[tokio::test]
async fn a_shutdown_leaves_no_service_that_does_not_listen() {
    let mut scene = scene(44, "stay");
    let (pid, _) = scene.started().await;
    scene.until("done").await;
    scene.host.registry.shutdown(Duration::from_millis(50)).await;
    assert!(scene.ended().await.0.starts_with("ended with killed by SIGTERM"));
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    assert!(stat.is_err() || stat.unwrap().contains(") Z "));
    assert_eq!(scene.host.private_dirs(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_program_that_others_may_change_is_not_started() {
    let host = host(45);
    let program = host.dir.path().join("program");
    std::fs::copy(FIXTURE, &program).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o757)).unwrap();
    let home = home(&host, 45);
    let mut scene = served(host, spec(home, program.to_str().unwrap(), &[]));
    let (how, again) = scene.ended().await;
    assert!(again && how.contains("could not be started") && how.contains("everybody may write"), "{how}");
    scene.service.stop().await;
    scene.host.done().await;
}

/// Passes sockets to a service.
#[derive(Debug, Default)]
struct HandoverSockets {
    control: Mutex<Option<OwnedFd>>,
}

#[derive(Debug)]
struct UnsupportedAttachment;

impl AttachedSocket for UnsupportedAttachment {
    fn socket(&self) -> std::io::Result<OwnedFd> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

impl StateSockets for HandoverSockets {
    fn attach(&self, plugin: &PluginName, peer: u32, socket: OwnedFd) -> Box<dyn AttachedSocket> {
        let control = self.control.lock().as_ref().unwrap().try_clone().unwrap();
        let attach = AttachPlugin { plugin: plugin.to_string(), uid: peer, ..AttachPlugin::default() };
        let message = ToState { kind: Some(to_state::Kind::AttachPlugin(attach)) };
        tokio::runtime::Handle::current().spawn(async move {
            let control = Control::<ToState, FromState>::new(control).unwrap();
            control.send(&message, Some(socket.as_fd())).await.unwrap();
        });
        Box::new(UnsupportedAttachment)
    }
}

#[tokio::test]
async fn a_socket_that_is_handed_on_to_a_service_tells_it_who_connects() {
    let sockets = Arc::new(HandoverSockets::default());
    let host = super::host_with(47, Some(sockets.clone()));
    let home = home(&host, 47);
    let path = home.dir.display().to_string();
    let mut scene = served(host, spec(home, FIXTURE, &["service", &path, "", "hand"]));
    let (_, own) = scene.started().await;
    *sockets.control.lock() = scene.link.control.lock().take();
    let plugin = scene.host.up(super::spec("serve")).await;
    let uid = plugin.snapshot().instances[0].uid.unwrap();
    let answer = super::call_with(&plugin, "try", &[("what", "state")]).await;
    assert_eq!(answer, format!("fine serve {uid}"));
    assert_eq!(own != uid, is_root());
    *sockets.control.lock() = None;
    assert!(scene.ended().await.0.starts_with("ended with exit code 0"));
    scene.service.stop().await;
    scene.host.done().await;
}

#[tokio::test]
async fn a_plugin_neither_sees_a_home_nor_is_granted_one() {
    let host = host(46);
    let home = home(&host, 46);
    let mut greedy = super::PluginSpec { name: name("greedy"), ..super::spec("serve") };
    greedy.sandbox.fs.read = Some(vec![home.dir.clone()]);
    host.refused(greedy, &["Talon's own files"]).await;
    let plugin = host.up(super::spec("serve")).await;
    let path = home.dir.display().to_string();
    let outcome = super::call_with(&plugin, "try", &[("what", "list"), ("path", &path)]).await;
    assert!(outcome.contains("No such file"), "{outcome}");
    host.done().await;
}
