//! The running summary of what is no longer shown, written by a cheap model.
//!
//! One question covers as many messages as fit; more messages take several questions, each of which continues
//! from the previous summary. Summarized messages stay in the store. Without a model that summarizes, they
//! are only no longer shown: a question says how much of the conversation is missing.

use std::collections::BTreeSet;
use std::time::SystemTime;

use talon_llm::model::{Message, Request, Usage};
use talon_llm::route::Task;
use talon_llm::route::catalog::ModelRef;
use talon_llm::route::cost::Day;
use talon_llm::route::fallback::{AnswerEvent, Answered, Attempt, Chain, ChainRequest, ExhaustedError};
use talon_llm::route::router::Pins;
use tokio::time::Instant;

use crate::context::{HistoryMessage, Pressure, Sections, Summary, Window, count_messages, request};
use crate::journal::{Journal, JournalError};
use crate::tokens::{Estimate, TokenCounter, counter_for, cut};

/// The most tokens that one question covers. 8,000 tokens are about twenty turns, and fit into the window of
/// every current model.
const MAX_QUESTION_TOKENS: usize = 8_000;
/// The tokens of one message: it is truncated to 400, plus its fence.
const MAX_MESSAGE_TOKENS: usize = 450;
/// A summary may be this many times longer than what is shown of it; a model that writes more has not
/// summarized.
const KEPT_SECTIONS: usize = 2;
/// The most questions to compact a session: about 250,000 tokens. A longer session needs another run.
const MAX_QUESTIONS: usize = 32;
/// The divisor of the summarizing model's window: question and answer together leave half of it free.
const WINDOW_SHARE: usize = 2;

/// The result of one question.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryStep {
    /// The new summary.
    pub summary: Summary,
    /// The number of messages that it covers.
    pub taken: usize,
    /// Its cost, in picodollars.
    pub pico_usd: u128,
    /// Tokens of question and answer.
    pub usage: Usage,
    /// The models that saw the messages.
    pub models: Vec<String>,
    /// The answer that it is made of.
    pub answered: Box<Answered>,
}

/// For whom a summary is written, and which models may see it.
#[derive(Debug, Clone, Copy)]
pub struct SummaryScope<'a> {
    /// The session.
    pub session: &'a str,
    /// The pins.
    pub pins: &'a Pins,
    /// When it is of no use any more.
    pub deadline: Option<Instant>,
}

fn models(attempts: &[Attempt]) -> Vec<String> {
    attempts.iter().map(|attempt| format!("{}/{}", attempt.provider, attempt.model)).collect()
}

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// No model answered.
    #[error(transparent)]
    NoAnswer(Box<ExhaustedError>),
    /// The answer is empty.
    #[error("{model} wrote an empty summary")]
    Empty {
        /// The model.
        model: ModelRef,
    },
}

/// Adds the first of these messages to the summary with one question: whole turns if at least one fits.
///
/// # Errors
/// [`SummaryError`]
pub async fn extend_summary(
    chain: &Chain,
    scope: SummaryScope<'_>,
    old: &Summary,
    past: &[HistoryMessage],
    sections: &Sections,
) -> Result<SummaryStep, SummaryError> {
    let nothing = Request::default();
    let (counter, room) = count_question(chain, &summary_request(&nothing, scope, 0), sections);
    let taken = prefix_len(past, room, counter);
    let messages: Vec<Message> = past[..taken].iter().map(|past| past.message.clone()).collect();
    let question = Request { messages: request(old, &messages, sections, counter), ..Request::default() };
    let tokens = u64::try_from(count_messages(&question.messages, counter)).unwrap_or(u64::MAX);
    let answered = chain.ask(&summary_request(&question, scope, tokens), &mut |_: AnswerEvent| {}).await;
    let answered = answered.map_err(|exhausted| SummaryError::NoAnswer(Box::new(exhausted)))?;
    let text = answered.answer.text.trim();
    if text.is_empty() {
        return Err(SummaryError::Empty { model: answered.model });
    }
    let text = cut::plain(text, sections.summary.saturating_mul(KEPT_SECTIONS), counter);
    Ok(SummaryStep {
        summary: old.replaced(text, &messages, counter),
        taken,
        pico_usd: answered.total_cost().picodollars(),
        usage: answered.charge.usage,
        models: models(&answered.attempts),
        answered: Box::new(answered),
    })
}

