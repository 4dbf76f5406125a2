//! What goes wrong before a plugin is ready, one test a fault. Each plugin fails with a reason that names the
//! fault, and its neighbour serves on.

use talon_tests::{Builder, Supervisor, is_root, program, skip};

/// Short enough that a plugin which never gets ready is given up soon; long enough for a loaded machine.
const SHORT_START: &str = "start_timeout: 3s\nmax_restarts: 0";

async fn with_lie(lie: &str, more: &[&str]) -> Supervisor {
    let mut args = vec!["--lie", lie];
    args.extend(more);
    Builder::new().plugin("hello", &program("hello"), &[], "").misbehave(&args, SHORT_START).start().await
}

/// The plugin has failed, or was refused where another try would end the same way; its reason holds the
/// words, and nothing of it runs.
async fn fails_saying(supervisor: Supervisor, words: &[&str]) {
    let ended = |p: &talon_proto::host::Plugin| matches!(p.state.as_str(), "failed" | "refused");
    let plugin = supervisor.client.wait_for("misbehave", "failed or refused", ended).await;
    for word in words {
        assert!(plugin.reason.contains(word), "{word:?} is not in the reason: {}", plugin.reason);
    }
    assert!(plugin.reason.len() < 4096, "a reason of {} bytes is not bounded", plugin.reason.len());
    assert!(!plugin.reason.chars().any(|c| c.is_control() && c != '\n'), "{:?}", plugin.reason);
    let refused = supervisor.client.call("misbehave", "echo", &[("text", "x")]).await;
    assert_eq!(refused.reason, "unavailable", "{refused:?}");
    let neighbour = supervisor.client.call("hello", "greet", &[("name", "neighbour")]).await;
    assert!(neighbour.content.contains("neighbour"), "{neighbour:?}");
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
    assert_eq!(stopped.processes, Vec::<u32>::new());
    assert_eq!(stopped.sockets, Vec::<std::path::PathBuf>::new());
}

macro_rules! start_faults {
    ($($name:ident: $lie:literal says $words:expr;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                fails_saying(with_lie($lie, &[]).await, &$words).await;
            }
        )*
    };
}

start_faults! {
    // Promises: BAD-1
    exits_at_once: "exit-at-once" says ["exit code 3", "I give up at once"];
    // Promises: BAD-1
    exits_with_0_and_says_nothing: "exit-zero" says ["exit code 0", "handshake"];
    // Promises: BAD-1
    crashes_at_once: "crash" says ["SIGABRT"];
    // Promises: BAD-2
    says_nothing: "silent" says ["handshake", "3 s"];
    // Promises: BAD-2
    says_garbage: "garbage" says ["handshake", "3 s"];
    // Promises: BAD-2
    says_bytes_that_are_no_text: "binary" says ["handshake"];
    // Promises: BAD-2
    says_half_a_line: "half-line" says ["handshake"];
    // Promises: BAD-2
    says_a_line_of_a_gigabyte: "endless-line" says ["handshake"];
    // Promises: BAD-2, HAND-7
    says_banners_for_ever: "endless-banner" says ["handshake"];
    // Promises: BAD-3
    speaks_another_core_protocol: "wrong-core" says ["handshake", "version 2", "version 1"];
    // Promises: BAD-3
    speaks_another_app_version: "wrong-version" says ["99", "1"];
    // Promises: BAD-3, HAND-12
    speaks_netrpc: "net-rpc" says ["netrpc", "grpc"];
    // Promises: HAND-13
    offers_a_certificate_unasked: "tls" says ["TLS"];
    // Promises: HAND-13
    multiplexes_unasked: "multiplexed" says ["multiplex"];
    // Promises: BAD-4, HAND-19
    names_a_tcp_address: "tcp" says ["tcp", "allow_tcp"];
    // Promises: BAD-4, HAND-15
    names_a_file_that_is_no_socket: "not-a-socket" says ["socket"];
    // Promises: BAD-4
    names_a_socket_that_nobody_made: "missing-socket" says ["misbehave.sock"];
    // Promises: BAD-4
    names_an_address_of_10_000_characters: "long-address" says ["handshake"];
    // Promises: BAD-4, HAND-15
    names_the_root: "root-address" says ["socket"];
    // Promises: BAD-5, HAND-8
    hangs_after_the_handshake: "hang-after" says ["3 s"];
    // Promises: BAD-5
    closes_its_socket: "close-socket" says ["connect"];
    // Promises: BAD-3
    speaks_no_http2: "not-grpc" says [""];
    // Promises: BAD-5
    exits_after_the_handshake: "exit-after" says ["exit code 4"];
    // Promises: BAD-6, HAND-29
    refuses_init: "init-fails" says ["Init", "the setting root is missing"];
    // Promises: BAD-6, LIFE-11
    never_answers_capabilities: "capabilities-hang" says ["3 s"];
    // Promises: LIFE-12
    is_never_healthy: "never-healthy" says ["SERVING"];
    // Promises: BAD-7
    declares_5_000_actions: "too-many-actions" says ["actions"];
    // Promises: BAD-7
    declares_an_action_twice: "duplicate-actions" says ["echo", "twice"];
    // Promises: BAD-7
    declares_hostile_names: "hostile-names" says ["name"];
}

