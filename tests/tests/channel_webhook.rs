//! The generic chat webhook: in by a route of the gateway, out by signed posts; and what a route passes on and what not.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use talon_tests::ask::with_agent;
use talon_tests::http::{Answer, send_tcp};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, ServerScript, Supervisor, program, repository};

const PYTHON: &str = "/usr/bin/python3";
const SECRET: &str = "it is a secret of the desk";

struct Setting {
    supervisor: Supervisor,
    provider: Provider,
    chat: ServerScript,
    gateway: SocketAddr,
    token: String,
}

async fn start(script: Vec<ScriptedReply>) -> Setting {
    let chat = ServerScript::start(PYTHON, &repository().join("tests/channels/chat.py"), &[SECRET]);
    let address = format!("127.0.0.1:{}", chat.port(0));
    let desk = format!(
        "config: {{ url: 'http://{address}/answers' }}\ncredentials: {{ secret: {{ header: X-Desk-Signature, value: '{SECRET}' }} }}\n\
         events: {{ per_minute: 6000 }}\nsandbox: {{ network: proxy, allow: ['{address}'] }}"
    );
    let config = "gateway: { enabled: true, address: '127.0.0.1:0', max_role: operate }\nextensions:\n  \
                  channels: [{ action: desk.channel, name: desk, senders: ['*'] }]\n  routes:\n    \
                  - { path: /x/desk, method: POST, action: desk.receive, scope: chat, headers: [X-Desk-Signature] }\n    \
                  - { path: /x/echo, method: POST, action: liar.echo, scope: operate, args: { text: '{{ body }}' } }\n    \
                  - { path: /x/error, action: liar.error, name: failing, scope: chat, args: { text: 'at /etc/very-secret' } }\n";
    let builder = Builder::new()
        .plugin("desk", &program("chat-webhook"), &[], &desk)
        .plugin("liar", &program("misbehave"), &[], "")
        .config(config);
    let provider = Provider::start(script).await;
    let supervisor = with_agent(builder, &provider, "", "").start().await;
    let status = supervisor.wait_gateway("the gateway serves", |status| status.state == "serving").await;
    let gateway = status.url.trim_start_matches("http://").parse().expect("an address");
    let issued = supervisor.cli(&["token", "create", "--output", "json", "--scope", "chat"]).await;
    let issued: Value = serde_json::from_slice(&issued.stdout).expect("JSON");
    let token = issued["token"].as_str().expect("a token").to_owned();
    Setting { supervisor, provider, chat, gateway, token }
}

fn signature(secret: &str, time: u64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any key");
    mac.update(format!("{time}.{body}").as_bytes());
    format!("t={time},v1={}", hex::encode(mac.finalize().into_bytes()))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

impl Setting {
    async fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.gateway,
            body.len()
        );
        send_tcp(self.gateway, &request).await
    }

    async fn post(&self, body: &Value, signed: impl Fn(&str) -> String) -> Answer {
        let body = body.to_string();
        let headers =
            format!("Authorization: Bearer {}\r\nX-Desk-Signature: {}\r\n", self.token, signed(&body));
        self.ask("POST", "/x/desk", &headers, &body).await
    }

    /// What the other program accepted.
    async fn got(&self) -> Vec<Value> {
        let address = SocketAddr::from(([127, 0, 0, 1], self.chat.port(0)));
        let request = "GET /control/got HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        serde_json::from_str(&send_tcp(address, request).await.body).expect("a list")
    }
}

