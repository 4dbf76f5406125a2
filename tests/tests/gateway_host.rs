//! What an operator gets from the supervisor over HTTP: the audit log, findings, calls, numbers over time.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Client, program};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::timeout;

use talon_tests::gateway_client::{Setting, WAIT, says, start_all, start_with_gateway};

/// With answers that are kept as they came, and a quarantine that is soon reached.
const GUARD: &str = "max_role: admin }\nguard: { keep_raw_bytes: 1MiB, quarantine: { marks: 5, window: 1h }";

async fn start() -> (Setting, String) {
    let setting = start_with_gateway(vec![says("Hi.")], GUARD).await;
    let token = setting.token(&["--scope", "chat,admin"]).await;
    (setting, token)
}

async fn get(setting: &Setting, token: &str, target: &str) -> Value {
    let (status, answer) = setting.json(token, "GET", target, &Value::Null).await;
    assert_eq!(status, 200, "{target}: {answer:#}\n{}", setting.supervisor.log());
    answer
}

// Promises: GW-124
#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_is_searched_page_by_page_and_verified() {
    let (setting, token) = start().await;
    for _ in 0..5 {
        setting.supervisor.client.call("liar", "echo", &[("text", "hi")]).await;
    }
    let first = get(&setting, &token, "/api/audit?q=liar%20echo&limit=3").await;
    let items = first["items"].as_array().expect("items");
    assert_eq!(items.len(), 3, "{first:#}");
    assert_eq!(
        (&items[0]["event"], &items[0]["outcome"], &items[0]["kind"]),
        (&json!("liar.echo"), &json!("ok"), &json!("call"))
    );
    let cursor = first["nextCursor"].as_str().expect("a further page");
    let second = get(&setting, &token, &format!("/api/audit?q=liar%20echo&limit=3&cursor={cursor}")).await;
    let sequence = |item: &Value| item["sequence"].as_u64().expect("a number");
    let all: Vec<u64> = [items.as_slice(), second["items"].as_array().expect("items").as_slice()]
        .concat()
        .iter()
        .map(sequence)
        .collect();
    assert!(all.len() >= 5 && all.is_sorted_by(|a, b| a > b), "{all:?}");
    let verdict = get(&setting, &token, "/api/audit/verify").await;
    assert_eq!(verdict["ok"], true, "{verdict}");
    assert!(verdict["records"].as_u64() >= Some(6));
    let operator = setting.token(&["--scope", "chat,operate"]).await;
    assert_eq!(setting.json(&operator, "GET", "/api/audit", &Value::Null).await.0, 403);
    assert_eq!(setting.json(&token, "GET", "/api/audit?cursor=x", &Value::Null).await.0, 400);
    setting.supervisor.stop().await;
}

