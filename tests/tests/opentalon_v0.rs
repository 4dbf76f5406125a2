//! The oldest OpenTalon plugins, those of v0.0.1: after their line they use length-prefixed JSON. They are
//! recognised by that, run behind `talon-framed-bridge` in their jail, and are plugins like any other; each
//! kind of misbehaviour gets a separate error.

use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talon_proto::host::{ExecuteRequest, ExecuteResponse, Outcome, Plugin};
use talon_tests::{
    Builder, Client, Stopped, Supervisor, alive, args, descendants, program, repository, skip,
};

const PYTHON: &str = "/usr/bin/python3";
/// One death is enough.
const ONCE: &str = "max_restarts: 0";
const QUICK: &str = "backoff_initial: 10ms\nbackoff_max: 50ms";

fn is_missing(test: &str) -> bool {
    let missing = !std::path::Path::new(PYTHON).exists();
    if missing {
        skip(test, &format!("there is no {PYTHON} (tests/scripts/deps.sh test installs python3)"));
    }
    missing
}

/// A supervisor with the fixture, which breaks the protocol in this way, and a neighbour.
fn with(lie: &str, more: &str) -> Builder {
    let builder = Builder::new().plugin("hello", &program("hello"), &[], "");
    let fixture = installed(&builder);
    let words: Vec<&str> = [lie].into_iter().filter(|word| !word.is_empty()).collect();
    builder.plugin("old", &fixture, &words, more)
}

fn installed(builder: &Builder) -> PathBuf {
    builder.scratch().install(&repository().join("tests/opentalon/v0.py"), "v0.py")
}

async fn hello(supervisor: &Supervisor) {
    let answer = supervisor.client.call("old", "hello", &[("name", "world")]).await;
    assert_eq!((answer.content.as_str(), answer.error.as_str()), ("Hello, world!", ""), "{answer:?}");
}

async fn the_neighbour_serves_on(supervisor: &Supervisor) {
    let answer = supervisor.client.call("hello", "greet", &[("name", "neighbour")]).await;
    assert!(answer.content.contains("neighbour"), "{answer:?}");
}

async fn ends_well(supervisor: Supervisor) {
    let Stopped { status, processes, sockets, log, .. } = supervisor.stop().await;
    assert!(status.success(), "{log}");
    assert_eq!((processes, sockets), (Vec::new(), Vec::new()), "{log}");
}

async fn dialect(supervisor: &Supervisor) -> String {
    supervisor.client.show("old").await.settings.expect("it has settings").dialect
}

fn started(logs: &[String]) -> usize {
    logs.iter().filter(|line| line.contains("started as pid")).count()
}

// Promises: OTHER-10
#[tokio::test]
async fn it_is_told_from_the_others_and_served() {
    if is_missing("it_is_told_from_the_others_and_served") {
        return;
    }
    for configured in ["", "dialect: opentalon"] {
        let supervisor = with("", &format!("{QUICK}\n{configured}")).start().await;
        hello(&supervisor).await;
        assert_eq!(dialect(&supervisor).await, "opentalon-v0", "{configured:?}");
        let shown = supervisor.cli(&["plugin", "show", "old"]).await;
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("opentalon-v0") && shown.contains("Greets, and shows"), "{shown}");

        // Within one start, after the first process was cleared away.
        let plugin = supervisor.client.plugin("old").await;
        assert_eq!((plugin.deaths, plugin.instances[0].generation), (0, 1), "{plugin:?}");
        let logs = supervisor.client.logs("old").await;
        assert_eq!(started(&logs), 2, "{logs:#?}");
        assert!(
            logs.iter().any(|line| line.contains("OpenTalon v0.0.1") && line.contains("again")),
            "{logs:#?}"
        );
        assert!(logs.iter().any(|line| line.contains("what it prints later")), "{logs:#?}");

        // The next start knows.
        let old = plugin.instances[0].pid;
        kill(Pid::from_raw(old.cast_signed()), Signal::SIGKILL).expect("it runs");
        let back = |p: &Plugin| p.state == "ready" && p.instances[0].pid != old;
        supervisor.client.wait_for("old", "back", back).await;
        hello(&supervisor).await;
        assert_eq!(started(&supervisor.client.logs("old").await), 3);
        assert_eq!(dialect(&supervisor).await, "opentalon-v0");
        ends_well(supervisor).await;
    }
}

