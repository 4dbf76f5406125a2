//! The calls of an answer whose turn was interrupted, as its journal has them.

use std::collections::{BTreeMap, BTreeSet};

use super::drive::TurnRun;
use crate::journal::JournalEntry;
use crate::question::Question;
use crate::tool_result::ToolResult;

/// What an interrupted turn left of the calls of its last answer.
#[derive(Default)]
pub(super) struct InterruptedCalls {
    /// The calls that were started, and do not wait for the person.
    pub(super) started: BTreeSet<usize>,
    /// The questions of those that wait for the person.
    parked: BTreeMap<usize, Question>,
    /// The results of those that finished.
    pub(super) results: BTreeMap<usize, ToolResult>,
}

impl InterruptedCalls {
    /// Where the call at this place continues.
    pub(super) fn resume_point(&mut self, place: usize) -> ResumePoint {
        match self.parked.remove(&place) {
            Some(question) => ResumePoint::Question(question),
            None if self.started.contains(&place) => ResumePoint::Execution,
            None => ResumePoint::Approval,
        }
    }
}

/// Where a call begins, or continues after its turn was interrupted.
pub(super) enum ResumePoint {
    /// It is new, so that it needs its approval first.
    Approval,
    /// It was approved and started, and can continue.
    Execution,
    /// It was approved and made, and its plugin waits for an answer.
    Question(Question),
}

impl ResumePoint {
    pub(super) fn into_question(self) -> Option<Question> {
        match self {
            Self::Question(question) => Some(question),
            Self::Approval | Self::Execution => None,
        }
    }
}

impl TurnRun<'_> {
    /// Takes what the journal of an interrupted turn has of the calls of its last answer.
    pub(super) fn take_interrupted_calls(&mut self) -> InterruptedCalls {
        let mut calls = InterruptedCalls::default();
        loop {
            match self.replay.front() {
                Some(JournalEntry::CallStarted { place }) => {
                    calls.started.insert(*place);
                    calls.parked.remove(place);
                }
                Some(JournalEntry::CallParked { place, question }) => {
                    calls.started.remove(place);
                    calls.parked.insert(*place, (**question).clone());
                }
                Some(JournalEntry::CallFinished { place, result }) => {
                    drop(calls.results.insert(*place, result.clone()))
                }
                _ => return calls,
            }
            if let Some(entry) = self.replay.pop_front() {
                self.transcript.apply(self.spec.caller.turn, &entry);
            }
        }
    }
}
