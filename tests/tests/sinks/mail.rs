//! The sink for e-mail, against mail servers with STARTTLS and logins.

use std::path::PathBuf;

use serde_json::{Value, json};
use talon_tests::{Scratch, ServerScript, skip, target};

use crate::{entry, event, identities, lines, reason, send, send_event, sinks, source};

/// The servers of `mail_server.py`, by their place in what it prints.
#[derive(Clone, Copy)]
pub(crate) enum Server {
    Starttls,
    Implicit,
    Plain,
    Strange,
    Injects,
    Silent,
}

/// The mail servers, and where they write what they got.
pub(crate) struct MailServers {
    pub(crate) script: ServerScript,
    pub(crate) log: PathBuf,
}

impl MailServers {
    /// Starts them, unless they are not installed.
    pub(crate) fn start(test: &str, scratch: &Scratch) -> Option<Self> {
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
    pub(crate) fn entry(&self, scratch: &Scratch, server: Server, to: &[&str], more: &Value) -> String {
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
