//! MCP clients that other people wrote, against `talon mcp`: the four that `make test` keeps of the list in
//! `tests/interop/clients.yaml`. `make interop` runs all of them and writes docs/interop.md.

use std::path::Path;

use serde_json::{Value, json};
use talon_tests::interop::client::{self, CHECKS};
use talon_tests::interop::list::{self, Client};
use talon_tests::{Supervisor, skip, target};

const NODE: &str = "/usr/bin/node";

/// The row that uses a directory below `target/mcp`, which `tests/scripts/deps.sh test` fills.
fn row(home: &str) -> Client {
    let clients = list::clients().expect("the list is one");
    let found = clients.into_iter().find(|client| client.core.as_deref() == Some(home));
    found.unwrap_or_else(|| panic!("no row of the list has `core: {home}`"))
}

/// The server with a picture, as `docs/mcp-servers.md` has it.
async fn supervisor(packages: &Path) -> Supervisor {
    let script = packages.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    client::supervisor(&json!({
        "dialect": "mcp",
        "command": NODE,
        "args": [script, "stdio"],
        "start_timeout": "55s",
        "sandbox": { "fs": { "read": [packages] } },
    }))
    .await
}

/// Runs the client whose packages are in a directory, and compares what it finds with its row.
async fn check(test: &str, home: &str) {
    let mcp = target().join("mcp");
    let (packages, home_path) = (mcp.join("node"), mcp.join(home));
    for needed in [Path::new(NODE), &packages, &home_path] {
        if !needed.exists() {
            skip(
                test,
                &format!("there is no {}, which `tests/scripts/deps.sh test` installs", needed.display()),
            );
            return;
        }
    }
    let client = row(home);
    // The list and what is installed are of one version.
    let versions: Vec<&str> = client.pypi.iter().chain(&client.npm).map(String::as_str).collect();
    let pinned = pinned(home);
    assert!(versions.iter().all(|version| pinned.contains(version)), "{versions:?} in {pinned}");

    let supervisor = supervisor(&packages.canonicalize().expect("it exists")).await;
    let report = client::run(&client, &home_path, &supervisor).await.expect("its program ends");
    let differences = client::differences(&client, &report);
    assert!(differences.is_empty(), "{differences:#?}\n{}", supervisor.log());
    assert!(report.keys().all(|check| CHECKS.contains(&check.as_str())), "{report:?}");
    assert!(report["list"].ok && report["call"].ok && report["error"].ok, "{report:?}");
}

/// The exact versions that `tests/scripts/deps.sh` installs, as the list writes them.
fn pinned(home: &str) -> String {
    let sources = talon_tests::repository().join("tests/mcp");
    let requirements = match home {
        "python" => "requirements.txt",
        _ => "requirements-old.txt",
    };
    let Ok(package) = std::fs::read_to_string(sources.join(home).join("package.json")) else {
        return std::fs::read_to_string(sources.join(requirements)).expect("the file is there");
    };
    let package: Value = serde_json::from_str(&package).expect("it is JSON");
    let versions = package["dependencies"].as_object().expect("it has some").iter();
    versions.map(|(name, version)| format!("{name}@{}\n", version.as_str().unwrap_or("?"))).collect()
}

// Promises: MCP-32
#[tokio::test]
async fn the_python_sdk_is_served() {
    check("the_python_sdk_is_served", "python").await;
}

// Promises: MCP-32
#[tokio::test]
async fn the_python_sdk_before_2_is_served() {
    check("the_python_sdk_before_2_is_served", "python-old").await;
}

// Promises: MCP-32
#[tokio::test]
async fn the_typescript_sdk_is_served() {
    check("the_typescript_sdk_is_served", "node").await;
}

// Promises: MCP-32
#[tokio::test]
async fn an_early_typescript_sdk_is_served() {
    check("an_early_typescript_sdk_is_served", "typescript-old").await;
}
