//! The sink for web hooks, against an HTTPS receiver.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use talon_tests::{Scratch, ServerScript, repository};

use crate::{Identity, entry, event, identities, lines, reason, send, send_event, sinks, source};

const PYTHON: &str = "/usr/bin/python3";
/// What its messages are signed with.
pub(crate) const SECRET: &str = "it is a secret";
const PAGE: &str = "docs/extensions/notifications-sinks.md";

/// The code of the documentation in a language.
fn block(language: &str) -> String {
    let page = std::fs::read_to_string(repository().join(PAGE)).expect("the page is there");
    let code = page.split(&format!("```{language}\n")).nth(1).unwrap_or_else(|| panic!("no {language}"));
    code.split("\n```").next().expect("it ends").to_owned() + "\n"
}

/// A receiver of web hooks, and where it writes what it got.
pub(crate) struct Receiver {
    pub(crate) script: ServerScript,
    pub(crate) log: PathBuf,
}

impl Receiver {
    pub(crate) fn start(scratch: &Scratch, name: &str, identity: &Identity) -> Self {
        let (verify, log) = (scratch.write("verify.py", &block("python")), scratch.join(name));
        let Identity { certificate, key } = identity;
        let args = [verify.as_path(), &log, Path::new(SECRET), certificate, key];
        Self { script: ServerScript::start(PYTHON, &source("receiver.py"), &args), log }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.script.port(0))
    }

    /// A sink's entry for one path, and for what is answered there.
    pub(crate) fn entry(&self, scratch: &Scratch, path: &str, mut config: Value, secret: &str) -> String {
        config["timeout_seconds"] = config.get("timeout_seconds").cloned().unwrap_or(json!(20));
        let credentials = json!({
            "url": {"header": "URL", "value": self.url(path)},
            "secret": {"header": "X-Talon-Signature", "value": secret},
            "authorization": {"header": "Authorization", "value": "Bearer very-secret"},
        });
        entry(scratch, &config, &credentials, &[format!("127.0.0.1:{}", self.script.port(0))])
    }
}

/// A place where nobody listens.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    listener.local_addr().expect("an address").to_string()
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
