//! The program under the SDK's mock host.

use serde_json::json;
use talon_sdk::testing::Host;

const PROGRAM: &str = env!("CARGO_BIN_EXE_{{name}}");

#[tokio::test]
async fn it_greets_and_ends() {
    let host = Host::launch(PROGRAM).await.expect("launches");
    let answer = host.call("greet", json!({"name": "Ada"})).await.expect("answers");
    assert_eq!((answer.content.as_str(), answer.error), ("Hello, Ada!", None));
    assert!(host.shutdown().await.expect("ends").success());
}

#[tokio::test]
async fn it_asks_for_a_name() {
    let host = Host::launch(PROGRAM).await.expect("launches");
    let answer = host.call("greet", json!({"name": " "})).await.expect("answers");
    assert_eq!(answer.error.as_deref(), Some("greet whom? give a name"));
}
