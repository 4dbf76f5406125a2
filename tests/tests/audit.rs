//! The audit log of a real supervisor: what is in it, what shows, and what a death or a full disk does to it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use talon_proto::host::{AuditStatus, ExecuteRequest, GetRawAnswerRequest, Outcome};
use talon_tests::{Builder, Supervisor, args, cli, http, is_root, program, skip};

/// How often a supervisor is killed in the middle of calls.
const ROUNDS: usize = 6;
/// Callers at once while it is.
const CALLERS: usize = 8;

async fn status(supervisor: &Supervisor) -> AuditStatus {
    supervisor.client.status().await.audit.expect("the answer tells of the audit log")
}

fn directory(supervisor: &Supervisor) -> PathBuf {
    supervisor.scratch.join("data/audit")
}

/// The records of a directory, or of one file.
async fn records(path: &Path) -> Vec<Value> {
    let path = path.to_str().expect("our paths are text");
    let output = cli(&["audit", "show", path, "--output", "json"]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("JSON is text");
    text.lines().map(|line| serde_json::from_str(line).expect("a record a line")).collect()
}

/// What `talon audit verify` says, and how it ends.
async fn verified(path: &Path, more: &[&str]) -> (i32, Value) {
    let path = path.to_str().expect("our paths are text");
    let args: Vec<&str> =
        ["audit", "verify", path, "--output", "json"].into_iter().chain(more.iter().copied()).collect();
    let output = cli(&args).await;
    let said = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().expect("it ends by itself"), said)
}

async fn assert_whole(path: &Path) -> Value {
    let (code, said) = verified(path, &[]).await;
    assert_eq!((code, &said["whole"]), (0, &Value::Bool(true)), "{said}");
    said
}

fn of_kind<'r>(records: &'r [Value], kind: &str) -> Vec<&'r Value> {
    records.iter().filter(|record| record["kind"] == kind).collect()
}

