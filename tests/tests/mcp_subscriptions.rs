//! Clients of `talon mcp` follow resources of MCP servers. The server is made with the official Python library, and speaks the
//! revisions before and from 2026-07-28 on.

use std::process::Stdio;

use serde_json::{Value, json};
use talon_tests::{
    Builder, Mcp, McpOverHttp, ServerScript, Supervisor, mcp_packages, meta, program, repository,
    without_mcp_packages,
};
use tokio::process::Command;

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
const SUBSCRIBE: &str = "_-resources_subscribe";

/// A supervisor with the server as the plugin `notes`, and a plugin without resources.
async fn serving(revision: &str, more: &str) -> Supervisor {
    let builder = Builder::new().plugin("kit", &program("talon-test-tools"), &[], "");
    let script =
        builder.scratch().install(&repository().join("tests/mcp/watched_server.py"), "server/watched.py");
    let reads = script.parent().expect("a file is in a directory").display().to_string();
    let packages = mcp_packages().canonicalize().expect("it is there");
    let entry = format!(
        "dialect: mcp\nstart_timeout: 120s\nconfig: {{ protocol: \"{revision}\" }}\n\
         sandbox: {{ fs: {{ read: [{reads}], execute: [{}] }} }}\n{more}",
        packages.display()
    );
    let script = script.display().to_string();
    let supervisor = builder.plugin("notes", &packages.join("bin/python"), &[&script], &entry).start().await;
    let plugin = supervisor.client.plugin("notes").await;
    assert_eq!(plugin.state, "ready", "{}\n{:#?}", plugin.reason, supervisor.client.logs("notes").await);
    supervisor
}

