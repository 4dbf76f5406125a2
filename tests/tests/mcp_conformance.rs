//! `talon mcp` against the requirements of the MCP project and others: the official conformance suite's
//! server scenarios, and the official Python client.
//!
//! The suite asks for tools by fixed names, without a token. So `tests/mcp/relay.py` stands between it and
//! `talon mcp --http`, and `talon-test-tools` has these tools. What passes, what does not apply and why is the table
//! in `docs/mcp.md`, and nothing else is accepted: neither a failure, nor a scenario that the table does not
//! know.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;

use talon_tests::{Builder, Supervisor, program, repository, skip, target};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The revisions whose wire is tried: the last with a session, and the first without.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Where the table begins.
const TABLE: &str = "| scenario | 2025-11-25 | 2026-07-28 | why it does not apply |";

fn suite() -> (PathBuf, PathBuf) {
    let installed = target().join("mcp");
    let script = "conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js";
    (installed.join("node22/bin/node"), installed.join(script))
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

/// The table: for each scenario what is said of it for each revision, and why it does not apply.
fn table() -> BTreeMap<String, (Vec<String>, String)> {
    let page = std::fs::read_to_string(repository().join("docs/mcp.md")).expect("docs/mcp.md is there");
    let rows = page.split(TABLE).nth(1).expect("it has the table").lines().skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<String> =
                line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
            let [name, said @ .., why] = cells.as_slice() else { panic!("{line}") };
            (name.trim_matches('`').to_owned(), (said.to_vec(), why.clone()))
        })
        .collect()
}

/// The suite's own list: scenario, and the revisions that have it.
async fn scenarios(node: &PathBuf, script: &PathBuf) -> BTreeMap<String, Vec<String>> {
    let output =
        Command::new(node).arg(script).args(["list", "--server"]).output().await.expect("node starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let of_servers = text.split("Client scenarios").next().unwrap_or_default();
    let rows = of_servers.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split_once(" ["));
    rows.map(|(name, revisions)| {
        let revisions = revisions.trim_end_matches(']').split(',').map(str::to_owned).collect();
        (name.to_owned(), revisions)
    })
    .collect()
}

/// The checks of a run that failed, by their ids.
fn failed(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().filter(|line| line.contains("FAILURE"));
    lines.filter_map(|line| Some(line.split_once(" [")?.1.split_once(']')?.0.trim())).collect()
}

// Promises: MCP-10
#[tokio::test]
async fn the_conformance_suite_of_mcp_finds_what_the_table_says() {
    let test = "the_conformance_suite_of_mcp_finds_what_the_table_says";
    let (node, script) = suite();
    for needed in [&node, &script, &PathBuf::from("/usr/bin/python3")] {
        if !needed.exists() {
            skip(test, &format!("there is no {} (tests/scripts/deps.sh test installs it)", needed.display()));
            return;
        }
    }
    let (known, table) = (scenarios(&node, &script).await, table());
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
        let (said, why) = &table[name];
        assert_eq!(said.len(), REVISIONS.len(), "{name}");
        for (revision, said) in REVISIONS.iter().zip(said) {
            match said.as_str() {
                "passes" | "passes in part" => {
                    let run = Command::new(&node)
                        .arg(&script)
                        .args(["server", "--url", &url, "--scenario", name, "--spec-version", revision])
                        .env("NO_COLOR", "1")
                        .stdin(Stdio::null())
                        .kill_on_drop(true)
                        .output()
                        .await
                        .expect("node starts");
                    let text = String::from_utf8_lossy(&run.stdout).into_owned();
                    // Checks that fail are named where it says why; a scenario that the revision does not
                    // have is skipped.
                    let expected: BTreeSet<&str> =
                        why.split('`').skip(1).step_by(2).filter(|_| said == "passes in part").collect();
                    let ran = run.status.success() == expected.is_empty() && failed(&text) == expected;
                    if !ran || !revisions.iter().any(|known| known == revision) {
                        wrong.push(format!(
                            "{name} at {revision}:\n{text}{}",
                            String::from_utf8_lossy(&run.stderr)
                        ));
                    }
                }
                "does not apply" => assert!(why.len() > 20, "{name} does not say why it does not apply"),
                "" => {
                    assert!(!revisions.iter().any(|known| known == revision), "{name} is also in {revision}")
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
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
