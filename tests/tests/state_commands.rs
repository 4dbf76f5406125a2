//! `talon state`, `export`, `import`, `backup` and `restore` against real processes: with a supervisor, and
//! without one.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use talon_tests::{Builder, Postgres, Scratch, Supervisor, is_root, program, repository, skip, until};
use tokio::process::Command;

/// The command line with a configuration, which names the supervisor's socket and where state is.
struct Cli<'c>(&'c Path);

impl Cli<'_> {
    async fn run(&self, args: &[&str]) -> Output {
        self.fed(args, Stdio::null()).await
    }

    async fn fed(&self, args: &[&str], stdin: Stdio) -> Output {
        Command::new(program("talon"))
            .arg("--config")
            .arg(self.0)
            .args(args)
            .env_remove("TALON_HOST_SOCKET")
            .stdin(stdin)
            .kill_on_drop(true)
            .output()
            .await
            .expect("talon starts")
    }

    async fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args).await;
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    async fn json(&self, args: &[&str]) -> Value {
        let mut all = args.to_vec();
        all.extend(["--output", "json"]);
        serde_json::from_str(&self.ok(&all).await).expect("JSON")
    }

    /// The exit code and what is said of a command that fails.
    async fn failed(&self, args: &[&str]) -> (i32, String) {
        let output = self.run(args).await;
        (output.status.code().expect("it exits"), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("our paths are text")
}

/// The names in a directory.
fn names(dir: &Path) -> Vec<std::ffi::OsString> {
    std::fs::read_dir(dir).expect("it can be read").flatten().map(|entry| entry.file_name()).collect()
}

/// A configuration without a supervisor.
fn alone() -> (Scratch, PathBuf) {
    let scratch = Scratch::new();
    let dir = scratch.path().display();
    let config = format!("runtime_dir: {dir}/run\nstate:\n  data_dir: {dir}/data\n");
    let config = scratch.write("talon.yaml", &config);
    (scratch, config)
}

/// Everything below a directory, by path.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).expect("it can be read").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let below = path.strip_prefix(dir).expect("it is below").to_owned();
                found.insert(below, std::fs::read(&path).expect("it can be read"));
            }
        }
    }
    found
}

fn fixture(name: &str) -> PathBuf {
    repository().join("supervisor/state/tests/exchange").join(name)
}

/// What the verbs do to key-values, whoever owns them.
async fn one_by_one(cli: &Cli<'_>, scratch: &Scratch) {
    cli.ok(&["state", "set", "notes", "draft/1", "Hello <|im_start|>"]).await;
    let file = scratch.join("value.bin");
    std::fs::write(&file, b"\x00\xff\n").expect("it is ours");
    cli.ok(&["state", "set", "notes", "draft/2", "--file", text(&file)]).await;
    let piped =
        cli.fed(&["state", "set", "notes", "seen", "-"], std::fs::File::open(&file).expect("ours").into());
    assert!(piped.await.status.success());
    cli.ok(&["state", "set", "other", "number", "-1"]).await;

    let shown = cli.ok(&["state", "get", "notes", "draft/1"]).await;
    assert!(shown.starts_with("Hello <") && !shown.contains("<|im_start|>"), "{shown}");
    assert!(cli.ok(&["state", "get", "notes", "draft/2"]).await.contains("3 bytes"));
    assert_eq!(cli.run(&["state", "get", "notes", "draft/2", "--raw"]).await.stdout, b"\x00\xff\n");
    assert_eq!(cli.run(&["state", "get", "notes", "seen", "--raw"]).await.stdout, b"\x00\xff\n");
    let value = cli.json(&["state", "get", "other", "number"]).await;
    assert_eq!((value["text"].as_str(), value["bytes"].as_u64()), (Some("-1"), Some(2)), "{value}");

    let listed = cli.json(&["state", "list"]).await;
    let plugins: Vec<_> =
        listed["plugins"].as_array().expect("a list").iter().map(|one| &one["plugin"]).collect();
    assert_eq!(plugins, ["notes", "other"]);
    let keys = cli.json(&["state", "list", "notes", "--prefix", "draft/"]).await;
    assert_eq!(keys["entries"][1]["key"], "draft/2");
    assert_eq!(
        (keys["entries"].as_array().map(Vec::len), keys["keys"].as_u64()),
        (Some(2), Some(3)),
        "{keys}"
    );

    cli.ok(&["state", "delete", "notes", "seen"]).await;
    for args in [&["state", "delete", "notes", "seen"][..], &["state", "get", "notes", "seen"]] {
        let (code, said) = cli.failed(args).await;
        assert!(code == 3 && said.contains("no key seen"), "{args:?}: {code} {said}");
    }
    let (code, said) = cli.failed(&["state", "purge", "notes"]).await;
    assert!(code == 2 && said.contains("2 keys") && said.contains("--yes"), "{code} {said}");
    cli.ok(&["state", "purge", "notes", "--yes"]).await;
    assert_eq!(cli.failed(&["state", "purge", "notes", "--yes"]).await.0, 3);
    assert_eq!(cli.json(&["state", "list"]).await["plugins"].as_array().map(Vec::len), Some(1));
}

