//! The conformance kit: every example passes, and each lie fails the checks that it should, and no other.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use talon_tests::{Scratch, cli, example, program, repository};

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// One run with a separate configuration, as JSON.
async fn run(path: &Path, config: &Path, more: &[&str]) -> (Value, Output) {
    let (path, config) = (path.display().to_string(), config.display().to_string());
    let mut words = vec!["conformance", &path, "--config", &config, "--report", "json"];
    words.extend(more);
    let output = cli(&words).await;
    let said = format!("{}\n{}", out(&output), String::from_utf8_lossy(&output.stderr));
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    (report, output)
}

/// The checks that came out like this.
fn ids<'r>(report: &'r Value, outcome: &str) -> BTreeSet<&'r str> {
    let checks = report["checks"].as_array().expect("there are checks").iter();
    checks.filter(|check| check["outcome"] == outcome).filter_map(|check| check["id"].as_str()).collect()
}

/// A run of the misbehaving plugin, with the lines of its entry in the configuration.
async fn misbehave(args: &[&str], more: &str) -> (Value, Output) {
    let scratch = Scratch::new();
    let (other, program) = (scratch.write("other", "").display().to_string(), program("misbehave"));
    let args: Vec<String> = args.iter().map(|arg| format!("{:?}", arg.replace("OTHER", &other))).collect();
    let mut config = format!(
        "plugins:\n  tools:\n    plugins:\n      misbehave:\n        command: {program:?}\n        args: [{}]\n        \
         grace_period: 2s\n",
        args.join(", ")
    );
    // Long enough on a busy machine; a lie that never says anything has less.
    if !more.contains("start_timeout") {
        config.push_str("        start_timeout: 6s\n");
    }
    for line in more.lines() {
        config.push_str(&format!("        {line}\n"));
    }
    let config = scratch.write("talon.yaml", &config);
    run(&program, &config, &[]).await
}

async fn comes_out(args: &[&str], more: &str, fails: &[&str], warns: &[&str]) {
    let (report, output) = misbehave(args, more).await;
    let text = format!("{report:#}");
    assert_eq!(ids(&report, "fail"), fails.iter().copied().collect(), "{args:?}: {text}");
    assert_eq!(ids(&report, "warn"), warns.iter().copied().collect(), "{args:?}: {text}");
    assert_eq!(output.status.code(), Some(i32::from(!fails.is_empty())), "{args:?}");
}

/// A test for each lie, and the table of what is seen failing.
macro_rules! lies {
    ($($name:ident: [$($arg:literal),*] $more:literal fails [$($fails:literal),*] warns [$($warns:literal),*];)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                comes_out(&[$($arg),*], $more, &[$($fails),*], &[$($warns),*]).await;
            }
        )*

        /// Every check that some lie fails, or makes warn.
        const SEEN: &[&[&str]] = &[$(&[$($fails,)* $($warns),*]),*];
    };
}

