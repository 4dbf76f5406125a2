//! `talon schedule check`.

use std::process::Command;

use serde_json::{Value, json};

fn check(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(talon_tests::program("talon"))
        .args(["schedule", "check"])
        .args(args)
        .output()
        .expect("talon starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
}

// Promises: EXT-35
#[test]
fn a_schedule_is_checked_without_a_supervisor() {
    let berlin = ["--timezone", "europe/berlin", "--from", "2026-03-28T00:00:00Z", "--next", "3"];
    let (code, table, _) = check(&[&["30 2 * * *"], &berlin[..]].concat());
    assert_eq!(code, 0);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("at fixed times"), "{table}");
    assert!(lines[2].starts_with("2026-03-28T01:30:00Z  2026-03-28 02:30:00 +01:00 CET"), "{table}");
    assert!(lines[3].starts_with("2026-03-29T01:00:00Z  2026-03-29 03:00:00 +02:00 CEST"), "{table}");
    assert!(lines[3].ends_with("the clock skips its time: right after"), "{table}");
    assert_eq!(lines.len(), 5);
    let (code, json, _) = check(&[&["--output", "json", "*/30 2 * * *"], &berlin[..]].concat());
    assert_eq!(code, 0);
    let said: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&said["timezone"], &said["follows_clock"]), (&json!("Europe/Berlin"), &json!(true)));
    assert_eq!(said["next"][2]["at"], "2026-03-30T00:00:00Z");
}

// Promises: EXT-31, EXT-35
#[test]
fn a_schedule_that_is_none_is_refused_with_what_to_write() {
    for (args, expected) in [
        (&["0 0 30 2 *"][..], "there is no day 30 in February"),
        (&["* * * * MO"], "did you mean MON?"),
        (&["@daily", "--timezone", "Europe/Berln"], "did you mean Europe/Berlin?"),
        (&["@daily", "--from", "yesterday"], "write it like 2026-03-28T00:00:00Z"),
        (&["@daily", "--next", "0"], "1..=1000"),
    ] {
        let (code, out, err) = check(args);
        assert!(code == 2 && out.is_empty() && err.contains(expected), "{args:?}: {code} {err}");
    }
}
