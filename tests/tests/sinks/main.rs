//! The sinks for web hooks and e-mail, jailed with egress to their server alone, against real servers: an HTTPS receiver that
//! checks signatures as the documentation says, and mail servers with STARTTLS and logins.
//!
//! `tests/scripts/deps.sh test` installs the mail server; without it its tests are skipped by name.
//!
//! | module | tests |
//! |---|---|
//! | `web_hook`, `mail` | of one sink |
//! | here | of both |

mod mail;
mod web_hook;

use std::path::{Path, PathBuf};

use mail::{MailServers, Server};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};
use talon_proto::host::ExecuteRequest;
use talon_tests::{Builder, Scratch, Supervisor, cli, program, repository};
use web_hook::{Receiver, SECRET};

fn source(name: &str) -> PathBuf {
    repository().join("tests/sinks").join(name)
}

/// A certificate for 127.0.0.1 with its key.
struct Identity {
    certificate: PathBuf,
    key: PathBuf,
}

/// An identity of an authority that is written to `ca.pem`, and one of an authority that nobody trusts.
fn identities(scratch: &Scratch) -> [Identity; 2] {
    ["ca", "strange"].map(|name| {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, format!("Authority {name}"));
        let key = || KeyPair::generate().expect("a key is made");
        let authority = CertifiedIssuer::self_signed(params, key()).expect("it signs itself");
        scratch.write(&format!("{name}.pem"), &authority.pem());
        let (key, params) = (key(), CertificateParams::new(["127.0.0.1".to_owned()]).expect("an address"));
        let certificate = params.signed_by(&key, &authority).expect("it is signed");
        Identity {
            certificate: scratch.write(&format!("{name}-service.pem"), &certificate.pem()),
            key: scratch.write(&format!("{name}-service.key"), &key.serialize_pem()),
        }
    })
}

