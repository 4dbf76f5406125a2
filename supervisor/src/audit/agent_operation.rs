//! Operations of clients of the agent, and of the agent itself, as it reports them.
//!
//! It had its clients from here, and it is believed: an agent that was taken over could do all that its clients may.

use talon_audit::record::{Body, Caller, Operation as Record};
use talon_proto::agent::{Operation, OperationClient};

use super::Audit;
use crate::service::sanitize_report;

/// The longest verb.
const MAX_VERB_BYTES: usize = 32;

/// The process of the agent that reports something, for people who write over channels: they have no connection of their own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AgentProcess {
    pub(crate) uid: u32,
    pub(crate) pid: u32,
}

/// The agent reports what this version does not know.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OperationError {
    #[error("its verb is none")]
    Verb,
    #[error("its outcome is none")]
    Outcome,
}

impl Audit {
    /// Records what the agent reports.
    ///
    /// # Errors
    /// [`OperationError`]: it is not recorded.
    pub(crate) fn agent_operation(
        &self,
        agent: AgentProcess,
        operation: &Operation,
    ) -> Result<(), OperationError> {
        let record = record(agent, operation)?;
        if let Some(on) = &self.0 {
            on.log.record_now(Body::operation(record));
        }
        Ok(())
    }
}

fn record(agent: AgentProcess, operation: &Operation) -> Result<Record, OperationError> {
    let Operation { client, verb, subject, outcome, problem, duration_us } = operation;
    let is_verb = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    if verb.is_empty() || verb.len() > MAX_VERB_BYTES || !verb.bytes().all(is_verb) {
        return Err(OperationError::Verb);
    }
    let line = |text: &str| sanitize_report(text).into_string();
    Ok(Record {
        who: client.as_ref().map(|client| caller(agent, client)),
        verb: verb.clone(),
        subject: line(subject),
        outcome: known(outcome, ["done", "denied", "failed", "unknown"]).ok_or(OperationError::Outcome)?,
        reason: line(problem),
        duration_us: *duration_us,
    })
}

fn caller(agent: AgentProcess, client: &OperationClient) -> Caller {
    let OperationClient { uid, gid, pid, role, origin, subject } = client;
    // Over a channel: what such a person may is what the role call may.
    let (uid, gid, pid, role) = match role.as_str() {
        "" => (agent.uid, agent.uid, agent.pid, "call"),
        role => (*uid, *gid, *pid, known(role, ["call", "operate", "admin"]).unwrap_or("unknown")),
    };
    Caller {
        uid,
        gid,
        pid,
        role,
        origin: known(origin, ["person", "model", "program"]).unwrap_or("unknown"),
        subject: Some(sanitize_report(subject).into_string()).filter(|subject| !subject.is_empty()),
    }
}

/// The word itself, if it is one of these.
fn known<const N: usize>(word: &str, words: [&'static str; N]) -> Option<&'static str> {
    words.into_iter().find(|known| *known == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: AgentProcess = AgentProcess { uid: 990, pid: 4 };

    fn operation(verb: &str) -> Operation {
        Operation { verb: verb.to_owned(), outcome: "done".to_owned(), ..Operation::default() }
    }

    // Promises: AUDIT-21
    #[test]
    fn what_is_no_verb_and_no_outcome_is_not_recorded() {
        for verb in ["", "Delete", "delete session", "x\u{1b}[2J", &"x".repeat(MAX_VERB_BYTES + 1)] {
            assert_eq!(record(AGENT, &operation(verb)), Err(OperationError::Verb), "{verb:?}");
        }
        let outcome = Operation { outcome: "mostly".to_owned(), ..operation("delete_session") };
        assert_eq!(record(AGENT, &outcome), Err(OperationError::Outcome));
        assert_eq!(record(AGENT, &operation("delete_session")).unwrap().outcome, "done");
    }

    // Promises: AUDIT-21
    #[test]
    fn its_texts_are_lines_and_who_it_was_is_who_it_was_for() {
        let client = OperationClient {
            uid: 1000,
            gid: 1001,
            pid: 7,
            role: "operate".to_owned(),
            origin: "program".to_owned(),
            subject: "gw:telegram/42".to_owned(),
        };
        let told = Operation {
            client: Some(client.clone()),
            subject: "one\ntwo\u{1b}[2J".to_owned(),
            problem: "why\u{202e}".to_owned(),
            ..operation("delete_session")
        };
        let recorded = record(AGENT, &told).unwrap();
        assert!(!recorded.subject.contains(char::is_control) && !recorded.reason.contains('\u{202e}'));
        let who = recorded.who.unwrap();
        assert_eq!((who.uid, who.gid, who.pid, who.role, who.origin), (1000, 1001, 7, "operate", "program"));
        assert_eq!(who.subject.as_deref(), Some("gw:telegram/42"));
        // Over a channel.
        let client = OperationClient { role: String::new(), ..client };
        let who = record(AGENT, &Operation { client: Some(client), ..told.clone() }).unwrap().who.unwrap();
        assert_eq!((who.uid, who.pid, who.role), (990, 4, "call"));
        let itself = Operation { client: None, ..told };
        assert_eq!(record(AGENT, &itself).unwrap().who, None);
    }
}
