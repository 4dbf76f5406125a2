//! What goes wrong with kept state, one test a fault: what is said about it, that nothing is lost by it, and
//! that it passes where it can.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talon_tests::state::{database, left_database};
use talon_tests::{Builder, Leftovers, Postgres, Supervisor, http, is_root, program, skip};

const CONFIG: i32 = 6;
const BUSY: i32 = 8;
const FAILED: i32 = 70;

/// A value of many pages; an answer that has it all is not cut yet.
const LARGE: usize = 50 << 10;
/// Rows of the database that the damage is done to: many pages of it.
const ROWS: usize = 60;

async fn ask(supervisor: &Supervisor, pairs: &[(&str, &str)]) -> Result<String, String> {
    let answer = supervisor.client.call("misbehave", "state", pairs).await;
    if answer.error.is_empty() { Ok(answer.content) } else { Err(answer.error) }
}

async fn set(supervisor: &Supervisor, key: &str, value: &str) -> Result<String, String> {
    ask(supervisor, &[("op", "set"), ("key", key), ("value", value)]).await
}

async fn set_bytes(supervisor: &Supervisor, key: &str, bytes: usize) -> Result<String, String> {
    ask(supervisor, &[("op", "set"), ("key", key), ("bytes", &bytes.to_string())]).await
}

async fn get(supervisor: &Supervisor, key: &str) -> Result<String, String> {
    ask(supervisor, &[("op", "get"), ("key", key)]).await
}

fn ok(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// The start is refused with this exit code, and all these words.
async fn refused(builder: &Builder, code: i32, words: &[&str]) {
    let output = builder.start_refused().await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{}: {said}", output.status);
    // The last line is for people; what comes before is the log.
    let last = said.trim_end().lines().last().unwrap_or_default().to_owned();
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {last}");
    }
    assert!(last.len() < 4096, "{} bytes", last.len());
}

async fn stopped(supervisor: Supervisor) -> Leftovers {
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
    assert_eq!(stopped.processes, Vec::<u32>::new());
    stopped.left
}

fn misbehaving() -> Builder {
    Builder::new().misbehave(&[], "")
}

fn again(left: Leftovers) -> Builder {
    Builder::on_leftovers(left).misbehave(&[], "")
}

#[tokio::test]
async fn an_unknown_engine_is_answered_with_the_nearest() {
    refused(&misbehaving().state("engine: postgre"), CONFIG, &["state.engine", "did you mean \"postgres\"?"])
        .await;
    refused(&misbehaving().state("engine: mongodb"), CONFIG, &["state.engine", "sqlite", "off"]).await;
}

#[tokio::test]
async fn postgres_needs_an_address() {
    refused(&misbehaving().state("engine: postgres"), CONFIG, &["state.url", "postgresql://"]).await;
    let wrong = misbehaving().state("engine: postgres\nurl: mysql://host/database");
    refused(&wrong, CONFIG, &["state.url", "postgresql://"]).await;
}

// Promises: STATE-17
#[tokio::test]
async fn a_server_that_is_not_there_is_waited_for() {
    let test = "a_server_that_is_not_there_is_waited_for";
    let mut server = match Postgres::prepare() {
        Ok(server) => server,
        Err(reason) => return skip(test, reason),
    };
    let config = format!("engine: postgres\nurl: {}", server.url());
    let supervisor = misbehaving().state(&config).start().await;
    let service = supervisor.state_service().await;
    assert_eq!((service.state.as_str(), service.engine.as_str()), ("unavailable", "postgres"), "{service:?}");
    assert!(service.problem.contains("cannot be reached"), "{service:?}");
    let told = supervisor.cli(&["status"]).await;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("unavailable") && told.contains("cannot be reached"), "{told}");
    // An answer, and not the end of anybody's patience, which would have another name.
    for asked in [get(&supervisor, "k").await, set(&supervisor, "k", "v").await] {
        assert!(asked.as_ref().is_err_and(|error| error.starts_with("Unavailable")), "{asked:?}");
    }
    server.run();
    let serves = |now: &talon_proto::host::StateStatus| now.state == "serving";
    supervisor.wait_state_service("a server that answers", serves).await;
    assert_eq!(set(&supervisor, "k", "v").await, ok("set"), "{}", server.log());
    // And once more, with what was written.
    server.stop();
    supervisor
        .client
        .wait_until("an error", async |_| {
            get(&supervisor, "k").await.is_err_and(|error| error.starts_with("Unavailable"))
        })
        .await;
    supervisor.wait_state_service("a server that does not", |now| now.state == "unavailable").await;
    server.run();
    let after = supervisor.wait_state_service("a server that answers again", serves).await;
    assert_eq!(get(&supervisor, "k").await, ok("v"));
    assert_eq!((after.pid, after.restarts), (service.pid, 0), "without a restart");
    // Its password, if there were one, is nowhere to be seen.
    assert!(!after.place.contains("postgresql://talon@"), "{after:?}");
    stopped(supervisor).await;
}