lies! {
    an_honest_plugin: [] "" fails [] warns [];
    one_thing_at_a_time: ["--single-threaded"] "" fails [] warns [];
    the_other_dialect: ["--dialect", "opentalon"] "" fails [] warns [];
    no_health_service: ["--no-health"] "" fails [] warns ["health.serving"];
    as_little_as_possible: ["--minimal"] "" fails [] warns ["stop.shutdown"];

    exits_at_once: ["--lie", "exit-at-once"] "" fails ["start.handshake"] warns [];
    exits_with_zero: ["--lie", "exit-zero"] "" fails ["start.handshake"] warns [];
    crashes: ["--lie", "crash"] "" fails ["start.handshake"] warns [];
    is_silent: ["--lie", "silent"] "start_timeout: 1s" fails ["start.handshake"] warns [];
    prints_garbage: ["--lie", "garbage"] "start_timeout: 1s" fails ["start.handshake"] warns [];
    prints_bytes: ["--lie", "binary"] "start_timeout: 1s" fails ["start.handshake"] warns [];
    prints_half_a_line: ["--lie", "half-line"] "start_timeout: 1s" fails ["start.handshake"] warns [];
    is_late: ["--lie", "late"] "start_timeout: 1s" fails ["start.handshake"] warns [];
    last_words: ["--hostile", "last-words"] "" fails ["start.handshake"] warns [];
    a_banner: ["--lie", "banner"] "" fails [] warns ["start.stray-output"];
    hostile_lines: ["--hostile", "lines"] "" fails [] warns ["start.stray-output"];
    an_endless_banner: ["--lie", "endless-banner"] "" fails ["start.stray-output"] warns [];
    shakes_hands_twice: ["--lie", "twice", "--path", "OTHER"] "" fails ["start.single-line"] warns [];
    needs_no_cookie: ["--lie", "no-cookie"] "" fails [] warns ["start.cookie"];

    an_endless_line: ["--lie", "endless-line"] "" fails ["handshake.line"] warns [];
    netrpc: ["--lie", "net-rpc"] "" fails ["handshake.line"] warns [];
    a_certificate: ["--lie", "tls"] "" fails ["handshake.line"] warns [];
    multiplexed: ["--lie", "multiplexed"] "" fails ["handshake.line"] warns [];
    a_long_address: ["--lie", "long-address"] "" fails ["handshake.line"] warns [];
    the_root_as_address: ["--lie", "root-address"] "" fails ["handshake.line"] warns [];
    an_abstract_address: ["--lie", "abstract-address"] "" fails ["handshake.line"] warns [];
    a_hostile_line: ["--hostile", "handshake"] "" fails ["handshake.line"] warns ["start.cookie"];
    the_wrong_core_version: ["--lie", "wrong-core"] "" fails ["handshake.version"] warns [];
    the_wrong_version: ["--lie", "wrong-version"] "" fails ["handshake.version"] warns [];
    any_version: ["--lie", "any-version"] "" fails ["handshake.unoffered-version"] warns [];
    tcp: ["--lie", "tcp"] "" fails ["handshake.address"] warns [];
    a_foreign_socket: ["--lie", "foreign-socket", "--path", "OTHER"] "" fails ["handshake.address"] warns [];
    a_linked_socket: ["--lie", "linked-socket", "--path", "OTHER"] "" fails ["handshake.address"] warns [];
    no_socket: ["--lie", "not-a-socket"] "" fails ["handshake.address"] warns [];
    a_missing_socket: ["--lie", "missing-socket"] "" fails ["handshake.address"] warns [];
    an_open_socket: ["--lie", "open-socket"] "" fails [] warns ["handshake.socket-mode"];
    hangs_after_it: ["--lie", "hang-after"] "" fails ["handshake.serves"] warns [];
    closes_its_socket: ["--lie", "close-socket"] "" fails ["handshake.serves"] warns [];
    speaks_something_else: ["--lie", "not-grpc"] "" fails ["handshake.serves"] warns [];
    exits_after_it: ["--lie", "exit-after"] "" fails ["handshake.serves"] warns [];
    floods_the_connection: ["--flood", "ping"] "" fails ["handshake.serves"] warns [];

    refuses_its_settings: ["--lie", "init-fails"] "" fails ["init.settings"] warns [];
    hostile_refusal: ["--hostile", "init"] "" fails ["init.settings"] warns [];
    dies_of_no_settings: ["--wrong", "empty-config-dies"] "config: { a: 1 }" fails ["init.empty-config"] warns [];
    dies_of_an_unknown_key: ["--wrong", "unknown-key-dies"] "" fails ["init.unknown-keys"] warns [];

    never_says_what_it_offers: ["--lie", "capabilities-hang"] "" fails ["capabilities.answered"] warns [];
    hostile_names: ["--lie", "hostile-names"] "" fails ["capabilities.names"] warns [];
    a_hostile_name: ["--hostile", "name"] "" fails ["capabilities.names"] warns [];
    a_hostile_declaration: ["--hostile", "declaration"] "" fails ["capabilities.names"] warns ["capabilities.schemas"];
    an_action_twice: ["--lie", "duplicate-actions"] "" fails ["capabilities.duplicates"] warns [];
    a_broken_schema: ["--wrong", "broken-schema"] "" fails ["capabilities.schemas"] warns [];
    an_odd_type: ["--wrong", "odd-type"] "" fails [] warns ["capabilities.schemas"];
    too_many_actions: ["--lie", "too-many-actions"] "" fails ["capabilities.sizes"] warns [];
    a_long_description: ["--wrong", "long-description"] "" fails ["capabilities.sizes"] warns [];
    a_role_that_it_does_not_fit: ["--wrong", "role-mismatch"] "" fails ["capabilities.roles", "execute.roles"] warns [];
    a_job_that_is_none: ["--propose", "nightly:soon"] "" fails ["capabilities.roles"] warns [];
    jobs_of_one_name: ["--propose", "nightly:1h", "--propose", "nightly:2h"] "" fails ["capabilities.roles"] warns [];
    too_many_jobs: ["--propose-many", "17"] "" fails ["capabilities.roles"] warns [];
    never_the_same: ["--wrong", "fickle"] "" fails ["capabilities.stable"] warns [];

    never_healthy: ["--lie", "never-healthy"] "" fails ["health.serving"] warns [];
    hostile_health: ["--hostile", "health"] "" fails ["health.serving"] warns [];
    healthy_for_anybody: ["--wrong", "health-for-anybody"] "" fails [] warns ["health.unknown-service"];
    unhealthy_after_a_call: ["--lie", "unhealthy"] "" fails ["health.after-calls"] warns [];

    the_wrong_id: ["--wrong", "another-id"] "" fails ["execute.echo-id", "execute.concurrent"] warns [];
    answers_of_garbage: ["--wrong", "garbage"] "" fails ["execute.decodes"] warns [];
    another_answer_than_its_role_has: ["--wrong", "role-answer"] "" fails ["execute.roles"] warns [];
    broken_structure: ["--wrong", "broken-structure"] "" fails ["execute.decodes"] warns [];
    does_what_it_cannot: ["--wrong", "unknown-action-works"] "" fails ["execute.unknown-action"] warns [];
    faults_at_what_it_cannot: ["--wrong", "unknown-action-faults"] "" fails ["execute.unknown-action"] warns [];
    dies_of_a_missing_argument: ["--wrong", "missing-argument-dies"] "" fails ["execute.missing-arguments"] warns [];
    faults_at_an_unknown_argument: ["--wrong", "unknown-argument-faults"] "" fails ["execute.unknown-argument"] warns [];
    dies_of_a_nul: ["--wrong", "hostile-argument-dies"] "" fails ["execute.hostile-arguments"] warns [];
    mixes_up_calls: ["--wrong", "mixed-ids"] "" fails ["execute.concurrent"] warns [];
    dies_when_it_is_given_up: ["--wrong", "cancelled-dies"] "" fails ["execute.cancelled"] warns [];
    hangs_after_a_deadline: ["--wrong", "deadline-blocks"] "" fails ["execute.deadline"] warns [];
    ignores_a_deadline: ["--wrong", "deadline-ignored"] "" fails [] warns ["execute.deadline"];
    says_too_much: ["--wrong", "large-answers"] "" fails ["execute.large-answer"] warns [];
    storage_that_forgets: ["--wrong", "storage-forgets"] "" fails ["execute.storage-durable"] warns [];
    storage_without_revisions: ["--wrong", "storage-last-wins"] "" fails ["execute.storage-revisions", "execute.storage-durable"] warns [];
    storage_that_skips: ["--wrong", "storage-skips"] "" fails ["execute.storage-scans", "execute.storage-durable"] warns [];
    storage_of_texts: ["--wrong", "storage-texts"] "" fails ["execute.storage-bytes", "execute.storage-durable"] warns [];
    storage_that_obeys: ["--wrong", "storage-obeys"] "" fails ["execute.storage-refusals", "execute.storage-durable"] warns [];
    every_call_is_a_fault: ["--hostile", "calls"] "" fails [
        "execute.echo-id", "execute.unknown-action", "execute.missing-arguments", "execute.unknown-argument",
        "execute.hostile-arguments", "execute.concurrent"
    ] warns [];

    tells_events_as_it_should: ["--events", "none"] "" fails [] warns [];
    forgets_what_it_told: ["--events", "forgetful"] "" fails ["events.resent"] warns [];
    tells_what_was_acknowledged: ["--events", "deaf"] "" fails ["events.resent"] warns [];
    takes_no_acknowledgement: ["--events", "silent"] "" fails ["events.resent"] warns [];
    is_picky_about_acknowledgements: ["--events", "picky"] "" fails ["events.resent"] warns [];
    tells_too_large_an_event: ["--events", "huge"] "" fails ["events.resent"] warns [];
    puts_out_line_ends: ["--wrong", "output-lines"] "" fails ["output.calls"] warns [];
    logs_too_much: ["--lie", "floods"] "" fails ["output.flood"] warns [];
    agrees_and_stays: ["--wrong", "shutdown-ignored"] "" fails ["stop.shutdown"] warns [];
    survives_signals: ["--ignore-signals"] "" fails ["stop.sigterm"] warns ["stop.shutdown"];
    leaves_a_child: ["--lie", "grandchild"] "" fails ["stop.nothing-left"] warns [];
    needs_more_than_strict: ["--lie", "syncs"] "sandbox: { profile: wide }" fails ["jail.strict"] warns [];
}

