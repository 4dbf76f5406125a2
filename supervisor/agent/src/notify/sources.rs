//! Events that other parts of the agent report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::{Mutex, RwLock};
use talon_agent_settings::Money;
use talon_extensions::EventKind;
use talon_llm::route::cost::{BudgetScope, Ledgers, OverBudgetError};
use talon_llm::route::fallback::{Event as ChainEvent, EventObserver};
use talon_proto::agent;
use talon_schedule::Proposal;

use super::event::NewEvent;
use super::notifier::Notifier;
use crate::costs::today;
use crate::driver::{Caller, TurnEnd, TurnEnvironment, TurnRunner, TurnSpec};

/// From which part of a budget on people are warned, in percent. 80: there is time to raise it.
const WARNING_PERCENT: u128 = 80;
/// What a turn says that somebody cancelled.
const CANCELLED: &str = "cancelled";

/// A call, or a question of the agent's, that waits for a person.
pub(crate) fn approval_waiting(approval: &agent::Approval) -> NewEvent {
    let what = match approval.question.as_str() {
        "" => format!("The call {}.{} waits for approval", approval.plugin, approval.action),
        question => format!("The agent asks: {question}"),
    };
    let details = if approval.question.is_empty() {
        let command = format!("talon approval approve {}", approval.id);
        format!("It asks because: {}\nDecide with: {command}", approval.why)
    } else {
        format!("Answer with: talon approval answer {}", approval.id)
    };
    NewEvent::new(EventKind::ApprovalWaiting, format!("approval {}", approval.id), what)
        .details(details)
        .field("approval", &approval.id)
        .field("session", &approval.session_id)
        .field("sender", &approval.sender)
        .field("plugin", &approval.plugin)
        .field("action", &approval.action)
}

/// A ghost that waits for a person's decision.
pub(crate) fn ghost_waiting(ghost: &agent::Ghost) -> NewEvent {
    let agent::Ghost { id, trigger, observation, proposal, confidence, sender, no_act, .. } = ghost;
    let decide = match no_act.as_str() {
        "" => format!("talon shadow approve {id}\ntalon shadow dismiss {id}"),
        why => format!("It offers no act: {why}"),
    };
    NewEvent::new(EventKind::ShadowGhost, format!("ghost {id}"), format!("{trigger}: {proposal}"))
        .details(format!("{observation}\n{decide}"))
        .field("ghost", id)
        .field("sender", sender)
        .field("trigger", &ghost.rule)
        .field("confidence", confidence)
}

/// A run of a job that failed, and is not tried again.
pub(crate) fn schedule_failed(job: &str, run: &str, reason: &str) -> NewEvent {
    NewEvent::new(
        EventKind::ScheduleFailed,
        format!("run {job} {run}"),
        format!("The job {job} failed: {reason}"),
    )
    .details(format!("talon schedule history {job}"))
    .field("job", job)
    .field("run", run)
    .field("reason", reason)
}

/// A job that a plugin proposes, with the hash of its text. The same text is told once.
pub(crate) fn schedule_proposed(proposal: &Proposal, hash: &str) -> NewEvent {
    let job = proposal.id.as_str();
    let when = proposal.job().map(|job| job.recurrence.to_string()).unwrap_or_default();
    NewEvent::new(
        EventKind::ScheduleProposed,
        format!("proposed {job} {hash}"),
        format!("{} proposes the job {job}, {when}: it runs once somebody accepts it", proposal.plugin()),
    )
    .details(format!(
        "talon schedule accept {job} --hash {hash}\ntalon schedule reject {job} --hash {hash}\n{}",
        proposal.to_json()
    ))
    .field("job", job)
    .field("plugin", proposal.plugin())
    .field("action", proposal.action.as_str())
    .field("when", when)
    .field("hash", hash)
}

/// The agent's store stopped taking writes, for a reason, or takes them again.
pub(crate) fn room_changed(problem: Option<&str>) -> NewEvent {
    const SERVICE: &str = "agent";
    let id = format!("room {}", ulid::Ulid::generate());
    match problem {
        Some(reason) => NewEvent::new(
            EventKind::StateUnavailable,
            id,
            format!("The agent's database takes no writes: {reason}"),
        )
        .field("service", SERVICE)
        .field("reason", reason),
        None => NewEvent::new(EventKind::StateAvailable, id, "The agent's database takes writes again")
            .field("service", SERVICE),
    }
}

/// Runs turns, and tells of sub-agents' tasks that fail.
pub(crate) struct ReportingRunner {
    pub(crate) inner: Arc<dyn TurnRunner>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) budgets: Arc<BudgetEvents>,
}

#[async_trait]
impl TurnRunner for ReportingRunner {
    async fn run(&self, environment: &TurnEnvironment, spec: TurnSpec) -> TurnEnd {
        let caller = spec.caller.clone();
        let _followed = self.budgets.follow(&caller);
        let end = self.inner.run(environment, spec).await;
        if let Err((word, sentence)) = &end.outcome
            && !caller.subagent.is_empty()
            && word != CANCELLED
        {
            self.notifier.notify(task_failed(caller, word, sentence));
        }
        end
    }
}