/// What a database has to be for its start to be refused, and what is said then. Nothing of it is changed;
/// and once it is as it was, all is there.
async fn refused_when(change: impl FnOnce(&Path, Vec<u8>), words: &[&str]) {
    let supervisor = misbehaving().start().await;
    for row in 0..ROWS {
        assert_eq!(set_bytes(&supervisor, &format!("row {row}"), 3000).await, ok("set"));
    }
    assert_eq!(set(&supervisor, "k", "v").await, ok("set"));
    let left = stopped(supervisor).await;
    let path = left_database(&left);
    let whole = std::fs::read(&path).expect("it is there");
    change(&path, whole.clone());
    let before = std::fs::read(&path).expect("it is there");
    let builder = again(left);
    let place = path.display().to_string();
    let words: Vec<&str> = words.iter().copied().chain([place.as_str()]).collect();
    refused(&builder, FAILED, &words).await;
    assert!(std::fs::read(&path).expect("it is there") == before, "the file was changed");
    // Who only looks at a database makes its log; there is nothing in it.
    let log = std::fs::read(path.with_extension("db-wal")).unwrap_or_default();
    assert!(log.is_empty(), "{} bytes", log.len());
    // In place, so that it stays its owner's.
    std::fs::write(&path, &whole).expect("it is ours");
    let supervisor = builder.start().await;
    assert_eq!(get(&supervisor, "k").await, ok("v"));
    assert_eq!(get(&supervisor, "row 7").await.map(|value| value.len()), Ok(3000));
    stopped(supervisor).await;
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    std::fs::write(path, bytes).expect("it is ours");
}

// Promises: STATE-13
#[tokio::test]
async fn garbage_in_the_database_is_refused_and_kept() {
    let change = |path: &Path, mut bytes: Vec<u8>| {
        let middle = bytes.len() / 2 / 4096 * 4096;
        bytes[middle..middle + 4096].fill(0xa5);
        write(path, bytes);
    };
    refused_when(change, &["is damaged", "talon restore"]).await;
}

// Promises: STATE-13
#[tokio::test]
async fn a_database_that_is_cut_off_is_refused_and_kept() {
    let change = |path: &Path, bytes: Vec<u8>| write(path, &bytes[..bytes.len() / 2]);
    refused_when(change, &["is damaged", "talon restore"]).await;
}

// Promises: STATE-13
#[tokio::test]
async fn an_empty_database_is_refused_and_kept() {
    refused_when(|path, _| write(path, []), &["is damaged", "talon restore"]).await;
}

// Promises: STATE-13
#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_kept() {
    refused_when(
        |path, _| write(path, "something else entirely, and more than a header of it\n".repeat(40)),
        &["is damaged", "talon restore"],
    )
    .await;
}

// Promises: STATE-13
#[tokio::test]
async fn a_newer_database_is_refused_and_kept() {
    /// Where SQLite has the number that is its user's: big-endian, in the header.
    const USER_VERSION: usize = 60;
    let change = |path: &Path, mut bytes: Vec<u8>| {
        bytes[USER_VERSION..USER_VERSION + 4].copy_from_slice(&9999_u32.to_be_bytes());
        write(path, bytes);
    };
    refused_when(change, &["schema version 9999", "newer Talon"]).await;
}

// Promises: STATE-15
#[tokio::test]
async fn another_supervisor_on_the_same_data_is_refused_by_name() {
    let supervisor = misbehaving().start().await;
    assert_eq!(set(&supervisor, "k", "v").await, ok("set"));
    let path = database(&supervisor.scratch).display().to_string();
    refused(&Builder::sibling_of(&supervisor), BUSY, &[&path, "in use"]).await;
    assert_eq!(get(&supervisor, "k").await, ok("v"), "the first one did not notice");
    let service = supervisor.state_service().await;
    assert_eq!((service.state.as_str(), service.restarts), ("serving", 0), "{service:?}");
    stopped(supervisor).await;
}

