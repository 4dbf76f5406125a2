//! The binary under the SDK's mock host.

use serde_json::json;
use talon_sdk::testing::{Host, MemoryState};

const PROGRAM: &str = env!("CARGO_BIN_EXE_forge");

#[tokio::test]
async fn it_analyzes_and_proposes_over_the_wire() {
    let root = tempfile::tempdir().expect("a directory");
    std::fs::write(root.path().join("lib.rs"), "// FIXME: leaks\n").expect("written");
    let state = MemoryState::new();
    let host = Host::builder(PROGRAM).config(json!({"root": root.path()})).state(&state);
    let host = host.launch().await.expect("launches");
    let found = host.call("analyze_code", json!({})).await.expect("answers");
    assert!(found.content.contains("lib.rs:1: todo: // FIXME: leaks"), "{}", found.content);
    let proposal = json!({"title": "Mend the leak", "body": "Closes #1."});
    assert_eq!(host.call("create_pr", proposal).await.expect("answers").content, "proposed as !1");
    let listed = host.call("list_prs", json!({})).await.expect("answers");
    assert!(listed.content.contains("Mend the leak"), "{}", listed.content);
    let shown = host.call("get_pr", json!({"number": 1})).await.expect("answers");
    assert!(shown.content.contains("Closes #1."), "{}", shown.content);
    assert!(host.shutdown().await.expect("ends").success());
}
