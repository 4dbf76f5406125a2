use proptest::prelude::*;

use super::*;

fn status(name: &str) -> ScriptStatus {
    ScriptStatus { name: name.to_owned(), sha256: "a".repeat(64), loads: 1, ..ScriptStatus::default() }
}

fn refused(of: &ScriptStatus, problem: &str) -> ScriptStatus {
    ScriptStatus { problem: problem.to_owned(), ..of.clone() }
}

/// The state of the script, and what changed.
fn applied(table: &mut ScriptTable, status: &ScriptStatus) -> (&'static str, Vec<ScriptChange>) {
    let (script, changes) = table.apply(status).expect("there is room");
    (script.state(), changes)
}

// Promises: LUA-70
#[test]
fn a_status_says_what_runs_and_what_was_refused() {
    let mut table = ScriptTable::default();
    let first = status("filter");
    assert_eq!(applied(&mut table, &first), ("loaded", vec![ScriptChange::Loaded]));
    assert_eq!(applied(&mut table, &first), ("loaded", vec![]), "it was said before");
    let counted = ScriptStatus { ended_by_interrupt: 1, ended_with_process: 2, ..first.clone() };
    assert_eq!(applied(&mut table, &counted), ("loaded", vec![]), "counts are no versions");
    let broken = refused(&first, "filter.lua:2: no");
    assert_eq!(applied(&mut table, &broken), ("outdated", vec![ScriptChange::Refused]));
    assert_eq!(applied(&mut table, &broken), ("outdated", vec![]));
    assert_eq!(applied(&mut table, &first), ("loaded", vec![ScriptChange::Loaded]), "it was put back");
    let mended = ScriptStatus { loads: 2, ..first.clone() };
    assert_eq!(applied(&mut table, &mended), ("loaded", vec![ScriptChange::Loaded]));
    let never = ScriptStatus { sha256: String::new(), loads: 0, ..refused(&status("b"), "no text") };
    assert_eq!(applied(&mut table, &never), ("failed", vec![ScriptChange::Refused]));
    let gone = ScriptStatus { removed: true, ..first };
    assert_eq!(applied(&mut table, &gone).1, [ScriptChange::Removed]);
    assert_eq!(applied(&mut table, &gone).1, [], "it was not there");
    assert_eq!(table.all().len(), 1);
}

// Promises: LUA-70
#[test]
fn more_scripts_than_there_is_room_for_are_dropped() {
    let mut table = ScriptTable::default();
    for number in 0..MAX_SCRIPTS {
        assert!(table.apply(&status(&format!("s{number}"))).is_some());
    }
    assert!(table.apply(&status("more")).is_none());
    assert!(table.apply(&refused(&status("s7"), "no")).is_some(), "a known one has its place");
}

#[test]
fn names_are_plain() {
    for (name, valid) in [("a", true), ("a.b-c_9", true), ("", false), ("a b", false), ("ä", false)] {
        assert_eq!(has_valid_name(&status(name)), valid, "{name:?}");
    }
    assert!(!has_valid_name(&status(&"x".repeat(MAX_NAME_BYTES + 1))));
}

proptest! {
    #[test]
    fn whatever_a_plugin_says_is_bounded(
        functions in proptest::collection::vec(".{0,80}", 0..40),
        sha256 in ".{0,80}",
        problem in ".{0,9000}",
    ) {
        let said = ScriptStatus { functions, sha256: sha256.clone(), problem, ..status("s") };
        let (script, _) = ScriptTable::default().apply(&said).expect("there is room");
        // A mark of what was cut comes on top.
        prop_assert!(script.functions.len() <= MAX_FUNCTIONS);
        prop_assert!(script.functions.iter().all(|name| name.len() <= MAX_FUNCTION_BYTES + '…'.len_utf8()));
        prop_assert!(script.problem.is_none_or(|problem| problem.len() <= MAX_PROBLEM_BYTES + '…'.len_utf8()));
        prop_assert!(script.sha256.is_none() || sha256.len() == DIGEST_CHARS);
    }
}
