use serde_json::{Value, json};

use super::*;

fn own() -> AppUser {
    AppUser { user_id: "U0TALON".to_owned(), user: "talon".to_owned(), team_id: "T024".to_owned() }
}

fn told(kind: &str, payload: Value) -> Option<Inbound> {
    let envelope = Envelope { id: "e".to_owned(), kind: kind.to_owned(), payload, retries: 0 };
    inbound(&envelope, &own(), true).ok().flatten()
}

fn event_of(event: Value) -> Option<Inbound> {
    told(
        "events_api",
        json!({"team_id": "T024", "type": "event_callback", "event_id": "Ev1", "event": event}),
    )
}

fn message(more: Value) -> Value {
    let mut message = json!({
        "type": "message", "channel": "C123", "channel_type": "channel", "user": "U42", "text": "hello",
        "ts": "1355517523.000005", "event_ts": "1355517523.000005", "client_msg_id": "6b1a",
    });
    message.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    message
}

// Promises: GW-281
#[test]
fn a_message_says_who_where_and_whether_it_is_for_the_app() {
    let direct =
        event_of(message(json!({"channel": "D7", "channel_type": "im"}))).expect("a message").event("Ada");
    assert_eq!((direct.id(), direct.topic()), ("s/T024/D7/1355517523.000005", "channel.message"));
    assert_eq!((direct.value("conversation"), direct.value("group_id")), (Some("D7"), None));
    assert_eq!((direct.value("sender_id"), direct.value("sender_name")), (Some("U42"), Some("Ada")));
    assert_eq!((direct.details_text(), direct.value("mentioned")), ("hello", Some("false")));

    let group =
        event_of(message(json!({"text": "<@U0TALON> hi &amp; bye"}))).expect("a message").event("Ada");
    assert_eq!(group.value("conversation"), Some("C123/1355517523.000005"), "it is answered in a thread");
    assert_eq!((group.value("group_id"), group.value("mentioned")), (Some("C123"), Some("true")));
    assert_eq!(group.details_text(), "@talon hi & bye");

    // An app that asks for mentions gets the same message once more, without its files.
    let mention = json!({"type": "app_mention", "text": "<@U0TALON> hi &amp; bye", "channel_type": null});
    assert_eq!(event_of(message(mention)), None);

    let thread = message(json!({"thread_ts": "1355517000.000001", "parent_user_id": "U0TALON"}));
    let thread = event_of(thread).expect("a message").event("Ada");
    assert_eq!(thread.value("conversation"), Some("C123/1355517000.000001"));
    assert_eq!(thread.value("mentioned"), Some("true"), "it answers the app");
    let other = message(json!({"thread_ts": "1355517000.000001", "parent_user_id": "U43"}));
    assert_eq!(event_of(other).expect("a message").event("Ada").value("mentioned"), Some("false"));
}

#[test]
fn without_threads_an_answer_stands_in_the_channel() {
    let payload = json!({"event": message(json!({}))});
    let envelope = Envelope { id: "e".to_owned(), kind: "events_api".to_owned(), payload, retries: 0 };
    let of = |thread_replies| {
        inbound(&envelope, &own(), thread_replies).expect("read").expect("a message").conversation.to_string()
    };
    assert_eq!((of(false).as_str(), of(true).as_str()), ("C123", "C123/1355517523.000005"));
}

// Promises: GW-281
#[test]
fn what_is_nothing_for_the_agent_is_no_event() {
    for none in [
        message(json!({"user": "U0TALON"})),
        message(json!({"bot_id": "B1"})),
        message(json!({"subtype": "bot_message", "bot_id": "B1", "user": null})),
        message(json!({"subtype": "channel_join"})),
        message(json!({"subtype": "message_deleted", "hidden": true})),
        message(json!({"text": " "})),
        message(json!({"type": "reaction_added"})),
        message(json!({"user": ""})),
        message(json!({"ts": ""})),
        json!({}),
        json!("later"),
    ] {
        assert_eq!(event_of(none.clone()), None, "{none}");
    }
    let later = Envelope {
        id: "e".to_owned(),
        kind: "events_api".to_owned(),
        payload: json!({"event": 7}),
        retries: 0,
    };
    assert!(inbound(&later, &own(), true).is_err(), "what is not understood is told apart");
    for kind in ["slash_commands", "interactive", ""] {
        assert_eq!(told(kind, json!({"event": message(json!({}))})), None, "{kind}");
    }
}

