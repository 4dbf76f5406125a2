//! Actions in a role, through real processes: filters, request hooks and response hooks around the turns of a real agent, and
//! what a supervisor makes of entries that do not fit.

use serde_json::{Value, json};
use talon_tests::ask::{AskResult, ask, with_agent};
use talon_tests::exposition;
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, Supervisor, example, skip, target};

fn says(text: &str) -> ScriptedReply {
    ScriptedReply::Text(text.to_owned())
}

/// A supervisor with `text-policy`, `misbehave` and these entries.
async fn with_extensions(provider: &Provider, extensions: &str) -> Supervisor {
    let rules = "config: { blocked: [spam], categories: { ticket: support }, vocabulary: { bug: defect } }";
    let builder = Builder::new()
        .plugin("policy", &example("text-policy"), &[], rules)
        .misbehave(&[], "")
        .config(&format!("extensions:\n{extensions}\n"));
    with_agent(builder, provider, "", "").start().await
}

fn is_missing(test: &str, name: &str) -> bool {
    let missing = !target().join("plugins").join(name).join(".stamp").exists();
    if missing {
        let how = "tests/scripts/deps.sh test, then plugins-examples/stage.sh";
        skip(test, &format!("{name} is not staged: {how}"));
    }
    missing
}

/// All that models were asked with, as one text.
fn asked(provider: &Provider) -> String {
    provider.bodies().join("\n")
}

