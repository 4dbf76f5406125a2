//! Calls that wait for a person.

use std::collections::BTreeMap;

use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{
    Approval, ApprovalRule, DecideRequest, ListApprovalRulesRequest, ListApprovalRulesResponse,
    ListApprovalsRequest, ListApprovalsResponse, RevokeApprovalRuleRequest,
};
use talon_store::SessionId;
use tonic::Status;

use super::client::{Client, Origin};
use super::service::Service;
use crate::approval::{DecideError, RuleError, RuleScope};
use crate::driver::{APPROVE_PLAN, Listener as _};

impl Service {
    pub(super) async fn list_approvals(
        &self,
        client: &Client,
        request: ListApprovalsRequest,
    ) -> Result<ListApprovalsResponse, Status> {
        let ListApprovalsRequest { all, session_id, everybody } = request;
        if everybody {
            client.require_operator("to see everybody's approvals")?;
        }
        if !session_id.is_empty() {
            self.session(client, &session_id).await?;
        }
        let mut approvals = self.agent.approvals.list(all).await;
        approvals.retain(|approval| {
            if session_id.is_empty() {
                everybody || *approval.sender == *client.sender
            } else {
                approval.session_id == session_id
            }
        });
        Ok(ListApprovalsResponse { approvals })
    }

    pub(super) async fn decide(&self, client: &Client, request: DecideRequest) -> Result<Approval, Status> {
        let DecideRequest { id, approve, digest, reason, mut answer, scope, patterns, plan_revision } =
            request;
        if client.origin != Origin::Person {
            tracing::warn!(client.uid, client.pid, origin = ?client.origin, "a decision that no person made was refused");
            return Err(Status::permission_denied(
                "only a person decides: this connection is a model's or a program's; use `talon approval` by hand",
            ));
        }
        let seen = self.agent.approvals.get(&id).await;
        let setup = self.agent.setup();
        // A group's are decided by whom the operator lists.
        let approves = |group: &str| {
            let keys = setup.settings.agent.groups.get(group);
            keys.is_some_and(|keys| keys.approvers.iter().any(|approver| **approver == *client.sender))
        };
        let theirs = |approval: &Approval| {
            client.is_operator() || *approval.sender == *client.sender || approves(&approval.sender)
        };
        let Some(seen) = seen.filter(theirs) else {
            return Err(decide_error_status(&DecideError::Unknown { id: id.chars().take(40).collect() }));
        };
        if let Some(plan) = seen.plan.filter(|_| approve && answer.is_empty()) {
            if plan_revision > 0 && plan_revision != plan.revision {
                return Err(Status::failed_precondition(
                    "the plan was changed meanwhile, so nothing was approved: look at it again, with `talon session plan`",
                ));
            }
            APPROVE_PLAN.clone_into(&mut answer);
        }
        let (approvals, by) = (&self.agent.approvals, &client.sender);
        let decided = match (scope_of(&scope, &patterns)?, approve) {
            (Some(_), false) => {
                return Err(Status::invalid_argument("a denial is for one call: leave the scope out"));
            }
            (Some(scope), true) => approvals.approve_with_rule(&id, &digest, by, scope, patterns).await,
            (None, true) if !answer.is_empty() => approvals.answer(&id, &answer, by).await,
            (None, _) => approvals.decide(&id, approve, &digest, &reason, by).await,
        };
        let decided = decided.map_err(|error| decide_error_status(&error))?;
        // Clients that follow the turn see the decision.
        let running = SessionId::new(&decided.session_id).ok().and_then(|id| self.agent.turns.get(id));
        if let Some(running) = running {
            running.hub.on_chunk(Kind::Approval(decided.clone()));
        }
        Ok(decided)
    }

    pub(super) async fn list_approval_rules(
        &self,
        client: &Client,
        request: ListApprovalRulesRequest,
    ) -> Result<ListApprovalRulesResponse, Status> {
        if request.everybody {
            client.require_operator("to see everybody's rules")?;
        }
        let sender = (!request.everybody).then_some(&*client.sender);
        Ok(ListApprovalRulesResponse { rules: self.agent.approvals.rules(sender).await })
    }

    pub(super) async fn revoke_approval_rule(
        &self,
        client: &Client,
        request: RevokeApprovalRuleRequest,
    ) -> Result<ApprovalRule, Status> {
        if client.origin != Origin::Person {
            return Err(Status::permission_denied(
                "only a person revokes a rule: this connection is a model's or a program's; use `talon approval revoke` by hand",
            ));
        }
        let sender = (!client.is_operator()).then_some(&*client.sender);
        let revoked = self.agent.approvals.revoke_rule(&request.id, sender).await;
        revoked.map_err(|error| rule_error_status(&error))
    }
}

/// How far a decision reaches; `None` for one call.
fn scope_of(scope: &str, patterns: &BTreeMap<String, String>) -> Result<Option<RuleScope>, Status> {
    match scope {
        "" | "once" if patterns.is_empty() => Ok(None),
        "session" => Ok(Some(RuleScope::Session)),
        "always" => Ok(Some(RuleScope::Always)),
        "" | "once" => Err(Status::invalid_argument("patterns are for the scopes session and always")),
        _ => Err(Status::invalid_argument("the scope is once, session or always")),
    }
}

fn rule_error_status(error: &RuleError) -> Status {
    let text = talon_error_chain::error_chain(error);
    match error {
        RuleError::Unknown { .. } => Status::not_found(text),
        RuleError::NoArgument { .. } | RuleError::Pattern { .. } | RuleError::TooLarge { .. } => {
            Status::invalid_argument(text)
        }
        RuleError::Always { .. } | RuleError::Dangerous { .. } => Status::failed_precondition(text),
        RuleError::TooMany => Status::resource_exhausted(text),
        RuleError::Store(error) => crate::error_status::store_error_status(error),
    }
}

fn decide_error_status(error: &DecideError) -> Status {
    let text = talon_error_chain::error_chain(error);
    match error {
        DecideError::Unknown { .. } => Status::not_found(text),
        DecideError::LongReason { .. } | DecideError::AnswerLength { .. } | DecideError::Form(_) => {
            Status::invalid_argument(text)
        }
        DecideError::Rule(error) => rule_error_status(error),
        DecideError::Decided { .. }
        | DecideError::Expired
        | DecideError::Cancelled
        | DecideError::NeedsAnswer
        | DecideError::NoQuestion
        | DecideError::OtherDigest => Status::failed_precondition(text),
        DecideError::Store(error) => crate::error_status::store_error_status(error),
    }
}
