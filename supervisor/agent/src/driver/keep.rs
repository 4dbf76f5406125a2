//! What a turn writes down, bounded, and how it is closed.

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use talon_guard::{Sanitizer, Wrapped};
use talon_llm::model::{Answer, Arguments, Finish};

use super::begin::stored;
use super::drive::Running;
use super::{Ended, Entry, JournalError, Learned};
use crate::context::{Estimate, cut};
use crate::loop_context::{Failure, ToolResult};
use crate::machine::State;

/// What is kept of an answer's text. The store takes a megabyte a message; a model that says more in one answer has its end left out,
/// and the answer is marked as cut off.
const MAX_TEXT_BYTES: usize = 1_000_000;
/// What is kept of the arguments of all calls of an answer together, for they share a megabyte with what stands beside them. A call
/// whose arguments have no room any more is sent back to the model as one that cannot be read.
const MAX_ARGUMENTS_BYTES: usize = 640 << 10;
/// What is kept of names that a model or a provider made up: tools' names have 64, models' fewer.
const MAX_NAME_BYTES: usize = 256;
/// What of such arguments is kept, to say what they were.
const MAX_SHOWN_BYTES: usize = 200;
/// A model's thoughts beyond this are not sent back to it.
const MAX_THOUGHTS_BYTES: usize = 256 << 10;
/// What is kept of a result. A model is shown 500 tokens of it, and of an older one 150; 50,000 are for who reads the session, and
/// stay below the megabyte that the store takes in any script.
const MAX_RESULT_TOKENS: usize = 50_000;
/// What a tool said is kept to tell one result from another; a longer text is by its digest.
const MAX_SAID_BYTES: usize = 4 << 10;
/// How long a turn that is over waits until what it parked is let go of, and for what is learned of it: writes to the agent's own
/// database.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// How long a turn waits for one entry to be on the disk. 10 s: what takes milliseconds then takes a thousand times as long, and the
/// turn ends as one that cannot be stored. To be changed here.
const WRITE_WITHIN: Duration = Duration::from_secs(10);

/// A write that does not come back ends the turn like one that fails. It may be on the disk for all that; the journal is read so that an
/// entry which was given up changes nothing but what is known.
async fn in_time(write: impl Future<Output = Result<(), JournalError>>) -> Result<(), Failure> {
    match tokio::time::timeout(WRITE_WITHIN, write).await {
        Ok(written) => written.map_err(stored),
        Err(_) => Err(Failure::Store(format!(
            "the agent's database did not write within {} s: look at its disk, and at `talon status`",
            WRITE_WITHIN.as_secs()
        ))),
    }
}