// Promises: AUDIT-19, AUDIT-22
#[tokio::test(flavor = "multi_thread")]
async fn what_is_changed_over_http_is_in_the_audit_log_with_who_it_was() {
    let tool = |name: &str, arguments: Value| ScriptedReply::ToolCalls(vec![(name.to_owned(), arguments)]);
    let provider = Provider::start(vec![
        tool("memory__save", json!({"content": "likes xyzzy tea"})),
        says("Noted."),
        tool("liar__echo", json!({"text": "xyzzy"})),
        says("I may not."),
    ]);
    let agent = "  confirm: { rules: [{ tool: liar.echo, ask: always }] }\nextensions:\n  schedule:\n    - { id: report, every: 24h, ask: Report }";
    let setting = start_all(provider.await, agent, "max_role: admin").await;
    let person = setting.token(&["--scope", "chat,approve"]).await;
    let admin = setting.token(&["--scope", "chat,admin"]).await;
    let subject = async |token: &str| get(&setting, token, "/api/session").await["subject"].clone();
    let (by_person, by_admin) = (subject(&person).await, subject(&admin).await);

    let send = "/api/sessions/new/send";
    let (_, told) = setting.json(&person, "POST", send, &json!({"text": "I like xyzzy tea"})).await;
    let session = told["sessionId"].as_str().expect("a session").to_owned();
    let memories = get(&setting, &person, "/api/memories").await;
    let memory = memories["items"][0]["id"].as_str().expect("a memory").to_owned();
    let path = format!("/api/memories/{memory}");
    assert_eq!(setting.send(&person, "DELETE", &path, "", &Value::Null).await.status, 204);

    let later = "Prefer: respond-async\r\n";
    assert_eq!(setting.send(&person, "POST", send, later, &json!({"text": "Say it"})).await.status, 202);
    setting.provider.wait_questions(3).await;
    let approvals = async || get(&setting, &person, "/api/approvals").await["items"].clone();
    let is_waiting = async |_: &Client| approvals().await[0]["id"].is_string();
    setting.supervisor.client.wait_until("it waits for a person", is_waiting).await;
    let approval = approvals().await[0]["id"].as_str().expect("an approval").to_owned();
    let decision = json!({"allow": false, "reason": "xyzzy"});
    let (status, _) = setting.json(&person, "POST", &format!("/api/approvals/{approval}"), &decision).await;
    assert_eq!(status, 200, "{}", setting.supervisor.log());

    let (status, _) = setting.json(&admin, "PATCH", "/api/schedule/report", &json!({"paused": true})).await;
    assert_eq!(status, 200, "{}", setting.supervisor.log());
    let path = format!("/api/sessions/{session}");
    assert_eq!(setting.send(&admin, "DELETE", &path, "", &Value::Null).await.status, 204);
    assert_eq!(setting.json(&person, "DELETE", &path, &Value::Null).await.0, 404);

    // What was answered is recorded though the agent is killed right after.
    let agent = setting.supervisor.wait_agent("the agent's process", |agent| agent.pid > 0).await;
    kill(Pid::from_raw(agent.pid.cast_signed()), Signal::SIGKILL).expect("it can be killed");
    let whose = by_person.as_str().expect("a subject");
    let session = session.trim_start_matches("sess_");
    let expected = [
        ("forget_memories", "done", &by_person, format!("{memory} memories 1")),
        ("deny_approval", "done", &by_person, format!("{approval} liar.echo")),
        ("pause_job", "done", &by_admin, "report".to_owned()),
        ("delete_session", "done", &by_admin, format!("{session} of {whose}")),
        ("delete_session", "failed", &by_person, session.to_owned()),
    ];
    let is_recorded = |items: &Value, (verb, outcome, by, target): &(&str, &str, &Value, String)| {
        items.as_array().expect("items").iter().any(|item| {
            (&item["event"], &item["outcome"], &item["subject"]) == (&json!(verb), &json!(outcome), *by)
                && item["target"] == *target
        })
    };
    let audit = async || get(&setting, &admin, "/api/audit?limit=100").await["items"].clone();
    // The supervisor may still be reading what the agent told it.
    let looked = timeout(WAIT, async {
        loop {
            let items = audit().await;
            let missing: Vec<_> = expected.iter().filter(|one| !is_recorded(&items, one)).collect();
            if missing.is_empty() {
                break;
            }
            assert!(items.as_array().expect("items").len() < 90, "{missing:#?} in {items:#}");
        }
    });
    looked.await.expect("the audit log is read");
    let items = audit().await;
    let items = items.as_array().expect("items");
    let is_said = |item: &&Value| item["kind"] == "operation" && item.to_string().contains("xyzzy");
    assert!(!items.iter().any(|item| is_said(&item)), "what was said is nobody else's: {items:#?}");
    // The command line shows the same.
    let shown = setting.supervisor.cli(&["audit", "show", "--kind", "operation"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let line = shown.lines().find(|line| line.contains(" forget_memories "));
    assert!(line.is_some_and(|line| line.contains(whose)), "{shown}");
    assert_eq!(get(&setting, &admin, "/api/audit/verify").await["ok"], true);
    setting.supervisor.stop().await;
}

// Promises: GW-133
#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_what_is_wrong_with_the_fix() {
    let (setting, token) = start().await;
    let report = get(&setting, &token, "/api/doctor").await;
    let items = report["items"].as_array().expect("items");
    let sections: Vec<&str> = items.iter().filter_map(|item| item["section"].as_str()).collect();
    for section in ["configuration", "supervisor", "machine", "sandbox"] {
        assert!(sections.contains(&section), "{section}: {report:#}");
    }
    let supervisor = items.iter().find(|item| item["check"] == "supervisor").expect("a check");
    assert_eq!(supervisor["state"], "ok", "it is asked as anybody asks it: {report:#}");
    assert!(items.iter().any(|item| item["fix"].as_str().is_some_and(|fix| !fix.is_empty())), "{report:#}");
    let severity = |item: &Value| {
        ["failed", "warning", "ok"].iter().position(|state| item["state"] == *state).expect("a state")
    };
    assert!(items.iter().map(severity).is_sorted(), "{report:#}");
    // It is run once, not once a reader.
    assert_eq!(get(&setting, &token, "/api/doctor").await["at"], report["at"]);
    let chat = setting.token(&["--scope", "chat"]).await;
    assert_eq!(setting.json(&chat, "GET", "/api/doctor", &Value::Null).await.0, 403);
    setting.supervisor.stop().await;
}

// Promises: GW-130, GW-131
#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_seen_with_the_guards_layers_and_what_they_changed() {
    let (setting, token) = start().await;
    let client = &setting.supervisor.client;
    // From the first look on, the way through the layers is measured.
    get(&setting, &token, "/api/calls").await;
    client.call("liar", "hostile", &[]).await;
    client.call("liar", "no_such_action", &[]).await;
    let calls = get(&setting, &token, "/api/calls?plugin=liar&limit=2").await;
    let items = calls["items"].as_array().expect("items");
    let outcomes: Vec<&Value> = items.iter().map(|call| &call["outcome"]).collect();
    assert_eq!(outcomes, [&json!("refused"), &json!("ok")], "{calls:#}");
    assert_eq!(items[1]["neutralized"], 2);
    assert!(items[1]["subject"].as_str().expect("who").starts_with("uid:"));

    let id = items[1]["id"].as_str().expect("an id");
    let one = get(&setting, &token, &format!("/api/calls/{id}")).await;
    let layer = |name: &str| {
        one["layers"]
            .as_array()
            .expect("layers")
            .iter()
            .find(|layer| layer["layer"] == name)
            .expect("a layer")
    };
    assert_eq!(layer("sanitize")["verdict"], "changed", "{one:#}");
    assert!(layer("instance")["us"].as_f64().is_some_and(|us| us > 0.0), "{one:#}");
    assert_eq!((&one["kept"], &one["args"]), (&json!(true), &json!({})));
    let answer: Vec<u16> = one["answer"].as_str().expect("text").encode_utf16().collect();
    for span in one["spans"].as_array().expect("spans") {
        let place = |end: &str| usize::try_from(span[end].as_u64().expect("a place")).expect("it is small");
        assert_eq!(String::from_utf16_lossy(&answer[place("start")..place("end")]), "·", "{one:#}");
    }
    assert_eq!(one["spans"].as_array().expect("spans").len(), 2);
    let refused = items[0]["id"].as_str().expect("an id");
    let one = get(&setting, &token, &format!("/api/calls/{refused}")).await;
    let verdict = |name: &str| {
        one["layers"]
            .as_array()
            .expect("layers")
            .iter()
            .find(|layer| layer["layer"] == name)
            .expect("a layer")["verdict"]
            .clone()
    };
    assert_eq!((verdict("resolve"), verdict("instance")), (json!("deny"), json!("skipped")), "{one:#}");
    assert_eq!(one["kept"], false);

    // Looking is for administrators, and is recorded.
    let operator = setting.token(&["--scope", "chat,operate"]).await;
    assert_eq!(setting.json(&operator, "GET", &format!("/api/calls/{id}"), &Value::Null).await.0, 403);
    let audit = get(&setting, &token, "/api/audit?q=get_call").await;
    assert!(audit["items"].as_array().expect("items").iter().any(|item| item["target"] == id), "{audit:#}");
    assert_eq!(setting.json(&token, "GET", "/api/calls/nothing", &Value::Null).await.0, 404);
    setting.supervisor.stop().await;
}

