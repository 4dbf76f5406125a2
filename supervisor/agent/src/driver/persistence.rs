//! What a turn writes to its journal, within size limits, and how it is closed.

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use talon_guard::{Sanitizer, Wrapped};
use talon_llm::model::{Answer, Arguments, Finish};

use super::CompletedTurn;
use super::begin::store_failure;
use super::drive::TurnRun;
use crate::journal::{JournalEntry, JournalError, TurnOutcome};
use crate::loop_context::Failure;
use crate::machine::State;
use crate::question::Question;
use crate::tokens::{Estimate, cut};
use crate::tool_result::ToolResult;

/// The longest text of an answer. The store takes a megabyte per message; a longer text is truncated, and the
/// answer marked as cut off.
const MAX_TEXT_BYTES: usize = 1_000_000;
/// The most bytes of arguments of all calls of one answer, since they share a megabyte with the metadata. A
/// call whose arguments exceed it goes back to the model as unreadable.
const MAX_ARGUMENTS_BYTES: usize = 640 << 10;
/// The longest name that a model or provider made up: tool names have at most 64 bytes, model names fewer.
const MAX_NAME_BYTES: usize = 256;
/// How much of such arguments is stored, to show what they were.
const MAX_SHOWN_BYTES: usize = 200;
/// Longer thoughts are not sent back to the model.
const MAX_THOUGHTS_BYTES: usize = 256 << 10;
/// The longest result. 50,000 tokens are a quarter of most windows, and stay below the store's megabyte in any
/// script.
const MAX_RESULT_TOKENS: usize = 50_000;
/// The longest tool output that is stored to compare results; a longer one is replaced by its digest.
const MAX_SAID_BYTES: usize = 4 << 10;
/// How long a finished turn waits until its parked calls are cancelled, and until its lessons are stored:
/// both write to the agent's own database.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a turn waits for one entry to reach the disk. 10 s: a write that usually takes milliseconds then
/// takes a thousand times as long, and the turn ends because it cannot be stored. Not configurable.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Ends the turn if a write hangs, as if it had failed. The entry may still reach the disk; the journal is
/// read so that such an entry only adds knowledge.
pub(super) async fn with_write_timeout<T>(
    write: impl Future<Output = Result<T, JournalError>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(WRITE_TIMEOUT, write).await {
        Ok(written) => written.map_err(store_failure),
        Err(_) => Err(Failure::Store(format!(
            "the agent's database did not write within {} s: look at its disk, and at `talon status`",
            WRITE_TIMEOUT.as_secs()
        ))),
    }
}

