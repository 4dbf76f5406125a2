use proptest::prelude::*;

use super::*;

fn fragment<'t>(index: Option<u64>, id: &'t str, name: &'t str, arguments: &'t str) -> Fragment<'t> {
    Fragment { index, id, name, arguments, extra: None }
}

fn assembled(fragments: &[Fragment<'_>], finish: Finish) -> Answer {
    let mut hear = |_: Chunk| {};
    let mut assembly = Assembly::new("p", &offering(), &mut hear);
    assembly.add_text("text").expect("short");
    for fragment in fragments {
        assembly.add_call(*fragment).expect("few and short");
    }
    assembly.set_finish(finish);
    assembly.finish()
}

/// A request with tools whose names begin each other.
fn offering() -> Request {
    let tool = |name: &str| crate::model::ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: Value::Null.into(),
    };
    Request { tools: ["weather", "weather_now", "now", "gogo"].map(tool).into(), ..Request::default() }
}

fn names(answer: &Answer) -> Vec<&str> {
    answer.calls.iter().map(|call| call.name.as_str()).collect()
}

#[test]
fn calls_are_told_apart_by_whatever_is_there() {
    // By ids, without numbers.
    let by_id = [
        fragment(None, "a", "one", "{\"x\""),
        fragment(None, "a", "", ":1}"),
        fragment(None, "b", "two", "{}"),
    ];
    assert_eq!(names(&assembled(&by_id, Finish::ToolCalls)), ["one", "two"]);
    // By names alone.
    let by_name = [fragment(None, "", "one", "{}"), fragment(None, "", "one", "{}")];
    assert_eq!(names(&assembled(&by_name, Finish::ToolCalls)), ["one", "one"]);
    // By ids, although each has the number 0.
    let zeros = [fragment(Some(0), "a", "one", "{}"), fragment(Some(0), "b", "one", "{}")];
    assert_eq!(names(&assembled(&zeros, Finish::ToolCalls)), ["one", "one"]);
    // The name and the id again with each fragment.
    let repeated = [fragment(Some(0), "a", "one", "{\"x\":"), fragment(Some(0), "a", "one", "1}")];
    let answer = assembled(&repeated, Finish::ToolCalls);
    assert_eq!(names(&answer), ["one"]);
    assert!(matches!(answer.calls[0].arguments, Arguments::Object(_)), "{answer:?}");
}

// Promises: AGENT-119
#[test]
fn a_name_in_pieces_is_one_name() {
    for (pieces, expected) in [
        (&["wea", "ther", "", ""][..], &["weather"][..]),
        (&["weather", "_now"], &["weather_now"]),
        (&["go", "go"], &["gogo"]),
        // The whole name again, or the next call.
        (&["weather", "weather"], &["weather"]),
        (&["weather", "now"], &["weather", "now"]),
        (&["one", "two"], &["one", "two"]),
    ] {
        let fragments: Vec<_> = pieces.iter().map(|name| fragment(Some(0), "", name, "")).collect();
        assert_eq!(names(&assembled(&fragments, Finish::ToolCalls)), expected, "{pieces:?}");
    }
}

#[test]
fn what_was_being_written_is_cut_wherever_it_stands() {
    let side_by_side = [
        fragment(Some(0), "a", "whole", "{}"),
        fragment(Some(1), "b", "half", "{\"x\":"),
        fragment(Some(2), "c", "last", "{\"y\":1}"),
        fragment(Some(3), "d", "none", ""),
        fragment(Some(2), "", "", ""),
    ];
    for finish in [Finish::Length, Finish::Filtered] {
        let answer = assembled(&side_by_side, finish);
        assert_eq!((names(&answer), answer.cut_call.as_deref()), (vec!["whole", "none"], Some("last")));
    }
    let without = assembled(&[], Finish::Length);
    assert_eq!((without.calls.len(), without.cut_call), (0, None));
}

#[test]
fn ids_that_cannot_be_used_are_made_up() {
    let long = "x".repeat(1000);
    let odd = [
        fragment(Some(0), &long, "one", ""),
        fragment(Some(1), "a\nb", "two", ""),
        fragment(Some(2), "call_1", "three", ""),
        fragment(Some(3), "", "four", ""),
    ];
    let answer = assembled(&odd, Finish::ToolCalls);
    let mut ids: Vec<_> = answer.calls.iter().map(|call| call.id.as_str()).collect();
    assert!(ids.iter().all(|id| id.starts_with("call_")), "{ids:?}");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

fn any_fragment() -> impl Strategy<Value = (Option<u64>, String, String, String)> {
    (
        prop::option::of(0_u64..4),
        "(|a|b|call_0|call_1)",
        "(|one|two)",
        prop::sample::select(vec!["", "{", "}", "{}", "{\"x\":1}", "\"", "[1]", "null"])
            .prop_map(str::to_owned),
    )
}

proptest! {
    #[test]
    fn any_fragments_make_calls_with_ids_of_their_own(
        fragments in prop::collection::vec(any_fragment(), 0..24),
        finish in prop::sample::select(vec![
            Finish::Stop, Finish::ToolCalls, Finish::Length, Finish::Filtered,
        ]),
    ) {
        let fragments: Vec<_> =
            fragments.iter().map(|(index, id, name, text)| fragment(*index, id, name, text)).collect();
        let answer = assembled(&fragments, finish);
        let ids: HashSet<_> = answer.calls.iter().map(|call| call.id.as_str()).collect();
        prop_assert_eq!(ids.len(), answer.calls.len());
        prop_assert!(!ids.contains(""));
        prop_assert!(answer.finish != Finish::ToolCalls || !answer.calls.is_empty());
        // A fragment makes at most one call, and nothing is cut from an answer that came to its end.
        if !matches!(finish, Finish::Length | Finish::Filtered) {
            prop_assert!(answer.calls.len() <= fragments.len());
            prop_assert_eq!(answer.cut_call, None);
        }
    }
}