/// More keys than fit on a page.
async fn pages(cli: &Cli<'_>, scratch: &Scratch) {
    let mut yaml = String::new();
    for number in 0..1203 {
        yaml.push_str(&format!("key-{number:04}: \"{number}\"\n"));
    }
    scratch.write("many/plugins/many/state.yaml", &yaml);
    cli.ok(&["import", text(&scratch.join("many"))]).await;
    let listed = cli.json(&["state", "list", "many"]).await;
    let entries = listed["entries"].as_array().expect("a list");
    assert_eq!((entries.len(), &entries[1202]["key"]), (1203, &Value::from("key-1202")));
    cli.ok(&["state", "purge", "many", "--yes"]).await;
}

/// Out, away, in again: the same; in once more: nothing.
async fn there_and_back(cli: &Cli<'_>, scratch: &Scratch) {
    let (first, second) = (scratch.join("first"), scratch.join("second"));
    let taken = cli.json(&["import", text(&fixture("ours")), "--dry-run"]).await;
    assert_eq!(taken["dry_run"], true);
    assert!(taken["counts"]["imported"].as_u64() > Some(2), "{taken}");
    let said = cli.ok(&["import", text(&fixture("ours")), "--dry-run"]).await;
    let summary = said.rsplit("\n\n").next().unwrap_or_default();
    assert!(summary.lines().all(|line| line.starts_with("dry run: ")), "{said}");
    assert_eq!(cli.json(&["import", text(&fixture("ours"))]).await["counts"], taken["counts"], "as foretold");
    let again = cli.json(&["import", text(&fixture("ours"))]).await;
    assert_eq!(again["counts"]["imported"], 0, "{again}");

    cli.ok(&["export", text(&first)]).await;
    let names: Vec<PathBuf> = files(&first).into_keys().collect();
    assert!(names.iter().any(|name| name.starts_with("sessions")), "{names:?}");
    assert!(names.contains(&"memory/memories.yaml".into()), "{names:?}");
    assert!(names.contains(&"plugins/hello/state.yaml".into()), "{names:?}");
    let (code, said) = cli.failed(&["export", text(&first)]).await;
    assert!(code == 2 && said.contains("--overwrite"), "{code} {said}");

    cli.ok(&["state", "purge", "hello", "--yes"]).await;
    let imported = cli.json(&["import", text(&first)]).await;
    assert!(imported["counts"]["imported"].as_u64() > Some(0), "{imported}");
    assert!(imported["counts"]["unchanged"].as_u64() > Some(0), "sessions were still there: {imported}");
    cli.ok(&["export", text(&second)]).await;
    assert_eq!(files(&first), files(&second));
    cli.ok(&["export", text(&second), "--overwrite", "--only", "plugins"]).await;
    assert_eq!(files(&first), files(&second));
}