// Promises: EXT-47, EXT-157, EXT-169, KIT-1
#[tokio::test]
async fn every_check_was_seen_failing() {
    let list = cli(&["conformance", "--list", "--output", "json"]).await;
    let list: Value = serde_json::from_slice(&list.stdout).expect("it is JSON");
    let all: BTreeSet<&str> =
        list["checks"].as_array().expect("a list").iter().filter_map(|check| check["id"].as_str()).collect();
    let seen: BTreeSet<&str> = SEEN.iter().copied().flatten().copied().collect();
    assert_eq!(seen, all);
}

// Promises: KIT-2
#[tokio::test]
async fn the_page_is_what_the_command_prints() {
    let page = std::fs::read_to_string(repository().join("docs/conformance.md")).expect("there is a page");
    assert_eq!(out(&cli(&["conformance", "--list"]).await), page);
}

/// An example passes; what it needs of the configuration stands in its entry.
async fn passes(name: &str, path: &Path, entry: &str, more: &[&str]) {
    let scratch = Scratch::new();
    let mut config = format!("plugins:\n  tools:\n    plugins:\n      {name}:\n        command: {path:?}\n");
    for line in entry.replace("SCRATCH", &scratch.path().display().to_string()).lines() {
        config.push_str(&format!("        {line}\n"));
    }
    let config = scratch.write("talon.yaml", &config);
    let (report, output) = run(path, &config, more).await;
    assert_eq!(ids(&report, "fail"), BTreeSet::new(), "{name}: {report:#}");
    assert_eq!(output.status.code(), Some(0), "{name}");
    assert!(ids(&report, "pass").contains("execute.echo-id"), "{name}: {report:#}");
}

