//! Requests that change something: how each is recorded. The service records them all, in one place.
//!
//! Nothing of messages, answers, memories, tags, metadata or patterns stands in a record: ids, known names, names of fields, words of
//! the protocol, and whose it is if it is somebody else's.

use talon_proto::agent::forget_memories_request::Kind;
use talon_proto::agent::{
    Approval, ApprovalRule, CancelRequest, CancelResponse, CompactSessionRequest, CompactSessionResponse,
    CreateSessionRequest, DecideGhostRequest, DecideJobProposalRequest, DecideRequest, DeleteSessionRequest,
    DeleteSessionResponse, ForgetMemoriesRequest, ForgetMemoriesResponse, ForgetSenderRequest,
    ForgetSenderResponse, Ghost, Job, JobProposal, Notification, Occurrence, PauseJobRequest,
    PauseShadowRequest, Plan, ResumeSessionRequest, ResumeSessionResponse, RetryNotificationsRequest,
    RetryNotificationsResponse, RevokeApprovalRuleRequest, RunJobRequest, Session, SetPlanRequest,
    ShadowState, TestExtensionRequest, TestExtensionResponse, TestNotificationRequest, UndoTurnsRequest,
    UndoTurnsResponse, UpdateSessionRequest,
};
use tonic::Status;

use super::known_names::KnownNames;
use crate::operations::{OperationOutcome, decided_subject, digest, id};

/// A request that changes something.
pub(super) trait Change {
    /// What comes of it.
    type Answer;

    /// What is done, as the audit log has it.
    fn verb(&self) -> &'static str;

    /// The session that it concerns.
    fn session(&self) -> Option<&str> {
        None
    }

    /// What it is done to, its session unless it says otherwise; empty if only the answer says that.
    fn subject(&self, _names: &KnownNames<'_>) -> String {
        self.session().map(id).unwrap_or_default().to_owned()
    }

    /// What the answer says beyond that, such as a number or a new id; empty for nothing.
    fn answer_subject(_answer: &Self::Answer) -> String {
        String::new()
    }

    /// What became of it.
    fn outcome(refusal: Option<&Status>) -> OperationOutcome {
        OperationOutcome::of(refusal)
    }

    /// Whose it was, as the answer says it; empty if it does not.
    fn owner(_answer: &Self::Answer) -> &str {
        ""
    }
}

impl Change for CancelRequest {
    type Answer = CancelResponse;

    fn verb(&self) -> &'static str {
        "cancel_turn"
    }

    fn session(&self) -> Option<&str> {
        Some(&self.session_id)
    }

    fn answer_subject(answer: &CancelResponse) -> String {
        if answer.cancelled { String::new() } else { "(there was none)".to_owned() }
    }
}

impl Change for CreateSessionRequest {
    type Answer = Session;

    fn verb(&self) -> &'static str {
        "create_session"
    }

    fn answer_subject(answer: &Session) -> String {
        answer.id.clone()
    }
}

impl Change for UpdateSessionRequest {
    type Answer = Session;

    fn verb(&self) -> &'static str {
        "update_session"
    }

    fn subject(&self, _names: &KnownNames<'_>) -> String {
        let fields = [
            ("model", self.model.is_some()),
            ("thinking", self.thinking.is_some()),
            ("tools", self.tools.is_some()),
            ("local_only", self.local_only.is_some()),
            ("sampling", self.sampling.is_some()),
            ("verbosity", self.verbosity.is_some()),
            // A key of a client's own may say anything.
            ("metadata", !self.metadata.is_empty()),
            ("verbose", self.verbose.is_some()),
        ];
        let set: Vec<&str> = fields.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect();
        format!("{} {}", id(&self.session_id), set.join(",")).trim_end().to_owned()
    }

    fn session(&self) -> Option<&str> {
        Some(&self.session_id)
    }
}

/// Requests to a session of which nothing more is recorded.
macro_rules! session_changes {
    ($($request:ident $answer:ident $verb:literal;)*) => {
        $(
            impl Change for $request {
                type Answer = $answer;

                fn verb(&self) -> &'static str {
                    $verb
                }

                fn session(&self) -> Option<&str> {
                    Some(&self.session_id)
                }
            }
        )*
    };
}

session_changes! {
    ResumeSessionRequest ResumeSessionResponse "resume_session";
    DeleteSessionRequest DeleteSessionResponse "delete_session";
    CompactSessionRequest CompactSessionResponse "compact_session";
}

impl Change for UndoTurnsRequest {
    type Answer = UndoTurnsResponse;

    fn verb(&self) -> &'static str {
        "undo_turns"
    }

    fn session(&self) -> Option<&str> {
        Some(&self.session_id)
    }

    fn answer_subject(answer: &UndoTurnsResponse) -> String {
        format!("turns {}", answer.turns)
    }
}

impl Change for SetPlanRequest {
    type Answer = Plan;

    fn verb(&self) -> &'static str {
        "set_plan"
    }

    fn session(&self) -> Option<&str> {
        Some(&self.session_id)
    }

    fn answer_subject(answer: &Plan) -> String {
        format!("revision {}", answer.revision)
    }
}

impl Change for DecideRequest {
    type Answer = Approval;