/// An invalid record is reported with its line, and the others are imported.
async fn refused_records(cli: &Cli<'_>, scratch: &Scratch) {
    scratch.write("bad/plugins/good/state.yaml", "a: b\n");
    scratch.write("bad/plugins/broken/state.yaml", "a: b\nc: [1, 2\n");
    scratch.write("bad/plugins/Upper/state.yaml", "a: b\n");
    scratch.write(&format!("bad/plugins/{}/state.yaml", "x".repeat(200)), "a: b\n");
    std::fs::create_dir(scratch.join("bad/memory")).expect("ours");
    symlink("/etc/passwd", scratch.join("bad/memory/memories.yaml")).expect("ours");
    let bad = scratch.join("bad");
    let output = cli.run(&["import", text(&bad), "--output", "json"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let refused = report["refused"].as_array().expect("a list");
    let of = |path: &str| refused.iter().find(|one| one["path"].as_str().is_some_and(|it| it.contains(path)));
    let broken = of("broken").unwrap_or_else(|| panic!("{report}"));
    assert!(broken["line"].as_u64() > Some(1) && broken["column"].as_u64() > Some(0), "{broken}");
    assert_eq!(report["truncated"], false, "{report}");
    let plugins = cli.run(&["import", text(&bad), "--only", "plugins", "--output", "json"]).await;
    let plugins: Value = serde_json::from_slice(&plugins.stdout).expect("JSON");
    let paths = plugins["refused"].as_array().expect("a list").iter().filter_map(|one| one["path"].as_str());
    assert!(paths.clone().count() > 0 && paths.clone().all(|path| !path.contains("memor")), "{plugins}");
    assert!(of("Upper").is_some() && of("xxx").is_some() && of("memories").is_some(), "{report}");
    assert_eq!(cli.ok(&["state", "get", "good", "a"]).await, "b\n");
    let said = String::from_utf8(cli.run(&["import", text(&bad)]).await.stdout).expect("text");
    assert!(said.contains("plugins/broken/state.yaml:"), "{said}");
    assert!(said.len() < 8000, "bounded: {}", said.len());
    cli.ok(&["state", "purge", "good", "--yes"]).await;
}

/// A backup, a change, and the old value back.
async fn backup_and_restore(cli: &Cli<'_>, scratch: &Scratch) {
    let file = scratch.join("backup.tar");
    cli.ok(&["state", "set", "notes", "k", "old"]).await;
    cli.ok(&["backup", text(&file)]).await;
    assert_eq!(std::fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    let (code, said) = cli.failed(&["backup", text(&file)]).await;
    assert!(code == 2 && said.contains("--overwrite"), "{code} {said}");
    cli.ok(&["state", "set", "notes", "k", "new"]).await;
    cli.ok(&["state", "set", "notes", "more", "new"]).await;

    let checked = cli.json(&["restore", text(&file), "--check"]).await;
    assert_eq!(checked["restored"], false, "{checked}");
    assert_eq!(cli.ok(&["state", "get", "notes", "k"]).await, "new\n", "a check changes nothing");

    let mut bytes = std::fs::read(&file).expect("it is there");
    bytes[5000] ^= 1;
    let damaged = scratch.join("damaged.tar");
    std::fs::write(&damaged, &bytes).expect("ours");
    let (code, said) = cli.failed(&["restore", text(&damaged)]).await;
    assert!(code == 3 && said.contains("digest"), "{code} {said}");
    std::fs::write(&damaged, &bytes[..9000]).expect("ours");
    assert_eq!(cli.failed(&["restore", text(&damaged)]).await.0, 3);
    assert_eq!(cli.ok(&["state", "get", "notes", "k"]).await, "new\n");

    let restored = cli.json(&["restore", text(&file)]).await;
    let kept = restored["parts"][0]["kept"].as_str().expect("a path");
    assert!(Path::new(kept).exists(), "{restored}");
    assert_eq!(cli.ok(&["state", "get", "notes", "k"]).await, "old\n");
    assert_eq!(cli.failed(&["state", "get", "notes", "more"]).await.0, 3);
    assert_eq!(cli.ok(&["state", "set", "notes", "k", "newer"]).await, "set k of notes: 5 bytes\n");
}

/// Invalid names and keys.
async fn hostile_names(cli: &Cli<'_>) {
    let long = "a".repeat(10_000);
    for plugin in ["../state", "Upper", "a/b", "-a", "", "\u{1b}[2J", &long] {
        let (code, said) = cli.failed(&["state", "get", "--", plugin, "k"]).await;
        assert!(code == 2 && said.len() < 600 && !said.contains('\u{1b}'), "{plugin:?}: {code} {said}");
    }
    for key in ["", &long] {
        let (code, said) = cli.failed(&["state", "set", "notes", key, "v"]).await;
        assert!(code == 2 && said.len() < 3000, "{code} {said}");
    }
}

async fn supervised() -> Supervisor {
    Builder::new().start().await
}

#[tokio::test]
async fn the_verbs_work_through_a_supervisor() {
    let supervisor = supervised().await;
    let cli = Cli(supervisor.config());
    one_by_one(&cli, &supervisor.scratch).await;
    pages(&cli, &supervisor.scratch).await;
    hostile_names(&cli).await;
}

#[tokio::test]
async fn the_verbs_work_without_a_supervisor() {
    let (scratch, config) = alone();
    let cli = Cli(&config);
    let (code, said) = cli.failed(&["state", "list"]).await;
    assert!(code == 3 && said.contains("data") && said.contains("--config"), "{code} {said}");
    assert!(!scratch.join("data").exists(), "looking makes nothing");
    one_by_one(&cli, &scratch).await;
    hostile_names(&cli).await;
}

// Promises: STATE-22
#[tokio::test]
async fn state_goes_out_and_in_through_a_supervisor() {
    let supervisor = supervised().await;
    let cli = Cli(supervisor.config());
    there_and_back(&cli, &supervisor.scratch).await;
    refused_records(&cli, &supervisor.scratch).await;
}

// Promises: STATE-22
#[tokio::test]
async fn state_goes_out_and_in_without_a_supervisor() {
    let (scratch, config) = alone();
    let cli = Cli(&config);
    there_and_back(&cli, &scratch).await;
    refused_records(&cli, &scratch).await;
}

// Promises: STATE-23
#[tokio::test]
async fn a_directory_of_another_program_is_taken_over() {
    let (_scratch, config) = alone();
    let cli = Cli(&config);
    let output = cli.run(&["import", text(&fixture("foreign")), "--output", "json"]).await;
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(report["counts"]["imported"].as_u64() > Some(0), "{report}");
    assert_eq!(output.status.code(), Some(i32::from(report["counts"]["refused"] != 0)), "{report}");
}

// Promises: STATE-20
#[tokio::test]
async fn a_backup_is_made_and_restored_while_the_supervisor_runs() {
    let supervisor = supervised().await;
    let cli = Cli(supervisor.config());
    cli.ok(&["import", text(&fixture("ours"))]).await;
    backup_and_restore(&cli, &supervisor.scratch).await;
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success() && stopped.processes.is_empty(), "{stopped:?}");
}

// Promises: STATE-20
#[tokio::test]
async fn a_backup_is_made_and_restored_without_a_supervisor() {
    let (scratch, config) = alone();
    backup_and_restore(&Cli(&config), &scratch).await;
}

#[tokio::test]
async fn a_database_that_a_supervisor_has_is_left_to_it() {
    let supervisor = supervised().await;
    Cli(supervisor.config()).ok(&["state", "set", "notes", "k", "v"]).await;
    // The same state, and a runtime directory without a listening service.
    let config = std::fs::read_to_string(supervisor.config()).expect("it is ours");
    let elsewhere =
        config.replace(text(supervisor.runtime_dir()), text(&supervisor.scratch.join("elsewhere")));
    let elsewhere = supervisor.scratch.write("elsewhere.yaml", &elsewhere);
    let (code, said) = Cli(&elsewhere).failed(&["state", "get", "notes", "k"]).await;
    assert!(code == 8 && said.contains("--socket"), "{code} {said}");
}

/// A tar header, with a size in the binary form that GNU tar uses beyond 8 GiB.
fn tar_header(name: &str, bytes: u64) -> [u8; 512] {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(b"0000600");
    header[124] = 0x80;
    header[128..136].copy_from_slice(&bytes.to_be_bytes());
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

// Promises: CLI-51
#[tokio::test]
async fn a_signal_ends_a_restore_that_still_reads() {
    /// Sparse; to read it takes much longer than any test waits.
    const BYTES: u64 = 4 << 40;
    /// As long as for any command.
    const WAIT: Duration = Duration::from_secs(60);
    let (scratch, config) = alone();
    let file = scratch.join("huge.tar");
    std::fs::write(&file, tar_header("plugins.db", BYTES)).expect("ours");
    std::fs::File::options()
        .write(true)
        .open(&file)
        .and_then(|file| file.set_len(BYTES))
        .expect("it is sparse");
    let child = Command::new(program("talon"))
        .arg("--config")
        .arg(&config)
        .args(["restore", text(&file)])
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("talon starts");
    let pid = child.id().expect("it runs");
    // It reads once the file's descriptor is beyond the header.
    let reads = || {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let ours =
            |entry: &std::fs::DirEntry| std::fs::read_link(entry.path()).is_ok_and(|path| path == file);
        let position = |entry: std::fs::DirEntry| {
            let info = entry.path().display().to_string().replace("/fd/", "/fdinfo/");
            let info = std::fs::read_to_string(info).ok()?;
            info.lines().next()?.strip_prefix("pos:")?.trim().parse::<u64>().ok()
        };
        open.into_iter().filter(ours).filter_map(position).any(|at| at > 1 << 20)
    };
    until("a restore that reads", reads).await;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.cast_signed()), nix::sys::signal::Signal::SIGTERM)
        .expect("it is ours");
    let ended = tokio::time::timeout(WAIT, child.wait_with_output()).await;
    let output = ended.expect("it ends long before it has read the file").expect("it is ours");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("interrupted"), "{output:?}");

    let pipe = scratch.join("pipe.tar");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe can be made");
    let (code, said) = Cli(&config).failed(&["restore", text(&pipe)]).await;
    assert!(code == 2 && said.contains("a FIFO"), "{code} {said}");
}

