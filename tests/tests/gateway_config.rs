//! The configuration over HTTP: what holds and where it is written, and changes of it while Talon runs.

use serde_json::{Value, json};
use talon_tests::http::Answer;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use talon_tests::gateway_client::{Setting, WAIT, says, start_with_gateway};

/// A gateway whose administrators may do everything that a supervisor lets them.
async fn start() -> Setting {
    start_with_gateway(vec![says("Hi.")], "max_role: admin").await
}

async fn admin(setting: &Setting) -> String {
    setting.token(&["--scope", "chat,admin"]).await
}

fn tag(answer: &Answer) -> String {
    let line = answer.head.lines().find(|line| line.to_ascii_lowercase().starts_with("etag: "));
    line.unwrap_or_else(|| panic!("no tag: {answer:?}"))["etag: ".len()..].to_owned()
}

async fn source(setting: &Setting, token: &str, key: &str) -> Value {
    let (status, sources) = setting.json(token, "GET", "/api/config/sources", &Value::Null).await;
    assert_eq!(status, 200, "{sources}");
    let found = sources["items"].as_array().expect("items").iter().find(|item| item["key"] == key).cloned();
    found.unwrap_or_else(|| panic!("no {key} in {sources:#}"))
}

// Promises: GW-125, GW-127, GW-129, GW-240, GW-243
#[tokio::test(flavor = "multi_thread")]
async fn a_change_holds_at_once_and_over_a_restart_and_gives_way_again() {
    let mut setting = start().await;
    let token = admin(&setting).await;
    let before = setting.send(&token, "GET", "/api/config", "", &Value::Null).await;
    let values: Value = serde_json::from_str(&before.body).expect("JSON");
    assert_eq!((before.status, &values["agent"]["turn"]["iterations"]), (200, &json!(10)));
    let iterations = source(&setting, &token, "agent.turn.iterations").await;
    assert_eq!(
        (&iterations["source"], &iterations["editable"]),
        (&json!("default"), &json!(true)),
        "{iterations}"
    );

    let patch = json!({"agent": {"turn": {"iterations": 21}}, "log": {"level": "debug"}});
    let condition = format!("If-Match: {}\r\n", tag(&before));
    let changed = setting.send(&token, "PATCH", "/api/config", &condition, &patch).await;
    assert_eq!(changed.status, 200, "{changed:?}\n{}", setting.supervisor.log());
    let told: Value = serde_json::from_str(&changed.body).expect("JSON");
    assert_eq!(told["changed"], json!(["agent.turn.iterations", "log.level"]), "{told}");
    assert_ne!(tag(&changed), tag(&before));
    let iterations = source(&setting, &token, "agent.turn.iterations").await;
    assert_eq!(
        (&iterations["source"], &iterations["value"]),
        (&json!("overlay"), &json!(21)),
        "{iterations}"
    );
    assert!(iterations["where"].as_str().expect("a place").contains("overlay.yaml:"), "{iterations}");

    // What was read before is not what is changed now.
    let stale = setting.send(&token, "PATCH", "/api/config", &condition, &patch).await;
    assert_eq!(stale.status, 412, "{stale:?}");

    let (_, history) = setting.json(&token, "GET", "/api/config/history", &Value::Null).await;
    let change = &history["items"][0];
    assert_eq!(
        (&change["revision"], &change["keys"]),
        (&json!(1), &json!(["agent.turn.iterations", "log.level"]))
    );
    assert!(change["by"].as_str().expect("who").starts_with("gw:token/"), "{change}");
    assert_eq!(change["changes"][0]["after"], 21);
    let (_, audit) = setting.json(&token, "GET", "/api/audit?q=patch_config", &Value::Null).await;
    let outcomes = [0, 1].map(|place| &audit["items"][place]["outcome"]);
    assert_eq!(outcomes, ["failed", "done"], "{audit:#}");
    assert!(audit["items"][1]["target"].as_str().expect("keys").contains("agent.turn.iterations"));

    // Another supervisor with the same directories reads the overlay.
    let sibling = setting.supervisor.start_sibling(&["--takeover"]);
    (setting.supervisor, _) = setting.supervisor.succeeded_by(sibling).await;
    setting.supervisor.wait_gateway("the gateway serves", |status| status.state == "serving").await;
    assert_eq!(source(&setting, &token, "agent.turn.iterations").await["value"], 21);
    let shown = setting
        .supervisor
        .cli(&["config", "show", "--config", &setting.supervisor.config().display().to_string()])
        .await;
    let shown = String::from_utf8(shown.stdout).expect("text");
    assert!(
        shown.lines().any(|line| line.contains("iterations: 21") && line.contains("overlay.yaml:")),
        "{shown}"
    );

    let (status, told) =
        setting.json(&token, "PATCH", "/api/config", &json!({"agent": null, "log": {"level": null}})).await;
    assert_eq!(status, 200, "{told}");
    assert_eq!(source(&setting, &token, "agent.turn.iterations").await["source"], "default");
    by_hand(&setting).await;
    refused_file(&setting, &token).await;
    setting.supervisor.stop().await;
}

