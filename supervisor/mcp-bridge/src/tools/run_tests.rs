use std::path::PathBuf;

use super::*;

fn roots() -> Roots {
    Roots::of(Some(&json!("granted")), &[PathBuf::from("/srv")]).unwrap()
}

fn required(requests: Value) -> Value {
    json!({ "resultType": "input_required", "inputRequests": requests, "requestState": "s" })
}

// Promises: MCP-36
#[test]
fn roots_are_answered_and_questions_asked_of_a_user_where_there_is_one() {
    let asks =
        json!({ "method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": {}} });
    let both = required(json!({ "r": {"method": "roots/list"}, "q": asks }));
    let needs = Requirements::of(&both, &roots(), true, false).unwrap();
    assert_eq!(needs.asked.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["q"]);
    assert_eq!(needs.answers, [("r".to_owned(), roots().answer().unwrap())].into());
    // Without a user, or without roots, the whole answer is an error.
    assert_eq!(Requirements::of(&both, &roots(), false, false), None);
    assert_eq!(Requirements::of(&both, &Roots::default(), true, false), None);
    let url =
        json!({ "method": "elicitation/create", "params": {"mode": "url", "message": "?", "url": "x"} });
    let needs = Requirements::of(&required(json!({ "u": url })), &roots(), true, false).unwrap();
    assert_eq!(
        (needs.asked.len(), needs.answers),
        (0, [("u".to_owned(), json!({"action": "decline"}))].into())
    );
    let many: serde_json::Map<_, _> =
        (0..9).map(|at| (at.to_string(), json!({"method": "roots/list"}))).collect();
    for other in [
        json!({ "content": [] }),
        required(json!({ "s": {"method": "sampling/createMessage"} })),
        required(json!({ "s": {} })),
        required(json!([])),
        required(many.into()),
        json!({ "resultType": "input_required" }),
    ] {
        assert_eq!(Requirements::of(&other, &roots(), true, false), None, "{other}");
    }
    // Only a state: the server wants to be asked again.
    assert!(
        Requirements::of(
            &json!({ "resultType": "input_required", "requestState": "s" }),
            &roots(),
            false,
            false
        )
        .is_some()
    );
}

#[test]
fn a_note_keeps_the_rest_of_an_answer() {
    let output = Output::text("a").structured(json!({"b": 1})).unwrap().with_media(Default::default());
    let noted = note(output, "[n]").unwrap();
    assert_eq!(noted.content(), "a\n\n[n]");
    assert_eq!((noted.structured_content(), noted.media().len()), (Some(&json!({"b": 1})), 1));
}