    fn verb(&self) -> &'static str {
        match (self.approve, self.answer.is_empty()) {
            (true, true) => "allow_approval",
            (true, false) => "answer_approval",
            (false, _) => "deny_approval",
        }
    }

    fn subject(&self, _names: &KnownNames<'_>) -> String {
        let scope = match self.scope.as_str() {
            scope @ ("session" | "always") => scope,
            _ => "",
        };
        format!("{} {scope}", id(&self.id)).trim_end().to_owned()
    }

    fn answer_subject(answer: &Approval) -> String {
        decided_subject(answer)
    }

    fn owner(answer: &Approval) -> &str {
        &answer.sender
    }
}

impl Change for RevokeApprovalRuleRequest {
    type Answer = ApprovalRule;

    fn verb(&self) -> &'static str {
        "revoke_approval_rule"
    }

    fn subject(&self, _names: &KnownNames<'_>) -> String {
        id(&self.id).to_owned()
    }

    fn answer_subject(answer: &ApprovalRule) -> String {
        format!("{}.{}", answer.plugin, answer.action)
    }

    fn owner(answer: &ApprovalRule) -> &str {
        &answer.sender
    }
}

impl Change for ForgetMemoriesRequest {
    type Answer = ForgetMemoriesResponse;

    fn verb(&self) -> &'static str {
        "forget_memories"
    }

    fn subject(&self, _names: &KnownNames<'_>) -> String {
        match &self.kind {
            None => String::new(),
            Some(Kind::Id(memory)) => id(memory).to_owned(),
            // A tag may say anything, and few words are found by their digest.
            Some(Kind::Tag(_)) => "by tag".to_owned(),
            Some(Kind::NotUsedSinceUnixMs(since)) => format!("not_used_since_unix_ms {since}"),
        }
    }

    fn answer_subject(answer: &ForgetMemoriesResponse) -> String {
        format!("memories {}", answer.forgotten)
    }
}

impl Change for ForgetSenderRequest {
    type Answer = ForgetSenderResponse;

    fn verb(&self) -> &'static str {
        "forget_sender"
    }

    fn subject(&self, names: &KnownNames<'_>) -> String {
        names.sender(&self.sender).to_owned()
    }

    fn answer_subject(answer: &ForgetSenderResponse) -> String {
        format!("sessions {} memories {}", answer.sessions, answer.memories)
    }

    fn outcome(refusal: Option<&Status>) -> OperationOutcome {
        OperationOutcome::of_steps(refusal)
    }
}

impl Change for RunJobRequest {
    type Answer = Occurrence;

    fn verb(&self) -> &'static str {
        "run_job"
    }

    fn subject(&self, names: &KnownNames<'_>) -> String {
        names.job(&self.job).to_owned()
    }
}

impl Change for PauseJobRequest {
    type Answer = Job;

    fn verb(&self) -> &'static str {
        if self.paused { "pause_job" } else { "resume_job" }
    }

    fn subject(&self, names: &KnownNames<'_>) -> String {
        names.job(&self.job).to_owned()
    }
}

impl Change for DecideJobProposalRequest {
    type Answer = JobProposal;

    fn verb(&self) -> &'static str {
        if self.accept { "accept_job" } else { "reject_job" }
    }

    fn subject(&self, names: &KnownNames<'_>) -> String {
        format!("{} sha256:{}", names.proposed_job(&self.job), digest(&self.hash))
    }
}

impl Change for RetryNotificationsRequest {
    type Answer = RetryNotificationsResponse;

    fn verb(&self) -> &'static str {
        "retry_notifications"
    }

    fn subject(&self, _names: &KnownNames<'_>) -> String {
        if self.id.is_empty() { "all".to_owned() } else { id(&self.id).to_owned() }
    }

    fn answer_subject(answer: &RetryNotificationsResponse) -> String {
        format!("notifications {}", answer.notifications)
    }
}

impl Change for TestNotificationRequest {
    type Answer = Notification;

    fn verb(&self) -> &'static str {
        "test_notification"
    }

    fn subject(&self, names: &KnownNames<'_>) -> String {
        names.notification_entry(&self.entry).to_owned()
    }
}

impl Change for TestExtensionRequest {
    type Answer = TestExtensionResponse;

    fn verb(&self) -> &'static str {
        "test_extension"
    }

    fn subject(&self, names: &KnownNames<'_>) -> String {
        names.extension(&self.role, &self.entry)
    }
}

impl Change for DecideGhostRequest {
    type Answer = Ghost;

    fn verb(&self) -> &'static str {
        match self.decision.as_str() {
            "approve" => "approve_ghost",
            "dismiss" => "dismiss_ghost",
            "snooze" => "snooze_ghost",
            _ => "decide_ghost",
        }
    }

    fn subject(&self, _names: &KnownNames<'_>) -> String {
        id(&self.id).to_owned()
    }

    fn owner(answer: &Ghost) -> &str {
        &answer.sender
    }
}

impl Change for PauseShadowRequest {
    type Answer = ShadowState;

    fn verb(&self) -> &'static str {
        if self.paused { "pause_shadow" } else { "resume_shadow" }
    }

    fn subject(&self, _names: &KnownNames<'_>) -> String {
        // Paths of people's repositories are theirs.
        if self.repository.is_empty() { String::new() } else { "one repository".to_owned() }
    }
}