// Promises: STATE-14
#[tokio::test]
async fn a_damaged_database_is_refused_at_the_start_and_healed_by_a_restore() {
    let (scratch, config) = alone();
    let cli = Cli(&config);
    let backup = scratch.join("backup.tar");
    cli.ok(&["state", "set", "notes", "k", "v"]).await;
    cli.ok(&["backup", text(&backup)]).await;
    let database = scratch.join("data/state/state.db");
    let damaged = b"this was a database".repeat(1000);
    std::fs::write(&database, &damaged).expect("root or its owner writes it");
    for name in ["state.db-wal", "state.db-shm"] {
        let _gone = std::fs::remove_file(scratch.join("data/state").join(name));
    }

    let serve = cli.run(&["serve"]).await;
    let said = String::from_utf8_lossy(&serve.stderr).into_owned();
    assert!(!serve.status.success(), "{said}");
    assert!(said.contains("state.db") && said.contains("talon restore"), "{said}");
    let (code, said) = cli.failed(&["state", "list"]).await;
    assert!(code != 0 && said.contains("talon restore"), "{code} {said}");
    assert_eq!(std::fs::read(&database).expect("it is there"), damaged, "it is never overwritten");

    cli.ok(&["restore", text(&backup), "--check"]).await;
    assert_eq!(std::fs::read(&database).expect("it is there"), damaged, "a check changes nothing");
    let restored = cli.json(&["restore", text(&backup)]).await;
    let kept = restored["parts"][0]["kept"].as_str().expect("a path");
    assert_eq!(std::fs::read(kept).expect("it is there"), damaged);
    assert_eq!(cli.ok(&["state", "get", "notes", "k"]).await, "v\n");
}

