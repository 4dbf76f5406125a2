//! Tries the candidates of one request in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use talon_agent_settings::milliseconds;
use tokio::time::{Instant, sleep};

use super::attempt::{Answered, Attempt};
use super::chain::{Chain, ChainRequest};
use super::event::Event;
use super::exhausted::{ExhaustedError, ExhaustedReason};
use super::in_flight::InFlightAttempt;
use super::listener::{AnswerEvent, AnswerListener, AttemptProgress};
use super::sampling;
use super::timed_attempt::{Bounds, BrokenAttempt, ask_with_timeouts};
use crate::model::{ErrorClass, ProviderError, Request, ShownImages};
use crate::provider::Provider;
use crate::route::breaker::Verdict;
use crate::route::catalog::{CatalogEntry, ModelRef};
use crate::route::cost::{self, AccountReservation};
use crate::route::retry::{self, FallbackTarget, JitterDraw};
use crate::route::router::{Availability, Candidate, Outage, RejectionReason, Route, SkippedCandidate};
use crate::route::task::Complexity;

/// The most attempts of a request, retries included: four models with all their retries. If more fail, the
/// next model would not help. Not configurable.
pub const MAX_ATTEMPTS: usize = 16;

/// A wait from which on clients are notified: about as long as people wait without wondering.
const NOTICED_WAIT: Duration = Duration::from_millis(1_500);

pub(super) struct Run<'a> {
    chain: &'a Chain,
    ask: &'a ChainRequest<'a>,
    listener: &'a mut dyn AnswerListener,
    started: Instant,
    deadline: Instant,
    complexity: Complexity,
    /// The request as sent, with the model's name.
    request: Request,
    attempts: Vec<Attempt>,
    skipped: Vec<SkippedCandidate>,
    /// The model that failed last.
    last: Option<(ModelRef, ErrorClass)>,
    /// Providers whose other models are not tried.
    blamed: Vec<String>,
    /// Providers whose other models are tried last.
    doubted: Vec<String>,
    /// The candidate that can be asked again first, in case no other answers.
    soonest: Option<(Candidate, Instant)>,
}

enum Step {
    Answered(Box<Answered>),
    Next,
    Stop(ExhaustedReason),
}

impl<'a> Run<'a> {
    pub(super) fn new(
        chain: &'a Chain,
        ask: &'a ChainRequest<'a>,
        listener: &'a mut dyn AnswerListener,
        started: Instant,
        complexity: Complexity,
    ) -> Self {
        Self {
            chain,
            ask,
            listener,
            started,
            deadline: ask.deadline(started, chain.settings.patience),
            complexity,
            request: ask.request.clone(),
            attempts: Vec::new(),
            skipped: Vec::new(),
            last: None,
            blamed: Vec::new(),
            doubted: Vec::new(),
            soonest: None,
        }
    }

    pub(super) async fn try_candidates(mut self, route: &Route) -> Result<Answered, ExhaustedError> {
        self.skipped.clone_from(&route.passed_over);
        let mut left: VecDeque<&Candidate> = route.candidates.iter().collect();
        while let Some(candidate) = left.pop_front() {
            let others = OtherCandidates {
                ready: !left.is_empty(),
                elsewhere: left.iter().any(|other| other.model.provider != candidate.model.provider),
            };
            match self.candidate(candidate, others).await {
                Step::Answered(answered) => return Ok(*answered),
                Step::Stop(why) => return Err(self.exhausted(why)),
                Step::Next => {}
            }
            left.retain(|candidate| !self.blamed.contains(&candidate.model.provider));
            left.make_contiguous().sort_by_key(|candidate| self.doubted.contains(&candidate.model.provider));
        }
        // No other candidate is left, and one can be asked again soon enough to wait for it.
        if let Some((candidate, at)) = self.soonest.take()
            && at < self.deadline
        {
            self.wait(&candidate.model, at.saturating_duration_since(Instant::now()), ErrorClass::RateLimit)
                .await;
            match self.candidate(&candidate, OtherCandidates::default()).await {
                Step::Answered(answered) => return Ok(*answered),
                Step::Stop(why) => return Err(self.exhausted(why)),
                Step::Next => {}
            }
        }
        Err(self.exhausted(ExhaustedReason::AllFailed))
    }