// Promises: STATE-16
#[tokio::test]
async fn a_directory_that_others_may_use_is_refused_with_what_to_run() {
    let supervisor = misbehaving().start().await;
    assert_eq!(set(&supervisor, "k", "v").await, ok("set"));
    let left = stopped(supervisor).await;
    let data = left.scratch().join("data");
    let state = data.join("state");
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o7777;
    let open = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    let right = mode(&data);
    let builder = again(left);
    for (path, right, wrong) in
        [(&data, right, 0o750), (&data, right, 0o777), (&state, 0o700, 0o750), (&state, 0o700, 0o707)]
    {
        open(path, wrong);
        let command = format!("chmod {right:o} {}", path.display());
        refused(&builder, CONFIG, &[&command]).await;
        assert_eq!(mode(path), wrong, "it is for the operator to change");
        open(path, right);
    }
    let supervisor = builder.start().await;
    assert_eq!(get(&supervisor, "k").await, ok("v"));
    stopped(supervisor).await;
}

// Promises: STATE-16
#[tokio::test]
async fn a_directory_that_is_another_users_is_refused_with_what_to_run() {
    let test = "a_directory_that_is_another_users_is_refused_with_what_to_run";
    if !is_root() {
        return skip(test, "only root may give a directory away");
    }
    const OTHER: u32 = 64_901;
    let supervisor = misbehaving().start().await;
    assert_eq!(set(&supervisor, "k", "v").await, ok("set"));
    let left = stopped(supervisor).await;
    let state = left.scratch().join("data/state");
    let owner = std::fs::metadata(&state).expect("it is there").uid();
    chown(&state, Some(OTHER), None).expect("root may");
    let builder = again(left);
    let command = format!("chown -R {owner}:{owner} {}", state.display());
    refused(&builder, CONFIG, &[&format!("uid {OTHER}"), &command]).await;
    assert_eq!(std::fs::metadata(&state).expect("it is there").uid(), OTHER);
    chown(&state, Some(owner), None).expect("root may");
    let supervisor = builder.start().await;
    assert_eq!(get(&supervisor, "k").await, ok("v"));
    stopped(supervisor).await;
}

// Promises: STATE-12
#[tokio::test]
async fn a_plugin_that_is_removed_keeps_its_state() {
    let supervisor = misbehaving().start().await;
    assert_eq!(set(&supervisor, "k", "v").await, ok("set"));
    let left = stopped(supervisor).await;
    let hello = program("hello");
    let supervisor = Builder::on_leftovers(left).plugin("hello", &hello, &[], "").start().await;
    let told = supervisor.cli(&["state", "get", "misbehave", "k"]).await;
    assert_eq!(String::from_utf8_lossy(&told.stdout).trim_end(), "v", "{told:?}");
    let left = stopped(supervisor).await;
    let supervisor = again(left).start().await;
    assert_eq!(get(&supervisor, "k").await, ok("v"));
    let purged = supervisor.cli(&["state", "purge", "misbehave", "--yes"]).await;
    assert!(purged.status.success(), "{purged:?}");
    assert_eq!(get(&supervisor, "k").await, ok("(nothing)"));
    stopped(supervisor).await;
}

// Promises: STATE-9
#[tokio::test]
async fn a_quota_says_what_is_used_and_what_there_may_be() {
    let supervisor = misbehaving().state("quota: { bytes: 10KiB, keys: 3 }").start().await;
    assert_eq!(set_bytes(&supervisor, "a", 9000).await, ok("set"));
    let full = set_bytes(&supervisor, "b", 2000).await.expect_err("there is no room for it");
    assert!(full.starts_with("ResourceExhausted"), "{full}");
    assert!(full.ends_with("bytes: 9001 of 10240, wanted 11002"), "{full}");
    // What there is stays as it was, and may become smaller.
    assert_eq!(get(&supervisor, "b").await, ok("(nothing)"));
    assert_eq!(set_bytes(&supervisor, "a", 100).await, ok("set"));
    assert_eq!(set_bytes(&supervisor, "b", 2000).await, ok("set"));
    assert_eq!(set(&supervisor, "c", "").await, ok("set"));
    let full = set(&supervisor, "d", "").await.expect_err("three keys there may be");
    assert!(full.starts_with("ResourceExhausted") && full.ends_with("keys: 3 of 3, wanted 4"), "{full}");
    assert_eq!(set(&supervisor, "c", "again").await, ok("set"));
    stopped(supervisor).await;
    // One plugin may have another one than the rest.
    let supervisor = Builder::new()
        .state("quota: { bytes: 10KiB, keys: 3 }")
        .misbehave(&[], "state_quota: { bytes: 20KiB }")
        .start()
        .await;
    assert_eq!(set_bytes(&supervisor, "a", 15_000).await, ok("set"));
    let full = set_bytes(&supervisor, "b", 15_000).await.expect_err("there is no room for it");
    assert!(full.contains("of 20480"), "{full}");
    stopped(supervisor).await;
}