/// A sub-agent's task that failed for a reason: its word, and a sentence.
fn task_failed(caller: Caller, word: &str, sentence: &str) -> NewEvent {
    let id = format!("task {} {} {}", caller.session, caller.turn, ulid::Ulid::generate());
    let summary = format!("The task of the sub-agent {} failed: {sentence}", caller.subagent);
    NewEvent::new(EventKind::TaskFailed, id, summary)
        .field("subagent", caller.subagent)
        .field("session", caller.session)
        .field("sender", caller.sender)
        .field("reason", word)
}

/// The most sessions and days of which is remembered what was told. Beyond that it is forgotten, and told once more
/// to the store, which knows it.
const MAX_TOLD: usize = 4096;

/// Tells of budgets that are nearly or wholly spent, once a session or day.
pub(crate) struct BudgetEvents {
    notifier: Arc<Notifier>,
    ledgers: RwLock<Option<Ledgers>>,
    told: Mutex<BTreeSet<String>>,
    /// Whose the sessions are in which turns run, with the number of these turns: a turn and those of its sub-agents.
    senders: Mutex<BTreeMap<String, (String, usize)>>,
}

impl BudgetEvents {
    pub(crate) fn new(notifier: Arc<Notifier>) -> Arc<Self> {
        Arc::new(Self {
            notifier,
            ledgers: RwLock::default(),
            told: Mutex::default(),
            senders: Mutex::default(),
        })
    }

    /// Takes over the sums and limits of a configuration.
    pub(crate) fn set_ledgers(&self, ledgers: Ledgers) {
        *self.ledgers.write() = Some(ledgers);
    }

    /// While the value lives, whose session it is stands in events about it.
    fn follow(&self, caller: &Caller) -> FollowedTurn<'_> {
        let mut senders = self.senders.lock();
        senders.entry(caller.session.clone()).or_insert_with(|| (caller.sender.clone(), 0)).1 += 1;
        FollowedTurn { of: self, session: caller.session.clone() }
    }

    /// Looks at what was spent after a charge.
    fn check(&self, session: &str) {
        let Some(ledgers) = self.ledgers.read().clone() else { return };
        let budget = ledgers.budget();
        let (of_session, of_day) = {
            let ledger = ledgers.lock();
            (ledger.session(session).cost, ledger.spent_on(today()))
        };
        for (scope, limit, spent) in [
            (BudgetScope::Session, budget.per_session, of_session),
            (BudgetScope::Day, budget.per_day, of_day),
        ] {
            if let Some(limit) = limit.filter(|limit| is_nearly_spent(spent, *limit)) {
                let summary = format!("${spent} of {} budget of ${limit} are spent", whose(scope));
                self.tell(EventKind::BudgetWarning, scope, session, summary, (spent, limit));
            }
        }
    }

    fn tell(
        &self,
        kind: EventKind,
        scope: BudgetScope,
        session: &str,
        summary: String,
        (spent, limit): (Money, Money),
    ) {
        let (word, of, session) = match scope {
            BudgetScope::Session => ("session", session.to_owned(), session),
            BudgetScope::Day => ("day", today().0.to_string(), ""),
        };
        let sender = self.senders.lock().get(session).map(|(sender, _)| sender.clone()).unwrap_or_default();
        // With the limit: one that was raised may be reached again.
        let id = format!("{kind} {word} {of} {limit}");
        {
            let mut told = self.told.lock();
            if told.len() >= MAX_TOLD {
                told.clear();
            }
            if !told.insert(id.clone()) {
                return;
            }
        }
        self.notifier.notify(
            NewEvent::new(kind, id, summary)
                .field("budget", word)
                .field("spent", spent.to_string())
                .field("limit", limit.to_string())
                .field("session", session)
                .field("sender", sender),
        );
    }
}

/// A turn that runs.
struct FollowedTurn<'b> {
    of: &'b BudgetEvents,
    session: String,
}

impl Drop for FollowedTurn<'_> {
    fn drop(&mut self) {
        let mut senders = self.of.senders.lock();
        if let Some((_, turns)) = senders.get_mut(&self.session) {
            *turns -= 1;
            if *turns == 0 {
                senders.remove(&self.session);
            }
        }
    }
}

impl EventObserver for BudgetEvents {
    fn on_event(&self, event: &ChainEvent<'_>) {
        match event {
            ChainEvent::Charged { session, .. } => self.check(session),
            ChainEvent::OverBudget { session, over } => {
                let OverBudgetError { limit: scope, budget, spent, .. } = **over;
                self.tell(EventKind::BudgetExceeded, scope, session, over.to_string(), (spent, budget));
            }
            _ => {}
        }
    }
}

fn is_nearly_spent(spent: Money, limit: Money) -> bool {
    limit > Money::ZERO
        && spent.picodollars().saturating_mul(100) >= limit.picodollars().saturating_mul(WARNING_PERCENT)
}

fn whose(scope: BudgetScope) -> &'static str {
    match scope {
        BudgetScope::Session => "a session's",
        BudgetScope::Day => "today's",
    }
}

#[cfg(test)]
#[path = "sources_tests.rs"]
mod tests;
