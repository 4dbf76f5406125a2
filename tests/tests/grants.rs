//! Peers that may call some actions: the others are neither shown to them nor confirmed to exist.

use talon_proto::host::{ExecuteRequest, GetPluginRequest, Outcome, WatchEventsRequest};
use talon_tests::{Builder, Supervisor, cli, program};
use tonic::Code;

const PATTERNS: &str = "[one__echo, one__te*, one__swap, three, nothing-there__x]";

/// A supervisor to which this very user is such a peer; the first entry that fits decides.
async fn supervisor(role: &str) -> Supervisor {
    let uid = nix::unistd::geteuid();
    let entry =
        format!("host:\n  peers:\n    - {{uid: {uid}, role: {role}, origin: program, allow: {PATTERNS}}}");
    let noticer = program("talon-noticer");
    Builder::new()
        .plugin("one", &noticer, &[], "changed_tools: block")
        .plugin("two", &noticer, &[], "")
        .plugin("three", &noticer, &[], "")
        .config(&entry)
        .without_waiting()
        .start()
        .await
}

// Promises: GRANT-1
#[tokio::test]
async fn what_is_not_granted_is_refused_and_not_told_to_be_there() {
    let supervisor = supervisor("call").await;
    let client = &supervisor.client;
    for (plugin, action) in [("one", "echo"), ("three", "echo"), ("three", "wipe")] {
        let answer = client.call(plugin, action, &[]).await;
        assert_eq!(answer.outcome(), Outcome::Ok, "{plugin}.{action}: {answer:?}");
    }
    // Those that are there are refused in the words of those that are not.
    let mut said = Vec::new();
    for (plugin, action) in [("one", "wipe"), ("two", "echo"), ("one", "nothing"), ("nobody", "echo")] {
        let answer = client.call(plugin, action, &[]).await;
        assert_eq!(
            (answer.outcome(), answer.reason.as_str()),
            (Outcome::Refused, "not_granted"),
            "{answer:?}"
        );
        assert!(answer.error.contains("host.peers"), "{answer:?}");
        said.push(answer.error.replace(plugin, "PLUGIN").replace(action, "ACTION"));
    }
    said.dedup();
    assert_eq!(said.len(), 1, "{said:?}");
    let gone = client.call("nothing-there", "x", &[]).await;
    assert_eq!(gone.reason, "unknown_plugin");
    assert!(!gone.error.contains("two") && gone.error.contains("three"), "{gone:?}");
    let tall = client.call("one", "tall", &[]).await;
    assert_eq!(tall.reason, "not_granted");
    let tellx = client.call("one", "tellx", &[]).await;
    assert_eq!(tellx.reason, "unknown_action");
    assert!(tellx.error.contains("\"tell\"") && !tellx.error.contains("wipe"), "{tellx:?}");
}

// Promises: GRANT-1
#[tokio::test]
async fn what_is_not_granted_is_not_shown() {
    let supervisor = supervisor("call").await;
    let mut client = supervisor.client.clone();
    // A call waits for the plugin's start.
    client.call("one", "echo", &[]).await;
    client.call("three", "echo", &[]).await;
    let listed = client.list().await;
    let names: Vec<(&str, u32)> = listed.iter().map(|p| (p.name.as_str(), p.actions)).collect();
    assert_eq!(names, [("one", 3), ("three", 12)]);
    let status = client.status().await;
    assert!(status.plugins.iter().all(|plugin| plugin.name != "two"), "{status:?}");
    let shown = client.show("one").await.capabilities.expect("it has capabilities");
    let actions: Vec<&str> = shown.actions.iter().map(|action| action.name.as_str()).collect();
    assert_eq!(actions, ["echo", "tell", "swap"]);
    let mut said = Vec::new();
    for name in ["two", "nobody"] {
        let refused =
            client.raw().get_plugin(GetPluginRequest { name: name.to_owned(), for_model: false }).await;
        let refused = refused.expect_err("it is not granted");
        assert_eq!(refused.code(), Code::PermissionDenied);
        said.push(refused.message().replace(name, "PLUGIN"));
    }
    assert_eq!(said[0], said[1]);
    let watching = client.raw().watch_events(WatchEventsRequest::default()).await;
    assert_eq!(watching.expect_err("callers watch nothing").code(), Code::PermissionDenied);
}

#[tokio::test]
async fn who_operates_sees_all_plugins_and_calls_what_is_granted() {
    let supervisor = supervisor("operate").await;
    let client = &supervisor.client;
    client.wait_state("two", "ready").await;
    assert_eq!(client.call("two", "echo", &[]).await.reason, "not_granted");
    assert_eq!(client.list().await.len(), 3);
    assert_eq!(client.show("two").await.capabilities.expect("capabilities").actions.len(), 12);
    client.stop("two").await.expect("it operates it");
}

