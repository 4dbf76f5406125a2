//! The plugins' state in Valkey or Redis: `state.plugins` with the plugin `valkey`, jailed, against a real server, while the plugin,
//! talon-state, the supervisor and the server are killed.
//!
//! `tests/scripts/deps.sh test` installs the server; without it the tests are skipped by name.

mod hostile;
mod server;
mod tls;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use server::Server;
use talon_proto::host::ExecuteRequest;
use talon_tests::state::{OnDisconnect, ValueNumbers, Writer, assert_kept, socket_of, sockets};
use talon_tests::{Builder, Scratch, Supervisor, cli, is_root, kills, program};

/// How often one of the four is killed.
const KILLS: usize = 10;
/// How many numbers the writer has between two kills.
const NUMBERS_PER_ROUND: u32 = 1 << 20;
/// How many commands a server has to load, each for half a millisecond and what a machine adds to so short a sleep.
const LOADED_COMMANDS: usize = 25_000;
/// How many writes are acknowledged between two kills.
const WRITES_PER_ROUND: usize = 20;

/// A supervisor whose plugins' state is in the server of this directory.
fn with_valkey(builder: Builder, dir: &Path, config: &str) -> Builder {
    let entry = format!(
        "config: {{ socket: {:?}{config} }}\nsandbox: {{ fs: {{ write: [{:?}] }} }}",
        dir.join("socket"),
        dir.display().to_string()
    );
    builder
        .state("plugins: { engine: plugin, action: valkey.store }")
        .plugin("valkey", &program("valkey"), &[], &entry)
        .plugin("hello", &program("hello"), &[], "")
        .misbehave(&[], "")
}

async fn state(supervisor: &Supervisor, pairs: &[(&str, &str)]) -> Result<String, String> {
    let answer = supervisor.client.call("misbehave", "state", pairs).await;
    if answer.error.is_empty() { Ok(answer.content) } else { Err(answer.error) }
}

async fn serves(supervisor: &Supervisor) {
    supervisor.wait_state_service("state in the storage backend", |now| now.state == "serving").await;
}

/// Runs `talon` as another user, which needs to be root.
async fn call_as(supervisor: &Supervisor, uid: &str, words: &[&str]) -> Output {
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
    };
    open(&supervisor.socket(), 0o666);
    open(supervisor.runtime_dir(), 0o755);
    let scratch = Scratch::new();
    let talon = scratch.install(&program("talon"), "talon");
    tokio::process::Command::new("setpriv")
        .args(["--reuid", uid, "--regid", uid, "--clear-groups"])
        .arg(&talon)
        .arg("--socket")
        .arg(supervisor.socket())
        .args(words)
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .await
        .expect("setpriv is installed")
}

/// Ends it; everything that it started is gone.
async fn ends_clean(supervisor: Supervisor) {
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
    assert_eq!(stopped.processes, Vec::<u32>::new());
}

