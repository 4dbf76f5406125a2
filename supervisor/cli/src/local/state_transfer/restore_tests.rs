//! Messages of a restore that fails partway.

use super::*;

fn place(part: StatePart) -> DatabaseEntry {
    let copy = serde_json::json!({ "name": "", "layers": "", "schema_version": 1, "bytes": 0, "sha256": "" });
    DatabaseEntry { part, offset: 0, copy: serde_json::from_value(copy).unwrap() }
}

#[test]
fn what_was_replaced_before_a_failure_is_said_with_where_the_old_is_and_what_to_do() {
    let (first, second) = (place(StatePart::Plugins), place(StatePart::Agent));
    let places = [&first, &second];
    let why = || Failure::new(exit::HOST_FAULT, "no room");
    let at_once = partial_failure("b.tar", &places, &[], why());
    assert_eq!(at_once.to_string(), "no room", "nothing was replaced");

    let done = |kept: &str| [RestoreResponse { schema_version: 1, kept: kept.into() }];
    let failure = partial_failure("b.tar", &places, &done("/data/state/state.db.old"), why());
    assert_eq!(failure.code(), exit::HOST_FAULT);
    let lines: Vec<String> = failure.to_string().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3, "{failure}");
    assert_eq!(lines[0], "no room");
    assert!(lines[1].starts_with("the plugins' state") && lines[1].contains("state.db.old"), "{failure}");
    assert!(lines[2].contains("sessions and memory") && lines[2].contains("--only agent"), "{failure}");
    let failure = partial_failure("b.tar", &places, &done(""), why());
    assert!(failure.to_string().contains("there was nothing"), "{failure}");
}