/// What the server knows that somebody follows.
async fn followed(supervisor: &Supervisor) -> Value {
    let answer = supervisor.client.call("notes", "followed", &[]).await;
    serde_json::from_str(&answer.content).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

/// Waits until it knows exactly this. Only the test's own limit ends it.
async fn until_followed(supervisor: &Supervisor, uris: &[&str]) {
    while followed(supervisor).await != json!(uris) {
        tokio::task::yield_now().await;
    }
}

async fn touch(supervisor: &Supervisor, uri: &str, times: usize) {
    let answer =
        supervisor.client.call("notes", "touch", &[("uri", uri), ("times", &times.to_string())]).await;
    assert_eq!(answer.content, "touched", "{answer:?}");
}

async fn refusal(mcp: &mut Mcp, method: &str, params: Value) -> Value {
    let id = mcp.ask(method, params).await;
    let mut answer = mcp.answer(id).await;
    assert!(answer.get("result").is_none(), "{answer}");
    answer["error"].take()
}

fn listen(filter: Value) -> Value {
    json!({ "notifications": filter, "_meta": meta(json!({})) })
}

async fn updated(mcp: &mut Mcp) -> Value {
    let mut update = mcp.notified("notifications/resources/updated").await;
    update["params"].take()
}

/// Runs the official client's program.
async fn watches(args: &[&str], supervisor: &Supervisor) {
    let output = Command::new(mcp_packages().join("bin/python"))
        .arg(repository().join("tests/mcp/watching_client.py"))
        .args(args)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("python starts");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let works = output.status.success() && said.ends_with("all of it works\n");
    assert!(works, "{said}\n{errors}\n{}", supervisor.log());
}

// Promises: MCP-59, MCP-60
#[tokio::test]
async fn the_official_client_follows_a_resource_whose_server_is_killed() {
    if without_mcp_packages("the_official_client_follows_a_resource_whose_server_is_killed") {
        return;
    }
    for revision in REVISIONS {
        let supervisor = serving(revision, "").await;
        let (talon, socket) = (program("talon"), supervisor.socket());
        let words = [&*talon.to_string_lossy(), "--socket", &*socket.to_string_lossy(), "mcp"];
        watches(&words, &supervisor).await;
        supervisor.stop().await;
    }
}

// Promises: MCP-59, MCP-60
#[tokio::test]
async fn the_official_client_follows_a_resource_over_http() {
    if without_mcp_packages("the_official_client_follows_a_resource_over_http") {
        return;
    }
    let supervisor = serving(REVISIONS[0], "").await;
    let served = McpOverHttp::start(&supervisor).await;
    watches(&["--http", &served.url(), &served.token], &supervisor).await;
    // Its session is over, and so is what it followed.
    until_followed(&supervisor, &[]).await;
    supervisor.stop().await;
}

// Promises: MCP-59
#[tokio::test]
async fn resources_of_a_remote_server_are_followed() {
    if without_mcp_packages("resources_of_a_remote_server_are_followed") {
        return;
    }
    for revision in REVISIONS {
        let script = repository().join("tests/mcp/watched_server.py");
        let remote = ServerScript::start(mcp_packages().join("bin/python"), &script, &["--http"]);
        let url = format!("http://127.0.0.1:{}/mcp", remote.port(0));
        let entry = format!("config: {{ protocol: \"{revision}\" }}");
        let supervisor = Builder::new().url("notes", &url, &entry).start().await;
        let plugin = supervisor.client.plugin("notes").await;
        assert_eq!(plugin.state, "ready", "{}\n{:#?}", plugin.reason, supervisor.client.logs("notes").await);
        let mut mcp = Mcp::of(&supervisor, &[]);
        mcp.initialize("2025-11-25").await;
        mcp.result("resources/subscribe", json!({ "uri": "notes+note://one" })).await;
        until_followed(&supervisor, &["note://one"]).await;
        touch(&supervisor, "note://one", 1).await;
        assert_eq!(updated(&mut mcp).await["uri"], "notes+note://one");
        mcp.close().await;
        until_followed(&supervisor, &[]).await;
        supervisor.stop().await;
    }
}

// Promises: MCP-61
#[tokio::test]
async fn a_subscription_ends_with_its_client_and_not_before() {
    if without_mcp_packages("a_subscription_ends_with_its_client_and_not_before") {
        return;
    }
    for revision in REVISIONS {
        let supervisor = serving(revision, "").await;
        let mut older = Mcp::of(&supervisor, &[]);
        older.initialize("2025-11-25").await;
        let mut newer = Mcp::of(&supervisor, &[]);
        for _ in 0..2 {
            older.result("resources/subscribe", json!({ "uri": "notes+note://one" })).await;
        }
        let both = listen(json!({ "resourceSubscriptions": ["notes+note://one", "notes+note://two"] }));
        let stream = newer.ask("subscriptions/listen", both.clone()).await;
        newer.notified("notifications/subscriptions/acknowledged").await;
        until_followed(&supervisor, &["note://one", "note://two"]).await;

        // Each hears of its own.
        touch(&supervisor, "note://two", 1).await;
        let update = updated(&mut newer).await;
        assert_eq!(update["uri"], "notes+note://two");
        assert_eq!(update["_meta"]["io.modelcontextprotocol/subscriptionId"], stream);
        touch(&supervisor, "note://one", 1).await;
        assert_eq!(updated(&mut newer).await["uri"], "notes+note://one");
        assert_eq!(
            updated(&mut older).await,
            json!({ "uri": "notes+note://one" }),
            "an address and no contents"
        );

        // What one gives up, the other keeps.
        older.result("resources/unsubscribe", json!({ "uri": "notes+note://one" })).await;
        older.result("resources/unsubscribe", json!({ "uri": "notes+note://none" })).await;
        newer.notify("notifications/cancelled", json!({ "requestId": stream })).await;
        until_followed(&supervisor, &[]).await;
        newer.ask("subscriptions/listen", both).await;
        until_followed(&supervisor, &["note://one", "note://two"]).await;
        older.result("resources/subscribe", json!({ "uri": "notes+note://one" })).await;
        newer.close().await;
        until_followed(&supervisor, &["note://one"]).await;
        touch(&supervisor, "note://one", 1).await;
        updated(&mut older).await;
        older.close().await;
        until_followed(&supervisor, &[]).await;
        supervisor.stop().await;
    }
}

// Promises: MCP-61
#[tokio::test]
async fn a_subscriber_that_was_killed_is_forgotten_when_its_lease_ends() {
    if without_mcp_packages("a_subscriber_that_was_killed_is_forgotten_when_its_lease_ends") {
        return;
    }
    for revision in REVISIONS {
        let supervisor = serving(revision, "").await;
        let client = &supervisor.client;
        let subscribe = async |subscriber: &str, uris: &str, seconds: &str| {
            let arguments = [("subscriber", subscriber), ("uris", uris), ("lease_seconds", seconds)];
            client.call("notes", SUBSCRIBE, &arguments).await
        };
        let answer = subscribe("lasts", r#"["note://one"]"#, "3600").await;
        assert_eq!((&*answer.structured_content, &*answer.error), (r#"{"refused":[]}"#, ""), "{answer:?}");
        subscribe("killed", r#"["note://one", "note://two"]"#, "1").await;
        until_followed(&supervisor, &["note://one"]).await;
        // What does not fit is refused with what is taken.
        for (subscriber, uris, seconds, said) in [
            ("", "[]", "1", "subscriber: 1 to 64 bytes"),
            ("x", "[1]", "1", "uris"),
            ("x", r#"[""]"#, "1", "uris: at most 1024 addresses"),
            ("x", "[]", "0", "lease_seconds"),
            ("x", "[]", "3601", "lease_seconds"),
        ] {
            let answer = subscribe(subscriber, uris, seconds).await;
            assert!(answer.error.contains(said), "{said}: {answer:?}");
        }
        // The server knows three.
        let many: Vec<String> = (0..300).map(|number| format!("note://{number}")).collect();
        let answer = subscribe("many", &json!(many).to_string(), "60").await;
        let refused: Value = serde_json::from_str(&answer.structured_content).expect("it is JSON");
        assert_eq!(refused["refused"].as_array().map(Vec::len), Some(300), "{answer:?}");
        assert!(answer.content.starts_with("0 resources are followed"), "{answer:?}");
        assert_eq!(followed(&supervisor).await, json!(["note://one"]));
        supervisor.stop().await;
    }
}

// Promises: MCP-62
#[tokio::test]
async fn what_cannot_be_followed_is_an_error_that_says_why() {
    if without_mcp_packages("what_cannot_be_followed_is_an_error_that_says_why") {
        return;
    }
    let supervisor = serving("2025-11-25", "").await;
    let mut mcp = Mcp::of(&supervisor, &[]);
    mcp.initialize("2025-11-25").await;
    let uri = |uri: &str| json!({ "uri": uri });
    for (address, code, said) in [
        ("notes+note://none", -32002, "there is no note://none"),
        ("other+note://one", -32002, "No plugin offers the resource other+note://one."),
        ("kit+note://one", -32002, "No plugin offers the resource kit+note://one."),
        ("note://one", -32002, "list the resources again"),
    ] {
        let error = refusal(&mut mcp, "resources/subscribe", uri(address)).await;
        assert_eq!(error["code"], code, "{error}");
        assert!(error["message"].as_str().unwrap().contains(said), "{error}");
    }
    // A client may not follow what is not offered to it.
    let mut narrow = Mcp::of(&supervisor, &["--deny", "notes___-resources_subscribe"]);
    narrow.initialize("2025-11-25").await;
    let error = refusal(&mut narrow, "resources/subscribe", uri("notes+note://one")).await;
    assert!(
        error["message"].as_str().unwrap().contains("does not say when notes+note://one changes"),
        "{error}"
    );
    // A stream for nothing but that is refused; one for other things as well leaves it out.
    let refused = listen(json!({ "resourceSubscriptions": ["notes+note://one"] }));
    let mut newer = Mcp::of(&supervisor, &["--deny", "notes___-resources_subscribe"]);
    newer.result("tools/list", json!({ "_meta": meta(json!({})) })).await;
    let error = refusal(&mut newer, "subscriptions/listen", refused).await;
    assert!(
        error["message"].as_str().unwrap().contains("does not say when notes+note://one changes"),
        "{error}"
    );
    newer.notified("notifications/subscriptions/acknowledged").await;
    let partly = json!({ "resourceSubscriptions": ["notes+note://one"], "toolsListChanged": true });
    newer.ask("subscriptions/listen", listen(partly)).await;
    let acknowledged = newer.notified("notifications/subscriptions/acknowledged").await;
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({ "toolsListChanged": true }),
        "{acknowledged}"
    );
    assert_eq!(followed(&supervisor).await, json!([]));

    // One client follows 64 at most, in both ways.
    let mut greedy = Mcp::of(&supervisor, &[]);
    let many: Vec<String> = (0..65).map(|number| format!("notes+note://{number}")).collect();
    let error =
        refusal(&mut greedy, "subscriptions/listen", listen(json!({ "resourceSubscriptions": many }))).await;
    assert!(error["message"].as_str().unwrap().contains("at most 64 resources"), "{error}");
    for mcp in [mcp, narrow, newer, greedy] {
        mcp.close().await;
    }
    supervisor.stop().await;
}

// Promises: MCP-63
#[tokio::test]
async fn a_flood_of_updates_is_a_few_and_a_part_is_its_resource() {
    if without_mcp_packages("a_flood_of_updates_is_a_few_and_a_part_is_its_resource") {
        return;
    }
    for revision in REVISIONS {
        let supervisor = serving(revision, "").await;
        let mut mcp = Mcp::of(&supervisor, &[]);
        mcp.initialize("2025-11-25").await;
        mcp.result("resources/subscribe", json!({ "uri": "notes+note://one" })).await;
        mcp.result("resources/subscribe", json!({ "uri": "notes+note://three" })).await;
        let mut events = supervisor.client.events("notes").await;
        touch(&supervisor, "note://one", 2000).await;
        touch(&supervisor, "note://two", 2000).await;
        touch(&supervisor, "note://three#part", 1).await;
        let (mut ones, mut last) = (0, Value::Null);
        while last != "notes+note://three" {
            last = updated(&mut mcp).await["uri"].take();
            ones += u32::from(last == "notes+note://one");
        }
        assert!((1..100).contains(&ones), "{ones} of 2000");
        // What nobody follows is no event either.
        let mut published = std::collections::BTreeSet::new();
        while !published.contains("note://three") {
            let event = tokio_stream::StreamExt::next(&mut events)
                .await
                .expect("the stream is open")
                .expect("an event");
            published.extend((event.kind == "resource_updated").then(|| event.fields["uri"].clone()));
        }
        assert!(!published.contains("note://two"), "{published:?}");
        mcp.close().await;
        supervisor.stop().await;
    }
}