macro_rules! examples {
    ($($test:ident: $name:literal, $entry:literal, [$($more:literal),*];)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                // Those whose runtime is missing were left out when they were staged, with a message.
                let path = talon_tests::target().join("plugins").join($name);
                if !path.exists() {
                    return talon_tests::skip(stringify!($test), "it is not staged (plugins-examples/stage.sh)");
                }
                passes($name, &example($name), $entry, &[$($more),*]).await;
            }
        )*
    };
}

examples! {
    hello_passes: "hello", "", [];
    code_search_passes: "code-search", "config: { root: SCRATCH }\nsandbox: { fs: { read: [SCRATCH] } }", [];
    web_fetch_passes: "web-fetch", "", [];
    notes_passes: "notes", "", ["--action", "add text=conformance"];
    files_passes: "files", "config: { root: SCRATCH }\nsandbox: { fs: { write: [SCRATCH] } }", [];
    shell_passes: "shell", "", ["--action", "run command=pwd"];
    forge_passes: "forge", "config: { root: SCRATCH }\nsandbox: { fs: { read: [SCRATCH] } }", ["--action", "create_pr title=conformance body=none"];
    tracker_passes: "tracker", "", ["--action", "create_issue title=conformance"];
    oidc_passes: "oidc", "config: { issuer: 'https://login.example.org', audience: [talon] }", [];
    inbox_py_passes: "inbox-py", "config: { directory: SCRATCH }\nsandbox: { fs: { write: [SCRATCH] } }", [];
    csv_query_passes: "csv-query", "", [];
    hello_py_passes: "hello-py", "", [];
    hello_go_passes: "hello-go", "", [];
    hello_node_passes: "hello-node", "", [];
    counter_py_passes: "counter-py", "", ["--action", "increment name=x"];
    counter_go_passes: "counter-go", "", ["--action", "increment name=x"];
    counter_node_passes: "counter-node", "", ["--action", "increment name=x"];
}

