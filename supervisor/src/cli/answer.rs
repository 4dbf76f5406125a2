//! How the answer to a call is printed, and the exit code it gives; `call` and `exec` share it.

use anstyle::AnsiColor;
use talon_proto::host::{ExecuteResponse, Outcome};

use super::failure::write_stderr;
use super::json;
use super::output::Out;
use crate::exit;

/// Prints a guarded answer. Its texts went through the guard, so they are printed as they are.
///
/// `raw` prints the content alone and moves an error to stderr.
pub(super) fn print(answer: &ExecuteResponse, raw: bool, out: &mut Out) -> u8 {
    if out.is_json() {
        out.json(&json::answer(answer));
        return code(answer);
    }
    if raw {
        out.block(&answer.content);
        if !answer.error.is_empty() {
            out.flush();
            let head = out.paint_error(AnsiColor::Red.on_default(), "error:");
            write_stderr(format_args!("{head} {}\n", answer.error));
        }
    } else {
        out.block(&answer.block);
    }
    if let Some(hint) = hint(answer) {
        out.flush();
        let head = out.paint_error(AnsiColor::Yellow.on_default(), "talon:");
        write_stderr(format_args!("{head} {}\n", out.clean(&hint)));
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

/// One line for people about outcomes that are not the tool's own.
fn hint(answer: &ExecuteResponse) -> Option<String> {
    let what = match answer.outcome() {
        Outcome::Ok | Outcome::ToolError => return None,
        Outcome::Refused => "refused",
        Outcome::HostFault => "host fault",
        Outcome::Unspecified => "an outcome this version does not know",
    };
    let retry = if answer.retryable { ": the same call may succeed a little later" } else { "" };
    Some(format!("{what} ({}), call {}{retry}", answer.reason, answer.call_id))
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

    #[test]
    fn outcomes_have_their_own_exit_codes() {
        let codes: Vec<u8> = [Outcome::Ok, Outcome::ToolError, Outcome::Refused, Outcome::HostFault]
            .map(|outcome| code(&answer(outcome, false)))
            .to_vec();
        assert_eq!(codes, [exit::OK, exit::TOOL_ERROR, exit::REFUSED, exit::HOST_FAULT]);
    }

    #[test]
    fn only_retryable_answers_suggest_a_retry() {
        assert_eq!(hint(&answer(Outcome::ToolError, false)), None);
        assert_eq!(hint(&answer(Outcome::Refused, false)).unwrap(), "refused (overloaded), call 01");
        assert!(hint(&answer(Outcome::Refused, true)).unwrap().contains("a little later"));
    }
}
