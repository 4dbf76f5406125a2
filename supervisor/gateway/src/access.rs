//! Which caller may use which session, and what needs which scope. Host and agent check the same again by role and subject; what a
//! credential narrows beyond that is checked here alone.

use tonic::{Code, Status};

use crate::events::ids::agent_session_id;
use crate::identity::{Caller, Scope};
use crate::problem::{Problem, ProblemKind};

/// The longest id that is passed on to host or agent.
const MAX_ID_BYTES: usize = 128;

/// Refuses a caller that may not talk: without the scopes `chat` and `channel`, and without a higher one.
pub(crate) fn require_chat(caller: &Caller) -> Result<(), Problem> {
    if caller.scopes.contain(Scope::Channel) || caller.scopes.contain(Scope::Operate) {
        return Ok(());
    }
    caller.require(Scope::Chat)
}

/// Refuses a caller that may not look at what it runs on.
pub(crate) fn require_operate(caller: &Caller) -> Result<(), Problem> {
    caller.require(Scope::Operate)
}

/// The agent's id of the session that a client names.
///
/// # Errors
/// [`no_session`] if the caller's credential is for another one, as if that one were not there.
pub(crate) fn session<'i>(caller: &Caller, id: &'i str) -> Result<&'i str, Problem> {
    require_chat(caller)?;
    let id = agent_session_id(id);
    let is_id =
        !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_open = caller.session.as_deref().is_none_or(|only| agent_session_id(only) == id);
    if is_id && is_open { Ok(id) } else { Err(no_session()) }
}

/// Of a session that is not there, and of one that is somebody else's: a client cannot tell which.
pub(crate) fn no_session() -> Problem {
    Problem::new(ProblemKind::NotFound, "there is no such session: GET /api/sessions lists yours")
}

/// What a refusal of the agent about a session becomes.
pub(crate) fn of_session(status: Status) -> Problem {
    match status.code() {
        Code::NotFound => no_session(),
        _ => status.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Subject, Via};

    fn caller(scopes: &[Scope], session: Option<&str>) -> Caller {
        Caller {
            subject: Subject::of("token", "t1").unwrap(),
            scopes: scopes.iter().copied().collect(),
            channel: "api".into(),
            session: session.map(Into::into),
            via: Via::Token("t1".into()),
        }
    }

    // Promises: GW-101
    #[test]
    fn a_session_that_is_closed_to_a_caller_is_as_one_that_is_not_there() {
        let bound = caller(&[Scope::Chat], Some("01A"));
        assert_eq!(session(&bound, "sess_01A").unwrap(), "01A");
        let closed = session(&bound, "sess_01B").unwrap_err();
        assert_eq!(closed, of_session(Status::not_found("there is no session 01B of you")));
        for none in ["", "sess_", "../x", "a b", &"a".repeat(200)] {
            assert_eq!(session(&caller(&[Scope::Chat], None), none).unwrap_err(), closed, "{none:.20}");
        }
        let refused = session(&caller(&[Scope::Approve], None), "01A").unwrap_err();
        assert_eq!(refused.kind(), ProblemKind::Forbidden);
    }
}
