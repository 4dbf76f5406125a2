use std::time::SystemTime;

use proptest::prelude::*;

use super::*;
use crate::log::line::Fields;

fn line(message: &str, fields: &[(&'static str, &str)]) -> Line {
    let mut of_line = Fields::default();
    for (name, value) in fields {
        of_line.set(name, (*value).into());
    }
    let (at, target) = (SystemTime::UNIX_EPOCH, "talon_guard".to_owned());
    Line { at, level: Level::WARN, target, message: message.to_owned(), fields: of_line }
}

// Promises: TRACE-2
#[test]
fn fields_stay_fields() {
    let mut line = line("refused", &[("call_id", "c1"), ("peer.uid", "7"), ("plugin", "hello")]);
    line.fields.set("instance", 2.into());
    assert_eq!(
        String::from_utf8(entry(&line)).unwrap(),
        "PRIORITY=4\nSYSLOG_IDENTIFIER=talon\nTALON_TARGET=talon_guard\nMESSAGE=refused\nTALON_CALL_ID=c1\n\
         TALON_PEER_UID=7\nTALON_PLUGIN=hello\nTALON_INSTANCE=2\n"
    );
}

// Promises: TRACE-2
#[test]
fn what_is_too_long_is_cut_and_the_entry_keeps_its_form() {
    let long = "x".repeat(MAX_ENTRY_BYTES);
    let made = String::from_utf8(entry(&line(&long, &[("a", &long), ("b", "c")]))).unwrap();
    assert!(made.len() <= MAX_ENTRY_BYTES && made.ends_with("x…\n"), "{}", made.len());
    assert!(made.starts_with("PRIORITY=4\n"));
}

proptest! {
    /// No text can create a field, whatever it contains.
    // Promises: TRACE-2
    #[test]
    fn each_text_is_one_field(message: String, value: String) {
        let made = String::from_utf8(entry(&line(&message, &[("plugin", &value)]))).unwrap();
        prop_assert_eq!(made.matches('\n').count(), 5, "{:?}", made);
        prop_assert!(made.split_terminator('\n').all(|line| !line.contains(char::is_control)), "{:?}", made);
    }

    // Promises: TRACE-2
    #[test]
    fn names_are_what_the_journal_takes(key: String) {
        let name = name(&key);
        prop_assert!(name.len() <= MAX_NAME_BYTES);
        prop_assert!(name.starts_with("TALON_"), "{}", name);
    }
}
