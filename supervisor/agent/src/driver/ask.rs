//! One question to a model.

use talon_agent_settings::PICOS_PER_MICRO;
use talon_llm::model::{Chunk, ErrorClass, Request};
use talon_llm::route::cost::saved_by_cache;
use talon_llm::route::fallback::{AnswerEvent, AnswerListener, Answered, ExhaustedError, ExhaustedReason};
use talon_llm::route::retry;
use talon_llm::route::router::{Outage, RejectionReason, RouteError};
use talon_proto::agent;
use talon_proto::agent::chunk::Kind;

use super::Listener;
use super::drive::TurnRun;
use crate::budget::Limit;
use crate::journal::JournalEntry;
use crate::loop_context::Failure;
use crate::machine::Fact;

impl TurnRun<'_> {
    /// Asks the model; its answer is the fact.
    pub(super) async fn ask(&mut self) -> Result<Fact, Failure> {
        if let Some(JournalEntry::Answered { answer, micro_usd }) = self.replay.pop_front() {
            self.rebuilt = true;
            self.account.record_cost(u128::from(micro_usd) * PICOS_PER_MICRO);
            self.account.take_unreported_micro_usd();
            return Ok(Fact::Answered { answer: *answer, micro_usd });
        }
        if let Some(limit) = self.exceeded_cost_limit() {
            return Err(Failure::Limit(limit));
        }
        let Some(question) = self.question.take() else {
            return Err(Failure::Internal("a question was asked before it was put together".to_owned()));
        };
        let tokens = u64::try_from(question.stats.total).unwrap_or(u64::MAX).max(self.needed);
        let mut request = Request {
            messages: question.messages,
            tools: question.tools,
            thinking: self.spec.thinking,
            stable_messages: question.stable_messages,
            ..Request::default()
        };
        if self.enforces_schema(&request.tools) {
            request.answer_schema = self.schema.as_ref().map(|schema| schema.text().clone());
        }
        let mut partial_text = String::new();
        let mut forward = Forward { listener: &*self.spec.listener, partial_text: &mut partial_text };
        let ask = self.routing_request(&request, tokens);
        let said = self.unless_stopped(self.environment.chain.ask(&ask, &mut forward)).await;
        match said {
            Ok(Ok(answered)) => Ok(self.answered(answered)),
            Ok(Err(exhausted)) => Err(self.exhausted(exhausted)),
            Err(failure) => {
                self.partial_text = partial_text;
                Err(failure)
            }
        }
    }

    /// Whether costs outside the model's questions (summaries, sub-agents) have used up the budget.
    fn exceeded_cost_limit(&self) -> Option<Limit> {
        let most = self.spec.budgets.micro_usd?;
        let spent = self.account.pico_usd / PICOS_PER_MICRO;
        (spent >= u128::from(most)).then_some(Limit::Cost { most_micro_usd: most })
    }

    fn answered(&mut self, answered: Answered) -> Fact {
        let mut failed = answered.attempts.iter().filter(|attempt| {
            attempt.model != answered.model.name || attempt.provider != answered.model.provider
        });
        if let Some(attempt) = failed.next_back()
            && let Some(error) = &attempt.error
        {
            let (first, class) =
                (format!("{}/{}", attempt.provider, attempt.model), retry::word(error.class));
            self.notice("info", format!("{} answered, for {first} did not ({class}).", answered.model));
        }
        self.account.record_cost(answered.total_cost().picodollars());
        if let Some(entry) = self.environment.chain.catalog().get(&answered.model) {
            self.account.saved_pico_usd += saved_by_cache(&entry.model, answered.charge.usage).picodollars();
        }
        let micro_usd = self.account.take_unreported_micro_usd();
        self.account.record_attempts(answered.attempts);
        self.account.model = Some(answered.model);
        Fact::Answered { answer: super::persistence::bound_answer(answered.answer), micro_usd }
    }

    fn exhausted(&mut self, exhausted: ExhaustedError) -> Failure {
        let word = match &exhausted.reason {
            ExhaustedReason::NoRoute(error) => route_error_word(error),
            ExhaustedReason::OverBudget(_) => "over_budget",
            ExhaustedReason::Final(error) if error.class == ErrorClass::Context => "context_full",
            ExhaustedReason::Final(_)
            | ExhaustedReason::AllFailed
            | ExhaustedReason::DeadlineExceeded { .. }
            | ExhaustedReason::CannotWithdraw(_) => "exhausted",
        };
        let cost = exhausted.attempts.iter().map(|attempt| attempt.cost.picodollars()).sum();
        self.account.record_cost(cost);
        self.account.word = Some(word);
        let sentence = exhausted.to_string();
        self.account.record_attempts(exhausted.attempts);
        Failure::Model(sentence)
    }
}

/// The error word if no model can be asked. `exhausted` means that a later attempt may succeed.
pub(super) fn route_error_word(error: &RouteError) -> &'static str {
    let all: Vec<&RejectionReason> = match error {
        RouteError::UnknownPin(_) | RouteError::NoModels => return "no_provider",
        RouteError::PinUnfit { why, .. } => vec![why],
        RouteError::NoneFits { passed_over } => passed_over.iter().map(|one| &one.why).collect(),
    };
    let passes = |why: &&RejectionReason| matches!(why, RejectionReason::Out(outage) if !matches!(outage, Outage::NotSetUp { .. }));
    if all.iter().any(passes) {
        "exhausted"
    } else if all.iter().any(|why| matches!(why, RejectionReason::Window { .. })) {
        "context_full"
    } else {
        "no_provider"
    }
}

/// Forwards an answer's pieces to the listener.
struct Forward<'a> {
    listener: &'a dyn Listener,
    /// The text so far: all that remains if the turn ends in the middle of an answer.
    partial_text: &'a mut String,
}

impl AnswerListener for Forward<'_> {
    fn on_event(&mut self, event: AnswerEvent) {
        let kind = match event {
            AnswerEvent::Piece(Chunk::Text(text)) => {
                self.partial_text.push_str(&text);
                Kind::Text(agent::Text { text })
            }
            AnswerEvent::Piece(Chunk::Thinking(text)) => Kind::Thinking(agent::Thinking { text }),
            // Clients receive a call when it is made.
            AnswerEvent::Piece(Chunk::Call(_)) => return,
            AnswerEvent::Withdrawn { model, class } => {
                self.partial_text.clear();
                let text = format!(
                    "{model} failed in the middle of its answer ({}): what it said so far does not count.",
                    retry::word(class)
                );
                Kind::Notice(agent::Notice { level: "warn".to_owned(), text, discard_text: true })
            }
        };
        self.listener.on_chunk(kind);
    }
}