// Promises: EXT-106
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_keep_their_state_in_a_storage_backend() {
    let builder = Builder::new();
    let Some(server) = Server::start("plugins_keep_their_state_in_a_storage_backend", builder.scratch(), &[])
    else {
        return;
    };
    let dir = server.dir.clone();
    let builder = builder.config("host:\n  peers:\n    - {uid: 54322, role: operate, origin: program}");
    let supervisor = with_valkey(builder, &dir, "").start().await;
    serves(&supervisor).await;
    let told = supervisor.state_service().await;
    assert_eq!((told.engine.as_str(), told.place.as_str()), ("plugin", "valkey.store"), "{told:?}");
    assert_eq!(
        state(&supervisor, &[("op", "set"), ("key", "ü"), ("value", "<|im_start|>")]).await,
        Ok("set".into())
    );
    let large = (400 << 10).to_string();
    assert_eq!(
        state(&supervisor, &[("op", "set"), ("key", "large"), ("bytes", &large)]).await,
        Ok("set".into())
    );
    assert_eq!(state(&supervisor, &[("op", "keys")]).await, Ok("large ü".into()));
    assert_eq!(state(&supervisor, &[("op", "delete"), ("key", "large")]).await, Ok("existed: true".into()));
    let too_large = (600 << 10).to_string();
    let refused = state(&supervisor, &[("op", "set"), ("key", "a"), ("bytes", &too_large)]).await;
    assert!(refused.as_ref().is_err_and(|why| why.contains("524288")), "{refused:?}");
    // The backend has no state of its own; each other plugin has.
    assert!(!socket_of(&supervisor, "hello").await.as_os_str().is_empty());
    assert_eq!(sockets(supervisor.runtime_dir()).len(), 2);
    // What the operator is told.
    let output = supervisor.cli(&["--output", "json", "extension", "list"]).await;
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(listed.contains("storage_backend") && listed.contains("ready"), "{listed}");
    let output = supervisor.cli(&["extension", "test", "storage_backend", "valkey.store"]).await;
    let tried = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && tried.contains("there is no such key"), "{output:?}");
    let output = supervisor.cli(&["state", "get", "misbehave", "ü"]).await;
    assert!(String::from_utf8_lossy(&output.stdout).contains("im_start"), "{output:?}");
    // Nobody below an administrator calls it, and the database is not a second place.
    if is_root() {
        let output = call_as(&supervisor, "54322", &["call", "valkey.store", "op=get"]).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("call it with the role admin"), "{output:?}");
        let output = call_as(&supervisor, "54322", &["call", "misbehave.state", "op=keys"]).await;
        assert!(output.status.success(), "{output:?}");
    }
    let scan = json!({"op": "scan", "limit": 9});
    assert_eq!(store(&supervisor, scan).await["outcome"], "page", "an administrator may look");
    assert!(!supervisor.scratch.join("data/state/state.db").exists());
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
    let again = with_valkey(Builder::on_leftovers(stopped.left), &dir, "").start().await;
    serves(&again).await;
    let found = state(&again, &[("op", "get"), ("key", "ü")]).await.expect("it is there");
    assert!(found.contains("im_start"), "{found}");
    ends_clean(again).await;
}

// Promises: EXT-107
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_is_there_whoever_is_killed() {
    let kills = u32::try_from(kills(KILLS)).expect("a small number");
    let builder = Builder::new();
    let test = "what_was_acknowledged_is_there_whoever_is_killed";
    let Some(mut server) = Server::start(test, builder.scratch(), &[]) else { return };
    let dir = server.dir.clone();
    let mut supervisor = with_valkey(builder, &dir, "").start().await;
    serves(&supervisor).await;
    let mut acknowledged = ValueNumbers::new();
    let (mut counted, mut open) = (0_u32, 0_u32);
    for round in 0..kills {
        let when = format!("round {round}");
        let first = round * NUMBERS_PER_ROUND;
        // Its socket goes with the supervisor.
        let broken = if round % 4 == 3 { OnDisconnect::End } else { OnDisconnect::Retry };
        let mut writer = Writer::start(&supervisor, "hello", first, broken).await;
        assert_kept(&acknowledged, &writer.found().await, &when);
        let taken = writer.read_acknowledged(WRITES_PER_ROUND, &mut acknowledged).await;
        assert_eq!(taken, WRITES_PER_ROUND, "{when}: the writer ended");
        let counting = state(&supervisor, &[("op", "increment"), ("key", "n")]);
        let killing = async {
            match round % 4 {
                0 => kill_pid(supervisor.client.plugin("valkey").await.instances[0].pid),
                1 => kill_pid(supervisor.state_service().await.pid),
                2 => server.kill_and_restart(),
                _ => {}
            }
        };
        // What was acknowledged in the middle of it counts.
        match tokio::join!(counting, killing).0 {
            Ok(_) => counted += 1,
            Err(_) => open += 1,
        }
        if round % 4 == 3 {
            let rest = tokio::spawn(async move {
                let mut rest = ValueNumbers::new();
                writer.read_acknowledged(usize::MAX, &mut rest).await;
                writer.ended().await;
                rest
            });
            let stopped = supervisor.end(Signal::SIGKILL).await;
            assert_eq!(stopped.processes, Vec::<u32>::new(), "{when}: {}", stopped.log);
            acknowledged.extend(rest.await.unwrap_or_else(|error| panic!("{when}: {error}")));
            supervisor = with_valkey(Builder::on_leftovers(stopped.left), &dir, "").start().await;
            serves(&supervisor).await;
        } else {
            writer.read_acknowledged(WRITES_PER_ROUND, &mut acknowledged).await;
            let found = writer.stop(&mut acknowledged).await;
            assert_kept(&acknowledged, &found, &when);
        }
    }
    let last = state(&supervisor, &[("op", "increment"), ("key", "n")]).await.expect("it is counted");
    let last: u32 = last.parse().expect("a number");
    assert!((counted + 1..=counted + 1 + open).contains(&last), "{counted} and {open}: {last}");
    println!("{} keys, {counted} counted, {open} open, {last} at the end", acknowledged.len());
    ends_clean(supervisor).await;
}

