use proptest::prelude::*;
use serde_json::json;

use super::*;

fn all() -> HookEntry {
    HookEntry { may: vec![Effect::Annotate, Effect::Replace, Effect::Drop], ..HookEntry::new("a.b") }
}

fn judged(value: Value, role: Role, entry: &HookEntry) -> Result<VerdictOutcome, VerdictError> {
    HookVerdict::parse(&value)?.judge(role, entry)
}

// Promises: EXT-1
#[test]
fn an_entry_grants_what_a_verdict_may_do() {
    let plain = HookEntry::new("a.b");
    let replace = json!({"verdict": "replace", "message": "x"});
    let error = judged(replace.clone(), Role::RequestHook, &plain).expect_err("not granted").to_string();
    assert!(error.contains("replace") && error.contains("`may`"), "{error}");
    assert!(matches!(judged(replace.clone(), Role::RequestHook, &all()), Ok(VerdictOutcome::Replace { .. })));
    // A filter replaces nothing, whatever its entry says.
    assert!(judged(replace, Role::Filter, &all()).is_err());
    assert_eq!(
        judged(json!({"verdict": "pass"}), Role::Filter, &HookEntry { may: vec![], ..plain }),
        Ok(VerdictOutcome::Pass)
    );
}

// Promises: EXT-1
#[test]
fn what_does_not_belong_to_a_verdict_is_a_failure() {
    for (value, says) in [
        (json!({"verdict": "pass", "message": "x"}), "belongs to replace"),
        (json!({"verdict": "annotate", "message": "x"}), "belongs to replace"),
        (json!({"verdict": "drop", "metadata": {"a": "b"}}), "belongs to annotate and replace"),
        (json!({"verdict": "replace"}), "without a message"),
        (json!({"verdict": "replace", "message": " \n"}), "without a message"),
        (json!({"verdict": "replace", "message": "x".repeat(MAX_REPLACEMENT_BYTES + 1)}), "are the most"),
        (json!({"verdict": "annotate", "metadata": {"a b": "c"}}), "the key \"a b\""),
        (json!({"verdict": "annotate", "metadata": {"a": "x".repeat(2000)}}), "2000 bytes under a"),
        (json!({"verdict": "accept"}), "no verdict"),
        (json!({"verdict": "pass", "tool_calls": []}), "no verdict"),
        (json!("pass"), "no verdict"),
        (json!(null), "no verdict"),
    ] {
        let error = judged(value.clone(), Role::RequestHook, &all()).expect_err("refused").to_string();
        assert!(error.contains(says) && error.len() < 400, "{value}: {error}");
    }
    let many: BTreeMap<String, String> = (0..40).map(|n| (n.to_string(), String::new())).collect();
    let error = judged(json!({"verdict": "annotate", "metadata": many}), Role::RequestHook, &all())
        .expect_err("refused");
    assert!(error.to_string().contains("40 keys"), "{error}");
}

#[test]
fn a_long_reason_is_cut() {
    let value = json!({"verdict": "drop", "reason": "é".repeat(1000)});
    let Ok(VerdictOutcome::Drop { reason }) = judged(value, Role::RequestHook, &all()) else {
        panic!("dropped")
    };
    assert_eq!(reason.chars().count(), MAX_REASON_CHARS + 1);
}

proptest! {
    // Promises: EXT-1
    #[test]
    fn no_verdict_does_more_than_its_entry_allows(
        kind in "pass|annotate|replace|drop", message in proptest::option::of(".{0,40}"),
        keys in proptest::collection::btree_map("[a-z]{1,5}", ".{0,10}", 0..4),
        may in proptest::sample::subsequence(vec![Effect::Annotate, Effect::Replace, Effect::Drop], 0..=3),
    ) {
        let entry = HookEntry { may, ..HookEntry::new("a.b") };
        let mut value = json!({"verdict": kind, "metadata": keys});
        if let Some(message) = message {
            value["message"] = message.into();
        }
        match judged(value, Role::ResponseHook, &entry) {
            Ok(VerdictOutcome::Pass) | Err(_) => {}
            Ok(VerdictOutcome::Annotate { .. }) => prop_assert!(entry.may(Effect::Annotate)),
            Ok(VerdictOutcome::Replace { message, metadata }) => {
                prop_assert!(entry.may(Effect::Replace) && !message.trim().is_empty());
                prop_assert!(metadata.is_empty() || entry.may(Effect::Annotate));
            }
            Ok(VerdictOutcome::Drop { .. }) => prop_assert!(entry.may(Effect::Drop)),
        }
    }
}