#[tokio::test]
async fn with_its_dialect_written_down_it_is_started_once() {
    if is_missing("with_its_dialect_written_down_it_is_started_once") {
        return;
    }
    let supervisor = with("", "dialect: opentalon-v0").start().await;
    hello(&supervisor).await;
    let logs = supervisor.client.logs("old").await;
    assert_eq!(started(&logs), 1, "{logs:#?}");
    assert_eq!(dialect(&supervisor).await, "opentalon-v0");

    let declared = supervisor.client.show("old").await.capabilities.expect("it is ready");
    let names: Vec<&str> = declared.actions.iter().map(|action| action.name.as_str()).collect();
    assert_eq!(names, ["hello", "environment", "wait", "rendezvous", "fail", "die"]);
    let name = &declared.actions[0].parameters[0];
    assert_eq!((name.name.as_str(), name.r#type.as_str(), name.required), ("name", "string", true));
    let missing = supervisor.client.call("old", "hello", &[]).await;
    assert_eq!(missing.outcome(), Outcome::Refused, "the guard knows its parameters: {missing:?}");
    let says_no = supervisor.client.call("old", "fail", &[]).await;
    assert_eq!(
        (says_no.outcome(), says_no.error.as_str()),
        (Outcome::ToolError, "it says no"),
        "{says_no:?}"
    );
    ends_well(supervisor).await;
}

#[tokio::test]
async fn a_program_that_was_exchanged_is_asked_anew() {
    let test = "a_program_that_was_exchanged_is_asked_anew";
    if is_missing(test) {
        return;
    }
    let supervisor = with("", QUICK).start().await;
    assert_eq!(dialect(&supervisor).await, "opentalon-v0");
    // The same name, another program: our own, which speaks gRPC.
    let hello = program("hello");
    let new = supervisor.scratch.install(&hello, "v0.py.new");
    std::fs::rename(new, supervisor.scratch.join("v0.py")).expect("the scratch directory is ours");
    supervisor.client.stop("old").await.expect("an operator may");
    let ready = supervisor.client.start("old").await.expect("an operator may");
    assert_eq!(ready.state, "ready", "{ready:?}");
    assert_eq!(dialect(&supervisor).await, "go-plugin");
    let answer = supervisor.client.call("old", "greet", &[("name", "you")]).await;
    assert!(answer.content.contains("you"), "{answer:?}");
}

#[tokio::test]
async fn it_finds_a_clean_environment_and_a_short_place_of_its_own() {
    if is_missing("it_finds_a_clean_environment_and_a_short_place_of_its_own") {
        return;
    }
    let supervisor = with("", "dialect: opentalon-v0\nenv: {GREETING: hi}").start().await;
    let answer = supervisor.client.call("old", "environment", &[]).await;
    let found: std::collections::BTreeMap<String, String> =
        serde_json::from_str(&answer.content).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    assert_eq!(found["GREETING"], "hi");
    let ours = |name: &&String| name.starts_with("PLUGIN_") || name.starts_with("TALON_PLUGIN_");
    assert_eq!(found.keys().find(ours), None, "{found:#?}");
    assert!(!found.contains_key("TALON_LISTEN_FD"), "{found:#?}");
    let tmp = &found["TMPDIR"];
    assert!(tmp.starts_with(supervisor.runtime_dir().to_str().expect("our paths are text")), "{tmp}");
    assert!(tmp.ends_with("/t/0"), "{tmp}");
    assert!(found.contains_key("TALON_STATE_SOCKET"), "its key-values are its own: {found:#?}");
    ends_well(supervisor).await;
}

// Promises: OTHER-10
#[tokio::test]
async fn the_bridge_and_its_program_have_one_jail() {
    if is_missing("the_bridge_and_its_program_have_one_jail") {
        return;
    }
    let supervisor = with("", "dialect: opentalon-v0").start().await;
    let plugin = supervisor.client.plugin("old").await;
    let bridge = plugin.instances[0].pid;
    let children: Vec<u32> = descendants(bridge).into_iter().collect();
    let &[child] = children.as_slice() else { panic!("one child: {children:?}") };
    for of in ["ns/pid", "ns/net", "ns/mnt", "cgroup", "loginuid"] {
        let read = |pid: u32| {
            let path = format!("/proc/{pid}/{of}");
            std::fs::read_link(&path)
                .map(|link| link.display().to_string())
                .or_else(|_| std::fs::read_to_string(&path))
        };
        assert_eq!(read(bridge).ok(), read(child).ok(), "{of}");
    }
    assert!(plugin.instances[0].uid == supervisor.client.plugin("old").await.instances[0].uid);
    ends_well(supervisor).await;
    assert!(!alive(bridge) && !alive(child));
}

#[tokio::test]
async fn calls_run_at_once_and_one_that_is_given_up_is_told() {
    if is_missing("calls_run_at_once_and_one_that_is_given_up_is_told") {
        return;
    }
    let supervisor = with("", "dialect: opentalon-v0").start().await;
    let (one, other) = tokio::join!(
        supervisor.client.call("old", "rendezvous", &[]),
        supervisor.client.call("old", "rendezvous", &[]),
    );
    assert_eq!((one.content.as_str(), other.content.as_str()), ("together", "together"), "{one:?} {other:?}");

    let late = timed(&supervisor.client, "wait", 300).await;
    assert_eq!((late.outcome(), late.reason.as_str()), (Outcome::HostFault, "timed_out"), "{late:?}");
    supervisor.client.wait_log("old", "is gone").await;
    hello(&supervisor).await;
    ends_well(supervisor).await;
}

async fn timed(client: &Client, action: &str, timeout_ms: u64) -> ExecuteResponse {
    let pairs: &[(&str, &str)] = if action == "hello" { &[("name", "x")] } else { &[] };
    let request = ExecuteRequest {
        plugin: "old".to_owned(),
        action: action.to_owned(),
        args: args(pairs),
        timeout_ms,
        ..ExecuteRequest::default()
    };
    client.execute(request).await.expect("the supervisor answers")
}

#[tokio::test]
async fn a_program_that_serves_one_connection_after_the_other_does_not_hang() {
    if is_missing("a_program_that_serves_one_connection_after_the_other_does_not_hang") {
        return;
    }
    let supervisor = with("one-after-the-other", "dialect: opentalon-v0").start().await;
    let calls = tokio::join!(hello(&supervisor), hello(&supervisor), hello(&supervisor), hello(&supervisor));
    assert_eq!(calls, ((), (), (), ()));
    ends_well(supervisor).await;
}

#[tokio::test]
async fn when_its_program_dies_the_bridge_ends_and_both_come_back() {
    if is_missing("when_its_program_dies_the_bridge_ends_and_both_come_back") {
        return;
    }
    let supervisor = with("", &format!("dialect: opentalon-v0\n{QUICK}")).start().await;
    let before = supervisor.client.plugin("old").await.instances[0].pid;
    let died = supervisor.client.call("old", "die", &[]).await;
    assert!(!died.error.is_empty() && died.content.is_empty(), "{died:?}");
    let back = |p: &Plugin| p.state == "ready" && p.instances[0].pid != before;
    let plugin = supervisor.client.wait_for("old", "back", back).await;
    assert_eq!(plugin.deaths, 1);
    let logs = supervisor.client.logs("old").await;
    for said in ["it was asked to die", "ended while it served (exit status: 7)"] {
        assert!(logs.iter().any(|line| line.contains(said)), "{said:?} is not in {logs:#?}");
    }
    hello(&supervisor).await;
    ends_well(supervisor).await;
}

#[tokio::test]
async fn it_takes_no_settings_and_says_so() {
    if is_missing("it_takes_no_settings_and_says_so") {
        return;
    }
    let supervisor =
        with("", &format!("dialect: opentalon-v0\nconfig: {{root: /srv}}\n{ONCE}")).start().await;
    fails_saying(supervisor, &["this plugin takes no config", "`root`"]).await;
}

/// The plugin has failed with a reason that holds these words and is bounded, and its neighbour serves.
async fn fails_saying(supervisor: Supervisor, words: &[&str]) {
    let ended = |p: &Plugin| matches!(p.state.as_str(), "failed" | "refused");
    let plugin = supervisor.client.wait_for("old", "failed or refused", ended).await;
    for word in words {
        assert!(plugin.reason.contains(word), "{word:?} is not in the reason: {}", plugin.reason);
    }
    assert!(plugin.reason.len() < 4096, "a reason of {} bytes is not bounded", plugin.reason.len());
    assert!(!plugin.reason.chars().any(char::is_control), "{:?}", plugin.reason);
    the_neighbour_serves_on(&supervisor).await;
    ends_well(supervisor).await;
}

macro_rules! start_faults {
    ($($name:ident: $lie:literal, $dialect:literal says $words:expr;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                if is_missing(stringify!($name)) {
                    return;
                }
                let more = format!("dialect: {}\nstart_timeout: 15s\n{ONCE}", $dialect);
                fails_saying(with($lie, &more).start().await, &$words).await;
            }
        )*
    };
}

start_faults! {
    crashes_at_once: "crashes", "opentalon-v0" says ["before its handshake line", "exit status: 3"];
    crashes_when_asked: "crashes-when-asked", "opentalon-v0" says ["before it declared its capabilities", "exit status: 4"];
    a_crash_is_not_taken_for_the_oldest_protocol: "crashes-when-asked", "auto" says ["exit code 4", "it cannot bear to be asked"];
    never_tells_its_capabilities: "silent-about-itself", "opentalon-v0" says ["5 s", "for its capabilities"];
    tells_nothing_of_itself: "no-capabilities", "opentalon-v0" says ["holds no caps"];
}

#[tokio::test]
async fn behind_the_bridge_a_go_plugin_is_told_to_go_without() {
    let supervisor = Builder::new().plugin("hello", &program("hello"), &[], "").plugin(
        "old",
        &program("hello"),
        &[],
        &format!("dialect: opentalon-v0\n{ONCE}"),
    );
    // Without its cookie it says that it is no program to run by hand, and ends.
    fails_saying(supervisor.start().await, &["before its handshake line"]).await;
}

#[tokio::test]
async fn without_the_bridge_it_is_said_what_is_missing() {
    if is_missing("without_the_bridge_it_is_said_what_is_missing") {
        return;
    }
    let builder = with("", ONCE);
    let nowhere = builder.scratch().join("nowhere");
    std::fs::create_dir(&nowhere).expect("the scratch directory takes directories");
    let supervisor = builder.tools(&format!("bridge_dir: {}", nowhere.display())).start().await;
    fails_saying(supervisor, &["talon-framed-bridge"]).await;
}

// Promises: MCP-17
#[tokio::test]
async fn names_that_are_none_of_an_action_are_escaped_and_called_as_they_are() {
    if is_missing("names_that_are_none_of_an_action_are_escaped_and_called_as_they_are") {
        return;
    }
    let supervisor = with("hostile-names", "dialect: opentalon-v0").start().await;
    hello(&supervisor).await;
    let declared = supervisor.client.show("old").await.capabilities.expect("it is ready");
    let names: Vec<&str> = declared.actions.iter().map(|action| action.name.as_str()).collect();
    let own = ["hello", "environment", "wait", "rendezvous", "fail", "die"];
    assert_eq!((&names[..6], names.len()), (&own[..], 13), "{names:?}");
    assert!(
        ["_-n", "a_-20b", "a__b", "_-3ctool_call_-3e"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
    let long = names.iter().find(|name| name.starts_with("xxx")).expect("it is shortened");
    for (action, characters) in [("_-n", 0), ("a_-20b", 3), ("_-3ctool_call_-3e", 11), (long, 100)] {
        let answer = supervisor.client.call("old", action, &[]).await;
        assert_eq!(answer.content, format!("called by {characters} characters"), "{action}: {answer:?}");
    }
    let logs = supervisor.client.logs("old").await;
    // The second `hello`.
    assert_eq!(logs.iter().filter(|line| line.contains("is left out")).count(), 1, "{logs:#?}");
    assert_eq!(logs.iter().filter(|line| line.contains("is offered as")).count(), 6, "{logs:#?}");
    assert!(logs.iter().all(|line| !line.contains('\u{202e}') && !line.contains("<tool_call>")), "{logs:#?}");
    let supervisor_with_many = with("too-many-actions", "dialect: opentalon-v0").start().await;
    let declared = supervisor_with_many.client.show("old").await.capabilities.expect("it is ready");
    assert_eq!(declared.actions.len(), 1024);
}

#[tokio::test]
async fn a_flood_on_both_streams_holds_nothing_up() {
    if is_missing("a_flood_on_both_streams_holds_nothing_up") {
        return;
    }
    let supervisor = with("floods", "dialect: opentalon-v0").start().await;
    for _ in 0..20 {
        hello(&supervisor).await;
        the_neighbour_serves_on(&supervisor).await;
    }
    let logs = supervisor.client.logs("old").await;
    assert!(logs.len() < 20_000 && logs.iter().all(|line| line.len() < 16 << 10), "{} lines", logs.len());
    ends_well(supervisor).await;
}

#[tokio::test]
async fn a_program_that_closes_its_output_is_served_on() {
    if is_missing("a_program_that_closes_its_output_is_served_on") {
        return;
    }
    let supervisor = with("closes-output", "dialect: opentalon-v0").start().await;
    hello(&supervisor).await;
    ends_well(supervisor).await;
}

#[tokio::test]
async fn every_lie_during_a_call_is_an_error_of_that_call_alone() {
    if is_missing("every_lie_during_a_call_is_an_error_of_that_call_alone") {
        return;
    }
    for (lie, says) in [
        ("huge-length", "announces an answer of 4294967295 bytes"),
        ("garbage", "cannot be read"),
        ("deep", "cannot be read"),
        ("other-id", "answered call \"somebody-elses\""),
        ("mid-frame", "in the middle of its answer"),
    ] {
        let supervisor = with(lie, "dialect: opentalon-v0").start().await;
        for _ in 0..3 {
            let answer = timed(&supervisor.client, "hello", 20_000).await;
            assert!(answer.error.contains(says), "{lie}: {says:?} is not in {answer:?}");
            assert!(answer.error.len() < 1000 && answer.content.is_empty(), "{lie}: {answer:?}");
            assert!(!format!("{answer:?}").contains("something else"), "{lie}: {answer:?}");
        }
        let plugin = supervisor.client.plugin("old").await;
        assert_eq!((plugin.state.as_str(), plugin.deaths), ("ready", 0), "{lie}: {plugin:?}");
        the_neighbour_serves_on(&supervisor).await;
        ends_well(supervisor).await;
    }
}

#[tokio::test]
async fn an_answer_that_comes_twice_is_given_once() {
    if is_missing("an_answer_that_comes_twice_is_given_once") {
        return;
    }
    let supervisor = with("answers-twice", "dialect: opentalon-v0").start().await;
    for _ in 0..10 {
        let answer = timed(&supervisor.client, "hello", 20_000).await;
        assert_eq!(answer.content, "once", "{answer:?}");
    }
    ends_well(supervisor).await;
}

#[tokio::test]
async fn calls_that_are_never_answered_end_by_their_time_and_hold_up_nobody() {
    if is_missing("calls_that_are_never_answered_end_by_their_time_and_hold_up_nobody") {
        return;
    }
    let supervisor = with("never-answers", "dialect: opentalon-v0\nconcurrency: 40").start().await;
    // More than there may be connections at once.
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let client = supervisor.client.clone();
        calls.spawn(async move { timed(&client, "hello", 500).await });
    }
    while let Some(answer) = calls.join_next().await {
        let answer = answer.expect("it does not panic");
        assert_eq!(answer.reason, "timed_out", "{answer:?}");
    }
    the_neighbour_serves_on(&supervisor).await;
    ends_well(supervisor).await;
}