fn stdout(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

async fn session(supervisor: &Supervisor, asked: &AskResult) -> String {
    stdout(&supervisor.cli(&["session", "show", asked.text("session_id")]).await)
}

// Promises: EXT-8, EXT-9
#[tokio::test]
async fn a_message_and_an_answer_go_through_their_hooks() {
    let provider = Provider::start([says("I fixed the bug."), says("Nothing.")]).await;
    let supervisor = with_extensions(
        &provider,
        "  filters: [{ action: policy.blocked_words, may: [drop] }]
  request_hooks:
    - { action: policy.classify, may: [annotate] }
    - { action: policy.calm, may: [replace] }
  response_hooks: [{ action: policy.vocabulary, may: [replace] }]",
    )
    .await;
    let shouted = ask(&supervisor, "FIX MY TICKET", &[]).await;
    assert_eq!((shouted.code, shouted.text("text")), (Some(0), "I fixed the defect."), "{shouted:?}");
    let questions = asked(&provider);
    assert!(questions.contains("fix my ticket") && !questions.contains("FIX MY TICKET"), "{questions}");
    // People see what they wrote and what they got, and nothing between.
    let shown = session(&supervisor, &shouted).await;
    assert!(shown.contains("FIX MY TICKET") && shown.contains("I fixed the defect."), "{shown}");
    assert!(!shown.contains("the bug"), "{shown}");
    // What a hook passes goes on byte for byte.
    let plain =
        ask(&supervisor, "Anything else?  \t\u{e9}\u{301} <|x|>", &["--session", shouted.text("session_id")])
            .await;
    assert_eq!((plain.code, plain.text("text")), (Some(0), "Nothing."), "{plain:?}");
    let question = provider.questions().pop().expect("one");
    let last = question["messages"].as_array().and_then(|all| all.last()).expect("a message");
    assert_eq!(last["content"], "Anything else?  \t\u{e9}\u{301} <|x|>");
    // Models see of their answers what people got.
    assert!(
        question.to_string().contains("I fixed the defect.") && !question.to_string().contains("the bug")
    );
    supervisor.stop().await;
}

// Promises: EXT-10
#[tokio::test]
async fn a_dropped_message_says_why_and_reaches_no_model() {
    let provider = Provider::start([says("Hello.")]).await;
    let entries = "  filters: [{ action: policy.blocked_words }]";
    let supervisor = with_extensions(&provider, entries).await;
    let dropped = ask(&supervisor, "Buy my spam about kumquats", &[]).await;
    assert_ne!(dropped.code, Some(0), "{dropped:?}");
    assert_eq!(dropped.text("reason"), "dropped", "{dropped:?}");
    assert!(
        dropped
            .said
            .to_string()
            .contains("filter/policy.blocked_words dropped the message: it has the word spam")
    );
    let next = ask(&supervisor, "Hello", &["--session", dropped.text("session_id")]).await;
    assert_eq!((next.code, next.text("text")), (Some(0), "Hello."), "{next:?}");
    let questions = asked(&provider);
    assert_eq!(provider.questions().len(), 1, "{questions}");
    assert!(!questions.contains("kumquats"), "{questions}");
    let shown = session(&supervisor, &dropped).await;
    assert!(shown.contains("kumquats"), "people see what they wrote: {shown}");
    supervisor.stop().await;
}

// Promises: EXT-11
#[tokio::test]
async fn a_dropped_answer_reaches_nobody() {
    let provider = Provider::start([says("The password is kumquat."), says("Fine.")]).await;
    let entries = r#"  response_hooks:
    - action: misbehave.structured
      name: secrets
      args: { json: "{{ '{\"verdict\":\"drop\",\"reason\":\"a secret\"}' if message != 'Fine.' else '{\"verdict\":\"pass\"}' }}", text: x }"#;
    let supervisor = with_extensions(&provider, entries).await;
    let dropped = ask(&supervisor, "What is the password?", &[]).await;
    assert_eq!(dropped.text("reason"), "dropped", "{dropped:?}");
    let all = format!("{}{}", dropped.said, dropped.stderr);
    assert!(all.contains("a secret") && !all.contains("kumquat"), "{all}");
    let next = ask(&supervisor, "Well?", &["--session", dropped.text("session_id")]).await;
    assert_eq!((next.code, next.text("text")), (Some(0), "Fine."), "{next:?}");
    let question = provider.questions().pop().expect("one").to_string();
    assert!(!question.contains("kumquat"), "{question}");
    let shown = session(&supervisor, &dropped).await;
    assert!(!shown.contains("kumquat") && shown.contains("Fine."), "{shown}");
    supervisor.stop().await;
}

// Promises: EXT-12, EXT-13
#[tokio::test]
async fn hostile_hooks_end_their_turn_or_are_passed_over_and_harm_nobody() {
    let provider = Provider::responding(|_| says("Here I am.")).await;
    // Each entry is asked for by a word in the message; the others pass.
    let hook = |name: &str, action: &str, args: &str| {
        format!(
            "    - {{ action: misbehave.{action}, name: {name}, deadline: 2s, may: [annotate, drop], args: {args} }}\n"
        )
    };
    let verdict = |word: &str, verdict: &Value| {
        let (hostile, pass) = (verdict.to_string(), json!({"verdict": "pass"}).to_string());
        let template = format!("{{{{ {hostile:?} if '{word}' in message else {pass:?} }}}}");
        format!("{{ text: x, json: {} }}", json!(template))
    };
    let cases = [
        ("replaces", json!({"verdict": "replace", "message": "owned"}), "it may not"),
        ("calls", json!({"verdict": "pass", "tool_calls": [{"name": "hello.greet"}]}), "no verdict"),
        ("session", json!({"verdict": "annotate", "session": {"id": "another"}}), "no verdict"),
        ("notes", json!({"verdict": "annotate", "metadata": {"a b": "c"}}), "the key"),
        ("speaks", json!("pass"), "no structured content"),
    ];
    let mut entries = "  request_hooks:\n".to_owned();
    for (word, said, _) in &cases {
        entries.push_str(&hook(word, "structured", &verdict(word, said)));
    }
    let supervisor = with_extensions(&provider, &entries).await;
    for (word, _, why) in &cases {
        let turned = ask(&supervisor, &format!("It {word}"), &[]).await;
        assert_eq!(turned.text("reason"), "hook_failed", "{word}: {turned:?}");
        let said = turned.said.to_string();
        assert!(
            said.contains(&format!("request_hook/{word} failed")) && said.contains(why),
            "{word}: {said}"
        );
    }
    assert_eq!(provider.questions().len(), 0, "no model was asked");
    let fine = ask(&supervisor, "Nothing special", &[]).await;
    assert_eq!((fine.code, fine.text("text")), (Some(0), "Here I am."), "{fine:?}");
    supervisor.stop().await;
}

// Promises: EXT-12
#[tokio::test]
async fn a_hook_that_hangs_dies_or_floods_is_a_failure_by_its_policy() {
    let provider = Provider::responding(|_| says("Here I am.")).await;
    for (action, args) in [
        ("hang", "{}"),
        ("exit", "{ code: 3 }"),
        ("big", "{ bytes: 67108864 }"),
        ("grpc_error", "{ text: no }"),
    ] {
        for (policy, word) in [("closed", "hook_failed"), ("open", "")] {
            let entry = format!(
                "  request_hooks: [{{ action: misbehave.{action}, deadline: 2s, on_failure: {policy}, args: {args} }}]"
            );
            let supervisor = with_extensions(&provider, &entry).await;
            let turned = ask(&supervisor, "Hello", &[]).await;
            assert_eq!(turned.text("reason"), word, "{action} {policy}: {turned:?}");
            if policy == "open" {
                assert_eq!(
                    (turned.code, turned.text("text")),
                    (Some(0), "Here I am."),
                    "{action}: {turned:?}"
                );
                assert!(turned.said["notices"].to_string().contains("request_hook/misbehave"), "{turned:?}");
            }
            let policy = supervisor.client.plugin("policy").await;
            assert_eq!(policy.state, "ready", "its neighbour is unharmed");
            supervisor.stop().await;
        }
    }
}

// Promises: EXT-6
#[tokio::test]
async fn actions_that_only_play_roles_are_no_tools() {
    let call = ScriptedReply::ToolCalls(vec![("policy__calm".to_owned(), json!({"message": "X"}))]);
    let provider = Provider::start([call, says("There is none.")]).await;
    let supervisor = with_extensions(&provider, "  filters: []").await;
    let asked_for = ask(&supervisor, "Calm down", &[]).await;
    assert_eq!(asked_for.code, Some(0), "{asked_for:?}");
    let question = &provider.questions()[0];
    assert!(!question["tools"].to_string().contains("policy__"), "{question}");
    assert!(provider.questions()[1].to_string().contains("there is no tool"), "{asked_for:?}");
    supervisor.stop().await;
}

// Promises: EXT-5, EXT-14
#[tokio::test]
async fn the_audit_log_and_the_metrics_have_the_role_and_the_entry() {
    let provider = Provider::start([says("Hello.")]).await;
    let entries = "  request_hooks: [{ action: policy.classify, name: topic }]";
    let supervisor = with_extensions(&provider, entries).await;
    let turned = ask(&supervisor, "a ticket", &[]).await;
    assert_eq!(turned.code, Some(0), "{turned:?}");
    let log = stdout(&supervisor.cli(&["audit", "show", "--plugin", "policy", "--output", "json"]).await);
    let record = log
        .lines()
        .find(|line| line.contains("\"role\":\"request_hook\""))
        .unwrap_or_else(|| panic!("{log}"));
    assert!(record.contains("request_hook/topic") && record.contains("\"origin\":\"system\""), "{record}");
    assert!(!record.contains("sender"), "{record}");
    let page = stdout(&supervisor.cli(&["status", "--output", "json"]).await);
    let status: Value = serde_json::from_str(&page).expect("JSON");
    assert_eq!(status["extensions"][0]["state"], "ready", "{page}");
    let metrics = talon_tests::http::get(&supervisor.admin(), "/metrics").await;
    let families = exposition::parse(&metrics.body);
    let counted = families["talon_extension_calls_total"].sum(&[("role", "request_hook"), ("outcome", "ok")]);
    assert_eq!(counted, 1.0);
    supervisor.stop().await;
}

// Promises: EXT-3, EXT-15
#[tokio::test]
async fn entries_that_do_not_fit_say_so_before_anybody_is_harmed() {
    let provider = Provider::start([]).await;
    let supervisor = with_extensions(
        &provider,
        "  request_hooks:
    - { action: policy.classify }
    - { action: policy.clasify, name: typo }
    - { action: misbehave.echo, name: undeclared }
    - { action: misbehave.need, name: unfilled, args: { count: '{{ session.turn }}' } }",
    )
    .await;
    let listed = stdout(&supervisor.cli(&["extension", "list", "--output", "json"]).await);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let by_name = |name: &str| {
        let all = listed["extensions"].as_array().expect("a list");
        all.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("{listed}")).clone()
    };
    assert_eq!(by_name("policy.classify")["state"], "ready", "{listed}");
    for (name, why) in [
        ("typo", "did you mean classify?"),
        ("undeclared", "does not declare the role"),
        ("unfilled", "needs the argument text"),
    ] {
        let entry = by_name(name);
        assert_eq!(entry["state"], "failing", "{listed}");
        assert!(entry["reason"].as_str().is_some_and(|reason| reason.contains(why)), "{entry}");
    }
    let status = stdout(&supervisor.cli(&["status"]).await);
    assert!(status.contains("1 ready, 3 failing") && status.contains("request_hook/typo"), "{status}");
    let shown = stdout(&supervisor.cli(&["plugin", "show", "policy"]).await);
    assert!(shown.contains("role request_hook") && shown.contains("did you mean classify?"), "{shown}");
    supervisor.stop().await;
}

