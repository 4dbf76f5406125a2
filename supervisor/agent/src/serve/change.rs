//! Requests that change something: how each is recorded. The service records them all, in one place.
//!
//! Nothing of messages, answers, memories, metadata or patterns stands in a record: ids, names of fields, words of the protocol, and
//! whose it is if it is somebody else's.

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

/// How much of an id or a name of a request is recorded: a right one is whole.
const MAX_ID_CHARS: usize = 128;

/// A request that changes something.
pub(super) trait Change {
    /// What comes of it.
    type Answer;

    /// What is done, as the audit log has it.
    fn verb(&self) -> &'static str;

    /// What it is done to; empty if only the answer says that.
    fn subject(&self) -> String;

    /// The session that it concerns.
    fn session(&self) -> Option<&str> {
        None
    }

    /// What the answer says beyond that, such as a number or a new id; empty for nothing.
    fn done(_answer: &Self::Answer) -> String {
        String::new()
    }

    /// Whose it was, as the answer says it; empty if it does not.
    fn owner(_answer: &Self::Answer) -> &str {
        ""
    }
}

/// An id or a name, as a request has it.
fn id(text: &str) -> String {
    text.chars().take(MAX_ID_CHARS).collect()
}

impl Change for CancelRequest {
    type Answer = CancelResponse;

    fn verb(&self) -> &'static str {
        "cancel_turn"
    }

    fn subject(&self) -> String {
        id(&self.session_id)
    }

    fn session(&self) -> Option<&str> {
        Some(&self.session_id)
    }

    fn done(answer: &CancelResponse) -> String {
        if answer.cancelled { String::new() } else { "(there was none)".to_owned() }
    }
}

impl Change for CreateSessionRequest {
    type Answer = Session;

    fn verb(&self) -> &'static str {
        "create_session"
    }

    fn subject(&self) -> String {
        String::new()
    }

    fn done(answer: &Session) -> String {
        answer.id.clone()
    }
}

impl Change for UpdateSessionRequest {
    type Answer = Session;

    fn verb(&self) -> &'static str {
        "update_session"
    }

    fn subject(&self) -> String {
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

impl Change for ResumeSessionRequest {
    type Answer = ResumeSessionResponse;

    fn verb(&self) -> &'static str {
        "resume_session"
    }

    fn subject(&self) -> String {
        id(&self.session_id)
    }

    fn session(&self) -> Option<&str> {
        Some(&self.session_id)
    }
}

impl Change for DeleteSessionRequest {
    type Answer = DeleteSessionResponse;

    fn verb(&self) -> &'static str {
        "delete_session"
    }

    fn subject(&self) -> String {
        id(&self.session_id)
    }

    fn session(&self) -> Option<&str> {
        Some(&self.session_id)
    }
}

impl Change for CompactSessionRequest {
    type Answer = CompactSessionResponse;

    fn verb(&self) -> &'static str {
        "compact_session"
    }

    fn subject(&self) -> String {
        id(&self.session_id)
    }

    fn session(&self) -> Option<&str> {
        Some(&self.session_id)
    }
}

impl Change for UndoTurnsRequest {
    type Answer = UndoTurnsResponse;

    fn verb(&self) -> &'static str {
        "undo_turns"
    }

    fn subject(&self) -> String {
        id(&self.session_id)
    }

    fn session(&self) -> Option<&str> {
        Some(&self.session_id)
    }

    fn done(answer: &UndoTurnsResponse) -> String {
        format!("turns {}", answer.turns)
    }
}

impl Change for SetPlanRequest {
    type Answer = Plan;

    fn verb(&self) -> &'static str {
        "set_plan"
    }

    fn subject(&self) -> String {
        id(&self.session_id)
    }

    fn session(&self) -> Option<&str> {
        Some(&self.session_id)
    }

    fn done(answer: &Plan) -> String {
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

    fn subject(&self) -> String {
        let scope = match self.scope.as_str() {
            scope @ ("session" | "always") => scope,
            _ => "",
        };
        format!("{} {scope}", id(&self.id)).trim_end().to_owned()
    }

    fn done(answer: &Approval) -> String {
        let call = match (answer.plan.is_some(), answer.plugin.is_empty()) {
            (true, _) => "plan".to_owned(),
            (false, true) => "question".to_owned(),
            (false, false) => format!("{}.{}", answer.plugin, answer.action),
        };
        match &*answer.rule_id {
            "" => call,
            rule => format!("{call} rule {rule}"),
        }
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

    fn subject(&self) -> String {
        id(&self.id)
    }

    fn done(answer: &ApprovalRule) -> String {
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

    fn subject(&self) -> String {
        match &self.kind {
            None => String::new(),
            Some(Kind::Id(memory)) => id(memory),
            Some(Kind::Tag(tag)) => format!("tag {}", id(tag)),
            Some(Kind::NotUsedSinceUnixMs(since)) => format!("not_used_since_unix_ms {since}"),
        }
    }

    fn done(answer: &ForgetMemoriesResponse) -> String {
        format!("memories {}", answer.forgotten)
    }
}

impl Change for ForgetSenderRequest {
    type Answer = ForgetSenderResponse;

    fn verb(&self) -> &'static str {
        "forget_sender"
    }

    fn subject(&self) -> String {
        id(&self.sender)
    }

    fn done(answer: &ForgetSenderResponse) -> String {
        format!("sessions {} memories {}", answer.sessions, answer.memories)
    }
}

impl Change for RunJobRequest {
    type Answer = Occurrence;

    fn verb(&self) -> &'static str {
        "run_job"
    }

    fn subject(&self) -> String {
        id(&self.job)
    }
}

impl Change for PauseJobRequest {
    type Answer = Job;

    fn verb(&self) -> &'static str {
        if self.paused { "pause_job" } else { "resume_job" }
    }

    fn subject(&self) -> String {
        id(&self.job)
    }
}

impl Change for DecideJobProposalRequest {
    type Answer = JobProposal;

    fn verb(&self) -> &'static str {
        if self.accept { "accept_job" } else { "reject_job" }
    }

    fn subject(&self) -> String {
        format!("{} sha256:{}", id(&self.job), id(&self.hash))
    }
}

impl Change for RetryNotificationsRequest {
    type Answer = RetryNotificationsResponse;

    fn verb(&self) -> &'static str {
        "retry_notifications"
    }

    fn subject(&self) -> String {
        if self.id.is_empty() { "all".to_owned() } else { id(&self.id) }
    }

    fn done(answer: &RetryNotificationsResponse) -> String {
        format!("notifications {}", answer.notifications)
    }
}

impl Change for TestNotificationRequest {
    type Answer = Notification;

    fn verb(&self) -> &'static str {
        "test_notification"
    }

    fn subject(&self) -> String {
        id(&self.entry)
    }
}

impl Change for TestExtensionRequest {
    type Answer = TestExtensionResponse;

    fn verb(&self) -> &'static str {
        "test_extension"
    }

    fn subject(&self) -> String {
        format!("{} {}", id(&self.role), id(&self.entry)).trim().to_owned()
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

    fn subject(&self) -> String {
        id(&self.id)
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

    fn subject(&self) -> String {
        // Paths of people's repositories are theirs.
        if self.repository.is_empty() { String::new() } else { "one repository".to_owned() }
    }
}