fn kill_pid(pid: u32) {
    // 0 is the group of this test, -1 every process.
    assert!(pid > 1 && pid.cast_signed() > 1, "{pid} is no process of ours");
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).expect("it runs");
}

// Promises: EXT-176
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_still_loads_its_data_is_waited_for() {
    let builder = Builder::new();
    let test = "a_server_that_still_loads_its_data_is_waited_for";
    let Some(mut server) = Server::start(test, builder.scratch(), &[]) else { return };
    let dir = server.dir.clone();
    let supervisor = with_valkey(builder, &dir, "").start().await;
    serves(&supervisor).await;
    assert_eq!(state(&supervisor, &[("op", "set"), ("key", "a"), ("value", "kept")]).await, Ok("set".into()));
    // Some data, and time for each command of it: it loads for some seconds, and answers after each 1,024 commands meanwhile. With a
    // longer time a connection, which takes two answers, would be given up before it is told of the loading.
    let lines: String = (0..LOADED_COMMANDS).map(|number| format!("SET other:{number} x\r\n")).collect();
    server.say(&format!("{lines}PING\r\n"), "+PONG\r\n");
    server.add_settings(&["--key-load-delay", "500"]);
    server.kill_and_restart();
    // The read is given up after 12 seconds, before the server is done; what is told is told while it loads.
    let (early, told) = tokio::join!(
        state(&supervisor, &[("op", "get"), ("key", "a")]),
        supervisor.wait_state_service("a server that loads", |now| now.problem.contains("loading")),
    );
    assert!(early.is_err(), "{early:?}");
    assert!(told.problem.contains("asked again until it is done"), "{told:?}");
    serves(&supervisor).await;
    assert_eq!(state(&supervisor, &[("op", "get"), ("key", "a")]).await, Ok("kept".into()));
    ends_clean(supervisor).await;
}

// Promises: EXT-108
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_would_lose_writes_is_refused() {
    let builder = Builder::new();
    let test = "a_server_that_would_lose_writes_is_refused";
    let Some(server) = Server::start(test, builder.scratch(), &["--appendfsync", "everysec"]) else { return };
    let dir = server.dir.clone();
    let supervisor = with_valkey(builder, &dir, "").start().await;
    let told = supervisor.wait_state_service("a refusal", |now| now.problem.contains("everysec")).await;
    assert!(told.problem.contains("durability: relaxed"), "{told:?}");
    let refused = state(&supervisor, &[("op", "set"), ("key", "a"), ("value", "b")]).await;
    assert!(refused.is_err(), "{refused:?}");
    let stopped = supervisor.stop().await;
    let relaxed =
        with_valkey(Builder::on_leftovers(stopped.left), &dir, ", durability: relaxed").start().await;
    serves(&relaxed).await;
    assert_eq!(state(&relaxed, &[("op", "get"), ("key", "a")]).await, Ok("(nothing)".into()));
    assert_eq!(state(&relaxed, &[("op", "set"), ("key", "a"), ("value", "b")]).await, Ok("set".into()));
    ends_clean(relaxed).await;
}

// Promises: EXT-105
#[tokio::test]
async fn a_configuration_whose_backend_would_keep_its_own_state_is_refused() {
    let scratch = Scratch::new();
    for (plugins, backend, says) in [
        ("{ valkey: { command: /bin/true } }", "valkye.store", "did you mean valkey?"),
        ("{ valkey: { command: /bin/true } }", "store", "is no action"),
        ("{ valkey: { command: /bin/true, state_quota: { keys: 5 } } }", "valkey.store", "state_quota"),
    ] {
        let config = format!(
            "state: {{ plugins: {{ engine: plugin, action: {backend} }} }}\nplugins: {{ tools: {{ plugins: {plugins} }} }}\n"
        );
        let config = scratch.write("talon.yaml", &config).display().to_string();
        let output = cli(&["config", "check", "--skip-plugins", "--config", &config]).await;
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!output.status.success() && said.contains(says), "{says}: {said}");
    }
}