// Promises: STATE-10
#[tokio::test]
async fn values_and_keys_that_are_too_large_are_refused_and_the_socket_goes_on() {
    let supervisor = misbehaving().start().await;
    assert_eq!(set_bytes(&supervisor, "k", 1 << 20).await, ok("set"), "a mebibyte is what there may be");
    let long = "k".repeat(513);
    for (key, bytes) in [("k", (1 << 20) + 1), ("k", 64 << 20), (long.as_str(), 1), ("", 1)] {
        let answer = set_bytes(&supervisor, key, bytes).await;
        assert!(
            answer.as_ref().is_err_and(|error| error.starts_with("InvalidArgument")),
            "a key of {} bytes with {bytes}: {answer:?}",
            key.len()
        );
    }
    assert_eq!(set(&supervisor, &long[..512], "v").await, ok("set"));
    stopped(supervisor).await;
}

#[tokio::test]
async fn a_database_may_be_bounded() {
    let supervisor = misbehaving().state("max_bytes: 1MiB").start().await;
    assert_eq!(set(&supervisor, "k", "v").await, ok("set"));
    let mut full = None;
    for number in 0..40 {
        if let Err(error) = set_bytes(&supervisor, &format!("large {number}"), 64 << 10).await {
            full = Some((number, error));
            break;
        }
    }
    let (number, error) = full.expect("forty times 64 KiB are more than a mebibyte");
    assert!(error.starts_with("ResourceExhausted: there is no room"), "{error}");
    // Not the plugin's fault, so not its quota's details.
    assert!(!error.contains("wanted"), "{error}");
    assert!(number > 2, "{number}");
    assert_eq!(get(&supervisor, "k").await, ok("v"));
    assert_eq!(ask(&supervisor, &[("op", "delete"), ("key", "large 0")]).await, ok("existed: true"));
    assert_eq!(set_bytes(&supervisor, "large again", 32 << 10).await, ok("set"));
    stopped(supervisor).await;
}

/// A supervisor whose data is on a file system of 6 MiB.
struct SmallDisk {
    supervisor: Supervisor,
    ballast: PathBuf,
}

impl SmallDisk {
    async fn start() -> Self {
        const MOUNT: &str = "mount -t tmpfs -o size=6m,mode=711 tmpfs \"$0\" && exec \"$@\"";
        let builder = misbehaving();
        let data = builder.scratch().join("data");
        std::fs::create_dir(&data).expect("the scratch directory takes directories");
        let place = data.to_str().expect("our paths are text").to_owned();
        // In a mount namespace of the supervisor's own, so that nothing of it stays.
        let words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNT, &place];
        let supervisor = builder.wrapped(&words).start().await;
        let inside = PathBuf::from(format!("/proc/{}/root", supervisor.pid()));
        let ballast = inside.join(data.strip_prefix("/").expect("it is absolute")).join("ballast");
        Self { supervisor, ballast }
    }

    /// Takes all that is left.
    fn fill(&self) {
        use std::io::Write as _;

        let mut file =
            std::fs::File::options().create(true).append(true).open(&self.ballast).expect("it is ours");
        let full = loop {
            if let Err(error) = file.write_all(&[0; 4096]) {
                break error;
            }
        };
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    }

    fn make_room(&self) {
        std::fs::remove_file(&self.ballast).expect("it is ours");
    }
}

