use super::*;

fn proposal(job: &str, hash: &str, state: &str) -> JobProposal {
    JobProposal {
        job: job.to_owned(),
        hash: hash.repeat(32),
        state: state.to_owned(),
        ..JobProposal::default()
    }
}

fn listed() -> ListJobsResponse {
    let job =
        |id: &str, hash: &str| Job { id: id.to_owned(), accepted_hash: hash.repeat(32), ..Job::default() };
    let invalid = JobProposal { problem: "`every`: no".to_owned(), ..proposal("files.bad", "", "invalid") };
    ListJobsResponse {
        jobs: vec![job("files.tidy", "aa"), job("digest", ""), job("old.job", "ee")],
        proposals: vec![
            proposal("files.tidy", "bb", "rejected"),
            proposal("files.tidy", "cc", "proposed"),
            proposal("files.weekly", "dd", "rejected"),
            invalid,
        ],
    }
}

fn chosen(job: &str, hash: Option<&str>, accept: bool) -> Result<String, String> {
    let args = ProposalArgs { job: job.to_owned(), hash: hash.map(|hash| hash.repeat(16)) };
    args.chosen(&listed(), accept)
}

// Promises: EXT-161
#[test]
fn a_decision_is_for_what_is_shown() {
    for (job, hash, accept, expected) in [
        ("files.tidy", None, true, "cc"),
        ("files.tidy", Some("bb"), true, "bb"),
        ("files.tidy", Some("aa"), false, "aa"),
        ("files.weekly", None, true, "dd"),
        ("old.job", None, false, "ee"),
    ] {
        assert_eq!(chosen(job, hash, accept), Ok(expected.repeat(32)), "{job} {hash:?}");
    }
    for (job, hash, accept, expected) in [
        ("files.tidy", Some("ff"), true, "not proposed with this hash"),
        ("old.job", Some("ff"), false, "not proposed with this hash"),
        ("files.tydi", None, true, "did you mean files.tidy?"),
        ("digest", None, false, "`talon schedule pause digest`"),
        ("files.bad", None, true, "`every`: no"),
    ] {
        let error = chosen(job, hash, accept).expect_err(expected);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_hash_has_enough_digits() {
    assert_eq!(hash(&"3F1C".repeat(8)), Ok("3f1c".repeat(8)));
    for wrong in ["3f1c", "", &"g".repeat(64), &"a".repeat(65), &"a".repeat(31)] {
        assert!(hash(wrong).is_err(), "{wrong}");
    }
}
