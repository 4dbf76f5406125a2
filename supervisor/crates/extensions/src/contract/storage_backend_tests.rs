use proptest::prelude::*;
use serde_json::json;

use super::*;

fn asked(op: StorageOp) -> StorageRequest {
    StorageRequest { op, ..sample() }
}

fn judged(asked: &StorageRequest, answer: &Value) -> Result<StorageAnswer, StorageReplyError> {
    StorageReply::parse(answer)?.judge(asked)
}

fn item(key: &str) -> Value {
    json!({"key": StorageBytes::seal(key.as_bytes()), "revision": "r1", "bytes": 3})
}

// Promises: EXT-101
#[test]
fn only_a_whole_answer_to_the_question_counts() {
    let sealed = StorageBytes::seal(b"value");
    let found = json!({"outcome": "found", "revision": "r1", "value": sealed});
    let value = StorageAnswer::Found { value: b"value".to_vec(), revision: "r1".to_owned() };
    assert_eq!(judged(&asked(StorageOp::Get), &found), Ok(value));
    let set = StorageRequest { expected: Some("r1".to_owned()), ..asked(StorageOp::Set) };
    let stored = StorageAnswer::Stored { revision: "r2".to_owned() };
    assert_eq!(judged(&set, &json!({"outcome": "stored", "revision": "r2"})), Ok(stored));
    for (request, answer, says) in [
        (&set, json!({"outcome": "stored"}), "no revision"),
        (&set, json!({"outcome": "stored", "revision": "r1"}), "again"),
        (&set, json!({"outcome": "stored", "revision": "a b"}), "no revision"),
        (&set, json!({"outcome": "found", "revision": "r2"}), "answers Set with Found"),
        (&set, json!({"outcome": "stored", "revision": "r2", "extra": 1}), "is none of a storage"),
        (&set, json!("stored"), "is none of a storage"),
        (&asked(StorageOp::Get), json!({"outcome": "found", "revision": "r1"}), "missing"),
        (&asked(StorageOp::Get), json!({"outcome": "full"}), "answers Get with Full"),
    ] {
        let error = judged(request, &answer).expect_err(says).to_string();
        assert!(error.contains(says) && error.len() < 400, "{says}: {error}");
    }
    let mut wrong = found;
    wrong["value"]["sha256"] = json!(StorageBytes::seal(b"other").sha256);
    assert!(judged(&asked(StorageOp::Get), &wrong).expect_err("damaged").to_string().contains("digest"));
    let unavailable = json!({"outcome": "unavailable", "reason": "a\nb"});
    assert_eq!(judged(&set, &unavailable), Ok(StorageAnswer::Unavailable("a b".to_owned())));
}

#[test]
fn a_page_has_the_keys_that_were_asked_for_in_their_order() {
    let bytes = |text: &str| Some(StorageBytes::seal(text.as_bytes()));
    let scan = StorageRequest {
        key: None,
        prefix: bytes("a/"),
        after: bytes("a/b"),
        limit: Some(2),
        ..asked(StorageOp::Scan)
    };
    let page = |items: Vec<Value>, more: bool| json!({"outcome": "page", "items": items, "more": more});
    assert!(judged(&scan, &page(vec![item("a/c"), item("a/d")], true)).is_ok());
    assert!(judged(&scan, &page(vec![], false)).is_ok());
    for wrong in [
        page(vec![item("a/d"), item("a/c")], false),
        page(vec![item("a/c"), item("a/c")], false),
        page(vec![item("a/b")], false),
        page(vec![item("b/c")], false),
        page(vec![item("a/c"), item("a/d"), item("a/e")], false),
        page(vec![], true),
    ] {
        assert_eq!(judged(&scan, &wrong), Err(StorageReplyError::Page), "{wrong}");
    }
}

proptest! {
    // Promises: EXT-101
    #[test]
    fn no_answer_panics(outcome in "found|absent|stored|page|conflict|full", revision in "[ -~]{0,70}", more: bool) {
        let answer = json!({"outcome": outcome, "revision": revision, "more": more});
        for op in [StorageOp::Get, StorageOp::Set, StorageOp::Delete, StorageOp::Scan] {
            if let Err(error) = judged(&asked(op), &answer) {
                prop_assert!(error.to_string().len() < 400);
            }
        }
    }
}
