//! What a plugin gets when it is started, and what it does not get.

use talon_tests::{Builder, is_root, program, skip, sockets_below};

// Promises: LAUNCH-3
#[tokio::test]
async fn the_environment_is_an_allow_list() {
    let supervisor = Builder::new()
        .env("AWS_SECRET_ACCESS_KEY", "very-secret")
        .env("LD_PRELOAD_NOT_REALLY", "x")
        .env("LANG", "C.UTF-8")
        .misbehave(&[], "env: {GREETING: hello}")
        .start()
        .await;
    let env = supervisor.client.call("misbehave", "env", &[]).await.content;
    assert!(!env.contains("very-secret") && !env.contains("LD_PRELOAD"), "{env}");
    for line in ["GREETING=hello", "LANG=C.UTF-8", "PLUGIN_PROTOCOL_VERSIONS=1"] {
        assert!(env.lines().any(|l| l == line), "{line} is missing: {env}");
    }
    assert!(!env.contains("PLUGIN_MULTIPLEX_GRPC"), "{env}");
}

// Promises: HAND-4
#[tokio::test]
async fn the_variables_of_the_handshake_are_the_hosts_own() {
    let supervisor = Builder::new().misbehave(&[], "env: {PLUGIN_PROTOCOL_VERSIONS: '77'}").start().await;
    let refused = supervisor.client.status().await.refused;
    assert!(refused.iter().any(|r| r.reason.contains("PLUGIN_PROTOCOL_VERSIONS")), "{refused:#?}");
}

// Promises: LAUNCH-2
#[tokio::test]
async fn it_inherits_no_descriptor() {
    let supervisor =
        Builder::new().plugin("hello", &program("hello"), &[], "").misbehave(&[], "").start().await;
    let fds = supervisor.client.call("misbehave", "fds", &[]).await.content;
    assert!(!fds.contains(&program("talon").display().to_string()), "{fds}");
    for line in fds.lines() {
        // Its own standard streams, sockets and the runtime's epoll; nothing that leads to a file of ours.
        let target = line.split_once(' ').map_or("", |(_, target)| target);
        let harmless = ["pipe:", "socket:", "anon_inode:", "/dev/null"].iter().any(|p| target.starts_with(p))
            || target.starts_with("/proc/");
        assert!(harmless, "{line} in:\n{fds}");
    }
    // The listening socket that it was handed.
    assert!(fds.lines().any(|line| line.starts_with("0 socket:")), "{fds}");
}

// Promises: LAUNCH-6, LAUNCH-12
#[tokio::test]
async fn it_can_gain_no_privileges_and_dumps_no_core() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let status = supervisor.client.call("misbehave", "status", &[]).await.content;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(field("NoNewPrivs:"), ["1"]);
    if is_root() {
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(field(set), ["0000000000000000"], "{set}");
        }
        assert_eq!(field("Groups:"), Vec::<String>::new());
    }
    let pid = supervisor.client.plugin("misbehave").await.instances[0].pid;
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits"));
    // Not readable by an unprivileged tester once the process is not dumpable, which is what it has to be.
    if let Ok(limits) = limits {
        let of = |name: &str| limits.lines().find(|l| l.starts_with(name)).unwrap_or_default().to_owned();
        // 1 byte: with 0 the kernel still starts a core handler that is a program.
        let core = of("Max core file size");
        assert!(core.contains(" 0 ") || core.contains(" 1 "), "{limits}");
        assert!(of("Max open files").contains("1024"), "{limits}");
    }
}

// Promises: LAUNCH-8
#[tokio::test]
async fn each_plugin_has_a_uid_of_its_own_and_keeps_it() {
    if !is_root() {
        skip(
            "each_plugin_has_a_uid_of_its_own_and_keeps_it",
            "only root may give plugins a uid of their own",
        );
        return;
    }
    let supervisor =
        Builder::new().plugin("hello", &program("hello"), &[], "").misbehave(&[], "").start().await;
    let uid = async |name: &str| supervisor.client.plugin(name).await.instances[0].uid;
    let (hello, misbehave) = (uid("hello").await, uid("misbehave").await);
    assert_ne!(hello, misbehave);
    assert!(hello >= 65_600 && misbehave >= 65_600, "{hello} {misbehave}");
    supervisor.client.stop("misbehave").await.expect("an operator may");
    supervisor.client.start("misbehave").await.expect("an operator may");
    assert_eq!(uid("misbehave").await, misbehave);
}

// Promises: RULE-7
#[tokio::test]
async fn what_cannot_be_enforced_is_said() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let plugin = supervisor.client.plugin("misbehave").await;
    if plugin.not_enforced.is_empty() {
        skip("what_cannot_be_enforced_is_said", "this machine can enforce everything");
        return;
    }
    let status = supervisor.cli(&["status"]).await;
    let text = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(text.to_lowercase().contains("not enforced"), "{text}");
}

