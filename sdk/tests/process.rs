//! The SDK as a process: `examples/everything.rs` under the mock host.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use talon_sdk::proto::ToolCallRequest;
use talon_sdk::testing::{Events, Host, LaunchError, MemoryState};

/// Cargo builds examples beside the tests and tells no path to them.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let profile = test.parent().and_then(|deps| deps.parent()).expect("target/profile/deps/test");
    profile.join("examples/everything")
}

async fn launch() -> Host {
    Host::launch(program()).await.expect("launches")
}

// Promises: SDK-14, SDK-19
#[tokio::test]
async fn a_plugin_serves_and_ends_when_asked() {
    let host = launch().await;
    assert!(host.is_serving().await.expect("answers"));
    let told = host.capabilities().await.expect("answers");
    let names: Vec<&str> = told.actions.iter().map(|action| action.name.as_str()).collect();
    assert_eq!(names, ["keep", "recall", "print-lines", "wait", "fall", "fail", "tell"]);
    assert_eq!(told.actions[0].description, "Keeps a note for later.");
    assert_eq!(told.actions[0].parameters[1].description, "What to keep.");
    let socket = host.socket().to_owned();
    assert_eq!(host.refresh_capabilities().await.expect("answers"), None);
    assert!(host.shutdown().await.expect("ends").success());
    assert!(!socket.exists(), "its socket goes with it");
}

// Promises: SDK-14
#[tokio::test]
async fn sigterm_ends_it_as_well() {
    let host = launch().await;
    let status = host.terminate().await.expect("ends");
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn state_is_kept_by_the_host() {
    let state = MemoryState::new();
    let host = Host::builder(program()).config(json!({"prefix": "> "})).state(&state).launch().await;
    let host = host.expect("launches");
    for number in 0..250 {
        state.set(&format!("old-{number:03}"), "\"x\"");
    }
    let answer = host.call("keep", json!({"key": "a", "text": "hello"})).await.expect("answers");
    assert_eq!(answer.content, "kept; 251 notes now", "{answer:?}");
    assert_eq!(state.get("a").expect("kept"), b"\"> hello\"");
    let answer = host.call("recall", json!({"key": "a"})).await.expect("answers");
    assert_eq!(answer.structured, Some(json!("> hello")));
}

#[tokio::test]
async fn a_host_without_state_is_named_as_the_reason() {
    let host = launch().await;
    let answer = host.call("keep", json!({"key": "a", "text": "b"})).await.expect("answers");
    assert_eq!(answer.error.as_deref(), Some("notes need a host that keeps state"));
    let line = host.wait_for_log("serves no state").await;
    assert!(
        line.contains("TALON_STATE_SOCKET is not set") && line.contains("\"call_id\":\"test-call-0\""),
        "{line}"
    );
}

// Promises: SDK-15
#[tokio::test]
async fn a_bad_config_is_refused_at_init() {
    for (config, says) in [
        (json!({"prefx": "x"}), "unknown field `prefx`, expected `prefix`"),
        (json!({"prefix": 1}), "expected a string"),
        (json!({"prefix": "a\nb"}), "prefix must be one line"),
    ] {
        match Host::builder(program()).config(config).launch().await {
            Err(LaunchError::Init(status)) => assert!(status.message().contains(says), "{status:?}"),
            other => panic!("expected a refusal with {says:?}, got {other:?}"),
        }
    }
}

// Promises: SDK-16
#[tokio::test]
async fn what_tools_print_neither_blocks_nor_forges_a_handshake() {
    let host = launch().await;
    let answer = host.call("print-lines", json!({"count": 20_000})).await.expect("answers");
    assert_eq!(answer.content, "printed 20000");
}

// Promises: SDK-6
#[tokio::test]
async fn a_caller_that_goes_away_cancels_the_call() {
    let host = launch().await;
    let request = ToolCallRequest {
        id: "gone".to_owned(),
        plugin: String::new(),
        action: "wait".to_owned(),
        ..Default::default()
    };
    tokio::select! {
        answer = host.execute(request) => panic!("it never answers: {answer:?}"),
        line = host.wait_for_log("the wait begins") => assert!(line.contains("\"@level\":\"info\""), "{line}"),
    }
    host.wait_for_log("the wait was dropped").await;
    assert!(host.is_serving().await.expect("lives on"));
}

// Promises: SDK-6
#[tokio::test]
async fn a_deadline_ends_the_call_in_the_plugin() {
    let host = launch().await;
    let timeout = Duration::from_millis(100);
    host.call_within("wait", json!({}), timeout).await.expect_err("times out");
    host.wait_for_log("the wait was dropped").await;
}

// Promises: SDK-8
#[tokio::test]
async fn a_panic_is_logged_with_its_place_and_the_process_lives() {
    let host = launch().await;
    let error = host.call("fall", json!({})).await.expect_err("a fault").to_string();
    assert!(error.contains("tool `fall` panicked"), "{error}");
    let line = host.wait_for_log("fell on purpose").await;
    assert!(line.contains("\"@level\":\"error\"") && line.contains("everything.rs:"), "{line}");
    assert!(host.is_serving().await.expect("lives on"));
}

// Promises: SDK-7
#[tokio::test]
async fn a_private_error_is_in_the_log_and_nowhere_else() {
    let host = launch().await;
    let answer = host.call("fail", json!({})).await.expect("answers");
    assert_eq!(answer.error.as_deref(), Some("the tool failed; the plugin's log says why"));
    host.wait_for_log("No such file or directory").await;
}

// Promises: SDK-19
#[tokio::test]
async fn dropping_the_host_kills_the_plugin() {
    let host = launch().await;
    let pid = rustix::process::Pid::from_raw(host.pid()).expect("a pid");
    let process = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).expect("it lives");
    let socket = host.socket().to_owned();
    drop(host);
    assert!(!socket.exists(), "its directory goes too");
    let mut exit = [rustix::event::PollFd::new(&process, rustix::event::PollFlags::IN)];
    // A pidfd is readable once its process has ended; the test's own timeout bounds the wait.
    rustix::event::poll(&mut exit, None).expect("polled");
}

