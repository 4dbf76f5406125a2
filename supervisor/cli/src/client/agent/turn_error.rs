//! A turn without an answer, for people.

use talon_proto::agent::{Attempt, Error};
use talon_sanitize::sanitized;

use super::formatting::{exit_code, single_line};
use crate::failure::Failure;
use crate::output::Output;

/// Prints why there is no answer and which attempts were made; returns the exit code.
pub(super) fn print_error(error: &Error, out: &mut Output) -> u8 {
    let failure = Failure::new(exit_code(&error.reason), error_summary(error));
    out.failure(&failure);
    for (attempt, times) in distinct_attempts(&error.attempts) {
        let how = match attempt.success {
            true => "answered".into(),
            false => sanitized!("{}: {}", single_line(&attempt.error_class), single_line(&attempt.error)),
        };
        let often = if times > 1 { sanitized!(" ({} times)", times) } else { "".into() };
        out.err_line(sanitized!(
            "  {}/{}: {}{}",
            single_line(&attempt.provider),
            single_line(&attempt.model),
            how,
            often
        ));
    }
    failure.code()
}

/// The agent's error message without repetition: drops a prefix that occurs twice, and the attempts if they
/// get their own lines.
fn error_summary(error: &Error) -> String {
    /// What introduces the attempts, which end the message.
    const ATTEMPTS: &str = ". Tried: ";
    let mut message = error.message.as_str();
    if let Some((lead, rest)) = message.split_once(": ")
        && rest.get(..lead.len()).is_some_and(|again| again.eq_ignore_ascii_case(lead))
    {
        message = rest;
    }
    if !error.attempts.is_empty()
        && let Some((why, _)) = message.split_once(ATTEMPTS)
    {
        message = why;
    }
    let mut letters = message.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

/// Attempts that differ in more than duration and cost, in order, each with how often it occurred.
fn distinct_attempts(attempts: &[Attempt]) -> Vec<(&Attempt, usize)> {
    let said = |one: &Attempt| {
        let Attempt { provider, model, success, error_class, error, .. } = one.clone();
        (provider, model, success, error_class, error)
    };
    let mut apart: Vec<(&Attempt, usize)> = Vec::new();
    for attempt in attempts {
        match apart.iter_mut().find(|(known, _)| said(known) == said(attempt)) {
            Some((_, times)) => *times += 1,
            None => apart.push((attempt, 1)),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(model: &str, error: &str, latency_ms: u64) -> Attempt {
        Attempt {
            provider: "dead".into(),
            model: model.into(),
            error: error.into(),
            latency_ms,
            ..Attempt::default()
        }
    }

    #[test]
    fn a_failure_is_told_once() {
        let of = |message: &str, attempts| Error { message: message.into(), attempts, ..Error::default() };
        let tried = vec![attempt("m", "refused", 1), attempt("m", "refused", 2)];
        for (message, attempts, wanted) in [
            (
                "No model answered: no model answered. Tried: dead/m (network: refused); dead/m (network: refused)",
                tried,
                "No model answered",
            ),
            (
                "No model answered: first/a was asked for and rests",
                vec![],
                "No model answered: first/a was asked for and rests",
            ),
            (
                "No model answered: no model answered within 4 min. Tried: dead/m",
                vec![],
                "No model answered within 4 min. Tried: dead/m",
            ),
            ("", vec![], ""),
        ] {
            assert_eq!(error_summary(&of(message, attempts)), wanted);
        }
    }

    #[test]
    fn attempts_that_are_alike_are_counted() {
        let attempts = [
            attempt("m", "refused", 1),
            attempt("n", "refused", 1),
            attempt("m", "refused", 2),
            attempt("m", "timeout", 3),
        ];
        let apart: Vec<(&str, &str, usize)> = distinct_attempts(&attempts)
            .iter()
            .map(|(one, times)| (one.model.as_str(), one.error.as_str(), *times))
            .collect();
        assert_eq!(apart, [("m", "refused", 2), ("n", "refused", 1), ("m", "timeout", 1)]);
    }
}
