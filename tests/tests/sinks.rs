//! The sinks for web hooks and e-mail, jailed with egress to their server alone, against real servers: an HTTPS receiver that
//! checks signatures as the documentation says, and mail servers with STARTTLS and logins.
//!
//! `tests/scripts/deps.sh test` installs the mail server; without it its tests are skipped by name.

use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};
use talon_proto::host::ExecuteRequest;
use talon_tests::{Builder, Scratch, ServerScript, Supervisor, cli, program, repository, skip, target};

const PYTHON: &str = "/usr/bin/python3";
const SECRET: &str = "it is a secret";
const PAGE: &str = "docs/extensions/notifications-sinks.md";

fn source(name: &str) -> PathBuf {
    repository().join("tests/sinks").join(name)
}

/// The code of the documentation in a language.
fn block(language: &str) -> String {
    let page = std::fs::read_to_string(repository().join(PAGE)).expect("the page is there");
    let code = page.split(&format!("```{language}\n")).nth(1).unwrap_or_else(|| panic!("no {language}"));
    code.split("\n```").next().expect("it ends").to_owned() + "\n"
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

/// A receiver of web hooks, and where it writes what it got.
struct Receiver {
    script: ServerScript,
    log: PathBuf,
}

impl Receiver {
    fn start(scratch: &Scratch, name: &str, identity: &Identity) -> Self {
        let (verify, log) = (scratch.write("verify.py", &block("python")), scratch.join(name));
        let Identity { certificate, key } = identity;
        let args = [verify.as_path(), &log, Path::new(SECRET), certificate, key];
        Self { script: ServerScript::start(PYTHON, &source("receiver.py"), &args), log }
    }

    fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.script.port(0))
    }

    /// A sink's entry for one path, and for what is answered there.
    fn entry(&self, scratch: &Scratch, path: &str, mut config: Value, secret: &str) -> String {
        config["timeout_seconds"] = config.get("timeout_seconds").cloned().unwrap_or(json!(20));
        let credentials = json!({
            "url": {"header": "URL", "value": self.url(path)},
            "secret": {"header": "X-Talon-Signature", "value": secret},
            "authorization": {"header": "Authorization", "value": "Bearer very-secret"},
        });
        entry(scratch, &config, &credentials, &[format!("127.0.0.1:{}", self.script.port(0))])
    }
}

/// A supervisor with a sink for each of these names and lines of an entry.
async fn sinks(kind: &str, entries: &[(&str, String)]) -> Supervisor {
    let mut builder = Builder::new();
    for (name, more) in entries {
        builder = builder.plugin(name, &program(kind), &[], more);
    }
    builder.start().await
}

// Promises: EXT-75, EXT-76
#[tokio::test]
async fn a_web_hook_gets_signed_json_that_is_checked_as_documented() {
    let scratch = Scratch::new();
    let [trusted, _] = identities(&scratch);
    let receiver = Receiver::start(&scratch, "received", &trusted);
    let right = receiver.entry(&scratch, "/signed", json!({}), SECRET);
    let wrong = receiver.entry(&scratch, "/signed", json!({}), "another secret");
    let supervisor = sinks("webhook", &[("right", right), ("wrong", wrong)]).await;
    let digest = json!({"event": event("01K1"), "events": [event("01K2"), event("01K3")], "attempt": 3});
    assert_eq!(send(&supervisor, "right", digest.clone()).await, json!({"status": "delivered"}));
    let got = lines(&receiver.log).pop().expect("it came");
    let headers = &got["headers"];
    assert_eq!(
        (&headers["idempotency-key"], &headers["authorization"], &headers["content-type"]),
        (&json!("01K1"), &json!("Bearer very-secret"), &json!("application/json"))
    );
    let body: Value = serde_json::from_str(got["body"].as_str().expect("a text")).expect("JSON");
    let mut whole = digest;
    whole["version"] = json!(1);
    assert_eq!(body, whole);
    let example: Value = serde_json::from_str(&block("json")).expect("JSON");
    let asked = json!({"event": example["event"], "attempt": example["attempt"]});
    assert_eq!(send(&supervisor, "right", asked).await["status"], "delivered");
    let got = lines(&receiver.log).pop().expect("it came");
    let body: Value = serde_json::from_str(got["body"].as_str().expect("a text")).expect("JSON");
    assert_eq!(body, example);
    let refused = send_event(&supervisor, "wrong", "01K4").await;
    assert_eq!(refused["status"], "refused", "{refused}");

    // The same by the commands of the documentation.
    for (line, genuine) in lines(&receiver.log).iter().zip([true, true, false]) {
        scratch.write("body.json", line["body"].as_str().expect("a text"));
        let checked = Command::new("sh")
            .args(["-c", &block("sh")])
            .current_dir(scratch.path())
            .env("SECRET", SECRET)
            .env("SIGNATURE", line["headers"]["x-talon-signature"].as_str().expect("signed"))
            .output()
            .expect("a shell starts");
        assert_eq!((checked.status.success(), &line["genuine"]), (genuine, &json!(genuine)), "{checked:?}");
    }
    supervisor.stop().await;
}

