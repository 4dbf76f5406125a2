//! Errors of sub-agents: of a definition for the operator, of a call for the model.

use super::limits::{MAX_NAME_BYTES, MAX_SCHEMA_BYTES, MAX_TASK_BYTES};
use crate::answer::{Mismatch, SchemaError};

/// Why an operator's sub-agent cannot be used, and what to correct.
#[derive(Debug, thiserror::Error)]
pub(super) enum DefinitionError {
    #[error(
        "a name has 1 to {MAX_NAME_BYTES} of A-Z, a-z, 0-9, _ and -, since the model calls it by this; rename it"
    )]
    Name,
    #[error("schema: it has to be that of an object (\"type\": \"object\")")]
    NoObject,
    #[error("schema: {0}; correct it")]
    Schema(#[from] SchemaError),
}

/// Why no task was run.
#[derive(Debug, thiserror::Error)]
pub(super) enum TaskError {
    #[error("a sub-agent starts no other; do it yourself, or say in your answer what is missing")]
    Nested,
    #[error("agent: there is no sub-agent of that name; there are {names}")]
    Unknown { names: String },
    #[error("there is no such action; a task is given with subagent.run")]
    UnknownAction,
    #[error("the agent is ending")]
    Ending,
    #[error("task is missing: say in full what to do, for it sees nothing else")]
    NoTask,
    #[error(
        "task has {bytes} bytes and may have {MAX_TASK_BYTES}; put what it has to know into context, and split what is more than one task"
    )]
    LongTask { bytes: usize },
    #[error("output_schema has {bytes} bytes and may have {MAX_SCHEMA_BYTES}")]
    LongSchema { bytes: usize },
    #[error("output_schema is no JSON")]
    SchemaNoJson,
    #[error("output_schema has to be that of an object (\"type\": \"object\")")]
    SchemaNoObject,
    #[error("output_schema: {0}")]
    Schema(#[from] SchemaError),
}

/// Why a task has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum ResultError {
    #[error("the agent is not ready; try again in a moment")]
    NotReady,
    #[error("{word}: {sentence}")]
    Failed { word: String, sentence: String },
    #[error("its answer is no JSON")]
    NoJson,
    #[error("its answer does not fit its schema: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Mismatches(Vec<Mismatch>),
    #[error("its answer cannot be shown")]
    CannotBeShown,
}