    fn exhausted(self, why: ExhaustedReason) -> ExhaustedError {
        let Self { attempts, skipped: passed_over, .. } = self;
        ExhaustedError {
            reason: why,
            attempts,
            skipped: passed_over,
            total_latency_ms: milliseconds(self.started.elapsed()),
        }
    }

    /// Asks one candidate, and retries as its errors allow, and as time allows if there are others.
    async fn candidate(&mut self, candidate: &Candidate, others: OtherCandidates) -> Step {
        let model = &candidate.model;
        let chain = self.chain;
        let now = Instant::now();
        let (Some(entry), Some(provider)) = (chain.catalog.get(model), chain.provider(&model.provider))
        else {
            // The route was just made from both, and they do not change.
            return Step::Next;
        };
        // Concurrent requests may have learned something since the route was made.
        let out = match chain.availability(model, now) {
            Availability::Out(outage) => Some(outage),
            Availability::Ready | Availability::Recovering => None,
        };
        let ticket = if out.is_none() { chain.health.admit(&model.provider, now) } else { None };
        let Some(ticket) = ticket else {
            // Not out, so it is recovering, and another request is its trial.
            let outage = out.unwrap_or(Outage::Failing { retry_in: Duration::ZERO });
            self.skipped.push(SkippedCandidate { model: model.clone(), why: RejectionReason::Out(outage) });
            return Step::Next;
        };
        self.request.model.clone_from(&model.name);
        self.request.max_output_tokens = self.output_limit(entry);
        sampling::apply(&mut self.request, self.ask.request, &entry.model);
        self.request.images = match entry.model.vision {
            true => self.ask.request.images.clone(),
            false => ShownImages::without_vision(),
        };
        let patience = chain.settings.patience;
        let half = self.started + self.deadline.saturating_duration_since(self.started) / 2;
        let retried_until = if others.ready { half } else { self.deadline };
        let mut retries = 0;
        loop {
            if self.attempts.len() >= MAX_ATTEMPTS {
                return Step::Stop(ExhaustedReason::AllFailed);
            }
            let error = match self.attempt(candidate, entry, provider).await {
                Ok(answered) => {
                    ticket.settle(Verdict::Healthy);
                    return Step::Answered(Box::new(answered));
                }
                Err(AttemptFailure::OverBudget(why)) => return Step::Stop(why),
                Err(AttemptFailure::Provider { error, spoke }) => {
                    if let Some(why) = self.withdraw(model, &error, spoke) {
                        ticket.settle(others.verdict(&error));
                        return Step::Stop(why);
                    }
                    error
                }
                Err(AttemptFailure::DeadlineExceeded { error, spoke }) => {
                    let why = self.withdraw(model, &error, spoke);
                    return Step::Stop(why.unwrap_or(ExhaustedReason::DeadlineExceeded { patience }));
                }
            };
            let policy = retry::policy(error.class);
            // A trial only checks whether the provider is back, and has the result.
            if policy.retried && retries < self.retries() && !ticket.is_trial() {
                let held = chain.settings.retry.wait(retries + 1, error.retry_after, draw());
                let wait = held.or(error.retry_after.filter(|_| !others.ready));
                if let Some(wait) = wait.filter(|wait| Instant::now() + *wait < retried_until) {
                    retries += 1;
                    let class = error.class;
                    chain.observer.on_event(&Event::Retry { model, retry: retries, wait, class });
                    self.wait(model, wait, class).await;
                    // Concurrent requests may have found out in the meantime that it is out.
                    if !matches!(chain.availability(model, Instant::now()), Availability::Out(_)) {
                        continue;
                    }
                }
            }
            ticket.settle(others.verdict(&error));
            return self.after(candidate, error, others);
        }
    }

