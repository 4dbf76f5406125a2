use proptest::prelude::*;

use talon_sdk::Severity;

use super::*;

fn event(summary: &str, details: &str) -> Event {
    Event {
        id: "01K".to_owned(),
        kind: "plugin.failed".to_owned(),
        severity: Severity::Critical,
        summary: summary.to_owned(),
        details: details.to_owned(),
        time_unix_ms: 1_780_000_000_000,
        fields: [("plugin".to_owned(), "search".to_owned())].into(),
        count: 1,
    }
}

#[test]
fn an_event_is_its_head_fields_and_details() {
    let said = text(&event("search failed", "exit code 3\n\u{1b}[31mbad"), &[], &Plain, 1000);
    assert_eq!(
        said,
        "[critical] plugin.failed: search failed\ntime: Thu, 28 May 2026 20:26:40 GMT\nplugin: search\n\nexit code 3\n[31mbad"
    );
    let more = Event { count: 7, ..event("x", "") };
    assert!(text(&more, &[], &Plain, 1000).contains("\nIt stands for 7 events.\n"));
}

#[test]
fn a_digest_has_a_line_for_each_event_or_says_how_many_are_left_out() {
    let events: Vec<Event> = (0..100).map(|number| event(&format!("number {number}"), "unseen")).collect();
    let whole = text(&event("100 events", ""), &events, &Plain, 100_000);
    assert_eq!(whole.lines().count(), 101, "{whole}");
    assert!(whole.ends_with("• [critical] plugin.failed: number 99") && !whole.contains("unseen"));
    let cut = text(&event("100 events", ""), &events, &Plain, 1000);
    let (shown, last) = (cut.lines().count() - 2, cut.lines().last().expect("a line"));
    assert!(shown > 10 && units(&cut) <= 1000, "{cut}");
    assert_eq!(last, format!("… and {} more", 100 - shown), "{cut}");
}

#[test]
fn a_text_over_the_limit_is_cut_with_a_mark() {
    let said = text(&event(&"ä".repeat(500), &"x".repeat(5000)), &[], &Plain, 300);
    assert!(units(&said) <= 300 && said.ends_with('…'), "{said}");
    let odd = Event { time_unix_ms: i64::MAX, ..event("x", "") };
    assert!(!text(&odd, &[], &Plain, 300).contains("time"));
}

proptest! {
    #[test]
    fn no_text_is_over_its_limit(
        texts in prop::collection::vec(any::<String>(), 6),
        limit in 0_usize..400,
        more in 0_usize..20,
    ) {
        let one = Event {
            kind: texts[0].clone(),
            fields: [(texts[4].clone(), texts[5].clone())].into(),
            count: 3,
            ..event(&texts[2], &texts[3].repeat(10))
        };
        for events in [vec![], vec![one.clone(); more]] {
            prop_assert!(units(&text(&one, &events, &Plain, limit)) <= limit);
        }
    }
}