// Promises: EXT-16
#[tokio::test]
async fn an_entry_is_tried_with_a_sample() {
    let provider = Provider::start([]).await;
    let entries = "  filters: [{ action: policy.blocked_words }]
  request_hooks: [{ action: misbehave.hang, deadline: 1s, args: {} }]";
    let supervisor = with_extensions(&provider, entries).await;
    let test = async |more: &[&str]| {
        let words = [&["extension", "test", "--output", "json"], more].concat();
        let output = supervisor.cli(&words).await;
        let said: Value = serde_json::from_str(&stdout(&output)).unwrap_or_default();
        (output.status.code(), said, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said, _) = test(&["filter", "policy.blocked_words", "--message", "spam"]).await;
    assert_eq!(
        (code, &said["verdict"], &said["reason"]),
        (Some(0), &json!("drop"), &json!("it has the word spam")),
        "{said}"
    );
    assert_eq!(said["arguments"]["message"], "spam");
    let (code, said, _) = test(&["filter", "policy.blocked_words"]).await;
    assert_eq!((code, &said["verdict"]), (Some(0), &json!("pass")), "{said}");
    let (code, said, _) = test(&["request_hook", "misbehave.hang"]).await;
    assert_eq!((code, &said["verdict"]), (Some(1), &json!("failed")), "{said}");
    let (code, _, stderr) = test(&["filter", "policy.blocked"]).await;
    assert_ne!(code, Some(0));
    assert!(stderr.contains("did you mean policy.blocked_words?"), "{stderr}");
    // No session came of it.
    let sessions = stdout(&supervisor.cli(&["session", "list", "--output", "json"]).await);
    assert!(!sessions.contains("session_id") && !sessions.contains("\"id\""), "{sessions}");
    supervisor.stop().await;
}

// Promises: EXT-5
#[tokio::test]
async fn nobody_else_can_claim_a_role() {
    let provider = Provider::start([]).await;
    let supervisor = with_extensions(&provider, "  request_hooks: [{ action: policy.classify }]").await;
    let request = talon_proto::host::ExecuteRequest {
        plugin: "policy".to_owned(),
        action: "classify".to_owned(),
        role: "request_hook".to_owned(),
        extension: "policy.classify".to_owned(),
        ..Default::default()
    };
    let refused = supervisor.client.execute(request).await.expect_err("root is no service of ours");
    assert!(refused.to_string().contains("own services"), "{refused}");
    supervisor.stop().await;
}

// Promises: EXT-17
#[tokio::test]
async fn a_reload_brings_other_hooks_and_a_wrong_one_changes_nothing() {
    let provider = Provider::responding(|_| says("Hello.")).await;
    let supervisor = with_extensions(&provider, "  filters: [{ action: policy.blocked_words }]").await;
    let config = supervisor.config().to_owned();
    let before = std::fs::read_to_string(&config).expect("readable");
    assert_eq!(ask(&supervisor, "spam", &[]).await.text("reason"), "dropped");
    std::fs::write(
        &config,
        before.replace("policy.blocked_words }", "policy.blocked_words, deadline: 10h }"),
    )
    .expect("written");
    let refused = supervisor.cli(&["reload"]).await;
    let said = format!("{}{}", stdout(&refused), String::from_utf8_lossy(&refused.stderr));
    assert!(!refused.status.success(), "{said}");
    assert!(said.contains("extensions.filters") && said.contains("deadline"), "{said}");
    assert_eq!(
        ask(&supervisor, "spam", &[]).await.text("reason"),
        "dropped",
        "the configuration before holds"
    );
    std::fs::write(&config, before.replace("[{ action: policy.blocked_words }]", "[]")).expect("written");
    assert!(supervisor.cli(&["reload"]).await.status.success());
    let passed = ask(&supervisor, "spam", &[]).await;
    assert_eq!((passed.code, passed.text("text")), (Some(0), "Hello."), "{passed:?}");
    supervisor.stop().await;
}

// Promises: EXT-22
#[tokio::test]
async fn a_hook_in_each_language_does_its_part() {
    let test = "a_hook_in_each_language_does_its_part";
    if ["language-py", "length-go", "redact-node"].into_iter().any(|name| is_missing(test, name)) {
        return;
    }
    let provider = Provider::responding(|_| says("Write to ada@example.org.")).await;
    let builder = Builder::new()
        .plugin("policy", &example("text-policy"), &[], "config: { blocked: [spam] }")
        .linked(&example("language-py"), "language-py")
        .linked(&example("length-go"), "length-go")
        .linked(&example("redact-node"), "redact-node")
        .config(
            "extensions:
  filters:
    - { action: length-go.limit, may: [drop] }
    - { action: policy.blocked_words, may: [drop] }
  request_hooks: [{ action: language-py.script, may: [annotate] }]
  response_hooks: [{ action: redact-node.addresses, may: [replace] }]
",
        );
    let supervisor = with_agent(builder, &provider, "", "").start().await;
    let answered = ask(&supervisor, "To whom?", &[]).await;
    assert_eq!((answered.code, answered.text("text")), (Some(0), "Write to [address]."), "{answered:?}");
    let long = ask(&supervisor, &"long ".repeat(1000), &[]).await;
    assert_eq!(long.text("reason"), "dropped", "{long:?}");
    let said = stdout(
        &supervisor
            .cli(&[
                "extension",
                "test",
                "request_hook",
                "language-py.script",
                "--message",
                "Привет",
                "--output",
                "json",
            ])
            .await,
    );
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["metadata"], json!({"script": "cyrillic"}), "{said}");
    let listed = stdout(&supervisor.cli(&["extension", "list", "--output", "json"]).await);
    assert_eq!(
        listed.matches("\"declared\": true").count() + listed.matches("\"declared\":true").count(),
        4,
        "{listed}"
    );
    supervisor.stop().await;
}

