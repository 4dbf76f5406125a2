use std::collections::BTreeSet;

use super::*;
use crate::KindSet;

// Promises: GW-153
#[test]
fn a_word_selects_one_kind_a_family_or_all_and_a_misspelt_one_is_refused_with_the_nearest() {
    for kind in EventKind::ALL {
        assert_eq!(EventKind::selected(kind.as_str()), Ok(vec![*kind]));
        assert_eq!(kind.as_str().parse(), Ok(*kind));
        let family = format!("{}.*", kind.family());
        assert!(EventKind::selected(&family).expect("a family").contains(kind));
    }
    let names: BTreeSet<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(names.len(), EventKind::ALL.len());
    assert_eq!(EventKind::selected("*").expect("all").len(), EventKind::ALL.len());
    assert_eq!(KindSet::selected([]), Ok(KindSet::all()));
    let both = KindSet::selected(["tool.*", "session.idle"]).expect("kinds");
    let wanted = [EventKind::ToolExecute, EventKind::ToolComplete, EventKind::SessionIdle];
    assert_eq!(both, KindSet::from(wanted));
    for (word, near) in
        [("tool.complet", "tool.complete"), ("session.ide", "session.idle"), ("tol.*", "tool.*")]
    {
        let error = KindSet::selected([word]).expect_err("misspelt").to_string();
        assert!(error.ends_with(&format!("did you mean {near}?")), "{error}");
    }
    for word in ["", "tool", ".*", "tool.*.*"] {
        assert!(EventKind::selected(word).is_err(), "{word:?}");
    }
    let long = "x\n".repeat(10_000).parse::<EventKind>().expect_err("unknown").to_string();
    assert!(long.len() < 400 && !long.contains("\\n"), "{long}");
}

/// What the founding texts name.
const FOUNDING: [&str; 10] = [
    "message.inbound",
    "message.outbound",
    "tool.execute",
    "tool.complete",
    "shadow.event",
    "shadow.ghost",
    "session.created",
    "session.idle",
    "config.changed",
    "agent.thinking",
];

// Promises: GW-153
#[test]
fn all_founding_kinds_are_there() {
    for name in FOUNDING {
        assert!(name.parse::<EventKind>().is_ok(), "{name}");
    }
    for family in ["plugin", "guard", "approval", "task", "notification"] {
        assert!(EventKind::selected(&format!("{family}.*")).is_ok(), "{family}");
    }
}

const BEGIN: &str = "<!-- kinds: written by the test the_page_lists_every_kind -->\n";
const END: &str = "<!-- end of kinds -->\n";

fn table() -> String {
    let mut text = "| event | when | emitter | process | payload | who subscribes besides |\n|---|---|---|---|---|---|\n".to_owned();
    for kind in EventKind::ALL {
        text += &format!(
            "| `{kind}` | {} | {} | {} | `{}` | {} |\n",
            kind.when(),
            kind.emitter(),
            kind.process(),
            kind.payload(),
            kind.subscriber()
        );
    }
    text
}

// Promises: GW-153
#[test]
fn the_page_lists_every_kind() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/events.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("a place for the table");
    let (kept, after) = rest.split_once(END).expect("an end of the table");
    let table = table();
    if std::env::var_os("TALON_REWRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).expect("it is ours");
        return;
    }
    assert!(kept == table, "docs/events.md is old: run this test with TALON_REWRITE_DOCS=1");
}

/// All text of the sources below a directory, without tests.
fn sources(directory: &std::path::Path, text: &mut String) {
    for entry in
        std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path())
    {
        if entry.is_dir() {
            sources(&entry, text);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            *text += &std::fs::read_to_string(&entry).expect("a source");
        }
    }
}

// Promises: GW-153
#[test]
fn every_kind_is_emitted_where_the_page_says() {
    let supervisor = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut agent = String::new();
    sources(&supervisor.join("agent/src"), &mut agent);
    for kind in EventKind::ALL {
        assert!(agent.contains(&format!("Payload::{kind:?}(")), "nobody emits {kind}");
        let paths = kind.emitter().split('`').skip(1).step_by(2);
        for path in paths {
            let roots = ["agent/src", "src", "crates/plugin/src"];
            let is_there = roots.iter().any(|root| supervisor.join(root).join(path).exists());
            assert!(is_there, "{kind}: there is no {path}");
        }
    }
}
