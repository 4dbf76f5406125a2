//! An error with its causes as one bounded line.
//!
//! Every log, status and message of Talon and of its SDK describes errors by this rule, so it has no
//! dependencies.

use std::error::Error;

/// Maximum number of causes. Real chains have two to five; errors that contain each other have no end.
pub const MAX_CAUSES: usize = 16;
/// Maximum length of a line, without the `…` of a cut: a sentence for each level, with a path in it. It fits into a
/// gRPC status, whose text travels in HTTP/2 headers.
pub const MAX_CHAIN_BYTES: usize = 1024;

/// An error and its causes, outermost first, joined by `: `.
///
/// A cause whose text is already part of the line is left out: many errors repeat their cause. At most [`MAX_CAUSES`]
/// causes are read. A line over [`MAX_CHAIN_BYTES`] is cut, and ends with `…`.
#[must_use]
pub fn error_chain(error: &dyn Error) -> String {
    append_causes(error.to_string(), error.source())
}

/// A text, followed by these causes by the rule of [`error_chain`]: for an error that is described in other words
/// than its own. An empty text is left out.
#[must_use]
pub fn append_causes(mut text: String, cause: Option<&(dyn Error + 'static)>) -> String {
    for cause in std::iter::successors(cause, |&cause| cause.source()).take(MAX_CAUSES) {
        if text.len() > MAX_CHAIN_BYTES {
            break;
        }
        let shown = cause.to_string();
        if !text.contains(&shown) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&shown);
        }
    }
    if text.len() > MAX_CHAIN_BYTES {
        text.truncate(text.floor_char_boundary(MAX_CHAIN_BYTES));
        text.push('…');
    }
    text
}

/// The innermost cause, or the error itself: "connection refused" instead of "transport error". At most
/// [`MAX_CAUSES`] causes are followed.
#[must_use]
pub fn innermost<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    std::iter::successors(Some(error), |&error| error.source()).take(MAX_CAUSES + 1).last().unwrap_or(error)
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    /// An error with a text and a cause.
    #[derive(Debug)]
    struct Failure(String, Option<Box<Failure>>);

    impl fmt::Display for Failure {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.0)
        }
    }

    impl Error for Failure {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    fn chain(texts: &[&str]) -> Failure {
        let mut texts = texts.iter().rev();
        let innermost = Failure((*texts.next().unwrap()).to_owned(), None);
        texts.fold(innermost, |cause, text| Failure((*text).to_owned(), Some(Box::new(cause))))
    }

    #[test]
    fn causes_follow_their_error() {
        let error = chain(&["it fails", "no connection", "refused"]);
        assert_eq!(error_chain(&error), "it fails: no connection: refused");
        assert_eq!(append_causes("no page".to_owned(), error.source()), "no page: no connection: refused");
        assert_eq!(append_causes(String::new(), error.source()), "no connection: refused");
        assert_eq!(innermost(&error).to_string(), "refused");
    }

    #[test]
    fn a_cause_that_its_error_repeats_is_left_out() {
        assert_eq!(error_chain(&chain(&["it fails: gone", "gone"])), "it fails: gone");
        assert_eq!(
            error_chain(&chain(&["gone (try again)", "gone", "by peer"])),
            "gone (try again): by peer"
        );
    }

    #[test]
    fn a_line_is_bounded_and_splits_no_character() {
        let long = "ä".repeat(5000);
        let shown = error_chain(&chain(&["it fails", &long, "unread"]));
        assert!(shown.len() <= MAX_CHAIN_BYTES + '…'.len_utf8() && shown.ends_with("ä…"), "{shown}");
        let numbers: Vec<String> = (0..MAX_CAUSES + 9).map(|n| format!("<{n}>")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        assert_eq!(error_chain(&chain(&numbers)).matches('<').count(), 1 + MAX_CAUSES);
        assert_eq!(innermost(&chain(&numbers)).to_string(), format!("<{MAX_CAUSES}>"));
    }
}
