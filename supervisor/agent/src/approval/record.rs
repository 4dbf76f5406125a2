//! The stored form of a parked call.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use talon_arguments::Arguments;
use talon_proto::agent;
use talon_store::Timestamp;
use ulid::Ulid;

use super::policy::ConfirmReason;
use crate::driver::{BatchProgress, CallToConfirm, Caller};
use crate::plan::Plan;
use crate::question::{PluginForm, Question};

/// The largest arguments of a parked call. A person does not review more before approving; a larger call is
/// denied at once. A rule `never` for its action lets it run without approval.
pub(super) const MAX_SHOWN_BYTES: usize = 256 * 1024;
/// What is stored of each argument of a decided call: enough to recognize the call. The digest covers the
/// whole.
const MAX_DECIDED_ARGUMENT_BYTES: usize = 1024;

/// The state of a parked call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ApprovalState {
    /// Not decided yet.
    Pending,
    /// It may be made.
    Approved,
    /// The approval was used: a caller received it.
    Taken,
    /// It may not be made.
    Denied,
    /// Not decided in time.
    Expired,
    /// Its turn is over.
    Cancelled,
}

impl ApprovalState {
    /// The word on the wire. Whether an approval was used concerns the loop alone.
    pub(super) fn word(self) -> &'static str {
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
pub(super) struct ApprovalRecord {
    /// A ULID, so that ids sort by age.
    pub(super) id: String,
    /// Identifies the call.
    pub(super) call: Identity,
    pub(super) sender: String,
    pub(super) plugin: String,
    pub(super) action: String,
    pub(super) args: BTreeMap<String, String>,
    /// The JSON of those arguments that are no strings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) json: BTreeMap<String, String>,
    /// In place of a call: what the model or a plugin asks the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) question: Option<Question>,
    /// The person's answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) answer: String,
    pub(super) why: String,
    pub(super) state: ApprovalState,
    pub(super) asked_at: Timestamp,
    pub(super) expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) decided_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) decided_at: Option<Timestamp>,
    /// The reason of a denial.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
}

/// How a call is recognized after a restart. The digest is part of it: an id does not say what is called, and
/// models use the same id twice.
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
    pub(super) fn of(call: &CallToConfirm<'_>) -> Self {
        Self {
            session: call.caller.session.clone(),
            turn: call.caller.turn,
            subagent: call.caller.subagent.clone(),
            call_id: call.call_id.to_owned(),
            digest: digest(call.plugin, call.action, call.args, call.json),
        }
    }
}

/// SHA-256 over plugin, action and arguments, in hex. Each piece is prefixed with its length, so that pieces
/// cannot be shifted into each other. `json` adds the types of those that are no strings: 7 and "7" are
/// different calls, although their texts are the same.
#[must_use]
pub fn digest(plugin: &str, action: &str, args: &BTreeMap<String, String>, json: &Arguments) -> String {
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
    for (name, json) in json.iter().filter(|(_, json)| !json.starts_with('"')) {
        piece("json");
        piece(name);
        piece(json);
    }
    hex::encode(hash.finalize())
}

/// The JSON of those arguments that are no strings: their texts alone do not say their types.
fn typed_arguments(json: &Arguments) -> BTreeMap<String, String> {
    let typed = json.iter().filter(|(_, json)| !json.starts_with('"'));
    typed.map(|(name, json)| (name.to_owned(), json.to_owned())).collect()
}

impl ApprovalRecord {
    /// Creates the record of a call; `None` if its arguments are too large to review.
    pub(super) fn new(
        call: &CallToConfirm<'_>,
        why: &ConfirmReason,
        expires_after: Duration,
    ) -> Option<Self> {
        let bytes: usize = call.args.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > MAX_SHOWN_BYTES {
            return None;
        }
        Some(Self::build(call, why.to_string(), expires_after))
    }

    fn build(call: &CallToConfirm<'_>, why: String, expires_after: Duration) -> Self {
        let asked_at = Timestamp::now();
        let expires = i64::try_from(expires_after.as_millis()).unwrap_or(i64::MAX);
        Self {
            id: Ulid::generate().to_string(),
            call: Identity::of(call),
            sender: call.caller.sender.clone(),
            plugin: call.plugin.to_owned(),
            action: call.action.to_owned(),
            args: call.args.clone(),
            json: typed_arguments(call.json),
            question: None,
            answer: String::new(),
            why,
            state: ApprovalState::Pending,
            asked_at,
            expires_at: Timestamp::from_millis(asked_at.as_millis().saturating_add(expires)),
            decided_by: String::new(),
            decided_at: None,
            reason: String::new(),
        }
    }

