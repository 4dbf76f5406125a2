//! The proposals of all plugins, and the operator's decisions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use talon_sanitize::nearest;
use talon_schedule::{Job, MAX_JOBS, Proposal};
use talon_store::{Error, JobProposal, JobProposals, ProposalDecision, ProposalState, Timestamp};
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, timeout};

use super::declared::{Declared, InvalidProposal};
use super::source::Declarations;
use crate::hooks::RoleCallError;
use crate::jobs::JobTable;
use crate::notify::{Notifier, schedule_proposed};

/// The shortest time between two looks for clients that list the jobs: a client that lists in a loop asks no plugin's
/// declaration more often.
const MIN_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How long a client that lists the jobs waits for a look. 2 s: it is local; then the client gets what was known before.
const LOOK_WAIT: Duration = Duration::from_secs(2);

/// Why a decision was not stored. Each ends with what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecideError {
    /// No text of this job is known.
    #[error("no plugin proposes a job {job:?}: {help}")]
    NoSuchJob { job: String, help: String },
    /// The job is known, and not this text of it.
    #[error("{job} is not proposed with this text (any more): look at it again with `talon schedule list`")]
    NoSuchText { job: String },
    /// The configuration has a job of this id.
    #[error(
        "the configuration has a job {job}, which comes first: rename it under extensions.schedule, or reject this one"
    )]
    Configured { job: String },
    /// There are too many jobs.
    #[error("there are {MAX_JOBS} jobs, which is the most: remove some before this one is accepted")]
    TooMany,
    /// It is none by this version's rules.
    #[error("it cannot run: {0}")]
    Invalid(String),
    #[error(transparent)]
    Store(#[from] Error),
}

/// What is known of proposals.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownProposals {
    /// Texts that are proposed, and rejected ones that are declared now.
    pub(crate) open: Vec<JobProposal>,
    /// The accepted texts, each with why it will fail.
    pub(crate) accepted: Vec<(JobProposal, Option<String>)>,
    /// What cannot be accepted.
    pub(crate) invalid: Vec<InvalidProposal>,
}

/// What the registry is made of.
pub(crate) struct ProposalParts {
    pub(crate) store: Arc<dyn JobProposals>,
    pub(crate) source: Arc<dyn Declarations>,
    pub(crate) jobs: Arc<JobTable>,
    pub(crate) notifier: Arc<Notifier>,
}

/// The proposals of all plugins.
pub(crate) struct ProposalRegistry {
    parts: ProposalParts,
    /// What the last look found. Its lock has one change of the store at a time.
    last: Mutex<LastLook>,
    wake: Notify,
}

#[derive(Default)]
struct LastLook {
    /// `None` before the first.
    at: Option<Instant>,
    declared: Declared,
}

