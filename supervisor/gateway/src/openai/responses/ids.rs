//! Ids of stored responses and of their parts: they name a session of the agent and a turn in it, so that nothing else has to be stored.

use talon_proto::agent::Message;

use crate::events::ids::agent_session_id;
use crate::random;

/// The ids of the agent's sessions have this many letters and digits.
const SESSION_LETTERS: usize = 26;

/// Which turn of which session a response is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredId {
    pub(super) session: String,
    pub(super) turn: u64,
}

impl StoredId {
    /// Of a session and turn, as the agent names them.
    pub(super) fn new(session: &str, turn: u64) -> Self {
        Self { session: agent_session_id(session).to_owned(), turn }
    }

    /// Reads the id of a response (`resp`), message (`msg`) or call (`fc`); `None` if it is not one of ours.
    pub(super) fn read(prefix: &str, id: &str) -> Option<Self> {
        let mut parts = id.strip_prefix(prefix)?.strip_prefix('_')?.split('_');
        let (session, turn) = (parts.next()?, parts.next()?.parse().ok()?);
        let is_session =
            session.len() == SESSION_LETTERS && session.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_session.then(|| Self { session: session.to_owned(), turn })
    }

    /// The turn after this one; `None` if there is no number for it, which a client may bring about.
    pub(super) fn next(&self) -> Option<Self> {
        Some(Self { session: self.session.clone(), turn: self.turn.checked_add(1)? })
    }

    pub(super) fn response(&self) -> String {
        format!("resp_{}_{}", self.session, self.turn)
    }

    pub(super) fn message(&self) -> String {
        format!("msg_{}_{}", self.session, self.turn)
    }

    pub(super) fn call(&self, place: usize) -> String {
        format!("fc_{}_{}_{place}", self.session, self.turn)
    }

    /// The client's name of the message that this turn answers: by it the turn is found in the session. No request repeats another one.
    pub(super) fn client_id(&self) -> String {
        format!("{}{}", self.client_prefix(), random::id(""))
    }

    fn client_prefix(&self) -> String {
        format!("response-{}-", self.turn)
    }

    /// Whether a message is the one that this turn answers.
    pub(super) fn is_asked_by(&self, message: &Message) -> bool {
        message.role == "user" && message.client_id.starts_with(&self.client_prefix())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-172
    #[test]
    fn an_id_names_a_session_and_a_turn_and_others_are_not_ours() {
        let id = StoredId::new("01ARZ3NDEKTSV4RRFFQ69G5FAV", 3);
        assert_eq!(StoredId::read("resp", &id.response()), Some(id.clone()));
        assert_eq!(StoredId::read("msg", &id.message()), Some(id.clone()));
        assert_eq!(StoredId::read("fc", &id.call(2)), Some(id.clone()));
        assert_eq!(id.next().map(|next| next.turn), Some(4));
        let last = StoredId::read("resp", &StoredId { turn: u64::MAX, ..id.clone() }.response());
        assert_eq!(last.expect("it is of our form").next(), None);
        for other in [
            "",
            "resp_",
            "resp_68a1b2",
            "msg_01ARZ3NDEKTSV4RRFFQ69G5FAV_3",
            "resp_../../x_1",
            "resp_01ARZ3NDEKTSV4RRFFQ69G5FAV_x",
        ] {
            assert_eq!(StoredId::read("resp", other), None, "{other}");
        }
        let asked = Message { role: "user".to_owned(), client_id: id.client_id(), ..Message::default() };
        assert!(id.is_asked_by(&asked));
        assert!(!StoredId::new(&id.session, 33).is_asked_by(&asked) && asked.client_id.len() <= 128);
    }
}
