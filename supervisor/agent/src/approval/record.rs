//! One parked call, as it is kept.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use talon_proto::agent;
use talon_store::Timestamp;
use ulid::Ulid;

use super::policy::{Asked, Why};
use crate::driver::Caller;

/// Arguments of a parked call. Nobody reads more before saying yes; a longer call is denied at once with a sentence. A rule that says
/// `never` for its action lets it run without being shown.
pub(super) const MAX_SHOWN_BYTES: usize = 256 * 1024;
/// What of each argument of a decided call stays: enough to know it again. The digest is that of all of it.
const MAX_DECIDED_ARGUMENT_BYTES: usize = 1024;

/// How it stands with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// Nobody has said anything.
    Pending,
    /// It may be made.
    Approved,
    /// It was let through: somebody was told that it may be made.
    Taken,
    /// It may not.
    Denied,
    /// Nobody said anything for too long.
    Expired,
    /// Its turn is over.
    Cancelled,
}

impl State {
    /// The word on the wire. Whether an approval was made use of is the loop's affair.
    fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved | Self::Taken => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A parked call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// A ULID, so that ids sort by age.
    pub(super) id: String,
    /// Which call it is.
    pub(super) call: Identity,
    pub(super) sender: String,
    pub(super) plugin: String,
    pub(super) action: String,
    pub(super) args: BTreeMap<String, String>,
    pub(super) why: String,
    pub(super) state: State,
    pub(super) asked_at: Timestamp,
    pub(super) expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) decided_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) decided_at: Option<Timestamp>,
    /// With a denial.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
}

/// By what a call is known again after a restart. The digest is part of it: an id says nothing about what is called, and models give
/// the same one twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) session: String,
    pub(super) turn: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) subagent: String,
    pub(super) call_id: String,
    pub(super) digest: String,
}

impl Identity {
    pub(super) fn of(
        caller: &Caller,
        call_id: &str,
        plugin: &str,
        action: &str,
        args: &BTreeMap<String, String>,
    ) -> Self {
        Self {
            session: caller.session.clone(),
            turn: caller.turn,
            subagent: caller.subagent.clone(),
            call_id: call_id.to_owned(),
            digest: digest(plugin, action, args),
        }
    }
}

/// SHA-256 over plugin, action and arguments, in hex. Each piece has its length in front, so that no text of one can pass for the
/// beginning of the next.
#[must_use]
pub fn digest(plugin: &str, action: &str, args: &BTreeMap<String, String>) -> String {
    let mut hash = Sha256::new();
    let mut piece = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    piece(plugin);
    piece(action);
    for (name, value) in args {
        piece(name);
        piece(value);
    }
    hex::encode(hash.finalize())
}

impl Record {
    /// A call that asks; `None` if nobody could read it.
    pub(super) fn new(
        caller: &Caller,
        call_id: &str,
        asked: Asked<'_>,
        why: &Why,
        expires_after: Duration,
    ) -> Option<Self> {
        let Asked { plugin, action, args, .. } = asked;
        let bytes: usize = args.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > MAX_SHOWN_BYTES {
            return None;
        }
        let asked_at = Timestamp::now();
        let expires = i64::try_from(expires_after.as_millis()).unwrap_or(i64::MAX);
        Some(Self {
            id: Ulid::generate().to_string(),
            call: Identity::of(caller, call_id, plugin, action, args),
            sender: caller.sender.clone(),
            plugin: plugin.to_owned(),
            action: action.to_owned(),
            args: args.clone(),
            why: why.to_string(),
            state: State::Pending,
            asked_at,
            expires_at: Timestamp::from_millis(asked_at.as_millis().saturating_add(expires)),
            decided_by: String::new(),
            decided_at: None,
            reason: String::new(),
        })
    }

    /// On the wire, for people.
    pub(super) fn shown(&self) -> agent::Approval {
        let millis = |time: Timestamp| time.as_millis().unsigned_abs();
        agent::Approval {
            id: self.id.clone(),
            session_id: self.call.session.clone(),
            sender: self.sender.clone(),
            plugin: self.plugin.clone(),
            action: self.action.clone(),
            args: self.args.clone(),
            why: self.why.clone(),
            state: self.state.word().to_owned(),
            asked_unix_ms: millis(self.asked_at),
            expires_unix_ms: millis(self.expires_at),
            decided_by: self.decided_by.clone(),
            decided_unix_ms: self.decided_at.map(millis).unwrap_or_default(),
            subagent: self.call.subagent.clone(),
            digest: self.call.digest.clone(),
        }
    }

    /// In another state. What was decided need not be shown whole any more, and there may be many.
    pub(super) fn turned(&self, state: State, by: &str, reason: &str) -> Self {
        let mut next = Self { state, ..self.clone() };
        if state != State::Taken {
            next.decided_by = by.to_owned();
            next.reason = reason.to_owned();
            next.decided_at = Some(Timestamp::now());
        }
        for value in next.args.values_mut() {
            let kept = value.floor_char_boundary(MAX_DECIDED_ARGUMENT_BYTES);
            if kept < value.len() {
                let left_out = value.len() - kept;
                value.truncate(kept);
                value.push_str(&format!("… [{left_out} bytes more]"));
            }
        }
        next
    }
}