// Promises: STATE-19
#[tokio::test]
async fn a_full_disk_refuses_writes_until_there_is_room() {
    let test = "a_full_disk_refuses_writes_until_there_is_room";
    if !is_root() {
        return skip(test, "only root may mount a small file system");
    }
    let disk = SmallDisk::start().await;
    let supervisor = &disk.supervisor;
    assert_eq!(set(supervisor, "k", "v").await, ok("set"));
    for round in 0..3 {
        let key = format!("large {round}");
        disk.fill();
        // What the log has room for still fits.
        let mut answer = ok("set");
        for _ in 0..100 {
            answer = set_bytes(supervisor, &key, LARGE).await;
            if answer.is_err() {
                break;
            }
            disk.fill();
        }
        let full = answer.expect_err("the disk is full");
        assert!(full.starts_with("ResourceExhausted: there is no room"), "{full}");
        assert_eq!(get(supervisor, "k").await, ok("v"));
        disk.make_room();
        assert_eq!(set_bytes(supervisor, &key, LARGE).await, ok("set"), "there is room again");
        assert_eq!(set(supervisor, &format!("small {round}"), "v").await, ok("set"));
    }
    // It looks for room every other second.
    let serves = |now: &talon_proto::host::StateStatus| now.state == "serving";
    supervisor.wait_state_service("a service that takes writes", serves).await;
    // Nothing is damaged: a new process opens it, which looks at that.
    let service = supervisor.state_service().await;
    assert_eq!((service.state.as_str(), service.restarts), ("serving", 0), "{service:?}");
    kill(Pid::from_raw(service.pid.cast_signed()), Signal::SIGKILL).expect("it runs");
    let back = |now: &talon_proto::host::StateStatus| now.state == "serving" && now.restarts == 1;
    supervisor.wait_state_service("a service that serves again", back).await;
    assert_eq!(
        ask(supervisor, &[("op", "keys")]).await,
        ok("k large 0 large 1 large 2 small 0 small 1 small 2")
    );
    assert_eq!(get(supervisor, "large 1").await.map(|value| value.len()), Ok(LARGE));
    stopped(disk.supervisor).await;
}

// Promises: STATE-35
#[tokio::test]
async fn a_full_disk_is_said_where_an_operator_looks_and_no_longer_once_there_is_room() {
    let test = "a_full_disk_is_said_where_an_operator_looks_and_no_longer_once_there_is_room";
    if !is_root() {
        return skip(test, "only root may mount a small file system");
    }
    let disk = SmallDisk::start().await;
    let supervisor = &disk.supervisor;
    assert_eq!(set(supervisor, "k", "v").await, ok("set"));
    let gauge = async || {
        let page = http::get(&supervisor.admin(), "/metrics").await.body;
        page.lines().find(|line| line.starts_with("talon_state_service_full ")).map(str::to_owned)
    };
    let readyz = async || http::get(&supervisor.admin(), "/readyz").await;
    let ready = readyz().await;
    assert!(ready.status == 200 && !ready.body.contains("state_service"), "{ready:?}");
    assert_eq!(gauge().await.as_deref(), Some("talon_state_service_full 0"));
    disk.fill();
    while set_bytes(supervisor, "large", LARGE).await.is_ok() {
        disk.fill();
    }
    let full = |now: &talon_proto::host::StateStatus| now.state == "full";
    let service = supervisor.wait_state_service("a service that refuses writes", full).await;
    assert!(service.problem.contains("free some space"), "{service:?}");
    let told = supervisor.cli(&["status"]).await;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("writes are refused") && told.contains("state.max_bytes"), "{told}");
    let ready = readyz().await;
    assert!(ready.status == 200 && ready.body.contains("\"state_service\":{\"state\":\"full\""), "{ready:?}");
    assert_eq!(gauge().await.as_deref(), Some("talon_state_service_full 1"));
    let up = http::get(&supervisor.admin(), "/metrics").await.body;
    assert!(up.contains("\ntalon_state_service_up 1\n"), "it still answers reads: {up}");
    assert_eq!(get(supervisor, "k").await, ok("v"));
    // No plugin has to write for the status to change.
    disk.make_room();
    let serves = |now: &talon_proto::host::StateStatus| now.state == "serving" && now.problem.is_empty();
    let after = supervisor.wait_state_service("a service that takes writes", serves).await;
    assert_eq!((after.pid, after.restarts), (service.pid, 0), "without a restart");
    assert_eq!(gauge().await.as_deref(), Some("talon_state_service_full 0"));
    assert_eq!(set_bytes(supervisor, "large", LARGE).await, ok("set"));
    stopped(disk.supervisor).await;
}

