//! Decisions on calls that wait for an approval, from within a chat.

use std::time::SystemTime;

use talon_proto::agent::{Approval, DecideRequest};
use talon_sanitize::sanitized;
use tokio::signal::unix::{SignalKind, signal};

use super::conversation::Conversation;
use crate::client::agent::approval::find;
use crate::client::agent::formatting::single_line;
use crate::client::agent::turn::approval::{lines, rule_line};
use crate::client::agent::turn::reply::ApprovalReply;
use crate::client::agent::turn::{LineInput, discard_pending_input};
use crate::confirm;
use crate::exit;
use crate::failure::Failure;

impl Conversation<'_> {
    /// Decides the named call, or the only pending one, and follows the turn that continues after it.
    pub(super) async fn decide(
        &mut self,
        id: Option<String>,
        decision: DecideRequest,
    ) -> Result<(), Failure> {
        let approval = match id {
            Some(id) => find::fetch_one(self.connection, &id).await?,
            None => self.single_pending(decision.approve).await?,
        };
        // A person may only approve what this chat has shown; anything else is shown first.
        if decision.approve && !self.shown_approvals.contains(&approval) {
            for line in lines(&approval, SystemTime::now()) {
                self.out.err_line(line);
            }
            self.shown_approvals.record([&approval]);
            if confirm::is_interactive() && !self.confirm().await? {
                self.out.err_line("nothing was decided");
                return Ok(());
            }
        }
        let plan_revision = approval.plan.as_ref().map_or(0, |plan| plan.revision);
        let request = DecideRequest { id: approval.id, digest: approval.digest, plan_revision, ..decision };
        let decided = self.connection.send_once(async move |mut agent| agent.decide(request).await).await?;
        self.out.err_line(sanitized!("{} {}", single_line(&decided.state), single_line(&decided.id)));
        if !decided.rule_id.is_empty() {
            self.out.err_line(rule_line(&decided));
        }
        if self.session_id.as_deref() == Some(decided.session_id.as_str()) {
            self.attach(decided.session_id).await?;
        }
        Ok(())
    }

    /// Asks for confirmation of what was just shown.
    async fn confirm(&mut self) -> Result<bool, Failure> {
        let failed = |error| Failure::failed(format!("cannot ask: {error}"));
        let mut interrupts = signal(SignalKind::interrupt()).map_err(failed)?;
        discard_pending_input();
        self.out.err_line("Run it, exactly as shown? [y/N]");
        self.out.flush();
        let mut typed = LineInput::start().map_err(failed)?;
        let line = tokio::select! {
            line = typed.line() => line.map_err(failed)?,
            _ = interrupts.recv() => None,
        };
        Ok(line.is_some_and(|line| ApprovalReply::parse(&line) == ApprovalReply::Approve))
    }

    async fn single_pending(&self, approve: bool) -> Result<Approval, Failure> {
        let mut waiting = match &self.session_id {
            Some(id) => self.pending_approvals(id).await?,
            None => Vec::new(),
        };
        let command = if approve { "approve" } else { "deny" };
        match waiting.len() {
            1 => Ok(waiting.remove(0)),
            0 => Err(Failure::new(exit::REFUSED, "no call of this session waits for an approval")),
            _ => {
                let ids: Vec<String> = waiting.iter().map(|one| format!("  /{command} {}", one.id)).collect();
                Err(Failure::new(
                    exit::REFUSED,
                    format!("several calls wait, so say which:\n{}", ids.join("\n")),
                ))
            }
        }
    }
}
