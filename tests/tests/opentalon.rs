//! OpenTalon's plugins, as they are: a program that serves as its SDK does runs unchanged. What the SDK does
//! was read in its source; the fixture in `tests/go/opentalon` does the same.

use std::path::{Path, PathBuf};

use talon_proto::host::{Outcome, Plugin};
use talon_tests::{Builder, Stopped, Supervisor, alive, go_program, program};

/// One death is enough, and no test waits long.
const ONCE: &str = "max_restarts: 0\nstart_timeout: 15s";
const MIB: usize = 1 << 20;

/// A supervisor with the fixture in this manner; `None` where there is no Go.
async fn with(test: &str, manner: &str, more: &str) -> Option<Supervisor> {
    let fixture = go_program(test, "opentalon")?;
    Some(builder(&fixture, manner, more).start().await)
}

fn builder(fixture: &Path, manner: &str, more: &str) -> Builder {
    let words: Vec<&str> = [manner].into_iter().filter(|word| !word.is_empty()).collect();
    let builder = Builder::new().plugin("hello", &program("hello"), &[], "");
    // The guard passes at most 1 MiB by default, and this is about what comes after it.
    let builder = builder.config("guard:\n  max_argument_bytes: 64MiB");
    let installed = builder.scratch().install(fixture, "opentalon");
    builder.plugin("theirs", &installed, &words, more)
}

async fn shown(supervisor: &Supervisor, what: &str) -> String {
    let answer = supervisor.client.call("theirs", "show", &[("what", what)]).await;
    assert_eq!(answer.outcome(), Outcome::Ok, "{answer:?}");
    answer.content
}

async fn ends_well(supervisor: Supervisor) {
    let Stopped { status, processes, sockets, log, .. } = supervisor.stop().await;
    assert!(status.success(), "{log}");
    assert_eq!((processes, sockets), (Vec::new(), Vec::new()), "{log}");
}

/// It has failed with a reason that holds these words, and its neighbour serves.
async fn fails_saying(supervisor: Supervisor, words: &[&str]) {
    let ended = |p: &Plugin| matches!(p.state.as_str(), "failed" | "refused");
    let plugin = supervisor.client.wait_for("theirs", "failed or refused", ended).await;
    for word in words {
        assert!(plugin.reason.contains(word), "{word:?} is not in the reason: {}", plugin.reason);
    }
    let neighbour = supervisor.client.call("hello", "greet", &[("name", "neighbour")]).await;
    assert!(neighbour.content.contains("neighbour"), "{neighbour:?}");
    ends_well(supervisor).await;
}

// Promises: MCP-17
#[tokio::test]
async fn names_that_are_none_of_an_action_are_escaped_and_called_as_they_are() {
    let test = "names_that_are_none_of_an_action_are_escaped_and_called_as_they_are";
    let Some(supervisor) = with(test, "names", "").await else { return };
    let declared = supervisor.client.show("theirs").await.capabilities.expect("it is ready");
    let names: Vec<&str> = declared.actions.iter().map(|action| action.name.as_str()).collect();
    assert_eq!(&names[..4], ["kv_-2eget", "a_-20b", "_-n", "_-3ctool_call_-3e"], "{names:?}");
    assert!(names.contains(&"keep-id") && names[4].starts_with("xxx") && names[4].len() <= 64, "{names:?}");
    for (action, called) in
        [("kv_-2eget", "kv.get"), ("a_-20b", "a b"), ("_-n", ""), (names[4], &"x".repeat(100))]
    {
        let answer = supervisor.client.call("theirs", action, &[]).await;
        assert_eq!(answer.content, format!("called {called:?}"), "{action}: {answer:?}");
    }
    // Only under the name that it is offered by.
    let refused = supervisor.client.call("theirs", "kv.get", &[]).await;
    assert_ne!(refused.outcome(), Outcome::Ok, "{refused:?}");
    let plugin = supervisor.client.plugin("theirs").await;
    let notes = format!("{plugin:?}");
    assert!(notes.contains("is offered as kv_-2eget") && !notes.contains("<tool_call>"), "{notes}");
    ends_well(supervisor).await;
}

