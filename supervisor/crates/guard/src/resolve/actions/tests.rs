use talon_proto::plugin::Parameter;

use super::super::schema::parsed_on_this_thread;
use super::*;

fn action(schemas: &[&str]) -> Action {
    let parameter = |(i, schema): (usize, &&str)| Parameter {
        name: i.to_string(),
        schema: (*schema).to_owned(),
        ..Default::default()
    };
    Action { parameters: schemas.iter().enumerate().map(parameter).collect(), ..Default::default() }
}

fn actions(schemas: &[&str]) -> [(String, Action); 1] {
    [("a".to_owned(), action(schemas))]
}

/// Whether each parameter has a usable schema, and how often one was parsed for that.
fn asked(actions: &Actions, parameters: usize) -> (Vec<bool>, usize) {
    let before = parsed_on_this_thread();
    let found = actions.get("a").unwrap();
    let usable = (0..parameters).map(|place| found.schema(place).is_some()).collect();
    (usable, parsed_on_this_thread() - before)
}

#[test]
fn each_schema_is_parsed_once_also_one_that_is_unusable() {
    let actions = Actions::from_iter(actions(&[r#"{"const": 1}"#, "[no object]", ""]));
    assert_eq!(asked(&actions, 3), (vec![true, false, false], 3));
    for _ in 0..10 {
        assert_eq!(asked(&actions, 3), (vec![true, false, false], 0));
    }
}

#[test]
fn what_has_no_room_is_parsed_each_time_and_the_rest_is_kept() {
    let (small, large) = (r#"{"const": 1}"#, format!(r#"{{"enum": [{}1]}}"#, "{\"\":0},".repeat(1000)));
    let room = 2 * Schema::parse(small).unwrap().bytes();
    assert!(Schema::parse(&large).unwrap().bytes() > room);
    let actions = Actions::with_cache_bytes(room, actions(&[small, &large, small, small]));
    asked(&actions, 4);
    // The large one and the last.
    assert_eq!(asked(&actions, 4), (vec![true; 4], 2));
    assert_eq!(actions.remaining_bytes.load(Ordering::Relaxed), 0);
}