/// `talon config patch` and `history`, after two changes over HTTP.
async fn by_hand(setting: &Setting) {
    let supervisor = &setting.supervisor;
    let patch = ["config", "patch", "agent.turn.iterations=12", "--unset", "log.level", "--output", "json"];
    for (more, number) in [(vec!["--dry-run"], 0), (vec![], 3)] {
        let done = supervisor.cli(&[&patch[..], &more[..]].concat()).await;
        let told: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
        assert_eq!(
            (&told["accepted"], &told["changed"], &told["number"]),
            (&json!(true), &json!(["agent.turn.iterations"]), &json!(number)),
            "{told}"
        );
    }
    let refused =
        supervisor.cli(&["config", "patch", "agent.turn.iterations=13", "gateway.max_role=call"]).await;
    let text = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert_eq!(refused.status.code(), Some(6), "{refused:?}");
    assert!(text.contains("nothing was changed") && text.contains("gateway.max_role "), "{text}");
    let history = supervisor.cli(&["config", "history", "--limit", "2", "--output", "json"]).await;
    let history: Value = serde_json::from_slice(&history.stdout).unwrap_or_else(|_| panic!("{history:?}"));
    assert_eq!(history.as_array().map(Vec::len), Some(2), "{history}");
    assert_eq!(
        history[0]["changes"],
        json!([{"key": "agent.turn.iterations", "before": null, "after": 12}]),
        "{history:#}"
    );
    let table = supervisor.cli(&["config", "history"]).await;
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    let row: Vec<&str> = table.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!(
        (row.first(), &row[row.len().saturating_sub(3)..]),
        (Some(&"3"), &["agent.turn.iterations", "-", "12"][..]),
        "{table}"
    );
}

/// A file that is refused is said until one is accepted.
async fn refused_file(setting: &Setting, token: &str) {
    let supervisor = &setting.supervisor;
    let file = supervisor.config();
    let good = std::fs::read_to_string(file).expect("the configuration");
    for (text, code, said) in [(format!("{good}\nno_such_key: 1\n"), 6, "no_such_key"), (good, 0, "")] {
        std::fs::write(file, text).expect("the configuration");
        let reloaded = supervisor.cli(&["reload"]).await;
        assert_eq!(reloaded.status.code(), Some(code), "{reloaded:?}");
        let (_, health) = setting.json(token, "GET", "/api/health/deep", &Value::Null).await;
        let told = health["configProblem"].as_str().expect("a text");
        assert!(told.contains(said) && told.is_empty() == said.is_empty(), "{health}");
    }
}