#[tokio::test]
async fn changed_tools_that_are_refused_are_shown_to_operators_alone() {
    let supervisor = supervisor("call").await;
    let client = &supervisor.client;
    for (plugin, refused) in [("one", true), ("three", false)] {
        client.call(plugin, "swap", &[("description", "Something else.")]).await;
        let changed =
            async |client: &talon_tests::Client| client.plugin(plugin).await.changed_actions == ["echo"];
        client.wait_until("a change", changed).await;
        let shown = client.show(plugin).await.capabilities.expect("capabilities");
        let poisoned = shown.actions.iter().any(|action| action.description == "Something else.");
        assert_eq!(poisoned, !refused, "{plugin}: {shown:?}");
        let answer = client.call(plugin, "echo", &[]).await;
        assert_eq!(answer.reason, if refused { "changed" } else { "" }, "{answer:?}");
    }
}

#[tokio::test]
async fn mistakes_in_patterns_are_told_at_once() {
    let builder = Builder::new();
    let config = builder.scratch().write(
        "talon.yaml",
        "host:\n  peers:\n    - uid: 0\n      role: call\n      allow: [git, Git, 'fs__re*d', '']\n    - uid: 1\n      role: call\n      allow: ['a b']\n",
    );
    let checked = cli(&["config", "check", "--config", config.to_str().expect("our paths are text")]).await;
    assert!(!checked.status.success());
    let text =
        String::from_utf8_lossy(&checked.stderr).into_owned() + &String::from_utf8_lossy(&checked.stdout);
    for part in ["allow[1]", "allow[2]", "allow[3]", "peers[1].allow[0]", "git__status"] {
        assert!(text.contains(part), "expected {part} in {text}");
    }
    assert!(!text.contains("allow[0]\u{0}") && text.matches("names no").count() == 4, "{text}");
}

/// A call of some action that says itself what it may be.
fn within(plugin: &str, action: &str, patterns: &[&str], context: &[(&str, &str)]) -> ExecuteRequest {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    ExecuteRequest {
        plugin: plugin.to_owned(),
        action: action.to_owned(),
        within: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
        context: context.iter().map(owned).collect(),
        ..ExecuteRequest::default()
    }
}

// Promises: GRANT-3
#[tokio::test]
async fn a_call_is_no_more_than_it_says_itself_to_be() {
    let supervisor = supervisor("call").await;
    let client = &supervisor.client;
    let patterns = ["one.echo", "three.*", "two.*"];
    for (plugin, action) in [("one", "echo"), ("three", "wipe")] {
        let answer = client.execute(within(plugin, action, &patterns, &[])).await.expect("an answer");
        assert_eq!(answer.outcome(), Outcome::Ok, "{plugin}.{action}: {answer:?}");
    }
    // What is granted and not within it, and what is within it and not granted; whether it is there or not.
    for (plugin, action, said) in [
        ("one", "tell", "within"),
        ("one", "nothing", "host.peers"),
        ("two", "echo", "host.peers"),
        ("nothing-there", "x", "within"),
        ("talon", "read_more", "within"),
    ] {
        let answer = client.execute(within(plugin, action, &patterns, &[])).await.expect("an answer");
        assert_eq!(
            (answer.outcome(), answer.reason.as_str()),
            (Outcome::Refused, "not_granted"),
            "{answer:?}"
        );
        assert!(answer.error.contains(said), "{plugin}.{action}: {answer:?}");
    }
    let bad = client.execute(within("one", "echo", &["one.echo", "one"], &[])).await.expect_err("no pattern");
    assert_eq!(bad.code(), Code::InvalidArgument);
    assert!(bad.message().contains("plugin.action"), "{}", bad.message());
}

// Promises: GRANT-5
#[tokio::test]
async fn only_the_agent_is_believed_whom_it_calls_for() {
    let supervisor = Builder::new()
        .plugin("one", &program("talon-noticer"), &[], "")
        .config("agent:\n  allow:\n    senders: { mallory: [] }\n    channels: { cli: [] }")
        .without_waiting()
        .start()
        .await;
    for context in [&[][..], &[("session_id", "s"), ("sender", "mallory"), ("channel", "cli")]] {
        let answer = supervisor.client.execute(within("one", "echo", &[], context)).await.expect("an answer");
        assert_eq!(answer.outcome(), Outcome::Ok, "{context:?}: {answer:?}");
    }
}
