//! Why a call of the memory tools fails. Each text is for the model.

use talon_store::WORKFLOW_TAG;

use super::limits::{MAX_PER_SESSION, MAX_TAG_BYTES, MAX_TAGS};

/// Why a call of `memory.save` or `memory.search` fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum MemoryToolError {
    #[error("memory has no such action; it has save and search")]
    UnknownAction,
    #[error("a sub-agent saves nothing; put it into your answer")]
    SubAgent,
    #[error("{name} is missing")]
    MissingArgument { name: &'static str },
    #[error("{name} has {bytes} bytes and may have {most}")]
    LongArgument { name: &'static str, bytes: usize, most: usize },
    #[error("tags is no list of texts; write it like [\"preference\"]")]
    MalformedTags,
    #[error("there are {0} tags; at most {MAX_TAGS}")]
    TooManyTags(usize),
    #[error("a tag is a word or two: at most {MAX_TAG_BYTES} bytes, on one line")]
    MalformedTag,
    #[error("tags: {WORKFLOW_TAG} and sender:… are not for you to give")]
    ReservedTag,
    #[error(
        "this conversation has saved {MAX_PER_SESSION} memories, and that is the most; tell the user, who can forget some with `talon memory forget`"
    )]
    SessionFull,
    #[error("query has no word to look for")]
    NoWords,
    #[error("the memory cannot be reached now; go on without, or try again later")]
    Unavailable,
    #[error("the memory does not take that; go on without")]
    Rejected,
}

impl From<talon_store::Error> for MemoryToolError {
    /// The store's own error goes to the log.
    fn from(error: talon_store::Error) -> Self {
        tracing::warn!(target: "agent", %error, "the memory cannot be reached");
        if error.is_retryable() { Self::Unavailable } else { Self::Rejected }
    }
}