// Promises: GW-126, GW-127
#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_changed_or_does_not_fit_is_refused_whole_with_the_keys_named() {
    let setting = start().await;
    let token = admin(&setting).await;
    let refused = json!({
        "agent": {"turn": {"iterations": 7}, "program": "/bin/sh"},
        "gateway": {"max_role": "admin"},
        "plugins": {"tools": {"plugins": {"evil": {"command": "/bin/sh"}}}},
        "guard": {"timeout": "1s"},
    });
    for target in ["/api/config", "/api/config?dryRun=true"] {
        let (status, problem) = setting.json(&token, "PATCH", target, &refused).await;
        assert_eq!(status, 422, "{problem}");
        let fields = problem["fields"].as_array().expect("fields");
        for key in
            ["agent.program", "gateway.max_role", "guard.timeout", "plugins.tools.plugins.evil.command"]
        {
            assert!(fields.contains(&json!(key)), "{key}: {problem:#}");
        }
    }
    for (patch, key) in [
        (json!({"agent": {"turn": {"iterations": "many"}}}), "agent.turn.iterations"),
        (json!({"agent": {"no_such_key": 1}}), "agent.no_such_key"),
        (json!({"log": {"level": "loud,,=x"}}), "log.level"),
    ] {
        let (status, problem) = setting.json(&token, "PATCH", "/api/config", &patch).await;
        assert_eq!((status, &problem["fields"][0]), (422, &json!(key)), "{problem:#}");
        let (status, check) = setting.json(&token, "POST", "/api/config/check", &patch).await;
        assert_eq!(
            (status, &check["ok"], &check["errors"][0]["key"]),
            (200, &json!(false), &json!(key)),
            "{check}"
        );
    }
    let (_, audit) = setting.json(&token, "GET", "/api/audit?q=patch_config", &Value::Null).await;
    assert_eq!(audit["items"][0]["outcome"], "failed", "{audit:#}");
    // A dry run says what would be, and changes nothing.
    let patch = json!({"agent": {"turn": {"iterations": 7}}});
    let (status, told) = setting.json(&token, "PATCH", "/api/config?dryRun=true", &patch).await;
    assert_eq!((status, &told["changed"]), (200, &json!(["agent.turn.iterations"])), "{told}");
    assert_eq!(source(&setting, &token, "agent.turn.iterations").await["source"], "default");
    let (_, history) = setting.json(&token, "GET", "/api/config/history", &Value::Null).await;
    assert_eq!(history["items"], json!([]));
    let (status, _) = setting.json(&token, "PATCH", "/api/config", &json!([1])).await;
    assert_eq!(status, 422);
    // Nothing is substituted.
    let rules = json!({"orchestrator": {"rules": ["say ${HOME}"]}});
    assert_eq!(setting.json(&token, "PATCH", "/api/config", &rules).await.0, 200);
    assert_eq!(source(&setting, &token, "orchestrator.rules").await["value"], json!(["say ${HOME}"]));
    // Who is no administrator sees and changes nothing.
    let operator = setting.token(&["--scope", "chat,operate"]).await;
    for (method, target) in [
        ("GET", "/api/config"),
        ("GET", "/api/config/sources"),
        ("GET", "/api/config/history"),
        ("PATCH", "/api/config"),
    ] {
        assert_eq!(setting.json(&operator, method, target, &Value::Null).await.0, 403, "{method} {target}");
    }
    let (status, check) = setting.json(&token, "GET", "/api/config/check", &Value::Null).await;
    assert_eq!((status, &check["ok"]), (200, &json!(true)), "{check}");
    setting.supervisor.stop().await;
}

// Promises: GW-128
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_needs_a_restart_says_so_and_administrators_hear_of_changes() {
    let setting = start().await;
    let token = admin(&setting).await;
    let mut socket = setting.socket(&token).await;
    // A server-sent event says the same.
    let mut stream = TcpStream::connect(setting.address).await.expect("it listens");
    let request = format!(
        "GET /api/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\n\r\n",
        setting.address
    );
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut lines = BufReader::new(stream).lines();
    while !lines.next_line().await.expect("a head").expect("a head").is_empty() {}
    // The gateway follows the supervisor's events before it answers this, or at the next attempt: the change is repeated until it is told.
    let mut level = ["warn", "info"].into_iter().cycle();
    let update = loop {
        let patch = json!({"log": {"level": level.next()}, "agent": {"enabled": false}});
        let (status, told) = setting.json(&token, "PATCH", "/api/config", &patch).await;
        assert_eq!((status, &told["needsRestart"]), (200, &json!(["agent.enabled"])), "{told}");
        if let Ok(update) =
            tokio::time::timeout(std::time::Duration::from_secs(6), socket.one("config.updated")).await
        {
            break update;
        }
    };
    assert!(update["payload"]["keys"].as_array().expect("keys").contains(&json!("log.level")), "{update}");
    assert_eq!(update["payload"]["needsRestart"], json!(["agent.enabled"]), "{update}");
    let told = tokio::time::timeout(WAIT, async {
        loop {
            let line = lines.next_line().await.expect("a line").expect("it goes on");
            if line.starts_with("data:") && line.contains("config.updated") {
                return line;
            }
        }
    });
    let told = told.await.expect("in time");
    assert!(told.contains("log.level") && told.contains("agent.enabled"), "{told}");
    setting.supervisor.stop().await;
}