fn summary_request<'a>(request: &'a Request, scope: SummaryScope<'a>, input_tokens: u64) -> ChainRequest<'a> {
    let SummaryScope { session, pins, deadline } = scope;
    let day = Day::of(SystemTime::now());
    ChainRequest {
        request,
        task: Task::Summarization,
        complexity: None,
        input_tokens,
        vision: false,
        pins,
        session,
        plugin: None,
        account: None,
        day,
        deadline,
    }
}

/// The token counter of the model that would be asked, and the question's tokens.
fn count_question(
    chain: &Chain,
    ask: &ChainRequest<'_>,
    sections: &Sections,
) -> (&'static dyn TokenCounter, usize) {
    // Where a window is used, its summaries are made from more than the founding amount at once.
    let most = match sections.pressure {
        Pressure::Constant => MAX_QUESTION_TOKENS,
        Pressure::WhenFull { .. } => usize::MAX,
    };
    let route = chain.route(ask).ok().map(|(_, route)| route);
    let entry = route.as_ref().and_then(|route| chain.catalog().get(&route.candidates.first()?.model));
    match entry {
        Some(entry) => {
            let window = usize::try_from(entry.model.context_window).unwrap_or(usize::MAX);
            let room = Window(window).comfortable() / WINDOW_SHARE;
            (counter_for(&entry.id.name), room.min(most))
        }
        // No model can be asked now, and it is unknown which one will be available first.
        None => (&Estimate, MAX_QUESTION_TOKENS),
    }
}

/// How many messages one question covers: as many turns as fit, or the beginning of one that does not. A call
/// and its results stay together, and at least one message is covered.
fn prefix_len(past: &[HistoryMessage], room: usize, counter: &dyn TokenCounter) -> usize {
    let (mut tokens, mut whole, mut part) = (0, 0, 0);
    for (i, one) in past.iter().enumerate() {
        let next = past.get(i + 1);
        tokens += count_messages(std::slice::from_ref(&one.message), counter).min(MAX_MESSAGE_TOKENS);
        if tokens > room && part > 0 {
            break;
        }
        if next.is_none_or(|next| !matches!(next.message, Message::Tool { .. })) {
            part = i + 1;
        }
        if next.is_none_or(|next| next.turn != one.turn) {
            whole = i + 1;
        }
    }
    if whole > 0 { whole } else { part }
}

/// The result of compacting a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Compacted {
    /// Messages added to the summary.
    pub messages: u64,
    /// The tokens shown to a model before, if nothing were truncated.
    pub tokens_before: u64,
    /// The tokens shown now.
    pub tokens_after: u64,
    /// The summary.
    pub summary: String,
    /// The cost, in picodollars.
    pub pico_usd: u128,
}

