//! Talon against the requirements of the MCP project and others: the official conformance suite, with `talon mcp` as the
//! server and with plugins as clients, and the official Python client.
//!
//! The suite asks for tools by fixed names, without a token. So `tests/mcp/relay.py` stands between it and
//! `talon mcp --http`, and `talon-test-tools` has these tools. What passes, what does not apply and why is the table
//! in `docs/mcp.md`, and nothing else is accepted: neither a failure, nor a scenario that the table does not
//! know.

use std::process::Stdio;

use futures_util::StreamExt as _;
use talon_tests::conformance_suite::{ConformanceSuite, table};
use talon_tests::{Builder, Supervisor, program, repository, skip, target};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The revisions whose wire is tried: the last with a session, and the first without.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Where the table begins.
const TABLE: &str = "| scenario | 2025-11-25 | 2026-07-28 | why it does not apply |";

/// The revisions that Talon speaks as a client.
const CLIENT_REVISIONS: [&str; 4] = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
/// Where the table about it begins.
const CLIENT_TABLE: &str =
    "| scenario for a client | 2025-03-26 | 2025-06-18 | 2025-11-25 | 2026-07-28 | why it does not apply |";
/// Only a limit for hangs: a supervisor starts, and a plugin up to three times, in each scenario.
const CLIENT_TIMEOUT_MS: &str = "120000";
/// Each mostly waits for processes to start.
const CLIENTS_AT_ONCE: usize = 3;

fn is_missing(test: &str, suite: &ConformanceSuite) -> bool {
    let missing = suite.missing();
    if let Some(missing) = &missing {
        skip(test, &format!("there is no {} (tests/scripts/deps.sh test installs it)", missing.display()));
    }
    missing.is_some()
}

async fn supervisor() -> Supervisor {
    let media = "media: [image, audio, resource, link]";
    Builder::new().plugin("kit", &program("talon-test-tools"), &[], media).start().await
}

/// `talon mcp --http` with a relay before it: the processes to keep, and where they are.
async fn served(supervisor: &Supervisor) -> (Child, Child, String) {
    let token = "0123456789abcdef0123456789abcdef";
    let mut server = Command::new(program("talon"))
        .arg("--socket")
        .arg(supervisor.socket())
        .args(["mcp", "--http", "127.0.0.1:0"])
        .env("TALON_MCP_TOKEN", token)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("talon starts");
    let mut log = BufReader::new(server.stderr.take().expect("it is piped")).lines();
    let port = loop {
        let line = log.next_line().await.expect("text").expect("it says where it serves");
        if let Some((_, rest)) = line.split_once("http://127.0.0.1:") {
            break rest.trim_end_matches("/mcp").to_owned();
        }
    };
    // Read on, so that it is not blocked.
    tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
    let mut relay = Command::new("/usr/bin/python3")
        .arg(repository().join("tests/mcp/relay.py"))
        .args(["kit__", "127.0.0.1", &port, token])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("python starts");
    let mut lines = BufReader::new(relay.stdout.take().expect("it is piped")).lines();
    let port = lines.next_line().await.expect("a line").expect("its port");
    (server, relay, format!("http://127.0.0.1:{port}/mcp"))
}

// Promises: MCP-10
#[tokio::test]
async fn the_conformance_suite_of_mcp_finds_what_the_table_says() {
    let test = "the_conformance_suite_of_mcp_finds_what_the_table_says";
    let suite = ConformanceSuite::installed();
    if is_missing(test, &suite) {
        return;
    }
    let (known, table) = (suite.scenarios("server").await, table(TABLE));
    assert!(known.len() > 40, "{known:?}");
    assert_eq!(
        known.keys().collect::<Vec<_>>(),
        table.keys().collect::<Vec<_>>(),
        "the table is another list"
    );

    let supervisor = supervisor().await;
    let (_server, _relay, url) = served(&supervisor).await;
    let mut wrong = Vec::new();
    for (name, revisions) in &known {
        let row = &table[name];
        assert_eq!(row.said.len(), REVISIONS.len(), "{name}");
        for (revision, said) in REVISIONS.iter().zip(&row.said) {
            let run = ["server", "--url", &url];
            wrong.extend(suite.differs(name, revision, (said, &row.why), revisions, &run).await);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The program of the suite is `tests/mcp/conformance_client.py`: a supervisor, with the suite's server as its plugin.
// Promises: MCP-50
#[tokio::test]
async fn the_conformance_suite_of_mcp_finds_what_the_table_says_of_talon_as_a_client() {
    let test = "the_conformance_suite_of_mcp_finds_what_the_table_says_of_talon_as_a_client";
    let suite = ConformanceSuite::installed();
    if is_missing(test, &suite) {
        return;
    }
    let (known, table) = (suite.scenarios("client").await, table(CLIENT_TABLE));
    assert!(known.len() > 40, "{known:?}");
    assert_eq!(
        known.keys().collect::<Vec<_>>(),
        table.keys().collect::<Vec<_>>(),
        "the table is another list"
    );

    let script = repository().join("tests/mcp/conformance_client.py");
    let client = format!("/usr/bin/python3 -B {} {}", script.display(), program("talon").display());
    let run = ["client", "--command", &client, "--timeout", CLIENT_TIMEOUT_MS];
    let (suite, run) = (&suite, &run);
    // Each takes seconds, and most behave alike with all revisions: `make interop` tries each with each.
    let every_revision = std::env::var_os("TALON_TEST_EVERY_REVISION").is_some();
    let scenarios = known.iter().flat_map(|(name, revisions)| {
        let row = &table[name];
        assert_eq!(row.said.len(), CLIENT_REVISIONS.len(), "{name}");
        let newest = CLIENT_REVISIONS.iter().rposition(|known| revisions.iter().any(|it| it == known));
        CLIENT_REVISIONS
            .iter()
            .zip(&row.said)
            .enumerate()
            .filter(move |(index, _)| every_revision || newest.is_none_or(|newest| newest == *index))
            .map(move |(_, (revision, said))| suite.differs(name, revision, (said, &row.why), revisions, run))
    });
    let wrong: Vec<Option<String>> =
        futures_util::stream::iter(scenarios).buffer_unordered(CLIENTS_AT_ONCE).collect().await;
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

// Promises: MCP-9
#[tokio::test]
async fn the_official_python_client_is_served() {
    let test = "the_official_python_client_is_served";
    let python = target().join("mcp/python/bin/python");
    if !python.exists() {
        skip(test, &format!("there is no {} (tests/scripts/deps.sh test installs it)", python.display()));
        return;
    }
    let supervisor = supervisor().await;
    let output = Command::new(python)
        .arg(repository().join("tests/mcp/client.py"))
        .arg(program("talon"))
        .arg("--socket")
        .arg(supervisor.socket())
        .arg("mcp")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("python starts");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.ends_with("all of it works\n"), "{said}\n{errors}");
}