impl Running<'_> {
    /// Writes an entry down, and adds it to what a model is shown.
    pub(super) async fn write(&mut self, entry: Entry) -> Result<(), Failure> {
        let turn = self.spec.caller.turn;
        if let Some(journal) = &self.spec.journal {
            in_time(journal.add(turn, entry.clone())).await?;
        }
        self.said.take(turn, &entry);
        Ok(())
    }

    pub(super) async fn append_answer(&mut self) -> Result<(), Failure> {
        let Some(answer) = self.turn.context().answer().cloned() else { return Ok(()) };
        let entry = Entry::Answered { answer: Box::new(answer), micro_usd: self.account.last_micro_usd };
        self.write_unless_rebuilt(entry).await
    }

    pub(super) async fn append_results(&mut self) -> Result<(), Failure> {
        // The machine has let go of them: it waits for the next answer.
        let (calls, results) = std::mem::take(&mut self.batch);
        self.remember(&calls, &results);
        self.write_unless_rebuilt(Entry::Executed(results)).await
    }

    /// A note of ours. One that an interrupted turn had made is taken as it was.
    pub(super) async fn note(&mut self, text: String, feedback: bool) -> Result<(), Failure> {
        if !self.replay.is_empty() {
            self.rebuild_notes();
            return Ok(());
        }
        self.write(Entry::Noted { text, feedback }).await
    }

    pub(super) fn rebuild_notes(&mut self) {
        while let Some(Entry::Noted { .. }) = self.replay.front() {
            if let Some(note) = self.replay.pop_front() {
                self.said.take(self.spec.caller.turn, &note);
            }
        }
    }

    async fn write_unless_rebuilt(&mut self, entry: Entry) -> Result<(), Failure> {
        if self.kept {
            self.said.take(self.spec.caller.turn, &entry);
            return Ok(());
        }
        self.write(entry).await
    }

    /// A call is begun. It waits until that is on the disk: a call that is not known to have been begun is made again.
    pub(super) async fn journal_began(&self, place: usize) -> Result<(), Failure> {
        let Some(journal) = &self.spec.journal else { return Ok(()) };
        in_time(journal.add(self.spec.caller.turn, Entry::Began { place })).await
    }

    /// A result comes while others are still waited for. If it cannot be written now, that of all of them will say so.
    pub(super) async fn keep_early(&self, place: usize, result: &ToolResult) {
        let Some(journal) = &self.spec.journal else { return };
        let entry = Entry::Brought { place, result: result.clone() };
        if let Err(error) = in_time(journal.add(self.spec.caller.turn, entry)).await {
            tracing::warn!(target: "agent", session = %self.spec.caller.session, %error, "a result was not stored early");
        }
    }

    /// Closes the turn in the journal, and has what can be learned of it remembered. Neither takes an answer away from who waits for
    /// it: what of the turn happened is there already.
    pub(super) async fn store(&mut self) {
        self.replay.clear();
        let success = self.turn.state() == State::Finalize;
        let ended = match self.turn.context().end().filter(|_| !success) {
            Some(end) => Ended {
                reason: self.word(&end.reason).to_owned(),
                message: end.sentence,
                note: note(&end.reason),
            },
            None => Ended { reason: "done".to_owned(), ..Ended::default() },
        };
        if let Err(error) = self.write(Entry::Ended(ended)).await {
            tracing::error!(target: "agent", session = %self.spec.caller.session, %error, "a turn's end was not stored");
            self.notice("warn", format!("The end of this turn was not stored, and it will be taken for an interrupted one. {error}"));
        }
        let let_go = self.world.confirm.ended(&self.spec.caller);
        if tokio::time::timeout(CLOSE_WITHIN, let_go).await.is_err() {
            tracing::warn!(target: "agent", session = %self.spec.caller.session, "what waits for a person was not let go of in time");
        }
        if !self.spec.caller.subagent.is_empty() {
            return;
        }
        let learned = Learned {
            caller: self.spec.caller.clone(),
            request: self.spec.request.clone(),
            calls: self.account.calls.clone(),
            success,
            followed: self.recalled.followed.clone(),
        };
        if tokio::time::timeout(CLOSE_WITHIN, self.world.recall.learn(learned)).await.is_err() {
            tracing::warn!(target: "agent", session = %self.spec.caller.session, "nothing was learned of a turn: it took too long");
        }
    }
}

/// What the model is told in the next turn of how this one ended.
fn note(failure: &Failure) -> String {
    let what = match failure {
        Failure::Limit(limit) => return limit.for_model(),
        Failure::Answer(_) => "your answers were not what was asked for",
        Failure::Model(_) => "no model answered",
        Failure::Store(_) => "it could not be stored",
        Failure::Window(_) => "it did not fit the model's window",
        Failure::Cancelled => "the user ended it",
        Failure::Internal(_) => "something went wrong inside the agent",
    };
    format!("[The turn was ended before a final answer: {what}. Do not begin it anew unasked.]")
}

/// An answer as it can be kept.
pub(super) fn bounded(mut answer: Answer) -> Answer {
    if answer.text.len() > MAX_TEXT_BYTES {
        let end = answer.text.floor_char_boundary(MAX_TEXT_BYTES);
        answer.text.truncate(end);
        answer.finish = Finish::Length;
    }
    let mut room = MAX_ARGUMENTS_BYTES;
    for (place, call) in answer.calls.iter_mut().enumerate() {
        short(&mut call.name);
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
    answer.cut_call.as_mut().map(short);
    short(&mut answer.model);
    answer.thoughts =
        answer.thoughts.filter(|thoughts| thoughts.data.to_string().len() <= MAX_THOUGHTS_BYTES);
    answer
}

/// A name that is longer than names are is none, and is not kept whole.
fn short(name: &mut String) {
    name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
}

/// A result as it can be kept: the same for the machine and for the journal, so that a turn that goes on compares what it did.
pub(super) fn kept(result: ToolResult, sanitizer: &Sanitizer) -> ToolResult {
    let ToolResult { ran, mut block, mut said } = result;
    // A token has a byte at least, so that most results need not be counted.
    if block.len() > MAX_RESULT_TOKENS {
        block = match Wrapped::received(&block, sanitizer) {
            Some(whole) => cut::block(&whole, MAX_RESULT_TOKENS, &Estimate, sanitizer).into_string(),
            None => cut::plain(&block, MAX_RESULT_TOKENS, &Estimate),
        };
    }
    if said.len() > MAX_SAID_BYTES {
        said = format!("sha256:{}", hex::encode(Sha256::digest(&said)));
    }
    ToolResult { ran, block, said }
}

#[cfg(test)]
#[path = "keep_tests.rs"]
mod tests;
