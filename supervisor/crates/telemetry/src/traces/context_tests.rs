use http::HeaderValue;
use proptest::prelude::*;

use super::*;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn map(headers: &[(&'static str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_str(value).unwrap());
    }
    map
}

fn through(headers: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    CallTrace::from_headers(&map(headers))
        .map(|trace| trace.outgoing_headers(&Span::none()))
        .unwrap_or_default()
}

// Promises: TRACE-13
#[test]
fn what_came_goes_on_as_it_came() {
    for flags in ["00", "01", "03", "ff"] {
        let parent = format!("{}{flags}", &PARENT[..53]);
        assert_eq!(through(&[("traceparent", &parent)]), [("traceparent", parent.clone())]);
    }
    let state = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";
    assert_eq!(
        through(&[("traceparent", PARENT), ("tracestate", state)]),
        [("traceparent", PARENT.to_owned()), ("tracestate", state.to_owned())]
    );
}

#[test]
fn states_in_several_headers_are_one_list() {
    let made = through(&[("traceparent", PARENT), ("tracestate", "a=1"), ("tracestate", " b=2")]);
    assert_eq!(made[1], ("tracestate", "a=1,b=2".to_owned()));
}

// Promises: TRACE-12
#[test]
fn what_is_not_as_the_standard_has_it_counts_as_none() {
    let long = format!("{PARENT}-00");
    for bad in [
        "",
        "00",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
        "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
        "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x",
        long.as_str(),
    ] {
        assert!(CallTrace::from_headers(&map(&[("traceparent", bad)])).is_none(), "{bad}");
    }
    assert!(CallTrace::from_headers(&map(&[("traceparent", PARENT), ("traceparent", PARENT)])).is_none());
    assert!(CallTrace::from_headers(&map(&[("tracestate", "a=1")])).is_none());
}

// Promises: TRACE-12
#[test]
fn a_later_version_is_understood_as_far_as_we_know_it() {
    let later = format!("cc{}-what-the-future-adds", &PARENT[2..]);
    assert_eq!(through(&[("traceparent", &later)]), [("traceparent", PARENT.to_owned())]);
}

// Promises: TRACE-12
#[test]
fn a_bad_state_does_not_break_the_trace() {
    let long = format!("a={}", "x".repeat(MAX_STATE_BYTES));
    for bad in ["nothing", "A=1", "a=b\tc", long.as_str()] {
        let made = through(&[("traceparent", PARENT), ("tracestate", bad)]);
        assert_eq!(made, [("traceparent", PARENT.to_owned())], "{bad}");
    }
}

proptest! {
    // Promises: TRACE-12
    #[test]
    fn only_good_headers_go_on(parent in "[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[ -~]*)?|[ -~]{0,80}", state in "[ -~]{0,80}") {
        for (name, value) in through(&[("traceparent", &parent), ("tracestate", &state)]) {
            prop_assert!(value.len() <= MAX_STATE_BYTES && HeaderValue::from_str(&value).is_ok(), "{}: {}", name, value);
            if name == "traceparent" {
                prop_assert!(value.parse::<TraceParent>().is_ok(), "{}", value);
            }
        }
    }
}