// Promises: HAND-14
#[tokio::test]
async fn names_the_socket_of_somebody_else() {
    let listener = Builder::new();
    let foreign = listener.scratch().join("foreign.sock");
    let _theirs =
        std::os::unix::net::UnixListener::bind(&foreign).expect("the scratch directory takes a socket");
    let path = foreign.to_str().expect("our paths are text");
    for lie in ["foreign-socket", "linked-socket"] {
        let supervisor = with_lie(lie, &["--path", path]).await;
        fails_saying(supervisor, &["socket"]).await;
    }
}

// Promises: HAND-6
#[tokio::test]
async fn a_banner_before_the_handshake_is_tolerated_and_logged() {
    let supervisor = with_lie("banner", &[]).await;
    let answer = supervisor.client.call("misbehave", "echo", &[("text", "hi")]).await;
    assert_eq!(answer.content, "hi", "{answer:?}");
    let lines = supervisor.client.logs("misbehave").await;
    assert!(lines.iter().any(|line| line.contains("Loading settings")), "{lines:#?}");
}

// Promises: HAND-1
#[tokio::test]
async fn both_dialects_and_the_smallest_plugin_are_served() {
    for args in
        [&["--dialect", "opentalon", "--no-health"][..], &["--minimal", "--no-health"], &["--no-health"]]
    {
        let supervisor = Builder::new().misbehave(args, SHORT_START).start().await;
        let answer = supervisor.client.call("misbehave", "echo", &[("text", "hi")]).await;
        assert_eq!(answer.content, "hi", "{args:?}: {answer:?}");
        let stopped = supervisor.stop().await;
        assert_eq!(stopped.processes, Vec::<u32>::new(), "{args:?}");
    }
}

// Promises: LIFE-8
#[tokio::test]
async fn a_plugin_that_crashes_in_its_handshake_is_not_started_for_ever() {
    let supervisor = Builder::new()
        .misbehave(&["--lie", "exit-at-once"], "max_restarts: 3\nbackoff_initial: 10ms\nbackoff_max: 20ms")
        .start()
        .await;
    let plugin = supervisor.client.wait_state("misbehave", "failed").await;
    assert_eq!(plugin.deaths, 4, "the first start and three restarts died: {plugin:?}");
    assert!(plugin.reason.contains("talon plugin start misbehave"), "{}", plugin.reason);
}

// Promises: HAND-9
#[tokio::test]
async fn no_more_plugins_start_at_once_than_they_may() {
    let mut builder = Builder::new().tools("start_concurrency: 1").without_waiting();
    for name in ["one", "two", "three"] {
        builder = builder.plugin(
            name,
            &program("misbehave"),
            &["--lie", "silent"],
            "start_timeout: 1s\nmax_restarts: 0",
        );
    }
    let supervisor = builder.start().await;
    let all_failed = async |client: &talon_tests::Client| {
        let plugins = client.list().await;
        let running = plugins.iter().flat_map(|p| &p.instances).filter(|i| i.pid != 0).count();
        assert!(running <= 1, "{plugins:#?}");
        plugins.iter().all(|p| p.state == "failed")
    };
    supervisor.client.wait_until("three failed plugins", all_failed).await;
}

// Promises: CLI-52
#[tokio::test]
async fn a_start_without_a_descriptor_names_the_limit_and_works_once_there_are_some() {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    /// More than the supervisor has open with one plugin, and fewer than clients may make it open.
    const LIMIT: usize = 128;
    if !is_root() {
        let test = "a_start_without_a_descriptor_names_the_limit_and_works_once_there_are_some";
        skip(test, "it counts the supervisor's descriptors, which the kernel shows to root only");
        return;
    }
    let limit = format!("ulimit -n {LIMIT}; exec \"$0\" \"$@\"");
    let supervisor =
        Builder::new().misbehave(&[], "max_restarts: 0").wrapped(&["sh", "-c", &limit]).start().await;
    supervisor.client.stop("misbehave").await.expect("it stops");
    let open = || std::fs::read_dir(format!("/proc/{}/fd", supervisor.pid())).expect("it runs").count();
    let mut clients = Vec::new();
    while open() < LIMIT {
        let mut client = UnixStream::connect(supervisor.socket()).expect("it listens");
        // The preface and SETTINGS: a client that says nothing is cut off.
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").expect("it reads");
        client.set_read_timeout(Some(std::time::Duration::from_secs(1))).expect("it is a socket");
        // Its SETTINGS, once it was accepted. The last client waits in the queue.
        let _ = client.read(&mut [0; 9]);
        clients.push(client);
    }
    let refused = supervisor.client.start("misbehave").await.expect_err("there is no descriptor for it");
    let text = refused.message();
    assert!(text.contains("no descriptor is left") && text.contains("LimitNOFILE="), "{text}");
    drop(clients);
    talon_tests::until("descriptors", || open() < LIMIT / 2).await;
    supervisor.client.start("misbehave").await.expect("there are descriptors");
    let answer = supervisor.client.call("misbehave", "echo", &[("text", "x")]).await;
    assert_eq!(answer.content, "x", "{answer:?}");
    assert!(supervisor.stop().await.status.success());
}
