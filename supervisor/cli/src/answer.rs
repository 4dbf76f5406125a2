//! Prints the answer to a call and returns its exit code; shared by `call` and `exec`.

use anstyle::AnsiColor;
use talon_guard::Wrapped;
use talon_proto::host::{ExecuteResponse, Outcome};
use talon_sanitize::{Raw, Sanitized, Sanitizer, sanitized};

use crate::exit;
use crate::json;
use crate::line::{Line, sanitized_line};
use crate::output::Output;

/// Prints a guarded answer.
///
/// `raw` prints only the content and moves an error to stderr. The guard has already sanitized content and
/// error. They are sanitized again, which changes nothing, because a plain string does not prove that it went
/// through the guard.
pub(crate) fn print(answer: &ExecuteResponse, raw: bool, out: &mut Output) -> u8 {
    let block = Wrapped::parse(&answer.block, &Sanitizer::default());
    if out.is_json() {
        let value = json::answer(answer);
        match &block {
            Some(block) => out.json_with_block(&value, json::BLOCK, block),
            None => out.json(&value),
        }
        return code(answer);
    }
    if raw {
        out.text(&Raw::from(&answer.content).text());
        if !answer.error.is_empty() {
            let error = Raw::from(&answer.error).text();
            out.err_line(Line::styled(AnsiColor::Red.on_default(), "error:").and(" ").and(error));
        }
    } else if let Some(block) = &block {
        out.block(block);
    } else {
        out.text(&Raw::from(&answer.block).text());
    }
    let warning = |text: Sanitized| Line::styled(AnsiColor::Yellow.on_default(), "talon:").and(" ").and(text);
    if !raw && block.is_none() {
        out.err_line(warning("the supervisor sent no guarded block; what it sent is shown sanitized".into()));
    }
    if let Some(hint) = hint(answer) {
        out.err_line(warning(hint));
    }
    code(answer)
}

/// The exit code of an outcome.
fn code(answer: &ExecuteResponse) -> u8 {
    match answer.outcome() {
        Outcome::Ok => exit::OK,
        Outcome::ToolError => exit::TOOL_ERROR,
        Outcome::Refused => exit::REFUSED,
        Outcome::HostFault => exit::HOST_FAULT,
        Outcome::Unspecified => exit::FAILED,
    }
}

/// A one-line hint for people about outcomes that did not come from the tool.
fn hint(answer: &ExecuteResponse) -> Option<Sanitized> {
    let what = match answer.outcome() {
        Outcome::Ok | Outcome::ToolError => return None,
        Outcome::Refused => "refused",
        Outcome::HostFault => "host fault",
        Outcome::Unspecified => "an outcome this version does not know",
    };
    let retry = if answer.retryable { ": the same call may succeed a little later" } else { "" };
    Some(sanitized!(
        "{} ({}), call {}{}",
        what,
        sanitized_line(&answer.reason),
        sanitized_line(&answer.call_id),
        retry
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(outcome: Outcome, retryable: bool) -> ExecuteResponse {
        ExecuteResponse {
            outcome: outcome.into(),
            retryable,
            call_id: "01".into(),
            reason: "overloaded".into(),
            ..ExecuteResponse::default()
        }
    }

    // Promises: CLI-1
    #[test]
    fn outcomes_have_their_own_exit_codes() {
        let codes: Vec<u8> = [Outcome::Ok, Outcome::ToolError, Outcome::Refused, Outcome::HostFault]
            .map(|outcome| code(&answer(outcome, false)))
            .to_vec();
        assert_eq!(codes, [exit::OK, exit::TOOL_ERROR, exit::REFUSED, exit::HOST_FAULT]);
    }

    #[test]
    fn only_retryable_answers_suggest_a_retry() {
        assert!(hint(&answer(Outcome::ToolError, false)).is_none());
        assert_eq!(hint(&answer(Outcome::Refused, false)).unwrap(), "refused (overloaded), call 01");
        assert!(hint(&answer(Outcome::Refused, true)).unwrap().contains("a little later"));
    }
}