// Promises: EXT-90
#[tokio::test]
async fn a_hook_that_flips_its_role_fails_by_its_policy_and_harms_nobody() {
    for (policy, word) in [("closed", "hook_failed"), ("open", "")] {
        let provider = Provider::responding(|_| says("Here I am.")).await;
        let entries = format!(
            "extensions:\n  filters: [{{ action: policy.blocked_words, may: [drop] }}]\n  request_hooks: [{{ action: misbehave.judge, \
             on_failure: {policy} }}]\n"
        );
        let builder = Builder::new()
            .plugin("policy", &example("text-policy"), &[], "config: { blocked: [spam] }")
            .misbehave(&["--wrong", "role-flips"], "")
            .config(&entries);
        let supervisor = with_agent(builder, &provider, "", "").start().await;
        let entry = async || {
            let listed = stdout(&supervisor.cli(&["extension", "list", "--output", "json"]).await);
            let listed: Value = serde_json::from_str(&listed).expect("JSON");
            let all = listed["extensions"].as_array().expect("a list").clone();
            all.into_iter().find(|entry| entry["name"] == "misbehave.judge").expect("it is configured")
        };
        assert_eq!(entry().await["state"], "ready");
        let before = ask(&supervisor, "Hello", &[]).await;
        assert_eq!((before.code, before.text("text")), (Some(0), "Here I am."), "{before:?}");

        let refreshed = supervisor.cli(&["plugin", "refresh", "misbehave"]).await;
        assert_eq!(refreshed.status.code(), Some(0), "{refreshed:?}");
        let flipped = entry().await;
        assert_eq!(flipped["state"], "failing", "{flipped}");
        assert!(
            flipped["reason"].to_string().contains("does not declare the role request_hook"),
            "{flipped}"
        );
        let questions = provider.questions().len();
        let after = ask(&supervisor, "Hello again", &[]).await;
        assert_eq!(after.text("reason"), word, "{after:?}");
        let asked = provider.questions().len() - questions;
        if policy == "open" {
            assert_eq!((asked, after.text("text")), (1, "Here I am."), "{after:?}");
            assert!(after.said["notices"].to_string().contains("does not declare this role"), "{after:?}");
        } else {
            assert_eq!(asked, 0, "no model has the message");
        }
        // Its neighbour goes on as before.
        let dropped = ask(&supervisor, "Buy spam", &[]).await;
        assert_eq!(dropped.text("reason"), "dropped", "{dropped:?}");
        supervisor.stop().await;
    }
}