// Promises: STATE-28
#[tokio::test]
async fn a_service_that_hangs_is_replaced_and_nothing_is_lost() {
    let checks = "health_check_interval: 200ms\nhealth_check_timeout: 100ms\nhealth_failure_threshold: 2";
    let supervisor = misbehaving().tools(checks).start().await;
    set(&supervisor, "kept", "before").await.unwrap();
    let service = supervisor.state_service().await;
    kill(Pid::from_raw(service.pid.cast_signed()), Signal::SIGSTOP).expect("it runs");
    // A client that asks meanwhile waits in the queue of its socket, or learns that the connection broke.
    let replaced = |now: &talon_proto::host::StateStatus| now.state == "serving" && now.pid != service.pid;
    let now = supervisor.wait_state_service("another process that serves", replaced).await;
    assert!(now.restarts > service.restarts, "{now:?}");
    assert_eq!(get(&supervisor, "kept").await, ok("before"));
    assert!(supervisor.stop().await.log.contains("the state service does not answer"));
}

// Promises: STATE-36
#[tokio::test]
async fn a_service_that_is_stopped_is_said_and_replaced_without_settings() {
    let supervisor = misbehaving().start().await;
    set(&supervisor, "kept", "before").await.unwrap();
    let service = supervisor.state_service().await;
    kill(Pid::from_raw(service.pid.cast_signed()), Signal::SIGSTOP).expect("it runs");
    let silent = |now: &talon_proto::host::StateStatus| now.state == "unresponsive";
    let now = supervisor.wait_state_service("a service that is said not to answer", silent).await;
    assert!(now.pid == service.pid && now.problem.contains("has not answered"), "{now:?}");
    let told = supervisor.cli(&["status"]).await;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("unresponsive"), "{told}");
    let replaced = |now: &talon_proto::host::StateStatus| now.state == "serving" && now.pid != service.pid;
    supervisor.wait_state_service("another process that serves", replaced).await;
    assert_eq!(get(&supervisor, "kept").await, ok("before"));
    stopped(supervisor).await;
}

// Promises: STATE-36
#[tokio::test]
async fn a_service_that_was_stopped_for_a_moment_goes_on() {
    let supervisor = misbehaving().start().await;
    let service = supervisor.state_service().await;
    let pid = Pid::from_raw(service.pid.cast_signed());
    kill(pid, Signal::SIGSTOP).expect("it runs");
    let silent = |now: &talon_proto::host::StateStatus| now.state == "unresponsive";
    supervisor.wait_state_service("a service that is said not to answer", silent).await;
    kill(pid, Signal::SIGCONT).expect("it is there");
    let serves = |now: &talon_proto::host::StateStatus| now.state == "serving" && now.problem.is_empty();
    let after = supervisor.wait_state_service("a service that answers again", serves).await;
    assert_eq!((after.pid, after.restarts), (service.pid, 0), "without a restart");
    assert_eq!(set(&supervisor, "k", "v").await, ok("set"));
    stopped(supervisor).await;
}

// Promises: STATE-27
#[tokio::test]
async fn a_program_that_is_missing_is_named() {
    let missing = misbehaving().state("program: /nonexistent/talon-state");
    refused(&missing, CONFIG, &["state.program", "/nonexistent/talon-state"]).await;
    // Where none is configured and none lies beside: a copy of talon that is alone.
    let builder = misbehaving();
    let talon = builder.scratch().install(&program("talon"), "alone/talon");
    let run = format!("shift; exec {} \"$@\"", talon.display());
    let alone = builder.wrapped(&["sh", "-c", &run, "sh"]);
    refused(&alone, CONFIG, &["talon-state", "state.program", "state.engine: off"]).await;
}

// Promises: STATE-27
#[tokio::test]
async fn without_state_a_plugin_is_told_that_there_is_none() {
    let supervisor =
        misbehaving().plugin("notes", &program("notes"), &[], "").state("engine: off").start().await;
    assert_eq!(supervisor.state_service().await.state, "off");
    let env = supervisor.client.call("misbehave", "env", &[]).await;
    assert!(env.content.contains("HOME=") && !env.content.contains("TALON_STATE"), "{env:?}");
    assert_eq!(set(&supervisor, "k", "v").await, Err("TALON_STATE_SOCKET is not set".to_owned()));
    let answer = supervisor.client.call("notes", "list", &[]).await;
    assert!(answer.error.contains("need a host that keeps state"), "{answer:?}");
    assert!(!supervisor.scratch.join("data/state").exists(), "nothing is made for it");
    stopped(supervisor).await;
}