// Promises: EXT-77, EXT-79
#[tokio::test]
async fn what_a_receiver_answers_is_delivered_later_or_never() {
    let scratch = Scratch::new();
    let [trusted, _] = identities(&scratch);
    let receiver = Receiver::start(&scratch, "received", &trusted);
    let hook = |path: &str, config: Value| receiver.entry(&scratch, path, config, SECRET);
    let supervisor = sinks(
        "webhook",
        &[
            ("gone", hook("/status/410/very-secret", json!({}))),
            ("limited", hook("/status/429", json!({}))),
            ("later", hook("/later", json!({}))),
            ("moved", hook("/moved", json!({}))),
            ("breaks", hook("/breaks", json!({}))),
            ("silent", hook("/silent", json!({"timeout_seconds": 2}))),
            ("flaky", hook("/flaky", json!({}))),
            ("slack", hook("/ok", json!({"format": "slack"}))),
            ("discord", hook("/ok", json!({"format": "discord"}))),
        ],
    )
    .await;
    for (name, status, says) in [
        ("gone", "refused", "410 Gone: no [31mway [hidden]"),
        ("limited", "retry", "429 Too Many Requests"),
        ("later", "retry", "503 Service Unavailable: busy"),
        ("moved", "refused", "redirects are not followed"),
        ("breaks", "retry", "broke off"),
        ("silent", "retry", "did not answer within 2 s"),
    ] {
        let said = send_event(&supervisor, name, name).await;
        assert_eq!(said["status"], status, "{name}: {said}");
        assert!(reason(&said).contains(says) && reason(&said).chars().count() <= 300, "{name}: {said}");
        let after = if name == "later" { json!(7) } else { Value::Null };
        assert_eq!(said["retry_after_seconds"], after, "{name}: {said}");
        let all = format!("{said}{:?}", supervisor.client.logs(name).await);
        assert!(!all.contains("very-secret") && !all.contains(SECRET), "{name}: {all}");
    }
    for expected in ["retry", "retry", "delivered"] {
        let said = send_event(&supervisor, "flaky", "01K1").await;
        assert_eq!(said["status"], expected, "{said}");
    }
    let got = lines(&receiver.log);
    assert!(got.iter().all(|line| line["path"] != "/signed"), "{got:?}");
    for (name, says) in [("slack", "search &lt;failed&gt;"), ("discord", "search \\\\<failed\\\\>")] {
        assert_eq!(send_event(&supervisor, name, "01K2").await["status"], "delivered");
        let got = lines(&receiver.log).pop().expect("it came");
        assert!(got["body"].as_str().is_some_and(|body| body.contains(says)), "{got}");
    }
    supervisor.stop().await;
}