impl TurnRun<'_> {
    /// Writes an entry with those that are not written yet, and adds it to the transcript.
    pub(super) async fn write(&mut self, entry: JournalEntry) -> Result<(), Failure> {
        self.write_later(entry);
        self.write_unwritten().await
    }

    /// Adds an entry to the transcript, and leaves it to the next write, or to the hooks that run next: if they take long, it reaches
    /// the disk while they run. Nothing that would be lost or done twice without it may happen before.
    pub(super) fn write_later(&mut self, entry: JournalEntry) {
        self.transcript.apply(self.spec.caller.turn, &entry);
        if self.spec.journal.is_some() {
            self.unwritten.push(entry);
        }
    }

    /// Writes what is not written yet.
    pub(super) async fn write_unwritten(&mut self) -> Result<(), Failure> {
        let entries = std::mem::take(&mut self.unwritten);
        self.append(entries).await
    }

    /// Appends entries that are in the transcript already.
    pub(super) async fn append(&self, entries: Vec<JournalEntry>) -> Result<(), Failure> {
        match &self.spec.journal {
            Some(journal) if !entries.is_empty() => {
                with_write_timeout(journal.add_all(self.spec.caller.turn, entries)).await
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn append_answer(&mut self) -> Result<(), Failure> {
        let Some(answer) = self.turn.context().answer().cloned() else { return Ok(()) };
        let is_hooked_next = answer.calls.is_empty() && self.has_response_hooks() && !self.already_written;
        let (micro_usd, withheld) = (self.account.last_micro_usd, self.withheld);
        let entry = JournalEntry::Answered { answer: Box::new(answer), micro_usd, withheld };
        if is_hooked_next {
            self.write_later(entry);
            return Ok(());
        }
        self.write_unless_rebuilt(entry).await
    }

    pub(super) async fn append_results(&mut self) -> Result<(), Failure> {
        // The machine no longer has them: it waits for the next answer.
        let (calls, results) = std::mem::take(&mut self.batch);
        self.remember(&calls, &results);
        self.write_unless_rebuilt(JournalEntry::CallsFinished(results)).await
    }

    /// Adds a note of the agent. A note that an interrupted turn had written is reused.
    pub(super) async fn note(&mut self, text: String, feedback: bool) -> Result<(), Failure> {
        if !self.replay.is_empty() {
            self.rebuild_notes();
            return Ok(());
        }
        self.write(JournalEntry::Noted { text, feedback }).await
    }

    pub(super) fn rebuild_notes(&mut self) {
        while let Some(JournalEntry::Noted { .. }) = self.replay.front() {
            if let Some(note) = self.replay.pop_front() {
                self.transcript.apply(self.spec.caller.turn, &note);
            }
        }
    }

    async fn write_unless_rebuilt(&mut self, entry: JournalEntry) -> Result<(), Failure> {
        if self.already_written {
            self.transcript.apply(self.spec.caller.turn, &entry);
            return Ok(());
        }
        self.write(entry).await
    }

    /// Writes that a call starts, and waits for the disk: a call without this entry is made again after a
    /// restart.
    pub(super) async fn journal_began(&self, place: usize) -> Result<(), Failure> {
        let Some(journal) = &self.spec.journal else { return Ok(()) };
        with_write_timeout(journal.add(self.spec.caller.turn, JournalEntry::CallStarted { place })).await
    }

    /// Writes that a call waits for the answer to its plugin's question, and waits for the disk: so a restart asks
    /// again, in place of calling that lost.
    pub(super) async fn journal_parked(&self, place: usize, question: &Question) -> Result<(), Failure> {
        let Some(journal) = &self.spec.journal else { return Ok(()) };
        let entry = JournalEntry::CallParked { place, question: Box::new(question.clone()) };
        with_write_timeout(journal.add(self.spec.caller.turn, entry)).await
    }

    /// Stores a result while other calls still run. If this write fails, the entry with all results reports
    /// it.
    pub(super) async fn journal_early_result(&self, place: usize, result: &ToolResult) {
        let Some(journal) = &self.spec.journal else { return };
        let entry = JournalEntry::CallFinished { place, result: result.clone() };
        if let Err(error) = with_write_timeout(journal.add(self.spec.caller.turn, entry)).await {
            tracing::warn!(target: "agent", session = %self.spec.caller.session, %error, "a result was not stored early");
        }
    }

    /// Closes the turn in the journal, and stores what can be learned from it.
    ///
    /// # Errors
    /// If the answer itself was to be written with the turn's end, as it is where response hooks saw it, and was not. A failure does
    /// not take an answer away that is stored already.
    pub(super) async fn store(&mut self) -> Result<(), Failure> {
        self.replay.clear();
        let success = self.turn.state() == State::Finalize;
        let is_answer_unwritten = success && !self.unwritten.is_empty();
        let totals = Some(Box::new(self.totals(success)));
        let ended = match self.turn.context().failure_report().filter(|_| !success) {
            Some(end) => TurnOutcome {
                reason: self.word(&end.reason).to_owned(),
                message: end.sentence,
                partial: if self.withholds_text() { String::new() } else { bounded_text(&self.partial_text) },
                note: note(&end.reason, !self.has_no_request()),
                totals,
            },
            None => TurnOutcome { reason: "done".to_owned(), totals, ..TurnOutcome::default() },
        };
        if let Err(error) = self.write(JournalEntry::Ended(ended)).await {
            tracing::error!(target: "agent", session = %self.spec.caller.session, %error, "a turn's end was not stored");
            if is_answer_unwritten {
                self.close().await;
                return Err(error);
            }
            self.notice("warn", format!("The end of this turn was not stored, and it will be taken for an interrupted one. {error}"));
        }
        self.send_checked_text();
        self.close().await;
        let is_stateless = self.spec.client.as_ref().is_some_and(|client| client.is_stateless);
        if !self.spec.caller.subagent.is_empty() || self.has_no_request() || is_stateless {
            return Ok(());
        }
        let learned = CompletedTurn {
            caller: self.spec.caller.clone(),
            request: self.spec.request.clone(),
            calls: self.account.calls.clone(),
            success,
            followed: self.recalled.followed.clone(),
            confined: super::is_confined(&self.spec.pins),
        };
        if tokio::time::timeout(CLOSE_TIMEOUT, self.environment.recall.learn(learned)).await.is_err() {
            tracing::warn!(target: "agent", session = %self.spec.caller.session, "nothing was learned of a turn: it took too long");
        }
        Ok(())
    }

    /// Cancels the calls that wait for a person.
    async fn close(&self) {
        let let_go = self.environment.approver.turn_ended(&self.spec.caller);
        if tokio::time::timeout(CLOSE_TIMEOUT, let_go).await.is_err() {
            tracing::warn!(target: "agent", session = %self.spec.caller.session, "parked calls were not cancelled in time");
        }
    }
}

/// The note for the model in the next turn on how this one ended.
fn note(failure: &Failure, has_request: bool) -> String {
    let what = match failure {
        Failure::Limit(limit) => return limit.for_model(),
        Failure::Answer(_) => "your answers were not what was asked for",
        Failure::Model(_) => "no model answered",
        Failure::Store(_) => "it could not be stored",
        Failure::Window(_) => "it did not fit the model's window",
        Failure::Unanswered(_) => "the user did not answer your question in time",
        Failure::Cancelled => "the user ended it",
        // Of a message that was dropped models learn nothing, not even that there was one.
        Failure::Dropped(_) | Failure::Hook(_) if !has_request => return String::new(),
        Failure::Dropped(_) => "your answer was withheld from the user",
        Failure::Hook(_) => "a check of your answer failed, and the user did not get it",
        Failure::Internal(_) => "something went wrong inside the agent",
    };
    format!("[The turn was ended before a final answer: {what}. Do not begin it anew unasked.]")
}

/// What can be stored of a text.
fn bounded_text(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT_BYTES)].trim().to_owned()
}

