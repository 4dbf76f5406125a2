//! The report as JUnit XML, which CI servers show.

use std::fmt::Write as _;

use super::{Outcome, Report, Verdict};

/// The report as JUnit XML. A warning is a passed test with output.
#[must_use]
pub fn junit(report: &Report) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let (tests, failures) = (report.outcomes.len(), report.count(Verdict::Fail));
    let (skipped, seconds) = (report.count(Verdict::Skip), report.took.as_secs_f64());
    let name = escaped(&report.plugin);
    // Writing to a string cannot fail.
    let _ = writeln!(
        xml,
        "<testsuites>\n  <testsuite name=\"talon conformance: {name}\" tests=\"{tests}\" failures=\"{failures}\" \
         errors=\"0\" skipped=\"{skipped}\" time=\"{seconds:.3}\">"
    );
    for outcome in &report.outcomes {
        case(&mut xml, outcome);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn case(xml: &mut String, outcome: &Outcome) {
    let Outcome { check, verdict, detail, took } = outcome;
    let (id, group, seconds) = (check.id, check.group(), took.as_secs_f64());
    let detail = escaped(detail);
    let _ = write!(
        xml,
        "    <testcase classname=\"talon.conformance.{group}\" name=\"{id}\" time=\"{seconds:.3}\""
    );
    let _ = match verdict {
        Verdict::Pass if detail.is_empty() => writeln!(xml, "/>"),
        Verdict::Pass | Verdict::Warn => {
            let word = verdict.as_str();
            writeln!(xml, ">\n      <system-out>{word}: {detail}</system-out>\n    </testcase>")
        }
        Verdict::Skip => writeln!(xml, ">\n      <skipped message=\"{detail}\"/>\n    </testcase>"),
        Verdict::Fail => {
            let (mend, docs) = (escaped(check.mend), check.paragraph());
            writeln!(
                xml,
                ">\n      <failure message=\"{detail}\">{detail}\n{mend}\n{docs}</failure>\n    </testcase>"
            )
        }
    };
}

/// Escapes a text for XML; characters that XML does not allow are removed.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use talon_sanitize::Raw;

    use super::*;
    use crate::list::CHECKS;

    #[test]
    fn what_a_plugin_says_stays_text() {
        let outcomes = [Verdict::Pass, Verdict::Fail, Verdict::Warn, Verdict::Skip].map(|verdict| Outcome {
            check: &CHECKS[0],
            verdict,
            detail: Raw::from("</failure>\"&<x> \u{1b}[2J").line(),
            took: Duration::from_millis(12),
        });
        let report = Report {
            plugin: "p".into(),
            program: "/p".into(),
            dialect: None,
            profile: "strict".into(),
            called: "".into(),
            outcomes: outcomes.to_vec(),
            took: Duration::from_secs(1),
        };
        let xml = junit(&report);
        assert!(
            xml.contains("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"1\" time=\"1.000\""),
            "{xml}"
        );
        assert!(xml.contains("&lt;/failure&gt;&quot;&amp;&lt;x&gt;"), "{xml}");
        assert_eq!(xml.matches("</failure>").count(), 1, "{xml}");
        assert_eq!(xml.matches("<testcase").count(), 4);
        assert!(!xml.chars().any(|c| c.is_control() && c != '\n'), "{xml:?}");
    }
}