// Promises: EXT-79
#[tokio::test]
async fn a_web_hook_that_cannot_be_reached_is_tried_again_and_says_why() {
    let scratch = Scratch::new();
    let [trusted, strange] = identities(&scratch);
    let receiver = Receiver::start(&scratch, "received", &trusted);
    let strange = Receiver::start(&scratch, "strange", &strange);
    let nobody = nobody();
    let at = |url: &str, allow: &str| {
        let credentials = json!({"url": {"header": "URL", "value": url}});
        entry(&scratch, &json!({}), &credentials, &[allow.to_owned()])
    };
    let unset = entry(&scratch, &json!({}), &json!({}), std::slice::from_ref(&nobody));
    let supervisor = sinks(
        "webhook",
        &[
            ("down", at(&format!("https://{nobody}/"), &nobody)),
            ("unlisted", at(&receiver.url("/signed"), "hooks.example.org:443")),
            ("strange", at(&strange.url("/signed"), &format!("127.0.0.1:{}", strange.script.port(0)))),
            ("open", at("http://example.org/very-secret", "example.org:80")),
            ("unset", unset),
        ],
    )
    .await;
    for (name, says) in [
        ("down", nobody.as_str()),
        ("unlisted", "sandbox.allow"),
        ("strange", "sandbox.ca_file"),
        ("open", "allow_http"),
        ("unset", "credential `url`"),
    ] {
        let said = send_event(&supervisor, name, "01K1").await;
        assert_eq!(said["status"], "retry", "{name}: {said}");
        assert!(reason(&said).contains(says) && !reason(&said).contains("very-secret"), "{name}: {said}");
    }
    assert!(lines(&receiver.log).is_empty() && lines(&strange.log).is_empty());
    supervisor.stop().await;
}

/// A place where nobody listens.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    listener.local_addr().expect("an address").to_string()
}

/// The servers of `mail_server.py`, by their place in what it prints.
#[derive(Clone, Copy)]
enum Server {
    Starttls,
    Implicit,
    Plain,
    Strange,
    Injects,
    Silent,
}

/// The mail servers, and where they write what they got.
struct MailServers {
    script: ServerScript,
    log: PathBuf,
}

impl MailServers {
    /// Starts them, unless they are not installed.
    fn start(test: &str, scratch: &Scratch) -> Option<Self> {
        let python = target().join("sinks/bin/python");
        if !python.exists() {
            let path = python.display();
            skip(test, &format!("there is no {path} (tests/scripts/deps.sh test installs a mail server)"));
            return None;
        }
        let ([trusted, strange], log) = (identities(scratch), scratch.join("mails"));
        let args = [&log, &trusted.certificate, &trusted.key, &strange.certificate, &strange.key];
        Some(Self { script: ServerScript::start(python, &source("mail_server.py"), &args), log })
    }

