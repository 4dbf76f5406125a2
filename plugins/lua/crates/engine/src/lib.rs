//! Lua scripts in a sandbox: a machine for each script, with its own limits of memory and time.
//!
//! A script is source text that defines functions by the names of [`Point`]s. [`Script::load`] compiles it and runs its top level;
//! [`Script::call`] runs one of its functions with a [`Context`], and reads what the function returned as an [`Outcome`]. What a
//! script may reach beside that is the [`Host`] of the call.
//!
//! The language is Luau, an offspring of Lua 5.1. Source text alone is loaded, never bytecode.
//!
//! # What stops a script
//!
//! After the deadline every loop, every call and every step of a pattern raises an error, so `pcall` cannot swallow it, and the
//! machine is thrown away and built again for the next call. What is one long operation without such a step (`table.concat`,
//! `table.move`, the compiler) is not reached by that: who needs a bound for it too runs the script in a process that can be
//! killed.
//!
//! Patterns are matched by a matcher of this crate, with a meter: the language's own would ask for an interrupt at every step, which
//! costs more than the step.
//!
//! | module | content |
//! |---|---|
//! | [`Script`] | source, and the machine that runs it now |
//! | [`Session`] | lines that an author types, one after the other |
//! | `machine` | a machine: sandbox, limits, the functions of `ctx` |
//! | [`Library`] | what of the language a script sees |
//! | `pattern` | Lua's patterns over bytes |
//! | `string_functions` | `string.find` and its like |
//! | `clock` | the deadline, and what passes it |
//! | [`Context`], [`Outcome`] | what a function gets, and what its return means |
//! | [`Host`] | what a script may ask for: log, key-values, a model |

mod clock;
mod context;
mod error;
mod host;
mod host_functions;
mod library;
mod limits;
mod machine;
mod outcome;
mod outcome_reader;
mod pattern;
mod point;
mod script;
mod session;
mod string_functions;
mod testing;

pub use clock::CancelFlag;
pub use context::Context;
pub use error::{CallError, FailureKind, LoadError};
pub use host::{Host, KvValue, LogLevel};
pub use library::Library;
pub use limits::{
    Limits, MAX_ERROR_BYTES, MAX_KV_CALLS, MAX_KV_KEY_BYTES, MAX_KV_VALUE_BYTES, MAX_LOG_BYTES,
    MAX_LOG_LINES, MAX_MESSAGE_BYTES, MAX_METADATA_KEYS, MAX_PROMPT_BYTES, MAX_SHOWN_BYTES, MAX_SOURCE_BYTES,
    MIN_MEMORY_BYTES,
};
pub use outcome::{DeliveryStatus, Outcome};
pub use point::{Phase, Point};
pub use script::{Schedule, Script, source_text};
pub use session::{Evaluation, Session};
pub use testing::{TestReport, TestResult, TestSuite, run_tests};
