//! Whether what came of a row is what the list says.

use super::list::KnownFailure;

/// What a row comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It works.
    Works,
    /// It fails as the list says.
    KnownToFail(String),
    /// It differs from the list: what is printed.
    Differs(String),
}

/// Compares a failure, or none, with the list.
#[must_use]
pub fn judge(failure: Option<&str>, known: Option<&KnownFailure>) -> Verdict {
    match (failure, known) {
        (None, None) => Verdict::Works,
        (Some(failure), Some(known)) if failure.contains(&known.with) => {
            Verdict::KnownToFail(known.why.clone())
        }
        (Some(failure), _) => Verdict::Differs(failure.to_owned()),
        (None, Some(known)) => {
            Verdict::Differs(format!("works now: take `fails` ({}) out of the list", known.why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_failure_is_that_one_and_no_other() {
        let known = KnownFailure { with: "no network".to_owned(), why: "needs it".to_owned() };
        assert_eq!(judge(None, None), Verdict::Works);
        assert_eq!(
            judge(Some("there is no network"), Some(&known)),
            Verdict::KnownToFail("needs it".to_owned())
        );
        assert!(matches!(judge(Some("died"), Some(&known)), Verdict::Differs(_)));
        assert!(matches!(judge(Some("died"), None), Verdict::Differs(_)));
        let Verdict::Differs(said) = judge(None, Some(&known)) else { panic!("a pass is a difference") };
        assert!(said.contains("works now"), "{said}");
    }
}
