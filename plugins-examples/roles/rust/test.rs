//! The program under the SDK's mock host.

use serde_json::json;
use talon_sdk::testing::Host;

const PROGRAM: &str = env!("CARGO_BIN_EXE_{{name}}");

#[tokio::test]
async fn it_plays_its_role() {
    let host = Host::launch(PROGRAM).await.expect("launches");
    let answer = host.call("{{action}}", json!({{sample}})).await.expect("answers");
    assert_eq!((answer.error, answer.structured), (None, Some(json!({{answer}}))));
    assert!(host.shutdown().await.expect("ends").success());
}