    /// Creates the record of a question to a person.
    pub(super) fn of_question(
        caller: &Caller,
        call_id: &str,
        question: &Question,
        expires_after: Duration,
    ) -> Self {
        let batch = BatchProgress::default();
        let mut args = BTreeMap::from([("question".to_owned(), question.text.clone())]);
        let (plugin, action) = match &question.form {
            None => ("", ""),
            Some(form) => {
                // One call may ask the same twice: the plugin's id tells them apart.
                args.insert("id".to_owned(), form.id.clone());
                args.insert("form".to_owned(), form.schema.clone());
                (form.plugin.as_str(), form.action.as_str())
            }
        };
        let call = CallToConfirm {
            caller,
            call_id,
            plugin,
            action,
            args: &args,
            json: &Arguments::default(),
            read_only: true,
            destructive: Some(false),
            position: batch.position(0),
        };
        let record = Self::build(&call, String::new(), expires_after);
        Self { question: Some(question.clone()), args: BTreeMap::new(), ..record }
    }

    /// What has to be filled in, if a plugin asks.
    pub(super) fn form(&self) -> Option<&PluginForm> {
        self.question.as_ref()?.form.as_ref()
    }

    /// The plan, if the question is whether to carry it out.
    pub(super) fn plan(&self) -> Option<&Plan> {
        self.question.as_ref()?.plan.as_deref()
    }

    /// Takes over the plan as it is now, if it is about a plan.
    pub(super) fn set_plan(&mut self, plan: &Plan) {
        if let Some(shown) = self.question.as_mut().and_then(|question| question.plan.as_deref_mut()) {
            shown.clone_from(plan);
        }
    }

    /// Whether the call asks because of what its action declares, and not of what it says.
    pub(super) fn asks_because_of_declaration(&self) -> bool {
        [ConfirmReason::Declared, ConfirmReason::Undeclared].iter().any(|why| why.to_string() == self.why)
    }

    /// How long it may wait.
    pub(super) fn waiting_time(&self) -> Duration {
        let waited = self.expires_at.as_millis() - self.asked_at.as_millis();
        Duration::from_millis(waited.unsigned_abs())
    }

    /// The word of its state on the wire.
    pub(super) fn state_word(&self) -> &'static str {
        match self.state {
            ApprovalState::Approved | ApprovalState::Taken if self.question.is_some() => "answered",
            state => state.word(),
        }
    }

    /// The message that clients show to people.
    pub(super) fn to_wire(&self) -> agent::Approval {
        let millis = |time: Timestamp| time.as_millis().unsigned_abs();
        agent::Approval {
            id: self.id.clone(),
            session_id: self.call.session.clone(),
            sender: self.sender.clone(),
            plugin: self.plugin.clone(),
            action: self.action.clone(),
            args: self.args.clone(),
            why: self.why.clone(),
            state: self.state_word().to_owned(),
            asked_unix_ms: millis(self.asked_at),
            expires_unix_ms: millis(self.expires_at),
            decided_by: self.decided_by.clone(),
            decided_unix_ms: self.decided_at.map(millis).unwrap_or_default(),
            subagent: self.call.subagent.clone(),
            digest: self.call.digest.clone(),
            question: self.question.as_ref().map(|question| question.text.clone()).unwrap_or_default(),
            choices: self.question.as_ref().map(|question| question.choices.clone()).unwrap_or_default(),
            answer: self.answer.clone(),
            rule_id: String::new(),
            form: self.form().map(|form| form.schema.clone()).unwrap_or_default(),
            plan: self.plan().map(Plan::to_wire),
            call_id: self.call.call_id.clone(),
        }
    }

    /// Returns the record in another state. Decided records are shortened: they need not be shown in full,
    /// and may be many.
    pub(super) fn with_state(&self, state: ApprovalState, by: &str, reason: &str) -> Self {
        let mut next = Self { state, ..self.clone() };
        if state != ApprovalState::Taken {
            next.decided_by = by.to_owned();
            next.reason = reason.to_owned();
            next.decided_at = Some(Timestamp::now());
        }
        for value in next.args.values_mut() {
            let end = value.floor_char_boundary(MAX_DECIDED_ARGUMENT_BYTES);
            if end < value.len() {
                let left_out = value.len() - end;
                value.truncate(end);
                value.push_str(&format!("… [{left_out} bytes more]"));
            }
        }
        next
    }
}