// Promises: STATE-25
#[tokio::test]
async fn only_administrators_see_what_plugins_keep() {
    if !is_root() {
        skip("only_administrators_see_what_plugins_keep", "only root can be several peers");
        return;
    }
    let supervisor = Builder::new()
        .config("host:\n  peers:\n    - {uid: 54321, role: call, origin: model}\n    - {uid: 54322, role: operate, origin: program}\n    - {uid: 54323, role: admin, origin: program}")
        .start()
        .await;
    let scratch = Scratch::new();
    let talon = scratch.install(&program("talon"), "talon");
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours")
    };
    open(&supervisor.socket(), 0o666);
    open(supervisor.runtime_dir(), 0o755);
    for (uid, code) in [("54321", 7), ("54322", 7), ("54323", 0)] {
        for args in [&["state", "list"][..], &["state", "set", "notes", "k", "v"]] {
            let output = Command::new("setpriv")
                .args(["--reuid", uid, "--regid", uid, "--clear-groups"])
                .arg(&talon)
                .arg("--socket")
                .arg(supervisor.socket())
                .args(args)
                .env("HOME", "/nonexistent")
                .stdin(Stdio::null())
                .output()
                .await
                .expect("setpriv is installed");
            assert_eq!(output.status.code(), Some(code), "{uid} {args:?}: {output:?}");
        }
    }
}

#[tokio::test]
async fn a_supervisor_and_a_configuration_of_different_places_are_not_mixed() {
    let supervisor = supervised().await;
    let (_scratch, config) = alone();
    let socket = supervisor.socket();
    let cli = Cli(&config);
    let (code, said) = cli.failed(&["--socket", text(&socket), "export", "/nonexistent/x"]).await;
    assert!(code == 6 && said.contains("--only plugins"), "{code} {said}");
}

