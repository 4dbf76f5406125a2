//! Clients at work while the plugin, the configuration and the supervisor under them are replaced: no read
//! fails, and no write that was acknowledged is lost or done twice.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use talon_tests::{Builder, Supervisor, program};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Clients at work.
struct Load {
    child: Child,
    orders: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
}

impl Load {
    fn start(socket: &Path) -> Self {
        let mut child = Command::new(program("talon-load"))
            .arg(socket)
            .arg("ledger")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("talon-load starts");
        let orders = child.stdin.take().expect("stdin is piped");
        let said = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        Self { child, orders, said }
    }

    async fn phase(&mut self, name: &str) {
        self.orders.write_all(format!("phase {name}\n").as_bytes()).await.expect("talon-load reads");
    }

    /// Waits until each kind of client got answers in this phase.
    async fn enough(&mut self, name: &str) {
        let wanted = format!("enough {name}");
        loop {
            let line = self.said.next_line().await.expect("talon-load writes text");
            if line.expect("talon-load goes on") == wanted {
                return;
            }
        }
    }

    async fn result(self) -> Value {
        let Self { mut child, orders, mut said } = self;
        drop(orders);
        let mut last = String::new();
        while let Some(line) = said.next_line().await.expect("talon-load writes text") {
            last = line;
        }
        assert!(child.wait().await.expect("it is ours").success());
        serde_json::from_str(&last).unwrap_or_else(|error| panic!("{error}: {last}"))
    }
}

/// The plugin in a file of the test's own, which can be replaced.
fn ledger(builder: &Builder) -> PathBuf {
    builder.scratch().install(&program("talon-ledger"), "ledger")
}

/// Another program to the supervisor, though it does the same: its digest is another one.
fn upgrade(path: &Path) {
    let next = path.with_extension("next");
    let replaced = fs::copy(path, &next)
        .and_then(|_| fs::OpenOptions::new().append(true).open(&next))
        .and_then(|mut file| file.write_all(b"\nanother build\n"))
        // A file that runs is not written to; it is succeeded.
        .and_then(|()| fs::rename(&next, path));
    replaced.expect("the scratch directory takes files");
}

async fn supervisor() -> (Supervisor, PathBuf) {
    let builder = Builder::new().state("quota:\n  keys: 1000000");
    let path = ledger(&builder);
    (builder.plugin("ledger", &path, &[], "").start().await, path)
}

fn assert_no_loss(result: &Value) {
    for phase in result["phases"].as_array().expect("there are phases") {
        for failed in ["reads_failed", "newcomers_failed", "writes_not_begun"] {
            assert_eq!(phase[failed], 0, "{failed}: {phase:#}");
        }
    }
    for key in ["lost", "duplicated", "not_begun_that_took_effect"] {
        assert_eq!(result[key], Value::Array(Vec::new()), "{key}: {result:#}");
    }
    assert!(result["acknowledged"].as_u64().is_some_and(|count| count >= 200), "{result:#}");
    eprintln!("{result:#}");
}

async fn succeeds(supervisor: &Supervisor, args: &[&str]) -> String {
    let output = supervisor.cli(args).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{args:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

// Promises: CLI-39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_is_upgraded_under_load_without_loss() {
    let (supervisor, path) = supervisor().await;
    let before = supervisor.client.plugin("ledger").await.instances[0].pid;
    let mut load = Load::start(&supervisor.socket());
    load.enough("quiet").await;
    for round in 0..3 {
        upgrade(&path);
        load.phase(&format!("upgrade {round}")).await;
        succeeds(&supervisor, &["plugin", "reload", "ledger"]).await;
        load.phase(&format!("after upgrade {round}")).await;
        load.enough(&format!("after upgrade {round}")).await;
    }
    assert_ne!(supervisor.client.plugin("ledger").await.instances[0].pid, before);
    assert_no_loss(&load.result().await);
}

// Promises: CLI-39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_configuration_is_reloaded_under_load_without_loss() {
    let (supervisor, _) = supervisor().await;
    let mut load = Load::start(&supervisor.socket());
    load.enough("quiet").await;
    for seconds in [21, 22, 23] {
        let text = fs::read_to_string(supervisor.config()).unwrap();
        let text = text.lines().filter(|line| !line.starts_with("guard:")).collect::<Vec<_>>().join("\n");
        fs::write(supervisor.config(), format!("{text}\nguard: {{ timeout: {seconds}s }}\n")).unwrap();
        load.phase(&format!("reload {seconds}")).await;
        succeeds(&supervisor, &["reload"]).await;
        load.phase(&format!("after reload {seconds}")).await;
        load.enough(&format!("after reload {seconds}")).await;
    }
    assert_no_loss(&load.result().await);
}

// Promises: CLI-39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_supervisor_is_replaced_under_load_without_loss() {
    let (supervisor, _) = supervisor().await;
    let plugin = supervisor.client.plugin("ledger").await.instances[0].pid;
    let mut load = Load::start(&supervisor.socket());
    load.enough("quiet").await;
    let mut running: Option<Child> = None;
    for round in 0..3 {
        load.phase(&format!("takeover {round}")).await;
        let next = Command::new(program("talon"))
            .args(["serve", "--takeover", "--config"])
            .arg(supervisor.config())
            .env("TALON_LOG", "warn")
            .env_remove("XDG_RUNTIME_DIR")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("talon starts");
        let pid = next.id().expect("it runs");
        // The process that answers on the socket returns its pid.
        loop {
            let status = succeeds(&supervisor, &["status", "--output", "json"]).await;
            let status: Value = serde_json::from_str(&status).expect("JSON");
            if status["pid"] == pid {
                break;
            }
        }
        if let Some(mut before) = running.replace(next) {
            assert!(before.wait().await.unwrap().success());
        }
        load.phase(&format!("after takeover {round}")).await;
        load.enough(&format!("after takeover {round}")).await;
    }
    let shown = succeeds(&supervisor, &["plugin", "show", "ledger", "--output", "json"]).await;
    assert!(shown.contains(&format!("\"pid\": {plugin}")), "its process is the same: {shown}");
    assert_no_loss(&load.result().await);
    let mut last = running.expect("there were rounds");
    kill(Pid::from_raw(last.id().expect("it runs").cast_signed()), Signal::SIGTERM).unwrap();
    assert!(last.wait().await.unwrap().success());
}