// Promises: SDK-19
#[tokio::test]
async fn a_program_that_is_no_plugin_is_told_apart() {
    let ended = Host::launch("/bin/false").await.expect_err("no plugin").to_string();
    assert!(ended.contains("before its handshake"), "{ended}");
    let missing = Host::launch("/nonexistent/plugin").await.expect_err("nothing").to_string();
    assert!(missing.contains("cannot start /nonexistent/plugin"), "{missing}");
    let other = Host::builder("/bin/echo").arg("hello").launch().await.expect_err("no plugin").to_string();
    assert!(other.contains("got \"hello\""), "{other}");
    let silent = Host::builder("/bin/sleep").arg("600").start_timeout(Duration::from_millis(50));
    let silent = silent.launch().await.expect_err("no plugin").to_string();
    assert!(silent.contains("no handshake line within 50ms"), "{silent}");
}

// Promises: EXT-153
#[tokio::test]
async fn an_event_comes_again_until_it_is_acknowledged() {
    let host = launch().await;
    let mut first = host.events().await.expect("it tells events");
    let tell = |id: &'static str| host.call("tell", json!({"id": id}));
    let next = async |events: &mut Events| events.next().await.expect("it is whole").expect("there is one");
    let hosts_side = async {
        let (one, two) = (next(&mut first).await, next(&mut first).await);
        let mut second = host.events().await.expect("it tells events");
        assert_eq!([next(&mut second).await.id(), next(&mut second).await.id()], [one.id(), two.id()]);
        assert!(first.next().await.expect("it ends in order").is_none(), "another one subscribed");
        second.acknowledge("of nothing").await.expect("it is passed over");
        second.acknowledge("a").await.expect("it is taken");
        second.refuse("b", "too loud").await.expect("it is taken");
        (one, two)
    };
    let (a, b, (one, two)) = tokio::join!(tell("a"), tell("b"), hosts_side);
    assert_eq!(a.expect("answers").content, "the host has it");
    assert_eq!(b.expect("answers").error.as_deref(), Some("the host refuses the event: too loud"));
    for told in [one, two] {
        assert_eq!(
            (told.topic(), told.summary(), told.value("by")),
            ("everything", "It happened", Some("tell"))
        );
    }
    assert!(host.shutdown().await.expect("ends").success());
}