impl ProposalRegistry {
    /// A registry whose accepted jobs run from the beginning.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn open(parts: ProposalParts) -> Result<Arc<Self>, Error> {
        let registry = Self { parts, last: Mutex::default(), wake: Notify::new() };
        registry.apply().await?;
        Ok(Arc::new(registry))
    }

    /// Has the declarations looked at.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Resolves when they should be looked at.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Compares what plugins declare with what is stored, and tells of new proposals.
    ///
    /// # Errors
    /// Why not, for the log: the supervisor or the store cannot be asked.
    pub(crate) async fn look(&self) -> Result<(), LookError> {
        // Without the lock: a supervisor that does not answer holds up no decision.
        let declared = Declared::of(self.parts.source.declarations().await?);
        let mut last = self.last.lock().await;
        let new = self.parts.store.declare(declared.for_store(), Timestamp::now()).await?;
        for proposal in &new {
            let Some(text) = declared.proposals.get(&proposal.job) else { continue };
            tracing::info!(
                job = proposal.job,
                action = text.action,
                hash = proposal.digest,
                "a plugin proposes a job: `talon schedule list` shows it, and nothing runs before it is accepted"
            );
            self.parts.notifier.notify(schedule_proposed(text, &proposal.digest));
        }
        if declared.invalid != last.declared.invalid {
            for invalid in &declared.invalid {
                tracing::warn!(
                    job = invalid.job,
                    problem = invalid.problem,
                    "a proposed job cannot be accepted"
                );
            }
        }
        *last = LastLook { at: Some(Instant::now()), declared };
        // Another agent on the same database may have decided. Under the lock: a decision made here meanwhile would be undone until
        // the next look.
        Ok(self.apply().await?)
    }

    /// All that is known, looked at anew unless that was a moment ago. What the supervisor does not tell now is as before.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn list(&self) -> Result<KnownProposals, Error> {
        let looked = self.last.lock().await.at;
        if looked.is_none_or(|at| at.elapsed() >= MIN_LOOK_INTERVAL) {
            match timeout(LOOK_WAIT, self.look()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    let error = talon_error_chain::error_chain(&error);
                    tracing::warn!(error, "proposed jobs cannot be looked at");
                }
                Err(_) => {
                    tracing::warn!("the supervisor does not say within {LOOK_WAIT:?} what plugins declare")
                }
            }
        }
        let last = self.last.lock().await;
        let mut known =
            KnownProposals { invalid: last.declared.invalid.clone(), ..KnownProposals::default() };
        for one in self.parts.store.list().await? {
            let is_declared = || {
                let declared = last.declared.proposals.get(&one.job);
                declared.is_some_and(|declared| declared.digest() == one.digest)
            };
            match one.state {
                ProposalState::Proposed => known.open.push(one),
                ProposalState::Rejected if is_declared() => known.open.push(one),
                ProposalState::Rejected => {}
                ProposalState::Accepted => {
                    let problem = last.at.and_then(|_| problem(&one, &last.declared));
                    known.accepted.push((one, problem));
                }
            }
        }
        Ok(known)
    }

    /// How many wait for the operator.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn waiting(&self) -> Result<usize, Error> {
        let all = self.parts.store.list().await?;
        Ok(all.iter().filter(|one| one.state == ProposalState::Proposed).count())
    }

    /// Stores the operator's decision about one text, and has the schedule follow it.
    ///
    /// # Errors
    /// [`DecideError`]: nothing was changed.
    pub(crate) async fn decide(&self, decision: ProposalDecision) -> Result<JobProposal, DecideError> {
        let _one_at_a_time = self.last.lock().await;
        let known = self.parts.store.list().await?;
        let job = decision.job.clone();
        let texts: Vec<&JobProposal> = known.iter().filter(|one| one.job == job).collect();
        if texts.is_empty() {
            return Err(no_such_job(&job, &known));
        }
        let Some(text) = texts.into_iter().find(|one| one.digest == decision.digest) else {
            return Err(DecideError::NoSuchText { job });
        };
        if decision.accept && text.state != ProposalState::Accepted {
            let _runnable = job_of(text).map_err(DecideError::Invalid)?;
            if self.parts.jobs.is_configured(&job) {
                return Err(DecideError::Configured { job });
            }
            let jobs = self.parts.jobs.get();
            if jobs.len() >= MAX_JOBS && !jobs.contains_key(&job) {
                return Err(DecideError::TooMany);
            }
        }
        let decided = self.parts.store.decide(decision, Timestamp::now()).await?;
        let decided = decided.ok_or(DecideError::NoSuchText { job })?;
        self.apply().await?;
        Ok(decided)
    }

    /// Has the schedule run what is accepted.
    async fn apply(&self) -> Result<(), Error> {
        let mut jobs = Vec::new();
        for one in self.parts.store.list().await? {
            if one.state != ProposalState::Accepted {
                continue;
            }
            match job_of(&one) {
                Ok(job) => jobs.push(job),
                Err(problem) => {
                    tracing::error!(job = one.job, problem, "an accepted job cannot run in this version");
                }
            }
        }
        self.parts.jobs.set_accepted(jobs);
        Ok(())
    }
}

/// Why a look failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    #[error("the supervisor does not say what plugins declare")]
    Host(#[from] RoleCallError),
    #[error("the proposals cannot be stored")]
    Store(#[from] Error),
}

fn job_of(proposal: &JobProposal) -> Result<Job, String> {
    let text = Proposal::from_json(&proposal.proposal).map_err(|error| error.to_string())?;
    text.job().map_err(|error| error.to_string())
}

/// Why an accepted job will fail.
fn problem(accepted: &JobProposal, declared: &Declared) -> Option<String> {
    match Proposal::from_json(&accepted.proposal) {
        Err(error) => Some(format!(
            "this version cannot read it: {error}; end it with `talon schedule reject {}`",
            accepted.job
        )),
        Ok(text) => declared.problem_of(&accepted.job, &text.action),
    }
}

fn no_such_job(job: &str, known: &[JobProposal]) -> DecideError {
    let ids: BTreeSet<&str> = known.iter().map(|one| one.job.as_str()).collect();
    let help = match nearest(job, ids.into_iter()).first() {
        Some(near) => format!("did you mean {near}?"),
        None => "`talon schedule list` shows those there are".to_owned(),
    };
    let job = job.chars().take(64).filter(|c| !c.is_control()).collect();
    DecideError::NoSuchJob { job, help }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