// Promises: OTHER-8
#[tokio::test]
async fn it_is_ready_after_init_and_then_capabilities() {
    let test = "it_is_ready_after_init_and_then_capabilities";
    let Some(supervisor) = with(test, "", "").await else { return };
    // It has no health service: it is judged by its capabilities.
    assert!(shown(&supervisor, "asked").await.starts_with("Init Capabilities"), "in this order");
    assert_eq!(shown(&supervisor, "asked").await.matches("Init").count(), 1, "once");
    assert_eq!(shown(&supervisor, "config").await, "{}", "never an empty text");
    let settings = supervisor.client.show("theirs").await.settings.expect("it has settings");
    assert_eq!(settings.dialect, "opentalon");
    let answer = supervisor.client.call("theirs", "echo", &[("text", "hi")]).await;
    assert_eq!(answer.content, "hi", "{answer:?}");
    ends_well(supervisor).await;
}

#[tokio::test]
async fn its_settings_arrive_as_they_were_written() {
    let test = "its_settings_arrive_as_they_were_written";
    let config = "config: {root: /srv, depth: 3, on: true, list: [a, 1]}";
    let Some(supervisor) = with(test, "", config).await else { return };
    let found: serde_json::Value =
        serde_json::from_str(&shown(&supervisor, "config").await).expect("it is JSON");
    assert_eq!(found, serde_json::json!({ "root": "/srv", "depth": 3, "on": true, "list": ["a", 1] }));
    ends_well(supervisor).await;
}

// Promises: OTHER-9
#[tokio::test]
async fn it_makes_its_socket_in_a_short_directory_of_its_own() {
    let test = "it_makes_its_socket_in_a_short_directory_of_its_own";
    let Some(fixture) = go_program(test, "opentalon") else { return };
    // The deepest runtime directory that is accepted leaves room for the longest name that Go can make.
    let deep = |length: usize| {
        let base = format!("/tmp/talon-{}-", std::process::id());
        PathBuf::from(format!("{base}{}", "d".repeat(length - base.len())))
    };
    let mut taken = None;
    for length in (40..70).rev() {
        let path = deep(length);
        let builder = builder(&fixture, "", "instances: 2").runtime_dir(path.clone());
        if length > 54 {
            let output = builder.start_refused().await;
            assert!(String::from_utf8_lossy(&output.stderr).contains("runtime"), "{length}: {output:?}");
            let _ = std::fs::remove_dir_all(&path);
            if length > 60 {
                continue;
            }
        } else {
            taken = Some((builder.start().await, path));
            break;
        }
    }
    let (supervisor, path) = taken.expect("54 bytes are few enough");
    let tmp = shown(&supervisor, "tmp").await;
    let (directory, entries) = tmp.split_once(' ').expect("a directory and what is in it");
    assert!(directory.starts_with(path.to_str().expect("our paths are text")), "{tmp}");
    assert_eq!(entries.matches("opentalon-plugin-").count(), 1, "the other instance has another: {tmp}");
    let longest = format!("{directory}/opentalon-plugin-4294967295/plugin.sock").len();
    assert!(longest <= 107, "{longest} bytes do not fit into a socket's address");
    ends_well(supervisor).await;
    std::fs::remove_dir_all(path).expect("it is ours");
}

#[tokio::test]
async fn what_it_prints_after_its_line_is_read() {
    let test = "what_it_prints_after_its_line_is_read";
    let Some(supervisor) = with(test, "talks", "").await else { return };
    let answer = supervisor.client.call("theirs", "echo", &[("text", "hi")]).await;
    assert_eq!(answer.content, "hi", "{answer:?}");
    let logs = supervisor.client.logs("theirs").await;
    // Those over the log's rate are dropped; that it got as far as serving means that all were read.
    assert!(logs.iter().any(|line| line.starts_with("line ")), "{} lines", logs.len());
    ends_well(supervisor).await;
}

