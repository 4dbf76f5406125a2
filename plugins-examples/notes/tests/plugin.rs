//! The binary under the SDK's mock host.

use serde_json::json;
use talon_sdk::testing::{Host, MemoryState};

const NOTES: &str = env!("CARGO_BIN_EXE_notes");

#[tokio::test]
async fn notes_outlive_the_process() {
    let state = MemoryState::new();
    for (text, says) in [("milk", "kept as note 1"), ("bread", "kept as note 2")] {
        let host = Host::builder(NOTES).state(&state).launch().await.expect("launches");
        let answer = host.call("add", json!({"text": text})).await.expect("answers");
        assert_eq!((answer.content.as_str(), answer.error), (says, None));
        assert!(host.shutdown().await.expect("ends").success());
    }
    let host = Host::builder(NOTES).state(&state).launch().await.expect("launches");
    let answer = host.call("remove", json!({"number": 1})).await.expect("answers");
    assert_eq!(answer.content, "removed: milk");
    let answer = host.call("remove", json!({"number": 1})).await.expect("answers");
    assert_eq!(answer.error.as_deref(), Some("there is no note of that number"));
    let answer = host.call("list", json!({})).await.expect("answers");
    assert_eq!(answer.structured, Some(json!({"2": "bread"})));
}

#[tokio::test]
async fn notes_added_at_once_are_all_kept() {
    let state = MemoryState::new();
    let hosts = [
        Host::builder(NOTES).state(&state).launch().await.expect("launches"),
        Host::builder(NOTES).state(&state).launch().await.expect("launches"),
    ];
    let [one, two] = &hosts;
    for _ in 0..20 {
        let add = |host: &'static str| json!({"text": host});
        let (a, b) = tokio::join!(one.call("add", add("one")), two.call("add", add("two")));
        assert_eq!((a.expect("answers").error, b.expect("answers").error), (None, None));
    }
    let answer = one.call("list", json!({})).await.expect("answers");
    let notes = answer.structured.expect("a map");
    assert_eq!(notes.as_object().expect("a map").len(), 40);
}

#[tokio::test]
async fn without_state_it_says_so() {
    let host = Host::launch(NOTES).await.expect("launches");
    let answer = host.call("add", json!({"text": "milk"})).await.expect("answers");
    assert_eq!(answer.error.as_deref(), Some("notes need a host that keeps state"));
}