// Promises: STATE-29
#[tokio::test]
async fn a_dry_run_where_nothing_is_kept_makes_nothing() {
    let (scratch, config) = alone();
    let temporary = Scratch::new();
    let output = Command::new(program("talon"))
        .arg("--config")
        .arg(&config)
        .args(["import", text(&fixture("ours")), "--dry-run", "--output", "json"])
        .env("TMPDIR", temporary.path())
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("TALON_HOST_SOCKET")
        .output()
        .await
        .expect("talon starts");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(report["counts"]["imported"].as_u64() > Some(2), "{report}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("empty database"), "{output:?}");
    assert_eq!(names(scratch.path()), ["talon.yaml"], "neither a directory nor an identity");
    assert!(names(temporary.path()).is_empty(), "what it worked on is gone");
}

// Promises: STATE-29
#[tokio::test]
async fn what_can_be_imported_is_named_until_it_was() {
    let (scratch, config) = alone();
    let cli = Cli(&config);
    let home = scratch.join("home");
    scratch.write("home/.opentalon/plugins/notes/state.yaml", "a: b\n");
    let advised = || async {
        let output = Command::new(program("talon"))
            .arg("--config")
            .arg(&config)
            .arg("doctor")
            .env("HOME", &home)
            .output()
            .await
            .expect("talon starts");
        String::from_utf8_lossy(&output.stdout).contains("talon import")
    };
    assert!(advised().await);
    let from = home.join(".opentalon");
    cli.ok(&["state", "set", "other", "k", "v"]).await;
    cli.ok(&["import", text(&from), "--dry-run"]).await;
    assert!(advised().await, "a database and a dry run change nothing");
    cli.ok(&["import", text(&from)]).await;
    assert!(!advised().await);
    let marker = scratch.join("data/imported");
    assert_eq!(std::fs::metadata(&marker).expect("it is there").permissions().mode() & 0o777, 0o600);
    let marker: Value = serde_json::from_slice(&std::fs::read(&marker).expect("ours")).expect("JSON");
    assert_eq!(
        (marker["from"].as_str(), marker["imported"].as_u64()),
        (Some(text(&from)), Some(1)),
        "{marker}"
    );
}

#[tokio::test]
async fn a_file_that_is_too_large_stops_no_import() {
    let (scratch, config) = alone();
    let cli = Cli(&config);
    scratch.write("large/plugins/small/state.yaml", "a: b\n");
    let large = scratch.write("large/plugins/big/state.yaml", "");
    std::fs::File::options()
        .write(true)
        .open(&large)
        .and_then(|file| file.set_len((256 << 20) + 1))
        .expect("a file without blocks takes any length");
    let output = cli.run(&["import", text(&scratch.join("large"))]).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("plugins/big/state.yaml: it has 268435457 bytes"), "{said}");
    assert!(said.contains("1 record imported, 0 there already, 1 refused"), "{said}");
    assert_eq!(cli.ok(&["state", "get", "small", "a"]).await, "b\n");
}