// Promises: EXT-109
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_backend_conforms() {
    let scratch = Scratch::new();
    let Some(server) = Server::start("the_backend_conforms", &scratch, &[]) else { return };
    let command = program("valkey");
    let lines = format!(
        "plugins: {{ tools: {{ plugins: {{ valkey: {{ command: {command:?}, config: {{ socket: {:?} }}, sandbox: {{ fs: {{ write: \
         [{:?}] }} }} }} }} }} }}\n",
        server.dir.join("socket"),
        server.dir.display().to_string(),
    );
    let file = scratch.write("talon.yaml", &lines).display().to_string();
    let words = ["conformance", "--plugin", "valkey", "--config", &file, "--allow-calls", "--report", "json"];
    let output = cli(&words).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let checks = report["checks"].as_array().expect("there are checks");
    let wrong: Vec<&Value> =
        checks.iter().filter(|check| check["outcome"] == "fail" || check["outcome"] == "warn").collect();
    assert!(wrong.is_empty() && output.status.success(), "{wrong:#?}");
    let passed = |check: &&Value| {
        check["outcome"] == "pass" && check["id"].as_str().is_some_and(|id| id.contains("storage"))
    };
    assert_eq!(checks.iter().filter(passed).count(), 5, "{checks:#?}");
}

/// Calls the action as a person may; gives its structured answer.
async fn store(supervisor: &Supervisor, arguments: Value) -> Value {
    let request = ExecuteRequest {
        plugin: "valkey".to_owned(),
        action: "store".to_owned(),
        arguments_json: arguments.to_string(),
        ..ExecuteRequest::default()
    };
    let answer = supervisor.client.execute(request).await.expect("a good request");
    serde_json::from_str(&answer.structured_content).unwrap_or_else(|_| panic!("{answer:?}"))
}

