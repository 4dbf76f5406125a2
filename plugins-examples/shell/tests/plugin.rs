//! The binary under the SDK's mock host.

use serde_json::json;
use talon_sdk::testing::Host;

const PROGRAM: &str = env!("CARGO_BIN_EXE_shell");

#[tokio::test]
async fn it_runs_a_command_over_the_wire() {
    let scratch = tempfile::tempdir().expect("a directory");
    let config = json!({"directory": scratch.path()});
    let host = Host::builder(PROGRAM).config(config).launch().await.expect("launches");
    let told = host.capabilities().await.expect("answers");
    assert!(!told.actions[0].read_only);
    host.call("run", json!({"command": "echo kept > file"})).await.expect("answers");
    let answer = host.call("run", json!({"command": "cat file"})).await.expect("answers");
    assert_eq!(answer.content, "exit code 0\nstdout:\nkept\n");
    assert_eq!(answer.structured.expect("structured")["exit_code"], 0);
    assert!(host.shutdown().await.expect("ends").success());
}
