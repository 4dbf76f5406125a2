//! Estimates how complex a request is. No model is asked, since the estimate selects the model.
//!
//! Signals are counted in the person's last message, in the tools on offer, and in what happened since. Each
//! gives points; their sum is the complexity.
//!
//! | signal | one point | two points |
//! |---|---|---|
//! | length of the message, in characters | 400 | 1,500 |
//! | code fences | one block | two blocks, or 60 lines of code |
//! | steps: numbered or bulleted lines | 3 | 6 |
//! | questions | 2 | 4 |
//! | words of reasoning, different ones | 1 | 2 |
//! | tools offered | 8 | – |
//! | results of tools since the message | 3 | – |
//! | history, in characters | 16,000 | – |
//!
//! | points | complexity |
//! |---|---|
//! | 0 or 1 | simple |
//! | 2 to 4 | moderate |
//! | 5 and more | complex |
//!
//! So a single signal, however strong, makes no request complex, and a single weak one has no effect. Only
//! *that* tools answered counts, not what they answered: a plugin's text cannot select a more expensive
//! model. The numbers are constants; callers that know better set the complexity, pin a model, or use another
//! task.

mod concepts;
mod text;

use crate::model::{Message, Request};
use crate::route::task::Complexity;

/// How much of a message is used, which bounds the time; a longer text counts as long already.
const MAX_INSPECTED_BYTES: usize = 32 * 1024;

/// Characters of a message: a long paragraph, and a page.
const LENGTH: [usize; 2] = [400, 1500];
/// Code blocks.
const FENCES: [usize; 2] = [1, 2];
/// Lines of code that count as two blocks: more than fits on a screen.
const MANY_CODE_LINES: usize = 60;
/// Lines of a list.
const STEPS: [usize; 2] = [3, 6];
/// Question marks that end something.
const QUESTIONS: [usize; 2] = [2, 4];
/// Words of reasoning.
const WORDS: [usize; 2] = [1, 2];
/// Tools on offer: choosing among many is work.
const TOOLS: usize = 8;
/// Tool results: a loop that has run for so long is not trivial.
const RESULTS: usize = 3;
/// Characters of history: about 4,000 tokens, twice what the recent turns have by default.
const HISTORY: usize = 16_000;

/// Points from which a request is moderate, and complex.
const MODERATE: u32 = 2;
const COMPLEX: u32 = 5;

/// A signal, with its points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct ComplexitySignal {
    /// Its name: `length`, `code`, `steps`, `questions`, `reasoning`, `tools`, `results` or `history`.
    pub sign: &'static str,
    /// The measured amount.
    pub count: usize,
    /// 1 or 2.
    pub points: u32,
}

/// The complexity of a request, with its reasons.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ComplexityEstimate {
    /// The complexity.
    pub complexity: Complexity,
    /// The sum of the points.
    pub points: u32,
    /// The signals with points.
    pub signs: Vec<ComplexitySignal>,
}

/// Estimates a request. The estimate depends on the request alone.
#[must_use]
pub fn judge(request: &Request) -> ComplexityEstimate {
    judge_messages(&request.messages.iter().collect::<Vec<_>>(), request.tools.len())
}

/// Estimates a request by its messages and the number of tools that it offers.
#[must_use]
pub fn judge_messages(messages: &[&Message], tools: usize) -> ComplexityEstimate {
    let last_question = messages.iter().rposition(|message| matches!(message, Message::User { .. }));
    let message = match last_question.and_then(|index| messages.get(index)) {
        Some(Message::User { text }) => text.as_str(),
        _ => "",
    };
    let inspected = &message[..message.floor_char_boundary(MAX_INSPECTED_BYTES)];
    let before = messages.get(..last_question.unwrap_or_default()).unwrap_or_default();
    let since = messages.get(last_question.map_or(0, |index| index + 1)..).unwrap_or_default();
    let seen = text::extract_features(inspected);
    let results = since.iter().filter(|message| matches!(message, Message::Tool { .. })).count();
    let code = if seen.code_lines >= MANY_CODE_LINES { seen.fences.max(FENCES[1]) } else { seen.fences };
    let signs: Vec<ComplexitySignal> = [
        ("length", message.chars().take(LENGTH[1]).count(), LENGTH),
        ("code", code, FENCES),
        ("steps", seen.steps, STEPS),
        ("questions", seen.questions, QUESTIONS),
        ("reasoning", concepts::count_concepts(inspected), WORDS),
        ("tools", tools, [TOOLS, usize::MAX]),
        ("results", results, [RESULTS, usize::MAX]),
        ("history", before.iter().map(|message| said_chars(message)).sum(), [HISTORY, usize::MAX]),
    ]
    .into_iter()
    .map(|(sign, count, [one, two])| ComplexitySignal {
        sign,
        count,
        points: u32::from(count >= one) + u32::from(count >= two),
    })
    .filter(|sign| sign.points > 0)
    .collect();
    let points = signs.iter().map(|sign| sign.points).sum();
    let complexity = match points {
        COMPLEX.. => Complexity::Complex,
        MODERATE.. => Complexity::Moderate,
        _ => Complexity::Simple,
    };
    ComplexityEstimate { complexity, points, signs }
}

/// The characters of a message. Tool results do not count: they are not the person's, and may be long without
/// meaning.
fn said_chars(message: &Message) -> usize {
    match message {
        Message::User { text } | Message::Assistant { text, .. } => text.chars().take(HISTORY).count(),
        Message::System { .. } | Message::Images { .. } | Message::Tool { .. } => 0,
    }
}

#[cfg(test)]
mod tests;