// Promises: EXT-110
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_in_a_storage_backend_is_restored_whole_or_not_at_all() {
    let builder = Builder::new();
    let test = "a_backup_in_a_storage_backend_is_restored_whole_or_not_at_all";
    let Some(server) = Server::start(test, builder.scratch(), &[]) else { return };
    let entry = format!(
        "config: {{ socket: {:?} }}\nsandbox: {{ fs: {{ write: [{:?}] }} }}",
        server.dir.join("socket"),
        server.dir.display().to_string()
    );
    let builder = builder.plugin("valkey", &program("valkey"), &[], &entry).misbehave(&[], "");
    let supervisor = builder.start().await;
    let config = supervisor.config().display().to_string();
    let run = async |words: &[&str]| {
        let output = supervisor.cli(&[words, &["--config", &config]].concat()).await;
        let said = [output.stdout.as_slice(), &output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let sealed = |text: &str| {
        // Whatever makes an envelope does: the plugin checks it.
        serde_json::to_value(talon_sdk::StorageBytes::seal(text.as_bytes())).expect("JSON")
    };
    let set = async |value: &str| state(&supervisor, &[("op", "set"), ("key", "a"), ("value", value)]).await;
    assert_eq!(set("precious").await, Ok("set".into()));
    let (done, said) = run(&["backup", "--to", "valkey.store", "monday", "--only", "plugins"]).await;
    assert!(done, "{said}");
    let (_, said) = run(&["backup", "--to", "valkey.store", "--list"]).await;
    assert!(said.contains("monday"), "{said}");
    let (done, said) = run(&["backup", "--to", "valkey.store", "monday", "--only", "plugins"]).await;
    assert!(!done && said.contains("--overwrite"), "{said}");
    assert_eq!(set("spoiled").await, Ok("set".into()));
    let (done, said) = run(&["restore", "--from", "valkey.store", "monday", "--only", "plugins"]).await;
    assert!(done, "{said}");
    assert_eq!(state(&supervisor, &[("op", "get"), ("key", "a")]).await, Ok("precious".into()));
    // One that fails leaves the one that is there, and nothing of itself.
    let scan = json!({"op": "scan", "prefix": sealed("backup/monday/"), "limit": 500});
    let before = store(&supervisor, scan.clone()).await;
    assert_eq!(set("of another day").await, Ok("set".into()));
    let overwrite = ["backup", "--to", "valkey.store", "monday", "--overwrite", "--only", "plugins"];
    server.limit_memory(1);
    let (done, said) = run(&overwrite).await;
    assert!(!done, "{said}");
    server.limit_memory(0);
    assert_eq!(store(&supervisor, scan.clone()).await, before);
    let (done, said) = run(&["restore", "--from", "valkey.store", "monday", "--only", "plugins"]).await;
    assert!(done, "{said}");
    assert_eq!(state(&supervisor, &[("op", "get"), ("key", "a")]).await, Ok("precious".into()));
    // One that succeeds replaces it, and what an interrupted one left.
    let left = json!({"op": "set", "key": sealed("backup/monday/piece/00/0000000000"), "value": sealed("x")});
    assert_eq!(store(&supervisor, left).await["outcome"], "stored");
    assert_eq!(set("newer").await, Ok("set".into()));
    let (done, said) = run(&overwrite).await;
    assert!(done && !said.contains("earlier"), "{said}");
    assert_eq!(set("spoiled").await, Ok("set".into()));
    let (done, said) = run(&["restore", "--from", "valkey.store", "monday", "--only", "plugins"]).await;
    assert!(done, "{said}");
    assert_eq!(state(&supervisor, &[("op", "get"), ("key", "a")]).await, Ok("newer".into()));
    let after = store(&supervisor, scan).await;
    let keys = |page: &Value| -> Vec<String> {
        assert_eq!(page["outcome"], "page", "{page}");
        // An empty page has no items.
        let items = page["items"].as_array().into_iter().flatten();
        items.map(|item| item["key"]["data"].to_string()).collect()
    };
    let same: Vec<String> = keys(&before).into_iter().filter(|key| keys(&after).contains(key)).collect();
    assert_eq!(same.len(), 1, "only the manifest's key stays: {same:?}");
    let interrupted = json!({"op": "scan", "prefix": sealed("backup/monday/piece/00/"), "limit": 9});
    assert_eq!(keys(&store(&supervisor, interrupted).await), Vec::<String>::new());
    // A name that is none is refused, and a manifest that is none is shown as such.
    let (done, said) = run(&["backup", "--to", "valkey.store", "a/b", "--only", "plugins"]).await;
    assert!(!done && said.contains("letters, digits"), "{said}");
    let none = json!({"op": "set", "key": sealed("backup/sunday/manifest"), "value": sealed("{}")});
    assert_eq!(store(&supervisor, none).await["outcome"], "stored");
    let (done, said) = run(&["backup", "--to", "valkey.store", "--list"]).await;
    assert!(done && said.contains("sunday: the manifest of the backup cannot be read"), "{said}");
    // One whose second piece is gone is not restored.
    let page =
        store(&supervisor, json!({"op": "scan", "prefix": sealed("backup/monday/piece/"), "limit": 9})).await;
    let second = &page["items"][1];
    let gone = json!({"op": "delete", "key": second["key"], "expected": second["revision"]});
    assert_eq!(store(&supervisor, gone).await["outcome"], "deleted", "{page}");
    assert_eq!(set("kept").await, Ok("set".into()));
    let (done, said) = run(&["restore", "--from", "valkey.store", "monday", "--only", "plugins"]).await;
    assert!(!done && said.contains("piece of the backup is missing"), "{said}");
    assert_eq!(state(&supervisor, &[("op", "get"), ("key", "a")]).await, Ok("kept".into()));
    // One without a manifest, as an interrupted one is, is none.
    let found = store(&supervisor, json!({"op": "get", "key": sealed("backup/monday/manifest")})).await;
    let gone =
        json!({"op": "delete", "key": sealed("backup/monday/manifest"), "expected": found["revision"]});
    assert_eq!(store(&supervisor, gone).await["outcome"], "deleted");
    let (done, said) = run(&["restore", "--from", "valkey.store", "monday"]).await;
    assert!(!done && said.contains("no complete backup"), "{said}");
    ends_clean(supervisor).await;
}
