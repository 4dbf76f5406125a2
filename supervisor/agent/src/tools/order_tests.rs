use proptest::prelude::*;
use talon_proto::plugin::Action;

use super::*;

/// A tool, written `plugin.action` with `!` behind one that does not only read.
fn tool(name: &str) -> Tool {
    let (plugin, action) = name.trim_end_matches('!').split_once('.').expect("plugin.action");
    let read_only = !name.ends_with('!');
    Tool::new(plugin, &Action { name: action.to_owned(), read_only, ..Action::default() })
}

fn waits(names: &[&str], parallel: ParallelCalls) -> Vec<(usize, Vec<usize>)> {
    let tools: Vec<Tool> = names.iter().map(|name| tool(name)).collect();
    let planned: Vec<(usize, &Tool)> = tools.iter().enumerate().collect();
    let waits = earlier_calls(&planned, parallel).into_iter();
    waits.map(|(place, before)| (place, before.into_iter().collect())).collect()
}

// Promises: AGENT-80
#[test]
fn a_plugins_calls_keep_their_order_around_one_that_does_not_only_read() {
    use ParallelCalls::{All, None, ReadOnly};
    let calls = ["files.read", "files.read", "files.write!", "files.read", "notes.add!"];
    assert_eq!(waits(&calls, All), [(2, vec![0, 1]), (3, vec![2])]);
    assert_eq!(waits(&calls, ReadOnly), [(2, vec![0, 1]), (3, vec![2]), (4, vec![0, 1, 2, 3])]);
    assert_eq!(
        waits(&calls, None),
        [(1, vec![0]), (2, vec![0, 1]), (3, vec![0, 1, 2]), (4, vec![0, 1, 2, 3])]
    );
    assert_eq!(waits(&["files.read", "web.get", "files.read"], All), []);
    assert_eq!(waits(&["talon.wait", "jobs.show"], All), [(1, vec![0])], "a wait holds back what follows");
}

proptest! {
    // Promises: AGENT-80
    #[test]
    fn every_call_gets_its_turn(
        calls in proptest::collection::vec((prop::sample::select(vec!["a", "b"]), any::<bool>()), 0..12),
        parallel in prop::sample::select(vec![ParallelCalls::All, ParallelCalls::ReadOnly, ParallelCalls::None]),
    ) {
        let names: Vec<String> = calls.iter().map(|(p, w)| format!("{p}.x{}", if *w { "!" } else { "" })).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for (place, before) in waits(&names, parallel) {
            prop_assert!(before.iter().all(|earlier| *earlier < place));
        }
    }
}
