use std::collections::BTreeMap;

use proptest::prelude::*;
use talon_sdk::Severity;

use super::*;
use crate::settings::Settings;

fn account(prefix: &str) -> Account {
    let settings = Settings {
        host: "mail.example.org".to_owned(),
        from: "Tälon <talon@example.org>".to_owned(),
        to: vec!["ada@example.org".to_owned(), "\"Grace, H.\" <grace@example.org>".to_owned()],
        subject_prefix: Some(prefix.to_owned()),
        ..Settings::default()
    };
    Account::new(&settings).expect("good")
}

/// The headers of a message by name, with what each of them says, unfolded; and its body as it is sent.
fn parts(message: &Message) -> (BTreeMap<String, String>, String) {
    let bytes = String::from_utf8(message.formatted()).expect("ASCII");
    let (head, body) = bytes.split_once("\r\n\r\n").expect("a head and a body");
    let head = head.replace("\r\n ", " ");
    let headers = head.split("\r\n").map(|line| {
        let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("no header: {line:?}"));
        (name.to_owned(), value.trim().to_owned())
    });
    (headers.collect(), body.to_owned())
}

fn event(id: &str, summary: &str, details: &str) -> Event {
    Event {
        id: id.to_owned(),
        kind: "plugin.failed".to_owned(),
        severity: Severity::Critical,
        summary: summary.to_owned(),
        details: details.to_owned(),
        time_unix_ms: 0,
        fields: BTreeMap::new(),
        count: 1,
    }
}

// Promises: EXT-81
#[test]
fn a_message_says_that_it_is_automatic_and_which_it_is() {
    let one = message(&account("[talon]"), &event("01KABC", "search failed", "why"), &[]).expect("made");
    let (headers, body) = parts(&one);
    assert_eq!(headers["Message-ID"], "<01KABC@example.org>");
    assert_eq!(headers["Auto-Submitted"], "auto-generated");
    assert_eq!(headers["Subject"], "[talon] [critical] plugin.failed: search failed");
    assert!(headers["To"].contains("ada@example.org") && headers["To"].contains("grace@example.org"));
    assert_eq!(body.trim_end(), "[critical] plugin.failed: search failed\r\n\r\nwhy");
    let odd = message(&account(""), &event("a@b>\r\nX: y", "x", ""), &[]).expect("made");
    let (headers, _) = parts(&odd);
    assert_eq!(headers["Message-ID"].len(), "<@example.org>".len() + 64, "{headers:?}");
}

proptest! {
    // Promises: EXT-81
    #[test]
    fn no_text_adds_a_header(
        texts in prop::collection::vec("(\\PC|\r|\n|\r\n[A-Z]: x|\u{0}|\u{85}|\u{2028}){0,40}", 6),
        prefix in "[^\u{0}-\u{1f}\u{7f}-\u{9f}]{0,50}",
    ) {
        let one = Event {
            kind: texts[3].clone(),
            fields: [(texts[5].clone(), texts[4].clone())].into(),
            ..event(&texts[0], &texts[1], &texts[2])
        };
        let made = message(&account(&prefix), &one, std::slice::from_ref(&one)).expect("made");
        let bytes = made.formatted();
        prop_assert!(bytes.is_ascii());
        for line in bytes.split(|byte| *byte == b'\n') {
            prop_assert!(line.len() < 1000, "a line of {} bytes", line.len());
            prop_assert!(line.strip_suffix(b"\r").unwrap_or(line).iter().all(|byte| *byte != b'\r' && *byte != 0));
        }
        let (headers, _) = parts(&made);
        let names: Vec<_> = headers.keys().map(String::as_str).collect();
        prop_assert_eq!(
            names,
            [
                "Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date", "From", "MIME-Version",
                "Message-ID", "Subject", "To",
            ]
        );
    }
}
