//! Which messages were sent, kept over the end of the plugin: one that may have been sent is looked for before it is sent again. Slack itself
//! does not tell two attempts apart.

use std::collections::{HashSet, VecDeque};

use serde::{Deserialize, Serialize};
use talon_sdk::{State, StateError};
use tokio::sync::Mutex;

/// Where it is kept.
const KEY: &str = "sends";
/// How many messages are known, the latest ones. 128, of some hundred bytes each: the agent repeats what it sent last, at most one message of
/// each conversation.
const MAX_SENDS: usize = 128;

/// The latest messages.
#[derive(Default)]
pub(crate) struct SendLog {
    /// As they are stored; `None` until they were read.
    sends: Mutex<Option<VecDeque<SendAttempt>>>,
    /// Those that are being sent.
    under_way: parking_lot::Mutex<HashSet<String>>,
}

/// The right to send a message: nobody else sends it meanwhile.
pub(crate) struct SendClaim<'l> {
    log: &'l SendLog,
    id: String,
}

impl Drop for SendClaim<'_> {
    fn drop(&mut self) {
        self.log.under_way.lock().remove(&self.id);
    }
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SendAttempt {
    id: String,
    /// When it was begun, in seconds since 1970.
    began: u64,
    /// How many bytes of the text it had; `None` while that is not known.
    sent: Option<usize>,
}

/// What is known of a message that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EarlierSend {
    /// Nobody tried.
    None,
    /// It may have been sent, at this time or later.
    Uncertain(u64),
    /// So many bytes were sent.
    Sent(usize),
}

impl SendLog {
    /// Claims a message; `None` while it is being sent: by a call whose caller was killed.
    pub(crate) fn claim(&self, id: &str) -> Option<SendClaim<'_>> {
        self.under_way.lock().insert(id.to_owned()).then(|| SendClaim { log: self, id: id.to_owned() })
    }

    /// Notes that a message is about to be sent, and says what is known of it.
    pub(crate) async fn begin(&self, state: &State, id: &str, now: u64) -> Result<EarlierSend, StateError> {
        let mut log = self.sends.lock().await;
        if log.is_none() {
            *log = Some(state.get_json(KEY).await?.unwrap_or_default());
        }
        let sends = log.get_or_insert_default();
        if let Some(earlier) = sends.iter().find(|attempt| attempt.id == id) {
            return Ok(earlier.sent.map_or(EarlierSend::Uncertain(earlier.began), EarlierSend::Sent));
        }
        sends.push_back(SendAttempt { id: id.to_owned(), began: now, sent: None });
        shorten(sends);
        if let Err(error) = state.set_json(KEY, &*sends).await {
            // It is not sent: nobody would know of it.
            sends.retain(|attempt| attempt.id != id);
            return Err(error);
        }
        Ok(EarlierSend::None)
    }

    /// Notes that a message was sent, or that it was not.
    pub(crate) async fn settle(
        &self,
        state: &State,
        id: &str,
        sent: Option<usize>,
    ) -> Result<(), StateError> {
        let mut log = self.sends.lock().await;
        let Some(sends) = &mut *log else { return Ok(()) };
        match sent {
            Some(_) => {
                sends.iter_mut().filter(|attempt| attempt.id == id).for_each(|attempt| attempt.sent = sent)
            }
            None => sends.retain(|attempt| attempt.id != id),
        }
        state.set_json(KEY, &*sends).await
    }
}

/// Forgets the earliest, at first of those that were sent.
fn shorten(sends: &mut VecDeque<SendAttempt>) {
    while sends.len() > MAX_SENDS {
        let sent = sends.iter().position(|attempt| attempt.sent.is_some());
        sends.remove(sent.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-287
    #[test]
    fn a_message_is_sent_by_one_call_at_a_time() {
        let log = SendLog::default();
        let claim = log.claim("m1");
        assert!(claim.is_some() && log.claim("m1").is_none() && log.claim("m2").is_some());
        drop(claim);
        assert!(log.claim("m1").is_some());
    }

    // Promises: GW-287
    #[test]
    fn what_is_uncertain_is_forgotten_last() {
        let attempt = |number: usize, sent| SendAttempt { id: number.to_string(), began: 1, sent };
        let mut sends: VecDeque<_> =
            (0..MAX_SENDS + 2).map(|number| attempt(number, (number != 0).then_some(1))).collect();
        shorten(&mut sends);
        assert_eq!(sends.len(), MAX_SENDS);
        assert_eq!((sends[0].id.as_str(), sends[1].id.as_str()), ("0", "3"));
        let mut uncertain: VecDeque<_> = (0..=MAX_SENDS).map(|number| attempt(number, None)).collect();
        shorten(&mut uncertain);
        assert_eq!((uncertain.len(), uncertain[0].id.as_str()), (MAX_SENDS, "1"));
    }
}
