//! Selects what a model sees of a session: never the whole history, never whole tool logs.
//!
//! [`assemble()`] builds one question from the prompt, the running summary, the latest turns and the tools that fit,
//! each within its [section](Sections). It reports what has to be summarized first, and how full the model's
//! [window](Window) is. What is left out of a question stays in the store.
//!
//! | section | tokens | when there is more |
//! |---|---|---|
//! | safety rules | about 750, never cut | – |
//! | system: operator's rules, workspace, memories, hints | 500 | files and hints are cut, with a notice ([`crate::prompt`]) |
//! | running summary | 800 | cut, with a notice |
//! | recent turns | 2,000 | older turns go into the summary ([`history`]) |
//! | latest tool results | 500 | each is cut to its share, with a notice ([`cut`]) |
//! | tools | 1,500 | the most relevant are offered ([`choose`]) |
//! | all | about 6,000 | |

mod assemble;
pub mod choose;
pub mod cut;
pub mod history;
mod sections;
mod stats;
mod summary;
mod tokens;
mod units;
mod window;

pub use assemble::{AssembledRequest, Material, assemble};
pub use history::HistoryMessage;
pub use sections::{Sections, shares};
pub use stats::Stats;
pub use summary::{Summary, request};
pub use tokens::{Accuracy, Estimate, OpenAiTokenizer, TokenCounter, counter_for, fit};
pub use window::{Window, WindowStatus};

/// The tokens of a message beside its text: role and delimiters, about the same in all providers' formats.
const MESSAGE_OVERHEAD: usize = 4;

/// The least tokens of a tool result: the envelope with all its attributes takes about 80, and a result that is only an
/// envelope says nothing.
pub const MIN_RESULT_TOKENS: usize = 150;

/// Counts the tokens of messages, including the overhead of each.
#[must_use]
pub fn count_messages(messages: &[talon_llm::model::Message], counter: &dyn TokenCounter) -> usize {
    use talon_llm::model::{Arguments, Message};
    let of = |message: &Message| match message {
        Message::System { text } | Message::User { text } => counter.count(text),
        Message::Tool { content, .. } => counter.count(content),
        Message::Assistant { text, calls, thoughts } => {
            let calls = calls.iter().map(|call| {
                let arguments = match &call.arguments {
                    Arguments::Object(arguments) => {
                        counter.count(&serde_json::to_string(arguments).unwrap_or_default())
                    }
                    Arguments::Unreadable(text) => counter.count(text),
                };
                counter.count(&call.name) + arguments + MESSAGE_OVERHEAD
            });
            let thoughts = thoughts.as_ref().map_or(0, |thoughts| counter.count(&thoughts.data.to_string()));
            counter.count(text) + thoughts + calls.sum::<usize>()
        }
    };
    messages.iter().map(|message| of(message) + MESSAGE_OVERHEAD).sum()
}

#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod tests;
