//! Entries of every role against what plugins declare.

use serde_json::json;
use talon_extensions::contract::{check_answer, full_sample, sample, schemas};
use talon_extensions::declaration::{DeclaredAction, DeclaredParameter, check};
use talon_extensions::{Extensions, Role};

fn declared(roles: &[&str], parameters: &[(&str, &str, bool)]) -> DeclaredAction {
    let parameters = parameters.iter().map(|(name, kind, required)| DeclaredParameter {
        name: (*name).to_owned(),
        kind: (*kind).to_owned(),
        required: *required,
    });
    DeclaredAction {
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        parameters: parameters.collect(),
        takes_further_arguments: false,
    }
}

fn fits(yaml: &str, declared: &DeclaredAction) -> Result<(), String> {
    let extensions: Extensions = serde_saphyr::from_str(yaml).expect("extensions");
    let entry = extensions.entries().next().expect("one entry");
    check(&entry, Some(declared), std::iter::empty()).map_err(|error| error.to_string())
}

// Promises: EXT-52
#[test]
fn an_action_fits_an_entry_of_each_role() {
    let sink = declared(
        &["notification_sink"],
        &[("event", "object", true), ("events", "array", false), ("attempt", "integer", true)],
    );
    assert_eq!(fits("notifications: [{ on: [test], action: a.b }]", &sink), Ok(()));
    // A digest needs what a single event does not.
    let single = declared(&["notification_sink"], &[("event", "object", true), ("attempt", "integer", true)]);
    let error = fits("notifications: [{ on: [test], action: a.b }]", &single).expect_err("no digest");
    assert!(error.contains("takes no argument events"), "{error}");

    let tool = declared(&[], &[("days", "integer", true)]);
    let task = declared(&["scheduled_task"], &[("run", "object", true), ("days", "integer", true)]);
    let job = "schedule: [{ id: a, every: 1h, action: a.b, args: { days: 3 } }]";
    assert_eq!((fits(job, &tool), fits(job, &task)), (Ok(()), Ok(())));
    let without = "schedule: [{ id: a, every: 1h, action: a.b }]";
    for action in [&tool, &task] {
        assert!(fits(without, action).expect_err("it needs days").contains("needs the argument days"));
    }
    let run = declared(&["scheduled_task"], &[("run", "object", true)]);
    assert_eq!(fits(without, &run), Ok(()));

    let auth = "auth: [{ action: a.b, scopes: { a: [chat] } }]";
    let provider = [("scheme", "string", true), ("credential", "string", true), ("peer", "object", true)];
    assert_eq!(fits(auth, &declared(&["auth_provider"], &provider)), Ok(()));
    let error = fits(auth, &declared(&["tool"], &provider)).expect_err("another role");
    assert!(error.contains("does not declare the role auth_provider"), "{error}");
    let route = "routes: [{ path: /x/a, action: a.b, scope: chat, args: { text: '{{ body }}' } }]";
    assert_eq!(fits(route, &declared(&[], &[("text", "string", true)])), Ok(()));
}

#[test]
fn a_sample_has_what_its_schema_requires_and_nothing_else() {
    for role in Role::ALL {
        let (arguments, _) = schemas(role);
        let schema = arguments.as_value();
        let names = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().into_iter().flat_map(|members| members.keys().cloned()).collect()
        };
        let (sample, full) = (sample(role), full_sample(role));
        assert!(names(&sample).iter().all(|name| full.get(name).is_some()), "{role}");
        assert!(names(&full).iter().all(|name| schema["properties"].get(name).is_some()), "{role}");
        for required in schema["required"].as_array().into_iter().flatten() {
            assert!(sample.get(required.as_str().expect("a name")).is_some(), "{role} {required}");
        }
    }
}

#[test]
fn an_answer_is_one_of_its_role() {
    for (role, right) in [
        (Role::Filter, json!({"verdict": "pass"})),
        (Role::NotificationSink, json!({"status": "delivered"})),
        (Role::AuthProvider, json!({"outcome": "rejected"})),
        (Role::ApiRoute, json!({"status": 204})),
    ] {
        assert_eq!(check_answer(role, &right), Ok(()));
        for other in [json!({}), json!(null), json!([right])] {
            assert!(check_answer(role, &other).expect_err("none").len() < 400, "{role} {other}");
        }
    }
    assert_eq!(check_answer(Role::ScheduledTask, &json!(null)), Ok(()));
}