#[tokio::test]
async fn it_takes_calls_up_to_the_limit_that_it_is_told() {
    let test = "it_takes_calls_up_to_the_limit_that_it_is_told";
    // grpc-go's own limit is 4 MiB; the SDK's is what the environment says, else 32 MiB.
    let Some(supervisor) = with(test, "", "").await else { return };
    assert_eq!(shown(&supervisor, "OPENTALON_GRPC_MAX_MSG_BYTES").await, (8 * MIB).to_string());
    let call = async |supervisor: &Supervisor, bytes: usize| {
        supervisor.client.call("theirs", "size", &[("text", &"x".repeat(bytes))]).await
    };
    let six = call(&supervisor, 6 * MIB).await;
    assert_eq!(six.content, (6 * MIB).to_string(), "{:?}", six.reason);
    let nine = call(&supervisor, 9 * MIB).await;
    assert_ne!(nine.outcome(), Outcome::Ok, "it never reaches the plugin");
    assert!(nine.error.contains("max_message_bytes"), "{}", nine.error);
    ends_well(supervisor).await;

    let more = "max_message_bytes: 32MiB";
    let Some(supervisor) = with(test, "", more).await else { return };
    assert_eq!(shown(&supervisor, "OPENTALON_GRPC_MAX_MSG_BYTES").await, (32 * MIB).to_string());
    let twenty = call(&supervisor, 20 * MIB).await;
    assert_eq!(twenty.content, (20 * MIB).to_string(), "{:?}", twenty.reason);
    ends_well(supervisor).await;
}

#[tokio::test]
async fn an_answer_over_our_limit_is_refused_and_the_next_one_served() {
    let test = "an_answer_over_our_limit_is_refused_and_the_next_one_served";
    // Its SDK bounds what it receives, never what it sends.
    let Some(supervisor) = with(test, "", "").await else { return };
    let large = supervisor.client.call("theirs", "large", &[("bytes", &(12 * MIB).to_string())]).await;
    assert_eq!(large.reason, "too_large", "{}", large.error);
    assert!(large.error.contains("larger than 8388608 bytes") && large.content.is_empty(), "{}", large.error);
    let fits = supervisor.client.call("theirs", "large", &[("bytes", &(6 * MIB).to_string())]).await;
    assert_eq!(fits.outcome(), Outcome::Ok, "{:?}", fits.reason);
    let answer = supervisor.client.call("theirs", "echo", &[("text", "hi")]).await;
    assert_eq!(answer.content, "hi", "{answer:?}");
    ends_well(supervisor).await;
}

// Promises: OTHER-9
#[tokio::test]
async fn no_ping_is_ever_sent_to_it() {
    let test = "no_ping_is_ever_sent_to_it";
    // grpc-go ends connections whose client pings more often than every five minutes, or while nothing is
    // called.
    let often = "health_check_interval: 1s\nhealth_check_timeout: 1s\nhealth_failure_threshold: 1000";
    let Some(supervisor) = with(test, "", often).await else { return };
    let checked =
        async |_: &talon_tests::Client| shown(&supervisor, "asked").await.matches("Capabilities").count() > 3;
    supervisor.client.wait_until("many checks", checked).await;
    for _ in 0..5 {
        supervisor.client.call("theirs", "large", &[("bytes", &(4 * MIB).to_string())]).await;
    }
    assert_eq!(shown(&supervisor, "pings").await, "0");
    let plugin = supervisor.client.plugin("theirs").await;
    let logs = supervisor.client.logs("theirs").await;
    assert_eq!((plugin.state.as_str(), plugin.deaths), ("ready", 0), "{logs:#?}");
    ends_well(supervisor).await;
}