#[tokio::test]
async fn where_no_state_is_kept_every_verb_says_so_with_the_same_code() {
    let supervisor = Builder::new().state("engine: off").start().await;
    let (scratch, alone) = alone();
    let off = std::fs::read_to_string(&alone).expect("ours") + "  engine: off\n";
    let off = scratch.write("off.yaml", &off);
    let file = scratch.join("x.tar");
    for config in [supervisor.config(), &off] {
        for args in [&["state", "list"][..], &["backup", text(&file)], &["state", "set", "a", "k", "v"]] {
            let (code, said) = Cli(config).failed(args).await;
            assert!(code == 6 && said.contains("state.engine: off"), "{args:?}: {code} {said}");
        }
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_no_mistake_of_the_command_line() {
    let (scratch, config) = alone();
    let cli = Cli(&config);
    let missing = scratch.join("missing");
    for args in [
        &["state", "set", "notes", "k", "--file", text(&missing)][..],
        &["restore", text(&missing)],
        &["import", text(&missing)],
    ] {
        let (code, said) = cli.failed(args).await;
        assert!(code == 70 && said.contains("missing"), "{args:?}: {code} {said}");
    }
}

#[tokio::test]
async fn a_dry_run_asks_no_server_that_keeps_nothing_yet_and_a_backup_is_left_to_pg_dump() {
    let test = "a_dry_run_asks_no_server_that_keeps_nothing_yet_and_a_backup_is_left_to_pg_dump";
    let mut server = match Postgres::prepare() {
        Ok(server) => server,
        Err(reason) => return skip(test, reason),
    };
    let scratch = Scratch::new();
    let dir = scratch.path().display();
    let config = format!(
        "runtime_dir: {dir}/run\nstate:\n  data_dir: {dir}/data\n  engine: postgres\n  url: {}\n",
        server.url()
    );
    let config = scratch.write("talon.yaml", &config);
    let cli = Cli(&config);
    // No service listens yet, so a request to a server would be noticed.
    let report = cli.json(&["import", text(&fixture("ours")), "--dry-run"]).await;
    assert!(report["counts"]["imported"].as_u64() > Some(2), "{report}");
    assert_eq!(names(scratch.path()), ["talon.yaml"]);

    server.run();
    let there = async { while !cli.run(&["state", "set", "notes", "k", "v"]).await.status.success() {} };
    tokio::time::timeout(std::time::Duration::from_secs(60), there).await.expect("the server answers");
    assert!(!scratch.join("data/imported").exists());
    cli.ok(&["import", text(&fixture("ours"))]).await;
    assert!(scratch.join("data/imported").exists());
    let file = scratch.join("x.tar");
    let (code, said) = cli.failed(&["backup", text(&file)]).await;
    assert!(code == 6 && said.contains("pg_dump") && !file.exists(), "{code} {said}");
    server.stop();
}

/// A session that nothing was written to for years.
const OLD_SESSION: &str = "\
id: 01J00000000000000000000001
sender: ada
channel: cli
state: idle
created_at: 2020-01-01T00:00:00Z
updated_at: 2020-01-02T00:00:00Z
messages:
- sequence: 1
  role: user
  content: said years ago
  at: 2020-01-01T00:00:00Z
";

/// It is exported and deleted by an agent that starts, and comes back from its file.
async fn old_session(state: &str) {
    let config = "agent:\n  enabled: true\n  sessions: { delete_after: 30d }\n";
    let builder = Builder::new().state(state).config(config);
    builder.scratch().write("old/sessions/01J00000000000000000000001.yaml", OLD_SESSION);
    let (old, (config, _)) = (builder.scratch().join("old"), builder.write_config());
    let import = async { while !Cli(&config).run(&["import", text(&old)]).await.status.success() {} };
    tokio::time::timeout(Duration::from_secs(60), import).await.expect("the database answers");
    let supervisor = builder.start().await;
    supervisor.wait_agent("an agent that serves", |agent| agent.state == "serving").await;
    let cli = Cli(&config);
    let records = || async { cli.ok(&["audit", "show", "--output", "json"]).await };
    supervisor
        .client
        .wait_until("the deletion is recorded", async |_| records().await.contains("delete_old_session"))
        .await;
    let said = records().await;
    assert!(said.contains("of ada, exported to exports/sessions/01J00000000000000000000001.yaml"), "{said}");
    assert_eq!(cli.json(&["session", "list", "--all"]).await["sessions"], serde_json::json!([]));
    let exports = config.parent().expect("a directory").join("data/agent/exports");
    let file = exports.join("sessions/01J00000000000000000000001.yaml");
    assert_eq!(std::fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(&file).expect("text").contains("said years ago"));
    let (_, _, leftovers) = supervisor.hands_over().await;
    let imported = cli.json(&["import", text(&exports)]).await;
    assert_eq!(imported["counts"]["imported"], 1, "{imported}");
    drop(leftovers);
}

// Promises: GW-224
#[tokio::test]
async fn an_old_session_is_exported_deleted_and_comes_back_from_its_file() {
    old_session("").await;
}

// Promises: GW-224
#[tokio::test]
async fn an_old_session_in_postgres_is_exported_deleted_and_comes_back() {
    let mut server = match Postgres::prepare() {
        Ok(server) => server,
        Err(reason) => {
            return skip("an_old_session_in_postgres_is_exported_deleted_and_comes_back", reason);
        }
    };
    server.run();
    old_session(&format!("engine: postgres\nurl: {}\n", server.url())).await;
    server.stop();
}
