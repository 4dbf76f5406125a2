//! The binary under the SDK's mock host.

use serde_json::json;
use talon_sdk::testing::{Host, MemoryState};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tracker");

#[tokio::test]
async fn it_files_and_lists_over_the_wire() {
    let state = MemoryState::new();
    let host = Host::builder(PROGRAM).state(&state).launch().await.expect("launches");
    let issue = json!({"title": "It leaks", "description": "lib.rs, line 1"});
    assert_eq!(host.call("create_issue", issue).await.expect("answers").content, "filed as #1");
    let nothing = host.call("create_issue", json!({"title": " "})).await.expect("answers");
    assert_eq!(
        nothing.error.as_deref(),
        Some("an issue has a title of 1 to 200 bytes and a description of at most 8 KiB")
    );
    let listed = host.call("list_issues", json!({})).await.expect("answers");
    assert!(listed.content.contains("It leaks"), "{}", listed.content);
    let shown = host.call("get_issue", json!({"number": 1})).await.expect("answers");
    assert!(shown.content.contains("lib.rs, line 1"), "{}", shown.content);
    assert!(host.shutdown().await.expect("ends").success());
}