// Promises: GW-134, GW-242
#[tokio::test(flavor = "multi_thread")]
async fn a_quarantine_is_lifted_without_another_process() {
    let (setting, token) = start().await;
    let client = &setting.supervisor.client;
    for _ in 0..3 {
        client.call("liar", "hostile", &[]).await;
    }
    let pid = |plugin: &Value| plugin["plugin"]["instances"][0]["pid"].clone();
    let before = get(&setting, &token, "/api/plugins/liar").await;
    assert_eq!(before["plugin"]["quarantined"], true, "{before:#}");
    // Who operates also sees what it may do, and what it uses.
    let settings = &before["settings"];
    assert_eq!(
        (settings["sandboxNetwork"].as_str(), settings["sha256"].as_str().map(str::len)),
        (Some("none"), Some(64)),
        "{before:#}"
    );
    assert!(before["roles"].is_array(), "{before:#}");
    let instance = &before["plugin"]["instances"][0];
    assert!(instance["readySince"].as_u64() > Some(0) && instance["cpuUs"].is_u64(), "{before:#}");
    let talker = setting.token(&["--scope", "chat"]).await;
    let (_, seen) = setting.json(&talker, "GET", "/api/plugins/liar", &Value::Null).await;
    assert_eq!((&seen["settings"]["command"], &seen["roles"]), (&json!(""), &json!([])), "{seen:#}");
    let (status, lifted) =
        setting.json(&token, "POST", "/api/plugins/liar/lift-quarantine", &Value::Null).await;
    assert_eq!((status, &lifted["quarantined"]), (200, &json!(false)), "{lifted:#}");
    assert_eq!(client.call("liar", "echo", &[("text", "hi")]).await.content, "hi");
    assert_eq!(pid(&get(&setting, &token, "/api/plugins/liar").await), pid(&before));
    setting.supervisor.stop().await;
}