// Promises: GW-212, GW-213, GW-222
#[tokio::test(flavor = "multi_thread")]
async fn a_signed_message_is_answered_by_a_signed_post_and_nobody_else_is_heard() {
    let setting = start(vec![ScriptedReply::Text("Three things.".to_owned())]).await;
    let message = json!({"id": "m/7", "senderId": "ada", "senderName": "Ada", "text": "What is new?"});
    let good = |body: &str| signature(SECRET, now(), body);
    let refused = [
        (setting.post(&message, |body| signature("another", now(), body)).await, 401, "not of this body"),
        (setting.post(&message, |body| signature(SECRET, now() - 301, body)).await, 401, "300 s"),
        (setting.post(&message, |_| "nonsense".to_owned()).await, 401, "t=TIME"),
        (setting.post(&json!({"id": "m/7"}), good).await, 400, "the body is none"),
    ];
    for (answer, status, says) in refused {
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.body.contains(says) && !answer.body.contains(SECRET), "{answer:?}");
    }
    // Twice the same is one message.
    for _ in 0..2 {
        let accepted = setting.post(&message, good).await;
        assert_eq!((accepted.status, accepted.body.as_str()), (202, r#"{"id":"m/7"}"#));
    }
    setting.supervisor.client.wait_until("the answer", async |_| !setting.got().await.is_empty()).await;
    let got = setting.got().await;
    assert_eq!(got.len(), 1, "{got:#?}");
    assert_eq!(
        (&got[0]["conversation"], &got[0]["text"], &got[0]["attempt"], &got[0]["version"]),
        (&json!("ada"), &json!("Three things."), &json!(2), &json!(1))
    );
    setting.supervisor.stop().await;
}

// Promises: GW-229, GW-237
#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_a_message_is_fetched_signed_from_where_answers_go_alone() {
    let setting = start(vec![ScriptedReply::Text("A plan.".to_owned())]).await;
    let good = |body: &str| signature(SECRET, now(), body);
    let port = setting.chat.port(0);
    let media = json!([
        {"url": format!("http://127.0.0.1:{port}/files/plan.txt?x=1"), "name": "plan.txt"},
        {"url": format!("http://localhost:{port}/files/other.txt"), "name": "other.txt"},
    ]);
    let message = json!({"id": "m/8", "senderId": "ada", "text": "What is it?", "media": media});
    assert_eq!(setting.post(&message, good).await.status, 202);
    setting.supervisor.client.wait_until("both texts", async |_| setting.got().await.len() >= 2).await;
    let got = setting.got().await;
    let mut texts: Vec<_> = got.iter().map(|got| got["text"].as_str().expect("a text")).collect();
    texts.sort_unstable();
    assert_eq!(texts[0], "A plan.");
    assert!(texts[1].contains("other.txt: the URL of the file is of another host"), "{texts:?}");
    let asked = setting.provider.bodies();
    assert!(
        asked[0].contains("plan.txt, text/plain") && asked[0].contains("not passed on: other.txt"),
        "{asked:?}"
    );
    setting.supervisor.stop().await;
}

// Promises: GW-219, GW-220, GW-221, GW-223
#[tokio::test(flavor = "multi_thread")]
async fn a_route_is_for_who_has_its_scope_and_leaks_nothing() {
    let setting = start(Vec::new()).await;
    let bearer = format!("Authorization: Bearer {}\r\n", setting.token);
    for (method, path, headers, status) in [
        ("POST", "/x/desk", "", 401),
        ("GET", "/x/nothing", "", 401),
        ("GET", "/x/nothing", bearer.as_str(), 404),
        ("GET", "/x/desk", &bearer, 405),
        ("GET", "/x/../api/health/deep", &bearer, 404),
        ("GET", "/x/%2e%2e/api/tools", &bearer, 404),
        ("POST", "/x/echo", &bearer, 403),
    ] {
        let answer = setting.ask(method, path, headers, "").await;
        assert_eq!(answer.status, status, "{method} {path} {answer:?}");
    }
    let failed = setting.ask("GET", "/x/error", &bearer, "").await;
    assert_eq!(failed.status, 502, "{failed:?}");
    let problem: Value = serde_json::from_str(&failed.body).expect("a problem");
    assert!(!failed.body.contains("very-secret") && problem.to_string().contains("req"), "{problem}");
    let operator =
        setting.supervisor.cli(&["token", "create", "--output", "json", "--scope", "operate"]).await;
    let operator: Value = serde_json::from_slice(&operator.stdout).expect("JSON");
    let bearer = format!("Authorization: Bearer {}\r\n", operator["token"].as_str().expect("a token"));
    let echoed = setting.ask("POST", "/x/echo", &bearer, "hello").await;
    assert_eq!((echoed.status, echoed.body.as_str()), (200, "hello"), "{echoed:?}");
    // The call is the subject's, and stands in the audit log as that.
    let audit = setting.supervisor.cli(&["audit", "show", "--output", "json"]).await;
    assert!(String::from_utf8_lossy(&audit.stdout).contains("api_route/liar.echo"), "{audit:?}");
    setting.supervisor.stop().await;
}