#[tokio::test]
async fn checks_are_chosen_by_id_and_by_group() {
    let scratch = Scratch::new();
    let config = scratch.write("talon.yaml", "{}\n");
    let more = ["--only", "stop", "--only", "start.cookie", "--skip", "stop.sigterm"];
    let (report, _) = run(&program("hello"), &config, &more).await;
    let passed = BTreeSet::from(["start.cookie", "stop.shutdown", "stop.nothing-left"]);
    assert_eq!(ids(&report, "pass"), passed, "{report:#}");
    let path = program("hello").display().to_string();
    let unknown = cli(&["conformance", &path, "--only", "nonsense"]).await;
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("--list"), "{unknown:?}");
}

// Promises: KIT-3
#[tokio::test]
async fn a_report_for_build_servers() {
    let path = program("misbehave").display().to_string();
    let output = cli(&["conformance", &path, "--report", "junit", "--only", "start", "--only", "jail"]).await;
    let xml = out(&output);
    assert!(xml.starts_with("<?xml") && xml.trim_end().ends_with("</testsuites>"), "{xml}");
    assert!(xml.contains("tests=\"5\" failures=\"0\""), "{xml}");
    assert!(xml.contains("name=\"start.handshake\""), "{xml}");
}

#[tokio::test]
async fn what_is_no_plugin_is_said() {
    let scratch = Scratch::new();
    let file = scratch.write("readme", "hello").display().to_string();
    for (path, says) in [(file.as_str(), "chmod +x"), ("/nowhere/at/all", "cannot use")] {
        let output = cli(&["conformance", path]).await;
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(says), "{output:?}");
    }
}

// Promises: KIT-4
#[tokio::test]
async fn nothing_is_left_after_an_interruption() {
    use tokio::io::{AsyncBufReadExt, BufReader};

    let scratch = Scratch::new();
    // A program that says when it runs and never shakes hands.
    let marker = scratch.join("running");
    nix::unistd::mkfifo(&marker, nix::sys::stat::Mode::empty()).expect("a pipe can be made");
    std::fs::set_permissions(&marker, std::fs::Permissions::from_mode(0o666)).expect("it is ours");
    let script =
        scratch.script("slow", &format!("#!/bin/sh\necho $$ > {}\nexec sleep 1000\n", marker.display()));
    let config = scratch.write(
        "talon.yaml",
        &format!(
            "plugins:\n  tools:\n    plugins:\n      slow:\n        command: {script:?}\n        sandbox: {{ fs: {{ write: [{:?}] }} }}\n",
            scratch.path()
        ),
    );
    // Where the run has its own files, which a plugin must not be shown.
    let own = Scratch::new();
    let mut child = tokio::process::Command::new(program("talon"))
        .args(["conformance", "--plugin", "slow", "--config"])
        .arg(&config)
        .env("XDG_RUNTIME_DIR", own.path())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("talon starts");
    let opened = tokio::fs::File::open(&marker).await.expect("the plugin opens it, too");
    let mut line = String::new();
    BufReader::new(opened).read_line(&mut line).await.expect("it says its number");
    assert!(!line.is_empty());
    let pid = child.id().expect("it runs");
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGINT).expect("it can be told");
    let status = child.wait().await.expect("it ends");
    assert_eq!(status.code(), Some(4), "{status}");
    assert_eq!(talon_tests::descendants(pid), BTreeSet::new());
    let left: Vec<_> = std::fs::read_dir(own.path()).expect("it is ours").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}