// Promises: GW-132, GW-135
#[tokio::test(flavor = "multi_thread")]
async fn numbers_over_time_costs_by_day_and_an_undone_turn() {
    let (setting, token) = start().await;
    let series = get(&setting, &token, "/api/series").await;
    assert_eq!(series["stepMs"], 10_000, "{series}");
    let at = series["at"].as_array().expect("times").len();
    assert!(at >= 1 && series["calls"].as_array().expect("numbers").len() == at, "{series}");
    let later = series["at"][at - 1].as_u64().expect("a time");
    assert_eq!(
        get(&setting, &token, &format!("/api/series?after={}", later + 3_600_000)).await["at"],
        json!([])
    );

    let (_, session) = setting.json(&token, "POST", "/api/sessions", &json!({})).await;
    let id = session["id"].as_str().unwrap_or_else(|| panic!("{session:#}"));
    let (status, sent) =
        setting.json(&token, "POST", &format!("/api/sessions/{id}/send"), &json!({"text": "Hello"})).await;
    assert_eq!(status, 200, "{sent:#}");
    let days = get(&setting, &token, "/api/costs?by=day&days=7").await;
    let rows = days["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), &rows[6]["cost"]["answers"]), (7, &json!(1)), "{days:#}");
    assert!(rows[6]["name"].as_str().expect("a date").starts_with("20"), "{days:#}");
    let models = get(&setting, &token, "/api/costs?by=model").await;
    assert_eq!(models["rows"][0]["name"], "local/test", "{models:#}");
    assert_eq!(
        get(&setting, &token, "/api/costs?by=session").await["rows"],
        json!([]),
        "nothing had a price"
    );
    assert_eq!(setting.json(&token, "GET", "/api/costs?by=colour", &Value::Null).await.0, 400);

    let (status, undone) =
        setting.json(&token, "POST", &format!("/api/sessions/{id}/undo"), &json!({})).await;
    assert_eq!((status, &undone["turns"], &undone["text"]), (200, &json!(1), &json!("Hello")), "{undone}");
    setting.supervisor.stop().await;
}

// Promises: GW-137
#[tokio::test(flavor = "multi_thread")]
async fn an_action_is_called_as_oneself_with_the_guarded_answer_beside_the_raw_one() {
    let (setting, token) = start().await;
    let target = "/api/plugins/liar/actions/hostile";
    let (status, answer) = setting.json(&token, "POST", target, &json!({"raw": true})).await;
    assert_eq!((status, &answer["outcome"]), (200, &json!("ok")), "{answer:#}");
    let text = |field: &str| answer[field].as_str().unwrap_or_else(|| panic!("{answer:#}"));
    assert!(
        text("output").contains("[·/plugin_output]") && text("raw").contains("[/plugin_output]"),
        "{answer:#}"
    );
    let calls = get(&setting, &token, "/api/calls?limit=1").await;
    assert!(calls["items"][0]["subject"].as_str().expect("who").starts_with("gw:token/"), "{calls:#}");
    let echo = "/api/plugins/liar/actions/echo";
    let (_, answer) = setting.json(&token, "POST", echo, &json!({"args": {"text": "hi"}})).await;
    assert_eq!((&answer["output"], answer.get("raw")), (&json!("hi"), None), "{answer:#}");
    let (_, refused) = setting.json(&token, "POST", "/api/plugins/liar/actions/nothing", &json!({})).await;
    assert_eq!(
        (&refused["outcome"], &refused["reason"]),
        (&json!("refused"), &json!("unknown_action")),
        "{refused:#}"
    );
    let operator = setting.token(&["--scope", "chat,operate"]).await;
    assert_eq!(setting.json(&operator, "POST", target, &json!({"raw": true})).await.0, 403);
    assert_eq!(setting.json(&operator, "POST", target, &json!({})).await.0, 200);
    let chat = setting.token(&["--scope", "chat"]).await;
    assert_eq!(setting.json(&chat, "POST", target, &json!({})).await.0, 403);
    setting.supervisor.stop().await;
}

type Lines = tokio::io::Lines<BufReader<TcpStream>>;

/// Server-sent events of the event bus; what happens from now on is in them.
async fn bus(setting: &Setting, token: &str) -> Lines {
    let mut stream = TcpStream::connect(setting.address).await.expect("it listens");
    let request = format!(
        "GET /api/bus HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\n\r\n",
        setting.address
    );
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut lines = BufReader::new(stream).lines();
    while !lines.next_line().await.expect("a head").expect("a head").is_empty() {}
    lines
}

/// The next event of the bus of this type, or of any.
async fn event(lines: &mut Lines, kind: &str) -> Value {
    let found = async {
        loop {
            let line = lines.next_line().await.expect("a line").expect("it goes on");
            let Some(data) = line.strip_prefix("data:") else { continue };
            let event: Value = serde_json::from_str(data.trim()).expect("JSON");
            if kind.is_empty() || event["type"] == kind {
                return event;
            }
        }
    };
    timeout(WAIT, found).await.unwrap_or_else(|_| panic!("no {kind} in time"))
}

/// Calls a plugin that attacks, if it is asked to; then it is done.
fn attacks(question: &Value) -> ScriptedReply {
    let messages = question["messages"].to_string();
    if messages.contains("Attack") && !messages.contains("\"role\":\"tool\"") {
        return ScriptedReply::ToolCalls(vec![("liar__hostile".to_owned(), json!({}))]);
    }
    says("Done.")
}

async fn send(setting: &Setting, token: &str, text: &str) {
    let (_, session) = setting.json(token, "POST", "/api/sessions", &json!({})).await;
    let id = session["id"].as_str().unwrap_or_else(|| panic!("{session:#}"));
    let path = format!("/api/sessions/{id}/send");
    let (status, sent) = setting.json(token, "POST", &path, &json!({"text": text})).await;
    assert_eq!(status, 200, "{sent:#}");
}

// Promises: GW-152, GW-153
#[tokio::test(flavor = "multi_thread")]
async fn the_event_bus_tells_operators_what_happens_and_others_what_is_theirs() {
    let confirm = "  confirm: { rules: [{ tool: liar.hostile, ask: never }] }";
    let setting = start_all(Provider::responding(attacks).await, confirm, GUARD).await;
    let token = setting.token(&["--scope", "chat,admin"]).await;
    let eve = setting.token(&["--scope", "chat", "--subject", "gw:web/eve"]).await;
    let (status, problem) = setting.json(&token, "GET", "/api/bus?type=tool.complet", &Value::Null).await;
    assert_eq!(status, 400, "{problem}");
    assert!(problem["detail"].as_str().expect("why").contains("did you mean tool.complete?"), "{problem}");

    let (mut all, mut own) = (bus(&setting, &token).await, bus(&setting, &eve).await);
    send(&setting, &token, "Attack").await;
    assert_eq!(event(&mut all, "message.inbound").await["payload"]["text"], "Attack");
    event(&mut all, "agent.thinking").await;
    let requested = event(&mut all, "tool.execute").await;
    let complete = event(&mut all, "tool.complete").await;
    assert_eq!(complete["payload"]["callId"], requested["payload"]["callId"]);
    let layers = complete["payload"]["layers"].as_array().expect("layers").clone();
    let layer = |name: &str| layers.iter().find(|layer| layer["layer"] == name).expect("a layer");
    assert_eq!((layers.len(), &layer("sanitize")["verdict"]), (13, &json!("changed")), "{complete:#}");
    assert!(layer("instance")["us"].as_f64().is_some_and(|us| us > 0.0), "it is watched: {complete:#}");
    let neutralized = event(&mut all, "guard.neutralized").await;
    assert!(neutralized["payload"]["neutralized"].as_object().is_some_and(|families| !families.is_empty()));
    let answer = event(&mut all, "message.outbound").await;
    assert_eq!((&answer["payload"]["text"], &answer["sessionId"]), (&json!("Done."), &complete["sessionId"]));

    let patch = json!({"log": {"level": "debug"}});
    assert_eq!(setting.json(&token, "PATCH", "/api/config", &patch).await.0, 200);
    let changed = event(&mut all, "config.changed").await;
    assert_eq!(changed["payload"]["keys"], json!(["log.level"]), "{changed}");
    let (status, restarted) = setting.json(&token, "POST", "/api/plugins/liar/restart", &Value::Null).await;
    assert_eq!(status, 200, "{restarted:#}");
    assert_eq!(event(&mut all, "plugin.exited").await["payload"]["plugin"], "liar");
    event(&mut all, "plugin.ready").await;

    // Of all that she hears what is hers.
    send(&setting, &eve, "Hello").await;
    let first = event(&mut own, "").await;
    assert_eq!((&first["type"], &first["sender"]), (&json!("session.created"), &json!("gw:web/eve")));
    assert_eq!(event(&mut own, "message.outbound").await["payload"]["text"], "Done.");
    setting.supervisor.stop().await;
}

// Promises: GW-153
#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_shows_the_event_bus() {
    let setting = start_all(Provider::responding(attacks).await, "", GUARD).await;
    let token = setting.token(&["--scope", "chat"]).await;
    let misspelt = setting.supervisor.cli(&["events", "--type", "mesage.*"]).await;
    assert_eq!(misspelt.status.code(), Some(2), "{misspelt:?}");
    assert!(String::from_utf8_lossy(&misspelt.stderr).contains("did you mean message.*?"), "{misspelt:?}");
    let args = ["events", "--type", "message.*", "--count", "2", "--output", "json"];
    let shown = {
        let watching = setting.supervisor.cli(&args);
        tokio::pin!(watching);
        // Until it watches, nobody hears it.
        loop {
            tokio::select! {
                shown = &mut watching => break shown,
                () = send(&setting, &token, "Hello") => {}
            }
        }
    };
    assert!(shown.status.success(), "{shown:?}");
    let lines = String::from_utf8(shown.stdout).expect("text");
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(events.len(), 2, "{lines}");
    for event in events {
        assert!(event["kind"].as_str().is_some_and(|kind| kind.starts_with("message.")), "{event}");
        assert!(event["payload"]["text"].is_string() && event["sequence"].as_u64() > Some(0), "{event}");
    }
    follows_over_a_killed_agent(&setting, &token).await;
    setting.supervisor.stop().await;
}

/// Where events are missing for the end of an agent, a line says so.
async fn follows_over_a_killed_agent(setting: &Setting, token: &str) {
    let supervisor = &setting.supervisor;
    let mut watching = Command::new(program("talon"))
        .arg("--socket")
        .arg(supervisor.socket())
        .args(["events", "--type", "message.*", "--follow", "--output", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("talon starts");
    let mut lines = BufReader::new(watching.stdout.take().expect("it is piped")).lines();
    // Until it watches, nobody hears it.
    let first = loop {
        tokio::select! {
            line = lines.next_line() => break line.expect("it can be read").expect("it goes on"),
            () = send(setting, token, "Hello") => {}
        }
    };
    assert!(first.contains("message."), "{first}");
    let old = supervisor.client.status().await.agent.expect("there is an agent").pid;
    kill(Pid::from_raw(old.cast_signed()), Signal::SIGKILL).expect("it is ours");
    let gap = async {
        loop {
            let line = lines.next_line().await.expect("it can be read").expect("it goes on");
            let told: Value = serde_json::from_str(&line).expect("JSON");
            if told["kind"].is_null() {
                return told;
            }
        }
    };
    assert_eq!(timeout(WAIT, gap).await.expect("it is said"), json!({"missed": null}));
}
