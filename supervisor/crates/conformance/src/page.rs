//! The documentation page about the checks, and the list for programs, both generated from the checks.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::check::Check;
use crate::list::CHECKS;

/// The text before the checks.
const HEAD: &str = include_str!("page_head.md");

/// `docs/conformance.md`.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from(HEAD);
    text.push_str("\n## The checks\n\n| check | | what holds if it passes |\n|---|---|---|\n");
    for check in CHECKS {
        let Check { id, title, level, .. } = check;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| [`{id}`](#{}) | {} | {title} |", crate::check::anchor(id), level.as_str());
    }
    for check in CHECKS {
        paragraph(&mut text, check);
    }
    text
}

fn paragraph(text: &mut String, check: &Check) {
    let Check { id, tries, why, mend, level, about, section, .. } = check;
    let level = match level {
        crate::Level::Must => "Fails",
        crate::Level::Should => "Warns",
    };
    let about = about.as_str();
    let _ = writeln!(
        text,
        "\n### {id}\n\n{tries} {level} otherwise.\n\n- **Why**: {why}\n- **How to mend it**: {mend}\n- **For**: {about}. \
         [The protocol](protocol.md#{section})"
    );
}

/// The list of checks for programs.
#[must_use]
pub fn json() -> Value {
    let check = |check: &Check| {
        json!({
            "id": check.id,
            "title": check.title,
            "level": check.level.as_str(),
            "tries": check.tries,
            "why": check.why,
            "mend": check.mend,
            "about": check.about.as_str(),
            "docs": check.paragraph(),
            "protocol": check.protocol(),
        })
    };
    json!({ "checks": CHECKS.iter().map(check).collect::<Value>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set to rewrite the page instead of comparing it.
    const REWRITE: &str = "TALON_REWRITE_DOCS";

    #[test]
    fn the_page_is_as_the_list_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/conformance.md");
        if std::env::var_os(REWRITE).is_some() {
            std::fs::write(path, markdown()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == markdown(),
            "docs/conformance.md is stale: run `talon conformance --list > docs/conformance.md`, or this test with {REWRITE}=1"
        );
    }

    #[test]
    fn every_check_has_its_paragraph() {
        let page = markdown();
        for check in CHECKS {
            assert_eq!(page.matches(&format!("\n### {}\n", check.id)).count(), 1, "{}", check.id);
            for text in [check.tries, check.why, check.mend] {
                assert!(text.ends_with(['.', '?']), "{}: {text}", check.id);
            }
        }
    }
}