    /// The most tokens of the answer: what the request wants, and what the model may say beside the question.
    /// Without either the provider's own limit holds.
    fn output_limit(&self, entry: &CatalogEntry) -> Option<u32> {
        let model = &entry.model;
        let limit = u32::try_from(model.output_limit()).unwrap_or(u32::MAX);
        match (self.ask.request.max_output_tokens, model.max_output_tokens) {
            (Some(most), _) => Some(most.min(limit)),
            (None, None) if model.max_tokens.is_none() => None,
            (None, _) => {
                let left = model.context_window.saturating_sub(self.ask.input_tokens);
                let limit = model.max_tokens.unwrap_or(limit);
                Some(limit.min(u32::try_from(left).unwrap_or(u32::MAX)).max(1))
            }
        }
    }

    /// Handles a candidate that has failed for good.
    fn after(&mut self, candidate: &Candidate, error: ProviderError, others: OtherCandidates) -> Step {
        let ModelRef { provider, name } = &candidate.model;
        let policy = retry::policy(error.class);
        let whole = policy.next == FallbackTarget::OtherProvider;
        let rest = self.chain.settings.retry.rest(error.class, error.retry_after);
        if let Some(time) = rest.filter(|_| others.may_rest(error.class)) {
            let model = (!whole).then_some(name.as_str());
            self.chain.health.rest(provider, model, error.class, time);
        }
        if let (ErrorClass::RateLimit, Some(after)) = (error.class, error.retry_after) {
            let at = Instant::now() + after;
            if self.soonest.as_ref().is_none_or(|(_, soonest)| at < *soonest) {
                self.soonest = Some((candidate.clone(), at));
            }
        }
        match policy.next {
            FallbackTarget::OtherProvider => self.blamed.push(provider.clone()),
            FallbackTarget::OtherProviderFirst => self.doubted.push(provider.clone()),
            FallbackTarget::OtherModel | FallbackTarget::NoFallback => {}
        }
        let patience = self.chain.settings.patience;
        match policy.falls_back() {
            false => Step::Stop(ExhaustedReason::Final(error)),
            true if Instant::now() >= self.deadline => {
                Step::Stop(ExhaustedReason::DeadlineExceeded { patience })
            }
            true => Step::Next,
        }
    }

    /// Waits for a model, and says so if people would notice.
    async fn wait(&mut self, model: &ModelRef, wait: Duration, class: ErrorClass) {
        if wait >= NOTICED_WAIT {
            self.listener.on_event(AnswerEvent::Waiting { model: model.clone(), wait, class });
        }
        sleep(wait).await;
    }

    fn retries(&self) -> u32 {
        self.chain.settings.retry.retries.min(retry::MAX_RETRIES)
    }

    /// Withdraws the characters that the attempt sent; returns why the chain ends, if that is not possible.
    fn withdraw(
        &mut self,
        model: &ModelRef,
        error: &ProviderError,
        spoke: Option<u64>,
    ) -> Option<ExhaustedReason> {
        let chars = spoke?;
        // An error that ends the chain anyway is reported as such.
        let ends = !retry::policy(error.class).falls_back();
        if !ends && !self.listener.can_withdraw() {
            return Some(ExhaustedReason::CannotWithdraw(error.clone()));
        }
        if self.listener.can_withdraw() {
            self.chain.observer.on_event(&Event::Withdrawn { model, chars });
            self.listener.on_event(AnswerEvent::Withdrawn { model: model.clone(), class: error.class });
        }
        None
    }

