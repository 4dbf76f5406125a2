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
    /// The most streams of `Follow` at once, as many of `FollowGhosts`, and as many of `WatchBus`.
    ///
    /// 2048: one of each for each open page of a gateway. Each holds a page of events and a cursor for each of its sessions. Whatever is
    /// set, the event bus has at most 4,096 subscribers: streams of `WatchBus`, those of `FollowGhosts` that are told what is looked at,
    /// and the agent's own parts; one more is refused.
    #[schemars(range(min = 1, max = 100_000))]
    pub follows: u32,
    /// The most of each kind of one sender.
    ///
    /// 128: as many windows as `gateway.limits.websockets_per_caller` gives one caller, and far less than all.
    #[schemars(range(min = 1, max = 100_000))]
    pub follows_per_sender: u32,
    /// The most calls and questions that wait for people, in all sessions together.
    ///
    /// 2048: one for each turn. Arguments have some KiB as a rule; at their most, 256 KiB each, all of them hold 512 MiB, a quarter of what
    /// the process may have.
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
    /// The most requests at once of one user of this machine, over all connections; of whom a gateway asks for, of one subject. Takes
    /// effect when the agent is started.
    ///
    /// 512: 128 windows, of which each follows sessions and ghosts, and as many turns. What requests hold that are not sent whole is
    /// limited in bytes, 96 MiB of one user and 256 MiB of all.
    #[schemars(range(min = 8, max = 100_000))]
    pub requests_per_user: u32,
    /// The most requests at once on one connection; further ones wait in the client. Takes effect when the agent is started.
    ///
    /// 4096: a gateway has one connection for all that it serves.
    #[schemars(range(min = 8, max = 100_000))]
    pub requests_per_connection: u32,
    /// The most requests with more than 1 MiB, which are those with large images, that are received at once, of everybody. One more is
    /// refused and may be sent again at once. Takes effect when the agent is started.
    ///
    /// 8: they hold 72 MiB at the most.
    #[schemars(range(min = 1, max = 1000))]
    pub large_requests: u32,
    /// The most connections to `agent.sock` at once; one more is closed. Takes effect when Talon is started.
    ///
    /// 1024: each is a terminal or a script. It costs two descriptors of the supervisor and one of the agent.
    #[schemars(range(min = 4, max = 100_000))]
    pub connections: u32,
    /// The most of one user of this machine, so that one cannot lock out others. Takes effect when Talon is started.
    ///
    /// 768: three quarters of all.
    #[schemars(range(min = 2, max = 100_000))]
    pub connections_per_user: u32,
    /// The most open files and connections of the agent's process; beyond it none can be opened, and turns fail that need one. Takes
    /// effect when Talon is started, and is never above the supervisor's own hard limit (`LimitNOFILE=`).
    ///
    /// 8192: a connection to a model for each of 2,048 turns and another after a failed one, 1,024 clients, and files.
    #[schemars(range(min = 256, max = 1_000_000))]
    pub nofile: u32,
    /// The most messages of all channels of plugins that wait or are worked on; further ones wait in their plugins.
    ///
    /// 2048: one for each turn.
    #[schemars(range(min = 1, max = 100_000))]
    pub channel_messages: u32,
    /// The most of one sender or group; who sends one more is told so.
    ///
    /// 32: more than a person writes while a turn runs.
    #[schemars(range(min = 1, max = 10_000))]
    pub channel_messages_per_sender: u32,
}

impl Default for LimitKeys {
    fn default() -> Self {
        Self {
            turns: 2048,
            turns_per_sender: 64,
            followers_per_turn: 16,
            follows: 2048,
            follows_per_sender: 128,
            approvals: 2048,
            approvals_per_session: 30,
            approvals_per_sender: 40,
            requests: 8192,
            requests_per_user: 512,
            requests_per_connection: 4096,
            large_requests: 8,
            connections: 1024,
            connections_per_user: 768,
            nofile: 8192,
            channel_messages: 2048,
            channel_messages_per_sender: 32,
        }
    }
}
