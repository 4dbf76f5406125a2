//! The binary under the SDK's mock host.

use serde_json::{Value, json};
use talon_sdk::testing::Host;

const PROGRAM: &str = env!("CARGO_BIN_EXE_text-policy");

fn asked(message: &str) -> Value {
    json!({
        "message": message,
        "session": {"id": "s", "turn": 1, "sender": "ada", "channel": "cli"},
        "metadata": {},
    })
}

// Promises: EXT-7, EXT-51
#[tokio::test]
async fn each_role_answers_with_a_verdict() {
    let rules =
        json!({"blocked": ["spam"], "categories": {"ticket": "support"}, "vocabulary": {"bug": "defect"}});
    let host = Host::builder(PROGRAM).config(rules).launch().await.expect("launches");
    for (action, message, verdict) in [
        ("blocked_words", "Hello", json!({"verdict": "pass"})),
        ("blocked_words", "Buy SPAM", json!({"verdict": "drop", "reason": "it has the word spam"})),
        ("classify", "a ticket", json!({"verdict": "annotate", "metadata": {"category": "support"}})),
        ("calm", "HELP ME", json!({"verdict": "replace", "message": "help me"})),
        ("calm", "Help me", json!({"verdict": "pass"})),
        ("vocabulary", "a bug", json!({"verdict": "replace", "message": "a defect"})),
    ] {
        let answer = host.call(action, asked(message)).await.expect("answers");
        assert_eq!(answer.error, None, "{action}");
        assert_eq!(answer.structured, Some(verdict), "{action} {message}");
    }
    let asked =
        host.call_role("request_hook", "classify", json!({"message": "a ticket"})).await.expect("answers");
    assert_eq!(asked.structured.expect("a verdict")["verdict"], "annotate");
    let other = host.call_role("filter", "classify", json!({})).await.expect_err("it plays another role");
    assert!(other.to_string().contains("does not declare the role filter"), "{other}");
    assert!(host.shutdown().await.expect("ends").success());
}