/// A session was not compacted, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// It could not be read or written.
    #[error("{0}")]
    Journal(#[from] JournalError),
    /// No model summarized it.
    #[error("no model wrote a summary, and the session stays as it was: {0}")]
    Model(#[from] SummaryError),
}

/// Replaces all but the latest `keep_turns` turns of a session by a summary. No turn may run in it.
///
/// # Errors
/// [`CompactError`]; earlier steps stay in effect.
pub async fn compact(
    chain: &Chain,
    journal: &dyn Journal,
    scope: SummaryScope<'_>,
    sections: &Sections,
    keep_turns: usize,
) -> Result<Compacted, CompactError> {
    let (past, summary) = journal.past().await?;
    let counter = &Estimate;
    let tokens = |past: &[HistoryMessage], summary: &Summary| {
        let messages: Vec<Message> = past.iter().map(|past| past.message.clone()).collect();
        (count_messages(&messages, counter) + counter.count(&summary.text)) as u64
    };
    let end = older_len(&past, keep_turns);
    let mut compacted = Compacted {
        tokens_before: tokens(&past, &summary),
        tokens_after: tokens(&past, &summary),
        summary: summary.text.clone(),
        ..Compacted::default()
    };
    let mut running = RunningSummary::new(summary, 0);
    for _ in 0..MAX_QUESTIONS {
        if running.taken >= end {
            break;
        }
        running.extend(chain, scope, &past[..end], sections).await?;
        compacted.pico_usd = running.pico_usd;
        let done = running.persist(journal).await?;
        if done > 0 {
            compacted.messages = done as u64;
            compacted.tokens_after = tokens(&past[done..], &running.summary);
            compacted.summary.clone_from(&running.summary.text);
        }
    }
    Ok(compacted)
}

/// The index at which the latest turns begin.
fn older_len(past: &[HistoryMessage], keep_turns: usize) -> usize {
    let turns: Vec<&[HistoryMessage]> = past.chunk_by(|a, b| a.turn == b.turn).collect();
    let gone = turns.len().saturating_sub(keep_turns);
    turns.iter().take(gone).map(|turn| turn.len()).sum()
}

/// A summary that grows message by message, and is stored whenever it covers whole turns.
#[derive(Debug)]
pub(crate) struct RunningSummary {
    pub(crate) summary: Summary,
    /// Messages covered in this run.
    pub(crate) taken: usize,
    /// Messages covered before, without the journal knowing it.
    before: usize,
    /// How many of all these the journal knows of.
    known: usize,
    /// Whether it ends with a turn.
    whole: bool,
    pub(crate) pico_usd: u128,
    pub(crate) usage: Usage,
    /// The models that saw the messages.
    pub(crate) models: BTreeSet<String>,
}

impl RunningSummary {
    /// Continues a summary. `before` is the number of messages that it covers already and that the journal
    /// still has.
    pub(crate) fn new(summary: Summary, before: usize) -> Self {
        Self {
            summary,
            taken: 0,
            before,
            known: 0,
            whole: true,
            pico_usd: 0,
            usage: Usage::default(),
            models: BTreeSet::new(),
        }
    }

    /// Extends the summary by one question, and returns its answer.
    pub(crate) async fn extend(
        &mut self,
        chain: &Chain,
        scope: SummaryScope<'_>,
        past: &[HistoryMessage],
        sections: &Sections,
    ) -> Result<Box<Answered>, SummaryError> {
        let written = extend_summary(chain, scope, &self.summary, &past[self.taken..], sections).await;
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                if let SummaryError::NoAnswer(exhausted) = &error {
                    self.models.extend(models(&exhausted.attempts));
                }
                return Err(error);
            }
        };
        self.taken += written.taken;
        self.summary = written.summary;
        self.pico_usd += written.pico_usd;
        self.usage.add(written.usage);
        self.models.extend(written.models);
        let last = self.taken.checked_sub(1).and_then(|last| past.get(last));
        self.whole = match (last, past.get(self.taken)) {
            (Some(last), Some(next)) => last.turn != next.turn,
            _ => true,
        };
        Ok(written.answered)
    }

    /// Stores the summary if it covers whole turns. Returns how many messages it replaces in the journal.
    pub(crate) async fn persist(&mut self, journal: &dyn Journal) -> Result<usize, JournalError> {
        let all = self.before + self.taken;
        if self.whole && all > self.known {
            journal.summarized(all - self.known, self.summary.clone()).await?;
            self.known = all;
        }
        Ok(self.known)
    }

    /// The number of messages that it covers and the journal still has.
    pub(crate) fn unpersisted(&self) -> usize {
        self.before + self.taken - self.known
    }
}

#[cfg(test)]
mod tests;