    /// A sink's entry for one of them and these receivers, with further settings.
    fn entry(&self, scratch: &Scratch, server: Server, to: &[&str], more: &Value) -> String {
        let port = self.script.port(server as usize);
        let mut config = json!({
            "host": "127.0.0.1", "port": port, "from": "Tälon <talon@example.org>", "to": to, "username": "ada",
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        let credentials = json!({"password": {"header": "PASSWORD", "value": "secret"}});
        entry(scratch, &config, &credentials, &[format!("127.0.0.1:{port}")])
    }
}

// Promises: EXT-80, EXT-81
#[tokio::test]
async fn a_mail_is_sent_over_tls_with_a_login_and_arrives_whole() {
    let scratch = Scratch::new();
    let Some(servers) =
        MailServers::start("a_mail_is_sent_over_tls_with_a_login_and_arrives_whole", &scratch)
    else {
        return;
    };
    let to = ["ada@example.org", "Grace <grace@example.org>"];
    let supervisor = sinks(
        "mail",
        &[
            ("starttls", servers.entry(&scratch, Server::Starttls, &to, &json!({}))),
            ("implicit", servers.entry(&scratch, Server::Implicit, &to, &json!({"tls": "implicit"}))),
            ("plain", servers.entry(&scratch, Server::Plain, &to, &json!({"tls": "none", "username": null}))),
        ],
    )
    .await;
    let details = format!("{}\n.\n..\nQUIT\nüñ {}", "x".repeat(10_000), "ä".repeat(5_000));
    let mut one = event("01K1");
    one["details"] = json!(details);
    one["summary"] = json!("süche\r\nBcc: eve@example.org\r\n\r\nfailed");
    for (name, encrypted) in [("starttls", true), ("implicit", true), ("plain", false)] {
        let said = send(&supervisor, name, json!({"event": one, "attempt": 1})).await;
        assert_eq!(said, json!({"status": "delivered"}), "{name}");
        let got = lines(&servers.log).pop().expect("it came");
        assert_eq!(
            (&got["tls"], &got["from"], &got["to"]),
            (
                &json!(encrypted),
                &json!("talon@example.org"),
                &json!(["ada@example.org", "grace@example.org"])
            ),
            "{name}"
        );
        assert_eq!(got["user"], if encrypted { json!("ada") } else { Value::Null }, "{name}");
        let headers = &got["headers"];
        assert_eq!(
            (&headers["Message-ID"], &headers["Auto-Submitted"], &headers["From"], headers.get("Bcc")),
            (
                &json!("<01K1@example.org>"),
                &json!("auto-generated"),
                &json!("Tälon <talon@example.org>"),
                None
            )
        );
        assert_eq!(headers["Subject"], "[talon] [critical] plugin.failed: süche Bcc: eve@example.org failed");
        let text = got["text"].as_str().expect("a text");
        assert!(text.replace("\r\n", "\n").contains(&details), "{name}: {} characters", text.len());
    }
    // What has arrived is not sent again.
    let again = send(&supervisor, "starttls", json!({"event": one, "attempt": 2})).await;
    assert_eq!((&again["status"], reason(&again)), (&json!("delivered"), "it was sent before"));
    assert_eq!(lines(&servers.log).len(), 3);
    supervisor.stop().await;
}

// Promises: EXT-80, EXT-82, EXT-83
#[tokio::test]
async fn what_a_mail_server_says_is_delivered_later_or_never() {
    let scratch = Scratch::new();
    let Some(servers) = MailServers::start("what_a_mail_server_says_is_delivered_later_or_never", &scratch)
    else {
        return;
    };
    let mail = |to: &[&str]| servers.entry(&scratch, Server::Starttls, to, &json!({}));
    let of = |server: Server, more: Value| servers.entry(&scratch, server, &["ada@example.org"], &more);
    let down = entry(
        &scratch,
        &json!({"host": "127.0.0.1", "port": 9, "from": "t@example.org", "to": ["a@example.org"]}),
        &json!({}),
        &["127.0.0.1:9".to_owned()],
    );
    let unlisted = down.replace("\"127.0.0.1:9\"", "\"mail.example.org:25\"");
    let supervisor = sinks(
        "mail",
        &[
            ("gone", mail(&["gone@example.org"])),
            ("partly", mail(&["ada@example.org", "gone@example.org"])),
            ("later", mail(&["ada@example.org", "later@example.org"])),
            ("spam", mail(&["spam@example.org"])),
            ("full", mail(&["full@example.org"])),
            ("login", of(Server::Starttls, json!({"username": "eve"}))),
            ("strange", of(Server::Strange, json!({}))),
            ("plain", of(Server::Plain, json!({}))),
            ("injects", of(Server::Injects, json!({}))),
            ("silent", of(Server::Silent, json!({"timeout_seconds": 2}))),
            ("down", down),
            ("unlisted", unlisted),
        ],
    )
    .await;
    for (name, status, says) in [
        (
            "gone",
            "refused",
            "0 of 1 receivers got it; gone@example.org: permanent error (550): 5.1.1 no such user [31m here",
        ),
        ("partly", "delivered", "1 of 2 receivers got it; gone@example.org: permanent error (550)"),
        ("later", "retry", "1 of 2 receivers got it; later@example.org: transient error (451)"),
        ("later", "delivered", ""),
        ("spam", "refused", "looks like spam"),
        ("full", "retry", "no space"),
        ("login", "refused", "the login: permanent error (535)"),
        ("strange", "retry", "sandbox.ca_file"),
        ("plain", "refused", "offers no STARTTLS"),
        ("injects", "retry", "TLS"),
        ("silent", "retry", "did not take it within 2 s"),
        ("down", "retry", "127.0.0.1:9"),
        ("unlisted", "retry", "sandbox.allow"),
    ] {
        let said = send_event(&supervisor, name, name).await;
        assert_eq!(said["status"], status, "{name}: {said}");
        assert!(reason(&said).contains(says) && reason(&said).chars().count() <= 300, "{name}: {said}");
        let all = format!("{said}{:?}", supervisor.client.logs(name).await);
        assert!(!all.contains("secret"), "{name}: {all}");
    }
    // Each receiver got one message, also of the delivery that was tried twice.
    let got: Vec<Value> = lines(&servers.log).iter().map(|line| line["to"].clone()).collect();
    assert_eq!(
        got,
        [json!(["ada@example.org"]), json!(["ada@example.org"]), json!(["later@example.org"])],
        "partly, later and later again"
    );
    supervisor.stop().await;
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
