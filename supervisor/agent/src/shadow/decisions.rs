//! What people decide.

use std::sync::Arc;

use talon_proto::agent::{DecideGhostRequest, Ghost, PauseShadowRequest, ShadowState as WireState};
use talon_shadow_policy::GhostEnd;

use super::error::ShadowError;
use super::goal::{GoalStep, goal_of, session_of};
use super::record::{SenderRecord, unix_ms};
use super::shadow_loop::{APPROVED, DISMISSED, SNOOZED, ShadowLoop, ShadowState, WAITING};

/// How long a ghost is snoozed if nothing is said.
const SNOOZE_MS: u64 = 60 * 60 * 1000;
/// The longest that a ghost is snoozed: what was seen a week ago is another piece of work.
const MAX_SNOOZE_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// The longest rest with an end. A longer one is without.
const MAX_PAUSE_MS: u64 = 30 * 24 * 60 * 60 * 1000;

impl ShadowLoop {
    /// Decides about a ghost, of this sender if one is given. `by` names the person. The goal of one that is approved is on
    /// the disk before its state: its turn begins, whatever happens.
    ///
    /// # Errors
    /// [`ShadowError`]; nothing was decided.
    pub(crate) async fn decide(
        self: &Arc<Self>,
        sender: Option<&str>,
        by: &str,
        request: DecideGhostRequest,
    ) -> Result<Ghost, ShadowError> {
        let (sender, by) = (sender.map(str::to_owned), by.to_owned());
        self.run_to_completion(|this| async move {
            let mut inner = this.inner.lock().await;
            let found = find(&inner.stored.ghosts, sender.as_deref(), &request.id)?.clone();
            let ghost = found.ghost.clone().unwrap_or_default();
            if !is_open(&ghost) {
                return Err(ShadowError::Decided { state: ghost.state });
            }
            let now = unix_ms();
            if ghost.state == WAITING && ghost.expires_unix_ms <= now {
                return Err(ShadowError::Decided { state: super::shadow_loop::EXPIRED.to_owned() });
            }
            let decided =
                Ghost { decided_by: by.clone(), decided_unix_ms: Some(now), snoozed_until_unix_ms: None, ..ghost.clone() };
            let mut put_goal = None;
            let (next, end) = match request.decision.as_str() {
                "dismiss" => {
                    (Ghost { state: DISMISSED.to_owned(), ..decided }, Some(GhostEnd::Dismissed))
                }
                "snooze" => {
                    let ms = if request.snooze_ms == 0 { SNOOZE_MS } else { request.snooze_ms };
                    if ms > MAX_SNOOZE_MS {
                        return Err(ShadowError::Invalid("a ghost is snoozed for at most 7 days".to_owned()));
                    }
                    let until = Some(now + ms);
                    (Ghost { state: SNOOZED.to_owned(), snoozed_until_unix_ms: until, ..ghost.clone() }, None)
                }
                "approve" | "custom" => {
                    if !ghost.no_act.is_empty() {
                        return Err(ShadowError::NoAct { why: ghost.no_act });
                    }
                    let custom = (request.decision == "custom").then_some(request.label.as_str());
                    let goal = goal_of(&found, custom)?;
                    // Of one that another agent decided about no goal is stored: its turn may have been begun, and closed.
                    this.refresh_ghost(&mut inner, &ghost.id).await?;
                    let known = inner.stored.ghosts.get(&ghost.id).and_then(|one| one.ghost.as_ref());
                    if !known.is_some_and(is_open) {
                        return Err(too_late(&inner, ghost.id));
                    }
                    let before = this.store.put_goal(&ghost.id, &goal).await?;
                    inner.stored.goals.insert(ghost.id.clone(), goal.clone());
                    put_goal = Some((goal, before));
                    let session_id = session_of(&ghost.id).to_string();
                    (Ghost { state: APPROVED.to_owned(), session_id, ..decided }, Some(GhostEnd::Approved))
                }
                _ => {
                    return Err(ShadowError::Invalid(
                        "the decision is approve, dismiss, snooze or custom".to_owned(),
                    ));
                }
            };
            let Some(next) = this.put(&mut inner, next, end).await? else {
                // Another agent decided; what was stored here is taken back.
                inner.stored.goals.remove(&ghost.id);
                let now = inner.stored.ghosts.get(&ghost.id).and_then(|one| one.ghost.as_ref());
                let is_approved = now.is_some_and(|now| now.state == APPROVED);
                if let Some((goal, before)) = put_goal
                    // If that one approved it, it found this goal, and has put its own in its place: it may be the same text.
                    && (before.is_some() || !is_approved)
                {
                    this.store.take_back_goal(&ghost.id, &goal, before).await?;
                }
                return Err(too_late(&inner, ghost.id));
            };
            tracing::info!(target: "agent", ghost = next.id, by, state = next.state, "a ghost was decided about");
            Ok(next)
        })
        .await
    }

