//! Verbs that do their work in this process, with the supervisor's library: those that are a supervisor or
//! run a part of one, those that read the configuration or the files of a supervisor, and those that need
//! neither.

pub(crate) mod audit;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod configuration;
pub(crate) mod conformance;
pub(crate) mod doctor;
mod echo;
pub(crate) mod exec;
pub(crate) mod guard;
pub(crate) mod jail;
pub(crate) mod lua;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod new;
pub(crate) mod schedule_check;
mod scratch_environment;
pub(crate) mod serve;
pub(crate) mod setup;
pub(crate) mod shell_init;
pub(crate) mod state;
pub(crate) mod state_transfer;
mod telemetry;
pub(crate) mod top;
pub(crate) mod watch;
