//! Moves what no longer fits into a question to the running summary.

use std::ops::Range;

use talon_llm::model::Message;
use tokio::time::Instant;

use super::drive::TurnRun;
use crate::compress::{self, SummaryScope};
use crate::context::{Pressure, count_messages};
use crate::loop_context::Failure;
use crate::tokens::TokenCounter;

/// The most summarizing questions before one question of the turn. Three of them cover 24,000 tokens; the
/// rest follows before the next question, and is marked as missing until then.
const MAX_SUMMARIES: usize = 3;

impl TurnRun<'_> {
    /// Summarizes what does not fit, as far as a few questions can. Without a summary the question says what
    /// is missing.
    pub(super) async fn summarize(
        &mut self,
        left_out: &[Range<usize>],
        counter: &dyn TokenCounter,
    ) -> Result<(), Failure> {
        let now = self.spec.caller.turn;
        let older = left_out.first().filter(|range| range.start == 0).map_or(0, |range| range.end);
        let older = self.transcript.messages()[..older].iter().take_while(|past| past.turn != now).count();
        let mut left = MAX_SUMMARIES;
        if older > 0 && !self.summarize_range(0..older, true, &mut left).await? {
            return Ok(());
        }
        let gone = older;
        let Some(within) = left_out.iter().find(|range| range.start >= gone && !range.is_empty()) else {
            return Ok(());
        };
        // This turn's messages stay in the journal until its end; a summary of a part of them is for this
        // turn alone.
        let within = self.older_turn_messages(within.start - gone..within.end - gone, counter);
        self.summarize_range(within, false, &mut left).await.map(drop)
    }

    /// Adds a range of messages to the summary. Returns whether it covers the whole range.
    async fn summarize_range(
        &mut self,
        range: Range<usize>,
        keep: bool,
        left: &mut usize,
    ) -> Result<bool, Failure> {
        let past = self.transcript.messages()[range.clone()].to_vec();
        let mut running =
            compress::RunningSummary::new(self.summary.clone(), if keep { self.unkept } else { 0 });
        let mut failed = None;
        while running.taken < past.len() && *left > 0 {
            *left -= 1;
            let pins = self.spec.pins.or_model(self.spec.summaries.as_ref());
            let deadline = Some(Instant::now() + self.time_left());
            let scope = SummaryScope { session: &self.spec.caller.session, pins: &pins, deadline };
            let span = self.begin_summary_span();
            let extension = running.extend(&self.environment.chain, scope, &past, &self.sections);
            let said = self.unless_stopped(extension).await;
            self.end_summary_span(span, &said);
            if let Err(error) = said? {
                failed = Some(error.to_string());
                break;
            }
            if let Some(journal) = self.spec.journal.as_ref().filter(|_| keep)
                && let Err(error) = running.persist(&**journal).await
            {
                failed = Some(error.to_string());
            }
        }
        self.account.record_cost(running.pico_usd);
        self.account.usage.add(running.usage);
        self.account.models.extend(std::mem::take(&mut running.models));
        self.transcript.forget(range.start..range.start + running.taken);
        if keep {
            self.unkept = running.unpersisted();
        }
        let all = running.taken == past.len();
        self.summary = running.summary;
        if let Some(why) = failed {
            tracing::warn!(target: "agent", session = %self.spec.caller.session, %why, "older turns were not summarized");
            self.notice("warn", format!("Older turns are left out and could not be summarized: {why}"));
        }
        Ok(all)
    }

    /// The messages of this turn that do not fit, with enough of the following ones to free half of the
    /// section: otherwise a summary would be due before each question.
    fn older_turn_messages(&self, range: Range<usize>, counter: &dyn TokenCounter) -> Range<usize> {
        if self.sections.pressure != Pressure::Constant {
            return range;
        }
        let messages = self.transcript.messages();
        let is_exchange =
            |message: &Message| matches!(message, Message::Assistant { calls, .. } if !calls.is_empty());
        let latest = messages.iter().rposition(|past| is_exchange(&past.message)).unwrap_or(range.end);
        let (mut end, mut tokens) = (latest.max(range.end), 0);
        for at in (range.end..latest).rev() {
            let message = &messages[at].message;
            tokens += count_messages(std::slice::from_ref(message), counter);
            if tokens > self.sections.recent / 2 {
                break;
            }
            if !matches!(message, Message::Tool { .. }) {
                end = at;
            }
        }
        range.start..end
    }
}