    /// Has the loop of a person rest, or go on; or mutes one of their repositories.
    ///
    /// # Errors
    /// [`ShadowError`]
    pub(crate) async fn pause(
        self: &Arc<Self>,
        sender: &str,
        request: PauseShadowRequest,
    ) -> Result<WireState, ShadowError> {
        let PauseShadowRequest { paused, for_ms, repository } = request;
        if for_ms > MAX_PAUSE_MS {
            return Err(ShadowError::Invalid(
                "a rest with an end is of at most 30 days: leave the end out".to_owned(),
            ));
        }
        if !repository.is_empty() && (!repository.starts_with('/') || for_ms > 0) {
            return Err(ShadowError::Invalid(
                "a repository is muted by its absolute path, and until it is resumed".to_owned(),
            ));
        }
        let sender = sender.to_owned();
        self.run_to_completion(|this| async move {
            let mut inner = this.inner.lock().await;
            loop {
                let before = inner.stored.senders.get(&sender).cloned();
                let mut record = before.unwrap_or_else(|| SenderRecord::new(&sender));
                if repository.is_empty() {
                    let until = (for_ms > 0).then(|| unix_ms() + for_ms);
                    record.policy.pause(paused, until);
                } else if !record.policy.mute(&repository, paused) {
                    return Err(ShadowError::TooManyMuted);
                }
                if this.store_sender(&mut inner, record.clone()).await? {
                    return Ok(this.state_of(Some(&record)));
                }
            }
        })
        .await
    }

    /// The ghosts with goals whose turn has not begun.
    pub(super) async fn open_goals(&self) -> Vec<String> {
        self.inner.lock().await.stored.goals.keys().cloned().collect()
    }

    /// What is to become of the goal of a ghost. The disk says it: another agent may be about to approve the ghost, may have begun the
    /// turn, or may have forgotten the person.
    pub(super) async fn goal_step(self: &Arc<Self>, ghost: &str) -> Result<GoalStep, talon_store::Error> {
        let ghost = ghost.to_owned();
        self.run_to_completion(|this| async move {
            let mut inner = this.current().await?;
            let Some(current) = this.refresh_ghost(&mut inner, &ghost).await? else {
                return Ok(GoalStep::Close);
            };
            if is_open(&current) {
                return Ok(GoalStep::Wait);
            }
            if current.state != APPROVED {
                return Ok(GoalStep::Close);
            }
            // The one that approved it may have put another one in its place; none is left once its turn has begun.
            let Some(goal) = this.store.goal(&ghost).await? else { return Ok(GoalStep::Close) };
            inner.stored.goals.insert(ghost, goal.clone());
            Ok(GoalStep::Begin { sender: current.sender, goal })
        })
        .await
    }

    /// The turn of a goal has begun, or never will.
    pub(super) async fn close_goal(self: &Arc<Self>, ghost: &str) -> Result<(), talon_store::Error> {
        let ghost = ghost.to_owned();
        self.run_to_completion(|this| async move {
            let mut inner = this.inner.lock().await;
            this.store.remove_goal(&ghost).await?;
            inner.stored.goals.remove(&ghost);
            Ok(())
        })
        .await
    }
}

/// Whether a ghost can be decided about.
fn is_open(ghost: &Ghost) -> bool {
    ghost.state == WAITING || ghost.state == SNOOZED
}

/// Why another agent's decision counts.
fn too_late(inner: &ShadowState, id: String) -> ShadowError {
    match inner.stored.ghosts.get(&id).and_then(|one| one.ghost.as_ref()) {
        Some(now) => ShadowError::Decided { state: now.state.clone() },
        None => ShadowError::NoSuchGhost { id },
    }
}

/// The ghost with this id, or the only one whose id begins so.
pub(super) fn find<'g>(
    ghosts: &'g std::collections::BTreeMap<String, talon_proto::agent::GetGhostResponse>,
    sender: Option<&str>,
    id: &str,
) -> Result<&'g talon_proto::agent::GetGhostResponse, ShadowError> {
    let shown = || id.chars().take(40).filter(|c| !c.is_control()).collect();
    let wanted = id.to_ascii_uppercase();
    if wanted.is_empty() {
        return Err(ShadowError::NoSuchGhost { id: shown() });
    }
    let theirs = |one: &&talon_proto::agent::GetGhostResponse| {
        sender.is_none_or(|sender| one.ghost.as_ref().is_some_and(|ghost| ghost.sender == sender))
    };
    let mut found = ghosts
        .range(wanted.clone()..)
        .take_while(|(key, _)| key.starts_with(&wanted))
        .map(|(_, one)| one)
        .filter(theirs);
    let first = found.next().ok_or_else(|| ShadowError::NoSuchGhost { id: shown() })?;
    if found.next().is_some() { Err(ShadowError::Ambiguous { id: shown() }) } else { Ok(first) }
}