/// The lines of a log of JSON.
fn lines(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn event(id: &str) -> Value {
    json!({
        "id": id, "kind": "plugin.failed", "severity": "critical", "summary": "search <failed>", "details": "exit code 3",
        "time_unix_ms": 1_780_000_000_000_u64, "fields": {"plugin": "search"}, "count": 1,
    })
}

/// Calls the action of a sink, as a person may; gives its structured answer.
async fn send(supervisor: &Supervisor, plugin: &str, arguments: Value) -> Value {
    let request = ExecuteRequest {
        plugin: plugin.to_owned(),
        action: "send".to_owned(),
        arguments_json: arguments.to_string(),
        ..ExecuteRequest::default()
    };
    let answer = supervisor.client.execute(request).await.expect("a good request");
    let logs = supervisor.client.logs(plugin).await;
    assert!(answer.error.is_empty(), "{answer:?}\n{logs:#?}");
    serde_json::from_str(&answer.structured_content).unwrap_or_else(|_| panic!("{answer:?}"))
}

async fn send_event(supervisor: &Supervisor, plugin: &str, id: &str) -> Value {
    send(supervisor, plugin, json!({"event": event(id), "attempt": 1})).await
}

fn reason(said: &Value) -> &str {
    said["reason"].as_str().unwrap_or_default()
}

/// The lines of a sink's entry: its settings, its credentials, and egress to these places alone.
fn entry(scratch: &Scratch, config: &Value, credentials: &Value, allow: &[String]) -> String {
    format!(
        "config: {config}\ncredentials: {credentials}\nsandbox: {{ network: proxy, allow: {}, ca_file: {:?} }}",
        Value::from(allow),
        scratch.join("ca.pem").display().to_string(),
    )
}

/// A supervisor with a sink for each of these names and lines of an entry.
async fn sinks(kind: &str, entries: &[(&str, String)]) -> Supervisor {
    let mut builder = Builder::new();
    for (name, more) in entries {
        builder = builder.plugin(name, &program(kind), &[], more);
    }
    builder.start().await
}

// Promises: EXT-93, EXT-94
#[tokio::test]
async fn a_plugin_that_fails_is_told_through_the_outbox_by_web_hook_and_by_mail() {
    let test = "a_plugin_that_fails_is_told_through_the_outbox_by_web_hook_and_by_mail";
    let scratch = Scratch::new();
    let [trusted, _] = identities(&scratch);
    let receiver = Receiver::start(&scratch, "received", &trusted);
    // It writes certificates of its own, so its files are its own.
    let mail_scratch = Scratch::new();
    let Some(servers) = MailServers::start(test, &mail_scratch) else { return };
    let supervisor = Builder::new()
        .plugin(
            "hook",
            &program("webhook"),
            &[],
            &receiver.entry(&scratch, "/signed", json!({}), SECRET),
        )
        .plugin(
            "post",
            &program("mail"),
            &[],
            &servers.entry(&mail_scratch, Server::Starttls, &["ada@example.org"], &json!({})),
        )
        .plugin(
            "silent",
            &program("misbehave"),
            &["--lie=silent"],
            "backoff_initial: 10ms\nbackoff_max: 20ms\nmax_restarts: 1\nstart_timeout: 500ms",
        )
        .config(
            "agent:\n  enabled: true\nextensions:\n  notifications:\n    - { name: chat, on: [plugin.failed], action: hook.send }\n    \
             - { name: people, on: [\"plugin.*\"], where: { plugin: [silent] }, action: post.send }\n",
        )
        .start()
        .await;
    supervisor
        .client
        .wait_until("a web hook and a mail", async |_| {
            !lines(&receiver.log).is_empty() && !lines(&servers.log).is_empty()
        })
        .await;
    let posted = &lines(&receiver.log)[0];
    assert_eq!(posted["genuine"], json!(true), "{posted}");
    let body: Value = serde_json::from_str(posted["body"].as_str().expect("a text")).expect("JSON");
    assert_eq!(
        (&body["event"]["kind"], &body["event"]["fields"]["plugin"], &body["event"]["id"]),
        (&json!("plugin.failed"), &json!("silent"), &posted["headers"]["idempotency-key"]),
        "{body}"
    );
    let subjects: Vec<Value> =
        lines(&servers.log).iter().map(|mail| mail["headers"]["Subject"].clone()).collect();
    let of_failure =
        |subject: &Value| subject.as_str().is_some_and(|subject| subject.contains("plugin.failed: "));
    assert!(subjects.iter().any(of_failure), "{subjects:?}");

    // Status says so, for people and for programs.
    supervisor
        .client
        .wait_until("deliveries in the status", async |_| {
            let status = supervisor.cli(&["status", "--output", "json"]).await;
            let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
            let told = &status["agent"]["notifications"];
            told["entries"] == 2 && told["delivered"].as_u64() >= Some(2) && told["waiting"] == 0
        })
        .await;
    let shown = supervisor.cli(&["status"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("notifications: 2 rules, ") && shown.contains(" delivered"), "{shown}");
    supervisor.stop().await;
}

// Promises: EXT-84
#[tokio::test]
async fn the_sinks_conform() {
    let scratch = Scratch::new();
    let settings = [
        ("webhook", "{ url: \"http://127.0.0.1:9/\" }"),
        ("mail", "{ host: 127.0.0.1, port: 9, tls: none, from: talon@example.org, to: [ada@example.org] }"),
    ];
    for (name, config) in settings {
        let command = program(name);
        let lines = format!(
            "plugins: {{ tools: {{ plugins: {{ {name}: {{ command: {command:?}, config: {config} }} }} }} }}\n"
        );
        let file = scratch.write("talon.yaml", &lines).display().to_string();
        let path = command.display().to_string();
        let action = r#"send event={"id":"1","kind":"test","severity":"info","summary":"conformance","time_unix_ms":0}"#;
        let words = ["conformance", &path, "--config", &file, "--action", action, "--report", "json"];
        let output = cli(&words).await;
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        let failed = |check: &&Value| check["outcome"] == "fail" || check["outcome"] == "warn";
        let checks = report["checks"].as_array().expect("there are checks");
        let wrong: Vec<&Value> = checks.iter().filter(failed).collect();
        assert!(wrong.is_empty() && checks.len() > 10 && output.status.success(), "{name}: {wrong:#?}");
    }
}
