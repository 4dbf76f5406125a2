use proptest::prelude::*;

use super::*;
use crate::job::Target;

fn declared(cron: &str, every: &str, timezone: &str, arguments: &str) -> DeclaredJob {
    let [cron, every, timezone, arguments_json] = [cron, every, timezone, arguments].map(str::to_owned);
    DeclaredJob { name: String::new(), cron, every, timezone, arguments_json }
}

fn named(name: &str) -> DeclaredJob {
    DeclaredJob { name: name.to_owned(), ..declared("@daily", "", "", "") }
}

// Promises: EXT-159
#[test]
fn a_proposal_is_the_job_of_an_entry_below_its_plugins_name() {
    let said = declared("0 9 * * 1-5", "", "Europe/Berlin", r#"{"days": 7}"#);
    let proposal = Proposal::check("files", "tidy", &said).expect("a proposal");
    let job = proposal.job().expect("a job");
    assert_eq!((job.id.as_str(), proposal.plugin()), ("files.tidy", "files"));
    assert_eq!(job.recurrence.zone().name(), "Europe/Berlin");
    assert!(job.accepted && !job.paused && job.retries == 0);
    assert!(
        matches!(&job.target, Target::Action { action, args } if action == "files.tidy" && args["days"] == 7)
    );
    let other = Proposal::check("files", "tidy", &named("nightly")).expect("a proposal");
    assert_eq!((other.id.as_str(), other.action.as_str()), ("files.nightly", "files.tidy"));
    assert_eq!(Proposal::from_json(&proposal.to_json()).expect("read"), proposal);
}

// Promises: EXT-159
#[test]
fn what_cannot_be_a_job_is_said_and_bounded() {
    for (said, expected) in [
        (declared("", "", "", ""), "write exactly one of `cron`, `every` and `at`"),
        (declared("@daily", "1h", "", ""), "it has `cron` and `every`"),
        (declared("0 0 30 2 *", "", "", ""), "no day 30 in February"),
        (declared("@daily", "", "Europe/Berln", ""), "did you mean Europe/Berlin?"),
        (declared("", "1h", "UTC", ""), "it belongs to `cron` and `at`"),
        (declared("", "soon", "", ""), "`every`: \"soon\" is no interval"),
        (declared("@daily", "", "", "[1]"), "is no JSON object"),
        (declared(&"*,".repeat(1000), "", "", ""), "`cron` has 2000 bytes: write at most 256"),
        (declared("@daily", "", "", &" ".repeat(5000)), "write at most 4096"),
        (named("two words"), "is no id of a job"),
        (named(&"x".repeat(5000)), "is no id of a job"),
    ] {
        let error = Proposal::check("files", "tidy", &said).expect_err(expected).to_string();
        assert!(error.contains(expected) && error.len() < 500, "{expected}: {error}");
    }
}

// Promises: EXT-161
#[test]
fn every_change_of_the_text_is_another_digest() {
    let digest = |said: &DeclaredJob| Proposal::check("a", "b", said).expect("a proposal").digest();
    let first = digest(&declared("@daily", "", "", r#"{"x": 1}"#));
    let ordered = [r#"{"x": {"a": 1, "b": 2}, "y": 3}"#, r#"{"y": 3, "x": {"b": 2, "a": 1}}"#];
    let [one, other] = ordered.map(|arguments| digest(&declared("@daily", "", "", arguments)));
    assert_eq!(one, other, "the order of keys means nothing");
    assert_eq!((first.len(), digest(&declared("@daily", "", "", "{ \"x\":1 }"))), (64, first.clone()));
    for other in [
        declared("@hourly", "", "", r#"{"x": 1}"#),
        declared("@daily", "", "UTC", r#"{"x": 1}"#),
        declared("@daily", "", "", r#"{"x": "1"}"#),
        declared("", "1d", "", r#"{"x": 1}"#),
        DeclaredJob { name: "c".to_owned(), ..declared("@daily", "", "", r#"{"x": 1}"#) },
    ] {
        assert_ne!(digest(&other), first, "{other:?}");
    }
}

proptest! {
    // Promises: EXT-159
    #[test]
    fn nothing_that_a_plugin_writes_takes_another_plugins_name(
        name in ".{0,80}", cron in ".{0,20}", arguments in ".{0,20}"
    ) {
        let said = DeclaredJob { name, ..declared(&cron, "", "", &arguments) };
        if let Ok(proposal) = Proposal::check("files", "tidy", &said) {
            prop_assert!(proposal.id.as_str().starts_with("files.") && proposal.id.as_str().len() <= 64);
            prop_assert_eq!(proposal.action.as_str(), "files.tidy");
            prop_assert_eq!(Proposal::from_json(&proposal.to_json()).expect("read"), proposal);
        }
    }
}
