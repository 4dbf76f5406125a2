//! One question to a model.

use talon_agent_settings::PICOS_PER_MICRO;
use talon_llm::model::{Answer, Chunk, ErrorClass, Finish, Message, Request, ToolChoice};
use talon_llm::route::cost::saved_by_cache;
use talon_llm::route::fallback::{
    AnswerEvent, AnswerListener, Answered, ChainRequest, ExhaustedError, ExhaustedReason,
};
use talon_llm::route::retry;
use talon_llm::route::router::{Outage, Pins, RejectionReason, RouteError};
use talon_proto::agent;
use talon_proto::agent::chunk::Kind;

use super::Listener;
use super::drive::TurnRun;
use super::notify::is_scripted;
use crate::budget::Limit;
use crate::journal::JournalEntry;
use crate::loop_context::Failure;
use crate::machine::Fact;
use crate::stop_sequences::{StopFilter, cut_at_stop};

impl TurnRun<'_> {
    /// Asks the model; its answer is the fact.
    pub(super) async fn ask(&mut self) -> Result<Fact, Failure> {
        if let Some(JournalEntry::Answered { answer, micro_usd, withheld }) = self.replay.pop_front() {
            self.withheld = withheld;
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
        let counted = u64::try_from(question.stats.total).unwrap_or(u64::MAX);
        let images = self.load_images(&question.messages).await;
        let image_count = super::images::images(&question.messages).count();
        let mut request = Request {
            deferred: self.deferred_tools(&question.tools_left_out),
            messages: question.messages,
            tools: question.tools,
            tool_choice: self.tool_choice(),
            thinking: self.spec.thinking,
            is_general_thinking: self.spec.is_general_thinking,
            temperature: self.spec.sampling.temperature(),
            top_p: self.spec.sampling.top_p(),
            max_output_tokens: self.spec.sampling.max_tokens,
            stop: self.stops().to_vec(),
            seed: self.spec.client.as_ref().and_then(|client| client.seed),
            stable_messages: question.stable_messages,
            images,
            ..Request::default()
        };
        if self.enforces_schema(&request.tools) || request.tool_choice == ToolChoice::None {
            request.answer_schema = self.schema.as_ref().map(|schema| schema.text().clone());
        }
        let mut forward = Forward {
            listener: &*self.spec.listener,
            partial: String::new(),
            thinking: String::new(),
            prefix: String::new(),
            withholds: self.withholds_text(),
            stops: StopFilter::new(self.stops().to_vec()),
        };
        let span = self.begin_model_span(&request);
        let said = self.unless_stopped(self.ask_and_continue(&mut request, tokens, &mut forward)).await;
        self.end_model_span(span, &said);
        forward.end();
        match said {
            Ok(Ok(answers)) => {
                let thinking = forward.thinking;
                if let Some(first) = answers.first() {
                    self.calibrate(first, counted);
                }
                if let Some(answered) = answers.last() {
                    self.notify_unseen_images(answered, image_count);
                }
                Ok(self.answered(answers, thinking))
            }
            Ok(Err(exhausted)) => Err(self.exhausted(exhausted)),
            Err(failure) => {
                self.partial_text = forward.partial;
                Err(failure)
            }
        }
    }

    /// Asks the model, and again where its answer was cut at its limit of tokens. A continuation that fails
    /// leaves the answer cut.
    async fn ask_and_continue(
        &self,
        request: &mut Request,
        tokens: u64,
        forward: &mut Forward<'_>,
    ) -> Result<Vec<Answered>, ExhaustedError> {
        let first = self.environment.chain.ask(&self.routing_request(request, tokens), forward).await?;
        let mut answers = vec![first];
        let continuations = if self.has_wanted_length() { 0 } else { self.spec.budgets.continuations };
        for _ in 0..continuations {
            let Some(last) = answers.last().filter(|last| is_cut(&last.answer)) else { break };
            // Half of a structured answer is no beginning of another one.
            if self.schema.is_some() || self.costs_too_much(&answers) || self.has_stopped(&answers) {
                break;
            }
            forward.prefix.push_str(&last.answer.text);
            let text = answers.iter().map(|answered| answered.answer.text.as_str()).collect();
            request.messages.truncate(request.messages.len() - 2 * usize::from(answers.len() > 1));
            request.messages.push(Message::Assistant { text, calls: Vec::new(), thoughts: None });
            request.messages.push(Message::User { text: CONTINUE.to_owned() });
            // Another model would begin in its own words.
            let pins = Pins { request: Some(last.model.to_string()), ..self.spec.pins.clone() };
            let tokens = tokens.saturating_add(last.charge.usage.output_tokens);
            let ask = ChainRequest { pins: &pins, ..self.routing_request(request, tokens) };
            match self.environment.chain.ask(&ask, forward).await {
                Ok(next) => answers.push(next),
                Err(error) => {
                    tracing::warn!(target: "agent", session = %self.spec.caller.session, %error, "a cut answer was not continued");
                    break;
                }
            }
        }
        Ok(answers)
    }

    /// Whether a stop is in what was answered so far.
    fn has_stopped(&self, answers: &[Answered]) -> bool {
        let mut text: String = answers.iter().map(|answered| answered.answer.text.as_str()).collect();
        cut_at_stop(self.stops(), &mut text)
    }

    /// Corrects the estimate for the model by what its provider reports, if the question was counted for it.
    fn calibrate(&self, answered: &Answered, counted: u64) {
        let Answered { model, answer, .. } = answered;
        // Prepared answers have made-up usage.
        let counts = self.counted_for.as_ref() == Some(model) && !is_scripted(&model.provider);
        if let Some(usage) = answer.usage.filter(|_| counts) {
            self.environment.calibration.learn(&model.to_string(), &model.name, counted, usage.input_tokens);
        }
    }

    fn costs_too_much(&self, answers: &[Answered]) -> bool {
        let so_far: u128 = answers.iter().map(|answered| answered.total_cost().picodollars()).sum();
        let all = self.account.pico_usd.saturating_add(so_far) / PICOS_PER_MICRO;
        self.spec.budgets.micro_usd.is_some_and(|most| all >= u128::from(most))
    }

    /// Whether costs outside the model's questions (summaries, sub-agents) have used up the budget.
    fn exceeded_cost_limit(&self) -> Option<Limit> {
        let most = self.spec.budgets.micro_usd?;
        let spent = self.account.pico_usd / PICOS_PER_MICRO;
        (spent >= u128::from(most)).then_some(Limit::Cost { most_micro_usd: most })
    }

    /// Joins an answer with its continuations.
    fn answered(&mut self, answers: Vec<Answered>, thinking: String) -> Fact {
        let mut whole = Answer::default();
        for (part, answered) in answers.into_iter().enumerate() {
            self.notify_fallback(&answered);
            self.account.record_cost(answered.total_cost().picodollars());
            if let Some(entry) = self.environment.chain.catalog().get(&answered.model) {
                self.account.saved_pico_usd +=
                    saved_by_cache(&entry.model, answered.charge.usage).picodollars();
            }
            self.account.record_attempts(answered.attempts);
            self.account.model = Some(answered.model);
            if part == 0 {
                whole = answered.answer;
                continue;
            }
            let Answer { text, calls, cut_call, finish, usage, model, thoughts, thinking: _ } =
                answered.answer;
            whole.text.push_str(&text);
            whole.calls.extend(calls);
            let mut sum = whole.usage.unwrap_or_default();
            sum.add(usage.unwrap_or_default());
            whole.usage = Some(sum);
            whole = Answer { cut_call, finish, model, thoughts, ..whole };
        }
        if cut_at_stop(self.stops(), &mut whole.text) {
            // What came after it does not count.
            (whole.calls, whole.cut_call, whole.finish) = (Vec::new(), None, Finish::Stop);
        }
        let micro_usd = self.account.take_unreported_micro_usd();
        self.withheld = self.withholds_text();
        whole.thinking = thinking;
        let mut answer = super::persistence::bound_answer(whole, self.max_answer_bytes());
        self.issue_calls(&mut answer);
        Fact::Answered { answer, micro_usd }
    }

    /// Notifies people that another model answered than the first choice.
    fn notify_fallback(&self, answered: &Answered) {
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
    }

    fn exhausted(&mut self, exhausted: ExhaustedError) -> Failure {
        let word = match &exhausted.reason {
            ExhaustedReason::NoRoute(error) => route_error_word(error),
            ExhaustedReason::OverBudget(_) | ExhaustedReason::Account(_) => "over_budget",
            ExhaustedReason::Final(error) => final_error_word(error.class),
            ExhaustedReason::AllFailed
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

/// The error word of an error that has to be mended before anything is asked again.
fn final_error_word(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Context => "context_full",
        ErrorClass::Auth => "key_refused",
        ErrorClass::Request => "request_refused",
        // Another model is asked after these, so they end no chain.
        ErrorClass::Billing
        | ErrorClass::RateLimit
        | ErrorClass::Timeout
        | ErrorClass::Network
        | ErrorClass::Server => "exhausted",
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
    } else if all.contains(&&RejectionReason::NoVision) {
        "no_vision"
    } else {
        "no_provider"
    }
}

/// The note by which a cut answer is continued.
const CONTINUE: &str = "[Note of the agent, not of the user: your answer was cut off at your limit of tokens. Continue exactly where it \
stops, in the middle of a word if necessary. Repeat nothing, and say nothing about the cut.]";

/// Whether an answer is a text that was cut at the model's limit of tokens.
fn is_cut(answer: &Answer) -> bool {
    answer.finish == Finish::Length
        && answer.cut_call.is_none()
        && answer.calls.is_empty()
        && !answer.text.trim().is_empty()
}

/// How much of the thoughts of one answer is stored for people. 16 KiB: some pages, which with the arguments of its calls and what the
/// provider wants to see again stay below the store's megabyte. The rest is left out.
const MAX_THINKING_BYTES: usize = 16 << 10;

/// Forwards an answer's pieces to the listener.
struct Forward<'a> {
    listener: &'a dyn Listener,
    /// The text so far: all that remains if the turn ends in the middle of an answer.
    partial: String,
    /// What the model thought in it: at most [`MAX_THINKING_BYTES`].
    thinking: String,
    /// What holds whatever becomes of the present attempt: the parts of a cut answer that is being continued.
    prefix: String,
    /// Whether pieces of the answer stay here, since hooks have not seen it.
    withholds: bool,
    /// Where the answer ends, as its client said.
    stops: StopFilter,
}

impl Forward<'_> {
    /// Passes on what waited for the rest of the answer.
    fn end(&mut self) {
        let text = self.stops.end();
        self.partial.push_str(&text);
        if !text.is_empty() && !self.withholds {
            self.listener.on_chunk(Kind::Text(agent::Text { text, whole: false }));
        }
    }
}