// Promises: GW-281
#[test]
fn an_edit_and_a_text_that_is_too_long_are_said_to_be_not_passed_on() {
    let changed = |before: &str, now: &str| {
        event_of(json!({
            "type": "message", "subtype": "message_changed", "hidden": true, "channel": "D7", "ts": "1355517999.000001",
            "message": {"type": "message", "user": "U42", "text": now, "ts": "1355517523.000005", "edited": {"user": "U42"}},
            "previous_message": {"type": "message", "user": "U42", "text": before, "ts": "1355517523.000005"},
        }))
    };
    let edit = changed("hello", "hello, I mean").expect("an edit").event("Ada");
    assert_eq!((edit.topic(), edit.details_text()), ("channel.unsupported", "edits of messages"));
    assert_eq!(edit.id(), "s/T024/D7/1355517523.000005/1355517999.000001");
    // A preview of a link.
    assert_eq!(changed("https://example.org", "https://example.org"), None);
    let long = event_of(message(json!({"text": "x".repeat(16 * 1024 + 1)}))).expect("told").event("Ada");
    assert_eq!((long.topic(), long.details_text()), ("channel.unsupported", LONG_TEXTS));
}

#[test]
fn null_is_as_what_is_left_out() {
    let nulls = json!({
        "subtype": null, "bot_id": null, "thread_ts": null, "parent_user_id": null, "message": null, "previous_message": null,
        "files": [{"id": null, "name": null, "size": null, "mode": null}, {"id": "F1", "mode": null}],
    });
    let event = event_of(message(nulls)).expect("a message").event("Ada");
    assert_eq!(
        (event.details_text(), event.value("file_1")),
        ("hello", Some(r#"{"id":"F1","name":"file"}"#))
    );
    for none in ["type", "channel", "user", "ts"] {
        let envelope = |value: Value| Envelope {
            id: "e".to_owned(),
            kind: "events_api".to_owned(),
            payload: json!({"event": message(value)}),
            retries: 0,
        };
        let read = inbound(&envelope(json!({none: null})), &own(), true).expect("understood");
        assert_eq!(read, None, "{none}");
    }
    for payload in [
        json!({"type": null, "user": null, "channel": null, "message": null, "actions": null}),
        json!({"type": "block_actions", "user": {"id": "U42"}, "channel": {"id": null}, "message": {"ts": null},
            "actions": [{"type": "button", "value": null, "action_ts": null}]}),
    ] {
        let envelope = Envelope { id: "e".to_owned(), kind: "interactive".to_owned(), payload, retries: 0 };
        assert_eq!(inbound(&envelope, &own(), true).expect("understood"), None);
    }
}

// Promises: GW-286
#[test]
fn a_file_has_its_id_its_name_and_its_size() {
    let shared = message(json!({"subtype": "file_share", "text": "", "files": [
        {"id": "F1", "name": "plan.pdf", "size": 70000, "mode": "hosted", "url_private": "https://files.slack.com/files-pri/T024-F1/plan.pdf"},
        {"id": "F2", "mode": "tombstone"},
        {"id": "F3", "mode": "hosted"},
    ]}));
    let event = event_of(shared).expect("a message").event("Ada");
    assert_eq!(event.value("file_1"), Some(r#"{"id":"F1","name":"plan.pdf","bytes":70000}"#));
    assert_eq!((event.value("file_2"), event.value("file_3")), (Some(r#"{"id":"F3","name":"file"}"#), None));
}

// Promises: GW-284
#[test]
fn a_button_counts_as_its_sender_in_its_conversation() {
    let press = |more: Value| {
        let mut payload = json!({
            "type": "block_actions", "user": {"id": "U42", "username": "ada", "name": "ada", "team_id": "T024"},
            "container": {"type": "message", "message_ts": "1355518000.000001", "channel_id": "C123"},
            "channel": {"id": "C123", "name": "general"}, "trigger_id": "12321423423.333649436676.d8c1bb83",
            "message": {"type": "message", "user": "U0TALON", "bot_id": "B1", "text": "…", "ts": "1355518000.000001", "thread_ts": "1355517523.000005"},
            "actions": [{"type": "button", "action_id": "talon-0", "block_id": "b", "value": "a:01J:ab", "action_ts": "1355518111.000002"}],
        });
        payload.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        told("interactive", payload)
    };
    let pressed = press(json!({})).expect("a button");
    assert_eq!(pressed.name.as_deref(), Some("ada"));
    let event = pressed.event("Ada");
    assert_eq!(
        (event.topic(), event.value("button"), event.value("sender_id")),
        ("channel.button", Some("a:01J:ab"), Some("U42"))
    );
    assert_eq!(event.value("conversation"), Some("C123/1355517523.000005"));
    assert_eq!(event.id(), "s/T024/C123/1355518000.000001/U42/1355518111.000002");
    // The first message of a thread says that it stands in its own.
    let first =
        json!({"message": {"user": "U0TALON", "ts": "1355518000.000001", "thread_ts": "1355518000.000001"}});
    assert_eq!(press(first).expect("a button").conversation.to_string(), "C123");
    for none in [
        json!({"type": "view_submission"}),
        json!({"actions": []}),
        json!({"message": null}),
        json!({"channel": null}),
    ] {
        assert_eq!(press(none.clone()), None, "{none}");
    }
}

#[test]
fn an_id_has_the_letters_of_ids_and_their_length() {
    assert_eq!(event_id(&["T1", "", "C 2\n", "1.5"]), "s/T1/C2/1.5");
    assert_eq!(event_id(&[&"x".repeat(300)]).len(), 128);
}