// Promises: AUDIT-1
#[tokio::test]
async fn every_call_is_recorded_with_who_what_and_how_it_ended() {
    let supervisor = Builder::new()
        .plugin("hello", &program("hello"), &[], "")
        .misbehave(&[], "timeout: 60s")
        .start()
        .await;
    let client = &supervisor.client;
    let greeting = ExecuteRequest {
        plugin: "hello".to_owned(),
        action: "greet".to_owned(),
        args: args(&[("name", "World")]),
        call_id: "mine".to_owned(),
        context: args(&[("session_id", "s-1"), ("other", "secret")]),
        ..ExecuteRequest::default()
    };
    client.execute(greeting).await.unwrap();
    client.call("misbehave", "echo", &[("text", "[tool_call] <|im_start|>")]).await;
    client.call("misbehave", "error", &[("text", "no")]).await;
    client.call("nobody", "greet", &[]).await;
    // One that its caller gives up, once it is under way.
    let hanging = client.clone();
    let hanging = tokio::spawn(async move { hanging.try_call("misbehave", "hang", &[]).await });
    client.wait_for("misbehave", "called", |plugin| plugin.calls_in_flight > 0).await;
    hanging.abort();
    client.wait_for("misbehave", "left alone", |plugin| plugin.calls_in_flight == 0).await;

    let status = status(&supervisor).await;
    assert_eq!((status.state.as_str(), status.problem.as_str(), status.lost), ("on", "", 0), "{status:?}");
    assert!(status.file.ends_with("data/audit/audit-000000000001.jsonl"), "{status:?}");
    let digest = client.show("hello").await.settings.expect("an operator sees them").sha256;
    // By the supervisor's own word of where it is.
    let shown = supervisor.cli(&["audit", "show", "--plugin", "hello", "--last", "1"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("hello.greet") && shown.contains("ok"), "{shown}");

    let dir = directory(&supervisor);
    let stopped = supervisor.stop().await;
    let records = records(&dir).await;
    let calls = of_kind(&records, "call");
    let of = |action: &str| *calls.iter().find(|call| call["action"] == action).expect("it is recorded");

    let greet = of("greet");
    assert_eq!(greet["who"]["uid"], u64::from(nix::unistd::geteuid().as_raw()));
    assert_eq!(greet["who"]["pid"], u64::from(std::process::id()));
    assert_eq!((greet["who"]["role"].as_str(), greet["session"].as_str()), (Some("admin"), Some("s-1")));
    assert!(greet["call_id"].as_str().unwrap().starts_with("mine."), "{greet}");
    assert_eq!(greet["arguments_sha256"], hex(b"{\"name\":\"World\"}"));
    assert_eq!(greet["plugin_sha256"], digest);
    assert_eq!((greet["outcome"].as_str(), greet["reason"].as_str()), (Some("ok"), None));
    assert_eq!(greet["answer_sha256"].as_str().map(str::len), Some(64));
    assert!(greet["duration_us"].as_u64().is_some_and(|us| us > 0));
    assert!(!records.iter().any(|record| record.to_string().contains("World")), "digests alone by default");
    assert!(!records.iter().any(|record| record.to_string().contains("secret")), "nothing of the context");

    let families: u64 =
        of("echo")["guard"]["neutralised"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(families, 2, "{}", of("echo"));
    assert_eq!(of("error")["outcome"], "tool_error");
    let nobody = calls.iter().find(|call| call["plugin"] == "nobody").unwrap();
    assert_eq!((&nobody["outcome"], &nobody["reason"]), (&"refused".into(), &"unknown_plugin".into()));
    assert_eq!(of("hang")["outcome"], "cancelled");
    assert_eq!(calls.len(), 5, "{calls:#?}");

    assert_eq!(records.last().unwrap()["kind"], "stopped");
    let said = assert_whole(&dir).await;
    assert_eq!((&said["begins"], &said["lost"]), (&"at_the_beginning".into(), &0.into()));
    drop(stopped);
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

// Promises: AUDIT-2
#[tokio::test]
async fn what_is_done_to_plugins_and_to_their_state_is_recorded() {
    let mut supervisor = Builder::new().plugin("hello", &program("hello"), &[], "").start().await;
    for verb in ["stop", "start", "restart"] {
        let done = supervisor.cli(&["plugin", verb, "hello"]).await;
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    supervisor.cli(&["plugin", "restart", "nobody"]).await;
    let raw = GetRawAnswerRequest { call_id: "c1".to_owned() };
    supervisor.client.raw().get_raw_answer(raw).await.expect_err("none is kept");
    supervisor.cli(&["state", "list"]).await;

    let dir = directory(&supervisor);
    let stopped = supervisor.stop().await;
    let records = records(&dir).await;
    let operations: Vec<String> = of_kind(&records, "operation")
        .into_iter()
        .map(|one| {
            [&one["verb"], &one["subject"], &one["outcome"]].map(|word| word.as_str().unwrap_or("")).join(" ")
        })
        .collect();
    for expected in ["stop hello done", "start hello done", "restart hello done", "restart nobody failed"] {
        assert_eq!(operations.iter().filter(|one| *one == expected).count(), 1, "{expected}: {operations:?}");
    }
    assert!(operations.iter().any(|one| one == "get_raw_answer c1 failed"), "{operations:?}");
    assert!(
        operations.iter().any(|one| one.starts_with("state ") && one.ends_with("passed_on")),
        "{operations:?}"
    );
    let own_uid = u64::from(nix::unistd::geteuid().as_raw());
    assert!(of_kind(&records, "operation").iter().all(|one| one["who"]["uid"] == own_uid));
    drop(stopped);
}

// Promises: AUDIT-3
#[tokio::test]
async fn what_of_the_arguments_is_recorded_is_the_operators_choice() {
    for (choice, digest, text) in [("none", false, false), ("digest", true, false), ("text", true, true)] {
        let config = format!("audit:\n  arguments: {choice}");
        let supervisor =
            Builder::new().plugin("hello", &program("hello"), &[], "").config(&config).start().await;
        supervisor.client.call("hello", "greet", &[("name", &"x".repeat(5000))]).await;
        let records = records(&directory(&supervisor)).await;
        let call = of_kind(&records, "call")[0];
        assert_eq!(call["arguments_sha256"].is_string(), digest, "{choice}: {call}");
        assert_eq!(call["arguments"].is_string(), text, "{choice}: {call}");
        if text {
            assert_eq!(call["arguments"].as_str().map(str::len), Some(4096));
            assert_eq!(call["arguments_cut_bytes"], 5000 + "{\"name\":\"\"}".len() - 4096);
        }
    }
    let off = Builder::new().config("audit:\n  enabled: false").start().await;
    assert_eq!(status(&off).await.state, "off");
    assert!(!directory(&off).exists());
}

// Promises: AUDIT-4
#[tokio::test]
async fn tampering_shows_with_its_place_and_a_noted_head_shows_a_cut() {
    let supervisor = Builder::new()
        .plugin("hello", &program("hello"), &[], "")
        .config("audit:\n  file_bytes: 4KiB")
        .start()
        .await;
    for _ in 0..20 {
        supervisor.client.call("hello", "greet", &[("name", "World")]).await;
    }
    let dir = directory(&supervisor);
    // A supervisor that writes is no hindrance.
    assert_whole(&dir).await;
    let head = cli(&["audit", "head", dir.to_str().unwrap()]).await;
    let head = String::from_utf8(head.stdout).unwrap().trim().to_owned();
    let stopped = supervisor.stop().await;
    let (code, said) = verified(&dir, &["--anchor", &head]).await;
    assert_eq!(code, 0, "{said}");
    assert!(said["files"].as_u64().unwrap() > 2, "{said}");

    let second = dir.join("audit-000000000002.jsonl");
    let genuine = fs::read_to_string(&second).unwrap();
    let changed = genuine.replacen("\"outcome\":\"ok\"", "\"outcome\":\"no\"", 1);
    let line = 1 + genuine.lines().zip(changed.lines()).position(|(one, other)| one != other).unwrap();
    fs::write(&second, changed).unwrap();
    let (code, said) = verified(&dir, &[]).await;
    assert_eq!((code, &said["fault"], &said["line"]), (1, &"changed".into(), &line.into()), "{said}");
    assert!(said["file"].as_str().unwrap().ends_with("audit-000000000002.jsonl"), "{said}");
    // For people: the place, what should be there and what is.
    let told = cli(&["audit", "verify", dir.to_str().unwrap()]).await;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    for part in ["broken", &format!("audit-000000000002.jsonl:{line}"), "expected record", "found"] {
        assert!(told.contains(part), "{part}: {told}");
    }

    fs::write(&second, &genuine).unwrap();
    assert_whole(&dir).await;
    let last = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    fs::remove_file(last).unwrap();
    let (code, said) = verified(&dir, &["--anchor", &head]).await;
    assert_eq!((code, &said["fault"]), (1, &"truncated".into()), "{said}");
    drop(stopped);
}

// Promises: AUDIT-6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_is_recorded_though_the_supervisor_is_killed() {
    let mut builder = Builder::new();
    let mut answered = HashSet::new();
    for round in 0..ROUNDS {
        let supervisor = builder
            .plugin("hello", &program("hello"), &[], "")
            .config("audit:\n  file_bytes: 64KiB\n  wait: 60s")
            .start()
            .await;
        let going = Arc::new(AtomicBool::new(true));
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (client, going) = (supervisor.client.clone(), Arc::clone(&going));
                tokio::spawn(async move {
                    let mut answered = Vec::new();
                    while going.load(Ordering::Relaxed) {
                        let call_id = format!("r{round}-c{caller}-{}", answered.len());
                        let request = ExecuteRequest {
                            plugin: "hello".to_owned(),
                            action: "greet".to_owned(),
                            args: args(&[("name", "World")]),
                            call_id: call_id.clone(),
                            ..ExecuteRequest::default()
                        };
                        match client.execute(request).await {
                            Ok(answer) if answer.outcome() == Outcome::Ok => answered.push(call_id),
                            Ok(_) | Err(_) => break,
                        }
                    }
                    answered
                })
            })
            .collect();
        let enough = 30 * (round as u64 + 1);
        supervisor
            .client
            .wait_for("hello", "called", |p| p.counters.as_ref().is_some_and(|c| c.calls > enough))
            .await;
        let dir = directory(&supervisor);
        let stopped = supervisor.end(Signal::SIGKILL).await;
        going.store(false, Ordering::Relaxed);
        for caller in callers {
            answered.extend(caller.await.unwrap());
        }
        // As it lies there after the kill, a torn line included.
        assert_whole(&dir).await;
        let records = records(&dir).await;
        let recorded: HashSet<&str> = of_kind(&records, "call")
            .into_iter()
            .filter_map(|call| call["call_id"].as_str()?.rsplit_once('.').map(|(asked, _)| asked))
            .collect();
        let missing: Vec<&String> = answered.iter().filter(|id| !recorded.contains(id.as_str())).collect();
        assert_eq!(missing, Vec::<&String>::new(), "round {round}");
        builder = Builder::on_leftovers(stopped.left);
    }
    assert!(answered.len() > ROUNDS * 30, "{}", answered.len());
}

/// A supervisor whose audit log is in a file system of 32 KiB: seen by this supervisor alone, and full after
/// some dozens of records.
async fn with_small_disk() -> (PathBuf, Supervisor) {
    let builder = Builder::new();
    let dir = builder.scratch().join("small");
    fs::create_dir(&dir).expect("ours");
    let mount = format!("mount -t tmpfs -o size=32k,mode=700 audit {} && exec \"$0\" \"$@\"", dir.display());
    let supervisor = builder
        .plugin("hello", &program("hello"), &[], "")
        .config(&format!("audit:\n  dir: {}/audit", dir.display()))
        .wrapped(&["unshare", "--mount", "sh", "-c", &mount])
        .start()
        .await;
    (dir, supervisor)
}

// Promises: AUDIT-9
#[tokio::test]
async fn a_full_disk_is_told_and_stops_no_call() {
    const NAME: &str = "a_full_disk_is_told_and_stops_no_call";
    if !is_root() {
        return skip(NAME, "only root can mount a file system of a size of its own");
    }
    let (dir, supervisor) = with_small_disk().await;
    let mut calls = 0;
    let full = loop {
        calls += greet(&supervisor, 8).await;
        let status = status(&supervisor).await;
        if status.state == "failing" {
            break status;
        }
        assert!(calls < 1000, "{status:?}");
    };
    assert!(full.problem.contains("whether there is room"), "{full:?}");
    // Beyond what waits for room to come back, records are lost and counted. No call fails for it.
    while status(&supervisor).await.lost < 5 {
        calls += greet(&supervisor, 64).await;
    }

    // From here on it is quiet, so that no event is missed.
    let mut events = supervisor.client.events("").await;
    let pid = supervisor.pid().to_string();
    let inside = |command: &[&str]| {
        let mut all = vec!["--target", &pid, "--mount"];
        all.extend(command);
        std::process::Command::new("nsenter").args(all).output().unwrap()
    };
    let remounted = inside(&["mount", "-o", "remount,size=8m", dir.to_str().unwrap()]);
    assert!(remounted.status.success(), "{}", String::from_utf8_lossy(&remounted.stderr));
    while !events.message().await.unwrap().expect("it goes on").message.contains("the audit log works again")
    {
    }
    let lost = status(&supervisor).await.lost;
    supervisor.wait_log("the audit log fails").await;

    // What was kept is whole, and says how much is not.
    let talon = program("talon");
    let path = dir.join("audit");
    let verify = ["audit", "verify", path.to_str().unwrap(), "--output", "json"];
    let output = inside(&[&[talon.to_str().unwrap()], verify.as_slice()].concat());
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!((&said["whole"], &said["lost"]), (&true.into(), &lost.into()), "{said}");
    let recorded = status(&supervisor).await.records;
    assert_eq!(recorded + lost, calls, "each call is recorded or counted");
}

/// So many calls, each of which has to succeed.
async fn greet(supervisor: &Supervisor, calls: u64) -> u64 {
    for _ in 0..calls {
        let answer = supervisor.client.call("hello", "greet", &[("name", "World")]).await;
        assert_eq!(answer.outcome(), Outcome::Ok);
    }
    calls
}

// Promises: AUDIT-13
#[tokio::test]
async fn a_directory_that_is_removed_while_serving_is_reported_and_the_chain_continues() {
    let supervisor = Builder::new().plugin("hello", &program("hello"), &[], "").start().await;
    greet(&supervisor, 20).await;
    let dir = directory(&supervisor);
    fs::remove_dir_all(&dir).unwrap();
    // Each look at the status makes the log look at its file.
    let damaged = loop {
        let status = status(&supervisor).await;
        if status.state == "damaged" {
            break status;
        }
        tokio::task::yield_now().await;
    };
    // The chain's first record, the start, and the calls.
    assert_eq!((damaged.lost, damaged.records), (22, 20), "{damaged:?}");
    assert!(damaged.problem.contains("22 records are lost"), "{damaged:?}");
    let shown = supervisor.cli(&["status"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("audit-000000000001.jsonl was removed"), "{shown}");
    let metrics = http::get(&supervisor.admin(), "/metrics").await.body;
    for line in ["talon_audit_damaged 1", "talon_audit_lost_total 22"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    supervisor.wait_log("22 records are lost").await;

    greet(&supervisor, 1).await;
    let stopped = supervisor.stop().await;
    let records = records(&dir).await;
    assert_eq!(records[0]["seq"], 23, "the chain continues: {records:#?}");
    assert_eq!(of_kind(&records, "lost")[0]["count"], 22);
    assert_eq!(of_kind(&records, "call").len(), 1);
    let (code, said) = verified(&dir, &[]).await;
    assert_eq!((code, &said["fault"]), (1, &"removed".into()), "{said}");
    assert!(said["found"].as_str().unwrap().contains("says that 22 records are lost"), "{said}");
    drop(stopped);
}

// Promises: AUDIT-14
#[tokio::test]
async fn what_a_full_disk_did_not_take_is_noted_when_the_supervisor_stops() {
    const NAME: &str = "what_a_full_disk_did_not_take_is_noted_when_the_supervisor_stops";
    if !is_root() {
        return skip(NAME, "only root can mount a file system of a size of its own");
    }
    let (dir, supervisor) = with_small_disk().await;
    // The file system exists as long as this is open.
    let namespace = fs::File::open(format!("/proc/{}/ns/mnt", supervisor.pid())).unwrap();
    let mut calls = 0;
    while status(&supervisor).await.state != "failing" {
        calls += greet(&supervisor, 8).await;
        assert!(calls < 1000);
    }
    calls += greet(&supervisor, 100).await;
    let status = status(&supervisor).await;
    assert_eq!(status.lost, 0, "they wait for room: {status:?}");
    let stopped = supervisor.stop().await;

    let namespace =
        format!("--mount=/proc/{}/fd/{}", std::process::id(), std::os::fd::AsRawFd::as_raw_fd(&namespace));
    let talon = program("talon");
    let inside = |verb: &str| {
        let path = dir.join("audit");
        let verb = ["audit", verb, path.to_str().unwrap(), "--output", "json"];
        let output =
            std::process::Command::new("nsenter").arg(&namespace).arg(&talon).args(verb).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let said: Value = serde_json::from_str(&inside("verify")).unwrap();
    let shown = inside("show");
    let records: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let recorded = of_kind(&records, "call").len() as u64;
    assert_eq!((&said["whole"], &said["lost"]), (&true.into(), &(calls - recorded).into()), "{said}");
    assert!(calls - recorded >= 100, "{calls} {recorded}");
    assert_eq!(records.last().unwrap()["kind"], "stopped");
    assert!(!said.to_string().contains("killed"), "{said}");
    drop(stopped);
}