// Promises: OTHER-9
#[tokio::test]
async fn sigint_ends_it_and_nothing_of_it_stays() {
    let test = "sigint_ends_it_and_nothing_of_it_stays";
    let Some(supervisor) = with(test, "", "").await else { return };
    let pid = supervisor.client.plugin("theirs").await.instances[0].pid;
    let stopped = supervisor.client.stop("theirs").await.expect("an operator may");
    assert_eq!(stopped.state, "stopped", "{stopped:?}");
    assert!(!alive(pid));
    let logs = supervisor.client.logs("theirs").await;
    // It installs no handler, so it dies of the first signal, which is the one that its own host sends.
    assert!(!logs.iter().any(|line| line.contains("SIGTERM") || line.contains("SIGKILL")), "{logs:#?}");
    ends_well(supervisor).await;
}

#[tokio::test]
async fn a_panic_kills_it_and_it_comes_back() {
    let test = "a_panic_kills_it_and_it_comes_back";
    let Some(supervisor) = with(test, "", "backoff_initial: 10ms\nbackoff_max: 50ms").await else { return };
    let before = supervisor.client.plugin("theirs").await.instances[0].pid;
    let died = supervisor.client.call("theirs", "panic", &[]).await;
    assert_eq!(died.outcome(), Outcome::HostFault, "{died:?}");
    let back = |p: &Plugin| p.state == "ready" && p.instances[0].pid != before;
    supervisor.client.wait_for("theirs", "back", back).await;
    let logs = supervisor.client.logs("theirs").await;
    assert!(logs.iter().any(|line| line.contains("panic: it was asked to")), "{logs:#?}");
    ends_well(supervisor).await;
}

#[tokio::test]
async fn an_answer_without_the_calls_id_is_thrown_away() {
    let test = "an_answer_without_the_calls_id_is_thrown_away";
    let Some(supervisor) = with(test, "", "").await else { return };
    let answer = supervisor.client.call("theirs", "keep-id", &[]).await;
    assert_ne!(answer.outcome(), Outcome::Ok, "{answer:?}");
    ends_well(supervisor).await;
}

// Promises: WIRE-5
#[tokio::test]
async fn callbacks_are_never_opened_and_plain_calls_work() {
    let test = "callbacks_are_never_opened_and_plain_calls_work";
    let Some(supervisor) = with(test, "callbacks", "").await else { return };
    let answer = supervisor.client.call("theirs", "echo", &[("text", "hi")]).await;
    assert_eq!(answer.content, "hi", "{answer:?}");
    ends_well(supervisor).await;
}

#[tokio::test]
async fn one_that_is_older_than_init_runs_without_settings() {
    let test = "one_that_is_older_than_init_runs_without_settings";
    let Some(supervisor) = with(test, "without-init", "").await else { return };
    let answer = supervisor.client.call("theirs", "echo", &[("text", "hi")]).await;
    assert_eq!(answer.content, "hi", "{answer:?}");
    ends_well(supervisor).await;
    let Some(supervisor) = with(test, "without-init", "config: {root: /srv}").await else { return };
    supervisor.client.wait_log("theirs", "its config was not given to it").await;
    ends_well(supervisor).await;
}

#[tokio::test]
async fn what_init_says_is_told() {
    let test = "what_init_says_is_told";
    let Some(supervisor) = with(test, "refuses-init", ONCE).await else { return };
    fails_saying(supervisor, &["Init", "configure: the setting root is missing"]).await;
}

// Promises: OTHER-11
#[tokio::test]
async fn a_crash_in_init_is_a_crash() {
    let test = "a_crash_in_init_is_a_crash";
    let Some(supervisor) = with(test, "crashes-in-init", ONCE).await else { return };
    let logs = supervisor.client.logs("theirs").await;
    assert!(!logs.iter().any(|line| line.contains("v0.0.1")), "{logs:#?}");
    fails_saying(supervisor, &["exit code 2", "Init"]).await;
}

// Promises: OTHER-8
#[tokio::test]
async fn init_has_the_start_timeout_and_no_more() {
    let test = "init_has_the_start_timeout_and_no_more";
    let Some(supervisor) = with(test, "slow-init", ONCE).await else { return };
    fails_saying(supervisor, &["15 s", "Init"]).await;
}
