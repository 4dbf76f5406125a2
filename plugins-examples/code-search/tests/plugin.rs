//! The binary under the SDK's mock host, on this repository.

use std::path::Path;

use serde_json::json;
use talon_sdk::testing::Host;

const PROGRAM: &str = env!("CARGO_BIN_EXE_code-search");

async fn launch() -> Host {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    Host::builder(PROGRAM).config(json!({"root": root})).launch().await.expect("launches")
}

// Promises: EX-2
#[tokio::test]
async fn it_searches_lists_and_reads_its_own_source() {
    let host = launch().await;
    let told = host.capabilities().await.expect("answers");
    assert!(told.actions.iter().all(|action| action.read_only));

    let answer = host.call("search", json!({"pattern": "^fn main", "glob": "*.rs"})).await.expect("answers");
    assert!(answer.content.starts_with("src/main.rs:"), "{answer:?}");
    let line = answer.structured.expect("structured")["lines"][0]["line"].clone();

    let answer = host.call("read_range", json!({"path": "src/main.rs", "start": line, "end": line})).await;
    assert!(answer.expect("answers").content.contains("fn main() -> ExitCode {"));

    let answer = host.call("list_files", json!({"path": "src"})).await.expect("answers");
    assert!(answer.content.contains("src/workspace.rs\n"), "{answer:?}");
    assert!(host.shutdown().await.expect("ends").success());
}

// Promises: EX-2
#[tokio::test]
async fn what_lies_outside_is_refused_over_the_wire() {
    let host = launch().await;
    let answer = host.call("read_range", json!({"path": "../../Cargo.toml"})).await.expect("answers");
    assert!(answer.error.expect("refused").contains("outside the root"));
}

#[tokio::test]
async fn a_bad_config_is_refused_with_its_reason() {
    for (config, says) in [
        (json!({}), "missing field `root`"),
        (json!({"root": "/nonexistent"}), "cannot open root /nonexistent: No such file or directory"),
        (json!({"root": "/", "rooot": 1}), "unknown field `rooot`"),
    ] {
        let error = Host::builder(PROGRAM).config(config).launch().await.expect_err("refused").to_string();
        assert!(error.contains(says), "expected {says:?} in {error:?}");
    }
}
