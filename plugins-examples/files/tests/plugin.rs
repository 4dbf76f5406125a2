//! The binary under the SDK's mock host.

use serde_json::json;
use talon_sdk::testing::Host;

const PROGRAM: &str = env!("CARGO_BIN_EXE_files");

#[tokio::test]
async fn it_writes_reads_and_lists_over_the_wire() {
    let root = tempfile::tempdir().expect("a directory");
    let host = Host::builder(PROGRAM).config(json!({"root": root.path()})).launch().await.expect("launches");
    let told = host.capabilities().await.expect("answers");
    let hints: Vec<_> =
        told.actions.iter().map(|it| (it.name.as_str(), it.read_only, it.destructive)).collect();
    assert_eq!(hints, [("list", true, None), ("read", true, None), ("write", false, Some(true))]);
    let wrote = host.call("write", json!({"path": "note", "text": "milk"})).await.expect("answers");
    assert_eq!(wrote.content, "4 bytes are in note");
    assert_eq!(host.call("read", json!({"path": "note"})).await.expect("answers").content, "milk");
    assert_eq!(host.call("list", json!({})).await.expect("answers").content, "note\t4 bytes\n");
    assert!(host.shutdown().await.expect("ends").success());
}

#[tokio::test]
async fn a_bad_config_is_refused_with_its_reason() {
    for (config, says) in [
        (json!({}), "missing field `root`"),
        (json!({"root": "/nonexistent"}), "cannot open root /nonexistent"),
        (json!({"root": "/etc/hostname"}), "no directory that can be opened"),
    ] {
        let error = Host::builder(PROGRAM).config(config).launch().await.expect_err("refused").to_string();
        assert!(error.contains(says), "expected {says:?} in {error:?}");
    }
}