impl AnswerListener for Forward<'_> {
    fn on_event(&mut self, event: AnswerEvent) {
        let kind = match event {
            AnswerEvent::Piece(Chunk::Text(text)) => {
                let text = self.stops.push(text);
                self.partial.push_str(&text);
                if self.withholds || text.is_empty() {
                    return;
                }
                Kind::Text(agent::Text { text, whole: false })
            }
            // A thought may say what the answer must not.
            AnswerEvent::Piece(Chunk::Thinking(_)) if self.withholds => return,
            AnswerEvent::Piece(Chunk::Thinking(text)) => {
                let room = MAX_THINKING_BYTES.saturating_sub(self.thinking.len());
                self.thinking.push_str(&text[..text.floor_char_boundary(room)]);
                Kind::Thinking(agent::Thinking { text })
            }
            // Clients receive a call when it is made.
            AnswerEvent::Piece(Chunk::Call(_)) => return,
            AnswerEvent::Waiting { model, wait, class } => {
                let text = format!(
                    "{model} takes no request now ({}): waiting {} s for it, since no other model is ready.",
                    retry::word(class),
                    wait.as_millis().div_ceil(1000)
                );
                Kind::Notice(agent::Notice { level: "info".to_owned(), text, discard_text: false })
            }
            AnswerEvent::Withdrawn { model, class } => {
                let text = format!(
                    "{model} failed in the middle of its answer ({}): what it said so far does not count.",
                    retry::word(class)
                );
                let notice = agent::Notice { level: "warn".to_owned(), text, discard_text: true };
                self.listener.on_chunk(Kind::Notice(notice));
                self.partial.clone_from(&self.prefix);
                self.thinking.clear();
                self.stops.restart();
                if self.prefix.is_empty() || self.withholds {
                    return;
                }
                // Clients have discarded the parts that hold, too.
                Kind::Text(agent::Text { text: self.prefix.clone(), whole: false })
            }
        };
        self.listener.on_chunk(kind);
    }
}