// Promises: EXT-91
#[tokio::test]
async fn a_tool_is_given_the_metadata_that_it_asks_for_and_is_granted() {
    let provider = Provider::start([
        ScriptedReply::ToolCalls(vec![("misbehave__whoami".to_owned(), json!({}))]),
        says("It is known."),
    ])
    .await;
    let builder = Builder::new()
        .plugin("policy", &example("text-policy"), &[], "config: { categories: { ticket: support } }")
        .misbehave(&[], "context: [metadata.category]")
        .config("extensions:\n  request_hooks: [{ action: policy.classify, may: [annotate] }]\n");
    let confirm = "  confirm: { rules: [{ tool: misbehave.whoami, ask: never }] }\n";
    let supervisor = with_agent(builder, &provider, confirm, "").start().await;
    let answered = ask(&supervisor, "Look at my ticket", &[]).await;
    assert_eq!((answered.code, answered.text("text")), (Some(0), "It is known."), "{answered:?}");
    let asked = provider.bodies();
    let result = asked.last().expect("it was asked");
    assert!(result.contains("metadata.category") && result.contains("support"), "{result}");
    // Only plugins see it: it stands in no prompt.
    assert!(!asked[0].contains("support"), "{}", asked[0]);
    let shown = stdout(&supervisor.cli(&["plugin", "show", "misbehave"]).await);
    assert!(shown.contains("metadata.category: given to whoami"), "{shown}");
    assert!(shown.contains("metadata.secret: asked for by whoami; not granted"), "{shown}");
    supervisor.stop().await;
}
// Promises: EXT-50
#[tokio::test]
async fn sinks_providers_and_routes_are_tried_with_a_sample() {
    let provider = Provider::start([]).await;
    let entries = r#"  notifications:
    - { on: [test], action: misbehave.structured, name: sink, args: { json: '{"status":"retry","reason":"busy","retry_after_seconds":9}', text: '{{ event.summary }}' } }
    - { on: [test], action: misbehave.echo, name: plain, args: { text: '{{ event.fields.plugin }}{{ event.fields.job }}' } }
    - { on: [test], action: misbehave.error, name: no, args: { text: x } }
  auth:
    - { action: misbehave.structured, name: corp, scopes: { staff: [chat, approve] }, args: { json: '{"outcome":"accepted","subject":"ada","scopes":["staff","root"]}', text: '{{ credential }}' } }
  routes:
    - { path: /x/a, action: misbehave.structured, name: made, scope: chat, args: { json: '{"status":201,"body":"made"}', text: '{{ body }}' } }
    - { path: /x/b, action: misbehave.structured, name: cookie, scope: chat, args: { json: '{"status":200,"headers":{"set-cookie":"a=b"}}', text: x } }"#;
    let supervisor = with_extensions(&provider, entries).await;
    let test = async |more: &[&str]| {
        let words = [&["extension", "test", "--output", "json"], more].concat();
        let output = supervisor.cli(&words).await;
        let said: Value = serde_json::from_str(&stdout(&output)).unwrap_or_default();
        (
            output.status.code(),
            said,
            format!("{}{}", stdout(&output), String::from_utf8_lossy(&output.stderr)),
        )
    };
    let (code, said, all) = test(&["notification_sink", "sink"]).await;
    assert_eq!(
        (code, &said["verdict"], &said["reason"]),
        (Some(0), &json!("retry"), &json!("busy")),
        "{all}"
    );
    assert!(said["effect"].as_str().is_some_and(|text| text.contains("after 9 s")), "{all}");
    let (code, said, all) = test(&["notification_sink", "plain"]).await;
    assert_eq!((code, &said["verdict"]), (Some(0), &json!("delivered")), "{all}");
    assert_eq!(
        said["arguments"]["text"], "code-search",
        "a field that an event does not have is empty: {all}"
    );
    let (code, said, all) = test(&["notification_sink", "no"]).await;
    assert_eq!((code, &said["verdict"]), (Some(1), &json!("failed")), "{all}");

    let scratch = talon_tests::Scratch::new();
    let sample = scratch.write("sample.json", r#"{"credential": "hunter2-hunter2"}"#).display().to_string();
    let (code, said, all) = test(&["auth_provider", "corp", "--sample", &sample]).await;
    assert_eq!((code, &said["verdict"]), (Some(0), &json!("accepted")), "{all}");
    assert_eq!(said["effect"], "the request is let in as gw:corp/ada with chat, approve", "{all}");
    assert!(!all.contains("hunter2"), "{all}");

    let (code, said, all) = test(&["api_route", "made"]).await;
    assert_eq!((code, &said["verdict"], &said["message"]), (Some(0), &json!("201"), &json!("made")), "{all}");
    let (code, said, all) = test(&["api_route", "cookie"]).await;
    assert_eq!(
        code,
        Some(0),
        "an answer that is none of the role is a body, as the entry has a template: {all}"
    );
    assert_eq!(said["verdict"], "200", "{all}");
    let (code, _, all) = test(&["api_route", "mad"]).await;
    assert!(code != Some(0) && all.contains("did you mean made?"), "{all}");
    supervisor.stop().await;
}

// Promises: EXT-51
#[test]
fn the_samples_of_the_sdk_are_those_of_the_contract() {
    for role in talon_extensions::Role::ALL {
        let sample = talon_sdk::testing::role_sample(role.as_str(), json!({}));
        assert_eq!(sample, talon_extensions::contract::sample(role), "{role}");
    }
}