/// Limits an answer to what can be stored; its text to fewer bytes, if so asked.
pub(super) fn bound_answer(mut answer: Answer, max_text_bytes: Option<usize>) -> Answer {
    let most = max_text_bytes.unwrap_or(MAX_TEXT_BYTES);
    if answer.text.len() > most {
        let end = answer.text.floor_char_boundary(most);
        answer.text.truncate(end);
        answer.finish = Finish::Length;
    }
    let mut room = MAX_ARGUMENTS_BYTES;
    for (place, call) in answer.calls.iter_mut().enumerate() {
        truncate_name(&mut call.name);
        if call.id.len() > MAX_NAME_BYTES {
            call.id = format!("call-{place}");
        }
        let text = serde_json::to_string(&call.arguments).unwrap_or_default();
        match room.checked_sub(text.len()) {
            Some(left) => room = left,
            None => {
                let shown = &text[..text.floor_char_boundary(MAX_SHOWN_BYTES)];
                call.arguments =
                    Arguments::Unreadable(format!("{shown}… ({} bytes are too many)", text.len()));
            }
        }
    }
    answer.cut_call.as_mut().map(truncate_name);
    truncate_name(&mut answer.model);
    answer.thoughts =
        answer.thoughts.filter(|thoughts| thoughts.data.to_string().len() <= MAX_THOUGHTS_BYTES);
    answer
}

/// Truncates a name that is longer than real names are.
fn truncate_name(name: &mut String) {
    name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
}

/// Limits a result to what can be stored. Machine and journal get the same, so that a resumed turn compares
/// equal results.
pub(super) fn bound_result(result: ToolResult, sanitizer: &Sanitizer) -> ToolResult {
    let ToolResult { outcome: ran, mut block, output: mut said, provenance } = result;
    // A token has at least one byte, so most results need not be counted.
    if block.len() > MAX_RESULT_TOKENS {
        block = match Wrapped::parse(&block, sanitizer) {
            Some(whole) => cut::block(&whole, MAX_RESULT_TOKENS, None, &Estimate, sanitizer).into_string(),
            None => cut::plain(&block, MAX_RESULT_TOKENS, &Estimate),
        };
    }
    if said.len() > MAX_SAID_BYTES {
        said = format!("sha256:{}", hex::encode(Sha256::digest(&said)));
    }
    ToolResult { outcome: ran, block, output: said, provenance }
}

#[cfg(test)]
#[path = "persistence_tests.rs"]
mod tests;
