//! Ghosts over the gateway, before a real agent.

use std::time::Duration;

use serde_json::{Value, json};
use talon_proto::agent::agent_client::AgentClient;
use talon_proto::agent::{Observation, ObserveRequest};
use talon_tests::ask::with_agent;
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, dial, program};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use talon_tests::gateway_client::{Setting, Socket, WAIT, says};

/// How long an observation is waited for that may have come too early.
const POLL: Duration = Duration::from_millis(300);

const PROPOSAL: &str =
    r#"{"observation": "A test fails.", "proposal": "Mend the test.", "confidence": "high"}"#;

fn reply(question: &Value) -> ScriptedReply {
    let is_ghost = question["messages"].to_string().contains("What was noticed");
    says(if is_ghost { PROPOSAL } else { "It is mended." })
}

/// A gateway before an agent that takes observations. Who runs the test is `gw:web/ada` as well.
async fn watching() -> Setting {
    let provider = Provider::responding(reply).await;
    let builder = Builder::new()
        .plugin("liar", &program("misbehave"), &[], "")
        .config("gateway: { enabled: true, address: '127.0.0.1:0', max_role: operate }")
        .config("shadow: { enabled: true, cooldown: 1, visible: [/code] }");
    let whose = nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().expect("a user").name;
    let identities = format!("  identities: {{ {whose}: ['gw:web/ada'] }}");
    let supervisor = with_agent(builder, &provider, &identities, "").start().await;
    let status = supervisor.wait_gateway("the gateway serves", |status| status.state == "serving").await;
    let address = status.url.trim_start_matches("http://").parse().expect("an address");
    Setting { supervisor, provider, address }
}

/// What a watcher saw; with a trigger, a test that failed.
async fn observe(setting: &Setting, id: &str, trigger: &str) {
    let mut agent = AgentClient::new(dial(&setting.supervisor.agent_socket()).await.expect("it listens"));
    let seen = Observation {
        id: id.to_owned(),
        kind: "command".to_owned(),
        trigger: trigger.to_owned(),
        directory: "/code/parser".to_owned(),
        repository: "/code/parser".to_owned(),
        subject: "cargo test".to_owned(),
        finding: format!("test {id} failed"),
        boundary: "test_end".to_owned(),
        ..Observation::default()
    };
    let request = ObserveRequest { observations: vec![seen], ..ObserveRequest::default() };
    let taken = agent.observe(request).await.expect("it takes observations").into_inner();
    assert_eq!(taken.verdicts[0].verdict, "taken");
}

/// Observations are not durable: has some be seen until the connection hears of one.
async fn wait_until_heard(setting: &Setting, socket: &mut Socket) {
    let heard = async {
        for number in 0_u32.. {
            observe(setting, &format!("e{number}"), "").await;
            if timeout(POLL, socket.one("shadow.event")).await.is_ok() {
                return;
            }
        }
    };
    timeout(WAIT, heard).await.expect("in time");
}

// Promises: SHADOW-29, SHADOW-30, GW-241
#[tokio::test(flavor = "multi_thread")]
async fn observations_and_ghosts_are_events_and_a_person_decides_over_http() {
    let setting = watching().await;
    let token = setting.token(&["--scope", "chat,approve", "--subject", "gw:web/ada"]).await;
    let stranger = setting.token(&["--scope", "chat,approve", "--subject", "gw:web/eve"]).await;
    let reader = setting.token(&["--scope", "chat", "--subject", "gw:web/ada"]).await;
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
    wait_until_heard(&setting, &mut socket).await;
    observe(&setting, "o1", "test_failed").await;
    let seen = loop {
        let seen = socket.one("shadow.event").await;
        if seen["payload"]["id"] == "o1" {
            break seen;
        }
    };
    assert_eq!(
        (&seen["payload"]["trigger"], &seen["payload"]["subject"], &seen["payload"]["boundary"]),
        (&json!("test_failed"), &json!("cargo test"), &json!("test_end"))
    );
    let ghost = socket.one("shadow.ghost").await["payload"].clone();
    assert_eq!((&ghost["proposal"], &ghost["state"]), (&json!("Mend the test."), &json!("waiting")));
    assert_eq!(
        ghost["actions"],
        json!([{"label": "Do it", "type": "approve"}, {"label": "Dismiss", "type": "dismiss"}])
    );
    let told = timeout(WAIT, async {
        loop {
            let line = lines.next_line().await.expect("a line").expect("it goes on");
            if line.starts_with("data:") && line.contains("shadow.ghost") {
                return line;
            }
        }
    });
    assert!(told.await.expect("in time").contains("Mend the test."));
    let id = ghost["id"].as_str().expect("an id");
    let path = format!("/api/ghosts/{id}");
    let (status, listed) = setting.json(&token, "GET", "/api/ghosts?state=waiting", &Value::Null).await;
    assert_eq!((status, &listed["items"][0]["id"]), (200, &json!(id)));
    let (_, why) = setting.json(&token, "GET", &path, &Value::Null).await;
    assert_eq!((&why["finding"], &why["sent"]["outcome"]), (&json!("test o1 failed"), &json!("ghost")));
    let (status, _) = setting.json(&stranger, "GET", &path, &Value::Null).await;
    assert_eq!(status, 404);
    let approve = json!({"decision": "approve"});
    for (whose, refused) in [(&stranger, 404), (&reader, 403)] {
        let (status, problem) = setting.json(whose, "POST", &path, &approve).await;
        assert_eq!(status, refused, "{problem}");
    }
    let (status, approved) = setting.json(&token, "POST", &path, &approve).await;
    assert_eq!((status, &approved["state"]), (200, &json!("approved")), "{approved}");
    let changed = socket.one("shadow.ghost").await;
    assert_eq!(changed["payload"]["sessionId"], approved["sessionId"]);
    let session = approved["sessionId"].as_str().expect("a session");
    loop {
        let end = socket.one("agent.response.end").await;
        if end["payload"]["sessionId"] == session {
            break;
        }
    }
    let (status, again) = setting.json(&token, "POST", &path, &json!({"decision": "dismiss"})).await;
    assert_eq!(status, 409, "{again}");
    let (_, stats) = setting.json(&token, "GET", "/api/shadow/stats", &Value::Null).await;
    assert_eq!((&stats["triggers"][0]["approved"], &stats["enabled"]), (&json!(1), &json!(true)));
    assert_eq!(
        (&stats["problem"], stats["triggers"][0]["heldBack"].is_object(), &stats["localOnly"]),
        (&json!(""), true, &json!(false)),
        "{stats:#}"
    );
    let (_, shown) = setting.json(&token, "GET", &path, &Value::Null).await;
    let ghost = &shown["ghost"];
    assert_eq!(ghost["decidedBy"], ghost["senderId"], "{shown:#}");
    assert!(ghost["decidedAt"].as_u64() > Some(0), "{shown:#}");
    // Of somebody else it is for operators.
    let (status, _) = setting.json(&token, "GET", "/api/shadow/stats?sender=gw:web/eve", &Value::Null).await;
    assert_eq!(status, 403);
    let (_, log) = setting.json(&token, "GET", "/api/shadow/log", &Value::Null).await;
    assert_eq!(
        (&log["items"][0]["ghostId"], &log["items"][0]["trigger"]),
        (&json!(id), &json!("test_failed"))
    );
    let pause = json!({"paused": true});
    let (status, rest) = setting.json(&token, "POST", "/api/shadow/pause", &pause).await;
    assert_eq!((status, &rest["paused"]), (200, &json!(true)));
    setting.supervisor.stop().await;
}
