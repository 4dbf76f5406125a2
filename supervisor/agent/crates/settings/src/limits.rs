//! `agent.limits`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much the agent does at once. What is beyond a limit is refused, with its key, and may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitKeys {
    /// The most turns at once.
    ///
    /// 2048: each has a question to a model or a batch of calls in flight, and a session's history in memory, some hundred
    /// KiB as a rule.
    #[schemars(range(min = 1, max = 100_000))]
    pub turns: u32,
    /// The most turns of one sender at once.
    ///
    /// 64: more than a person follows, and far less than all.
    #[schemars(range(min = 1, max = 100_000))]
    pub turns_per_sender: u32,
    /// The most clients that follow one turn with `Ask` and `Attach`.
    ///
    /// 16: the windows of one person.
    #[schemars(range(min = 1, max = 10_000))]
    pub followers_per_turn: u32,
    /// The most streams of `Follow` at once.
    ///
    /// 2048: one for each open page of a gateway. Each holds a page of events and a cursor for each of its sessions.
    #[schemars(range(min = 1, max = 100_000))]
    pub follows: u32,
    /// The most calls and questions that wait for people, in all sessions together.
    ///
    /// 400: with at most 256 KiB of arguments each they stay below 100 MiB.
    #[schemars(range(min = 1, max = 10_000))]
    pub approvals: u32,
    /// The most of one session. 30: three answers' worth of parallel calls.
    #[schemars(range(min = 1, max = 10_000))]
    pub approvals_per_session: u32,
    /// The most of one sender. 40: one user with many sessions leaves room to others.
    #[schemars(range(min = 1, max = 10_000))]
    pub approvals_per_sender: u32,
    /// The most requests at once, of everybody, from their headers to the last byte of their answers. Takes effect when the
    /// agent is started.
    ///
    /// 8192: a turn that is asked for and a stream that follows it are one each.
    #[schemars(range(min = 16, max = 100_000))]
    pub requests: u32,
    /// The most requests at once of one user of this machine, over all connections. Takes effect when the agent is started.
    ///
    /// 128: some programs with dozens of questions each.
    #[schemars(range(min = 8, max = 100_000))]
    pub requests_per_user: u32,
    /// The most requests at once on one connection; further ones wait in the client. Takes effect when the agent is started.
    ///
    /// 4096: a gateway has one connection for all that it serves.
    #[schemars(range(min = 8, max = 100_000))]
    pub requests_per_connection: u32,
}

impl Default for LimitKeys {
    fn default() -> Self {
        Self {
            turns: 2048,
            turns_per_sender: 64,
            followers_per_turn: 16,
            follows: 2048,
            approvals: 400,
            approvals_per_session: 30,
            approvals_per_sender: 40,
            requests: 8192,
            requests_per_user: 128,
            requests_per_connection: 4096,
        }
    }
}
