//! Credentials that plugins know: an auth provider of `extensions.auth` lets somebody in, within what its entry grants.

use std::net::SocketAddr;

use serde_json::Value;
use talon_tests::http::{Answer, send_tcp};
use talon_tests::{Builder, Supervisor, program};

/// The plugin answers what its arguments say: the credential is the outcome, and so `accepted` is a good one.
const EXTENSIONS: &str = r#"extensions:
  auth:
    - action: liar.structured
      name: corp
      scopes: { staff: [chat] }
      args: { json: '{"outcome": "{{ credential }}", "subject": "ada", "scopes": ["staff", "admin"], "reason": "wrong {{ peer.address }}"}', text: "" }
    - action: liar.structured
      name: directory
      scheme: basic
      scopes: { people: [chat, operate] }
      args: { json: '{"outcome": "accepted", "subject": "{{ credential }}", "scopes": ["people"]}', text: "" }
"#;

async fn get(address: SocketAddr, path: &str, authorization: &str) -> Answer {
    send_tcp(
        address,
        &format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: {authorization}\r\nConnection: close\r\n\r\n"
        ),
    )
    .await
}

/// Who a credential makes somebody: subject and scopes.
async fn session(address: SocketAddr, authorization: &str) -> (String, Vec<String>) {
    let answer = get(address, "/api/session", authorization).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let session: Value = serde_json::from_str(&answer.body).expect("JSON");
    let scopes = session["scopes"].as_array().expect("scopes").iter();
    let scopes = scopes.map(|scope| scope.as_str().expect("a word").to_owned()).collect();
    (session["subject"].as_str().expect("a subject").to_owned(), scopes)
}

async fn serving(supervisor: &Supervisor) -> SocketAddr {
    let status = supervisor.wait_gateway("the gateway serves", |status| status.state == "serving").await;
    status.url.trim_start_matches("http://").parse().expect("an address")
}

// Promises: GW-146
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_lets_in_whom_it_knows_and_nobody_learns_why_not() {
    let supervisor = Builder::new()
        .plugin("liar", &program("misbehave"), &[], "")
        .config("gateway: { enabled: true, address: '127.0.0.1:0', max_role: admin }")
        .config("audit: { arguments: text }")
        .config(EXTENSIONS)
        .start()
        .await;
    let address = serving(&supervisor).await;
    supervisor.client.wait_state("liar", "ready").await;

    let ada = session(address, "Bearer accepted").await;
    assert_eq!(ada, ("gw:corp/ada".to_owned(), vec!["chat".to_owned()]), "admin is not in the entry");
    assert_eq!(get(address, "/api/calls", "bearer accepted").await.status, 403);
    let bob = session(address, "Basic Ym9iOmh1bnRlcjI").await;
    assert_eq!(bob.0, "gw:directory/Ym9iOmh1bnRlcjI");
    assert_eq!(get(address, "/api/calls", "Basic Ym9iOmh1bnRlcjI").await.status, 200);
    for wrong in ["Bearer rejected", "Bearer hunter2", "Bearer talon_x_y", "Digest accepted", "Bearer"] {
        let answer = get(address, "/api/session", wrong).await;
        assert_eq!(answer.status, 401, "{wrong}: {answer:?}");
        assert!(answer.head.to_ascii_lowercase().contains("www-authenticate:"), "{answer:?}");
        assert!(!answer.body.contains("wrong 127") && !answer.body.contains("hunter2"), "{answer:?}");
    }
    // A token of ours is no provider's matter.
    let issued = supervisor.cli(&["token", "create", "--output", "json", "--scope", "chat"]).await;
    let issued: Value = serde_json::from_slice(&issued.stdout).expect("JSON");
    let token = issued["token"].as_str().expect("a token");
    assert!(session(address, &format!("Bearer {token}")).await.0.starts_with("gw:token/"));

    // What was shown stands nowhere.
    let audit = supervisor.cli(&["audit", "show", "--output", "json"]).await;
    let audit = String::from_utf8_lossy(&audit.stdout).into_owned();
    assert!(audit.contains("auth_provider"), "{audit}");
    let log = supervisor.log();
    for secret in ["hunter2", "Ym9iOmh1bnRlcjI", token] {
        assert!(!audit.contains(secret), "{audit}");
        assert!(!log.contains(secret), "{log}");
    }
    supervisor.stop().await;
}