// Promises: RULE-4
#[tokio::test]
async fn a_plugin_reaches_no_service_at_all() {
    if !is_root() {
        skip("a_plugin_reaches_no_service_at_all", "plugins share our uid, and so our sockets, without root");
        return;
    }
    let supervisor =
        Builder::new().plugin("hello", &program("hello"), &[], "").misbehave(&[], "").start().await;
    let own = supervisor.client.plugin("misbehave").await.instances[0].uid;
    let mut tried = 0;
    for socket in sockets_below(supervisor.runtime_dir()) {
        use std::os::unix::fs::MetadataExt;
        let found = std::fs::symlink_metadata(&socket).expect("it is there");
        // Its own, and the way to its own state, which bears its group.
        if found.uid() == own || found.gid() == own {
            continue;
        }
        let path = socket.to_str().expect("our paths are text");
        let answer = supervisor.client.call("misbehave", "connect", &[("path", path)]).await;
        assert!(answer.error.contains("No such file"), "{path}: {answer:?}");
        tried += 1;
    }
    assert!(tried >= 2, "host.sock and the neighbour's socket");
}

// Promises: HAND-22
#[tokio::test]
async fn a_flood_on_its_streams_is_bounded_and_counted() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    for stream in ["stdout", "stderr"] {
        let pairs = [("bytes", "30000000"), ("stream", stream)];
        let answer = supervisor.client.call("misbehave", "print", &pairs).await;
        assert_eq!(answer.content, "printed", "{answer:?}");
    }
    let counters = supervisor.client.plugin("misbehave").await.counters.expect("there are counters");
    assert!(counters.log_lines_dropped > 10_000, "{counters:?}");
    let kept = supervisor.client.logs("misbehave").await;
    assert!(kept.len() <= 1001, "{}", kept.len());
}

// Promises: CLI-12, HAND-25
#[tokio::test]
async fn log_lines_cannot_forge_others_and_keep_their_level() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let client = &supervisor.client;
    let lines = [
        "plain \u{1b}[2Jtext\u{1b}[1;1H",
        r#"{"@level":"error","@message":"disk is full","@timestamp":"2026-11-21T10:00:00.000000Z","left":3}"#,
        r#"{"@message":1}"#,
        "[WARN] nearly full",
    ];
    for line in lines {
        client.call("misbehave", "log", &[("text", line)]).await;
    }
    let plain = client.wait_log("misbehave", "plain").await;
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    client.wait_log("misbehave", "nearly full").await;
    let shown = supervisor.cli(&["plugin", "logs", "misbehave", "--output", "json"]).await;
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let level = |words: &str| {
        let line =
            text.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}: {text}"));
        let value: serde_json::Value = serde_json::from_str(line).expect("a line is one JSON value");
        value["level"].as_str().expect("it has a level").to_owned()
    };
    assert_eq!(level("disk is full"), "error");
    assert_eq!(level("nearly full"), "warn");
}

#[tokio::test]
async fn a_full_disk_for_logs_loses_lines_and_nothing_else() {
    if !is_root() {
        skip("a_full_disk_for_logs_loses_lines_and_nothing_else", "only root may mount a small disk");
        return;
    }
    let builder = Builder::new();
    let logs = builder.scratch().join("logs");
    std::fs::create_dir(&logs).expect("the scratch directory takes directories");
    // A disk of 64 KiB, seen by this supervisor alone.
    let mount = format!("mount -t tmpfs -o size=64k,mode=0700 none {} && exec \"$@\"", logs.display());
    let supervisor = builder
        .wrapped(&["unshare", "--mount", "--propagation", "private", "sh", "-c", &mount, "sh"])
        .config(&format!("log:\n  dir: {}", logs.display()))
        .misbehave(&[], "")
        .start()
        .await;
    let client = &supervisor.client;
    for _ in 0..5 {
        let answer = client.call("misbehave", "print", &[("bytes", "100000"), ("stream", "stderr")]).await;
        assert_eq!(answer.content, "printed", "{answer:?}");
    }
    let lost = async |client: &talon_tests::Client| {
        client.plugin("misbehave").await.counters.expect("there are counters").log_lines_dropped > 0
    };
    client.wait_until("lost lines in the books", lost).await;
    let answer = client.call("misbehave", "echo", &[("text", "still here")]).await;
    assert_eq!(answer.content, "still here", "{answer:?}");
    let stopped = supervisor.stop().await;
    assert!(stopped.log.contains("space"), "the full disk is said: {}", stopped.log);
    assert!(stopped.status.success(), "{}", stopped.log);
}