    /// Asks a candidate once.
    async fn attempt(
        &mut self,
        candidate: &Candidate,
        entry: &CatalogEntry,
        provider: &Arc<dyn Provider>,
    ) -> Result<Answered, AttemptFailure> {
        let ChainRequest { session, plugin, account, day, input_tokens, .. } = *self.ask;
        let Candidate { model, estimate, tier, .. } = candidate;
        let chain = self.chain;
        let reservation = chain.ledgers.reserve(session, day, *estimate).map_err(|over| {
            chain.observer.on_event(&Event::OverBudget { session, over: &over });
            AttemptFailure::OverBudget(ExhaustedReason::OverBudget(Box::new(over)))
        })?;
        let most_tokens = self.request.max_output_tokens.map_or(u64::MAX, u64::from);
        let most = cost::most(&entry.model, input_tokens, most_tokens);
        let account = account.map(|account| AccountReservation::reserve(account, most)).transpose();
        let account = account.map_err(|error| AttemptFailure::OverBudget(ExhaustedReason::Account(error)))?;
        if let Some((from, class)) = self.last.as_ref().filter(|(from, _)| from != model) {
            chain.observer.on_event(&Event::FellBack { from, to: candidate, class: *class });
        }
        let started = Instant::now();
        let signs = AttemptProgress::new(started);
        let under_way = InFlightAttempt {
            chain,
            session,
            plugin,
            entry,
            input_tokens,
            signs: &signs,
            reservation: Some(reservation),
            account,
        };
        let bounds = Bounds {
            silence: chain.settings.silence,
            deadline: self.deadline,
            patience: chain.settings.patience,
        };
        let said = ask_with_timeouts(provider, &self.request, &mut *self.listener, &signs, bounds).await;
        let latency_ms = milliseconds(started.elapsed());
        let (charge, attempt) = match &said {
            Ok(answer) => {
                let charge = under_way.charge_for(answer);
                (charge, Attempt::answered(model, latency_ms, charge.cost))
            }
            Err(BrokenAttempt { error, .. }) => {
                let charge = under_way.charge_for_nothing();
                (charge, Attempt::failed(model, error, latency_ms, charge.cost))
            }
        };
        under_way.complete(&charge, said.is_ok());
        chain.observer.on_event(&Event::Attempt { session, attempt: &attempt, first_piece: signs.first() });
        self.attempts.push(attempt);
        match said {
            Ok(answer) => Ok(Answered {
                answer,
                model: model.clone(),
                tier: *tier,
                complexity: self.complexity,
                attempts: std::mem::take(&mut self.attempts),
                total_latency_ms: milliseconds(self.started.elapsed()),
                estimate: *estimate,
                charge,
            }),
            Err(BrokenAttempt { error, out_of_patience }) => {
                self.last = Some((model.clone(), error.class));
                let spoke = signs.any().then(|| signs.chars());
                Err(match out_of_patience {
                    true => AttemptFailure::DeadlineExceeded { error, spoke },
                    false => AttemptFailure::Provider { error, spoke },
                })
            }
        }
    }
}

/// Who could be asked besides a candidate.
#[derive(Debug, Clone, Copy, Default)]
struct OtherCandidates {
    /// Another model.
    ready: bool,
    /// A model of another provider.
    elsewhere: bool,
}

impl OtherCandidates {
    /// What a failure says about its provider. The last one that can be asked is not left alone: that would
    /// turn a failure of seconds into one of a minute.
    fn verdict(self, error: &ProviderError) -> Verdict {
        let counts = retry::policy(error.class).counts && self.elsewhere;
        if counts { Verdict::Failed } else { Verdict::Inconclusive }
    }

    /// Whether the provider is left alone after such an error. Without credit the last one is not: a smaller
    /// request may still be paid for, and what its account gets counts with the next question.
    fn may_rest(self, class: ErrorClass) -> bool {
        class != ErrorClass::Billing || self.elsewhere
    }
}

/// Why an attempt gave no answer.
enum AttemptFailure {
    OverBudget(ExhaustedReason),
    DeadlineExceeded {
        error: ProviderError,
        spoke: Option<u64>,
    },
    /// With the characters that it had sent, if any.
    Provider {
        error: ProviderError,
        spoke: Option<u64>,
    },
}

/// The random number for the jitter; the middle if there is no source.
fn draw() -> JitterDraw {
    JitterDraw(getrandom::u32().unwrap_or(u32::MAX / 2))
}
