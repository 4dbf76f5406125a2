//! `guard`: limits of one call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_plugin::units::{ByteSize, Duration};

/// The guard stack's settings for every call of every plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Guard {
    /// How long one call may take, from its arrival to its answer, waiting included.
    ///
    /// 30 seconds is what a person waits for a tool before thinking it broken. Past it the call is cancelled on
    /// the wire and its caller gets an error result that names the plugin and this timeout. At most a day: what
    /// takes longer is a job, and has no business holding a place.
    pub timeout: Duration,
    /// How much of one answer's text its caller gets, in bytes.
    ///
    /// 64 KiB is about 16,000 tokens, a sizeable part of a small model's context. A longer text is cut at a
    /// character boundary, with a notice that says how much was left out.
    pub max_response_bytes: ByteSize,
    /// The largest structured content of one answer, in bytes of JSON.
    ///
    /// The same as `max_response_bytes`, for the same reason. JSON cannot be cut and stay JSON, so larger
    /// structured content is left out whole, with a notice.
    pub max_structured_bytes: ByteSize,
    /// The largest sum of one call's arguments, names and values, in bytes.
    ///
    /// 1 MiB takes a source file or a long document; what is larger belongs into a file that the plugin reads.
    /// A larger call is refused before the plugin hears of it.
    pub max_argument_bytes: ByteSize,
    /// The largest message accepted from a plugin, in bytes. The hard limit of the transport.
    ///
    /// 8 MiB leaves room for answers that will be cut, and bounds what one call can hold in memory. A larger
    /// message fails the call as soon as its length is known, without being read.
    pub max_message_bytes: ByteSize,
    /// How many calls of one plugin run at once.
    ///
    /// 16 keeps a plugin with a thread for each call busy and its memory small. Further calls wait in `queue`.
    #[schemars(range(min = 1, max = 100_000))]
    pub concurrency: usize,
    /// How many calls of one plugin wait for a place.
    ///
    /// 64 absorbs a burst of several agents; whoever comes later would hardly get an answer within its timeout,
    /// and is refused at once with an error that says a retry can help. 0 lets nobody wait.
    #[schemars(range(max = 1_000_000))]
    pub queue: usize,
    /// The circuit breaker of each plugin: after repeated host faults (died, timed out, unavailable) calls are
    /// refused for a while instead of waiting for the next fault. Errors that a tool answers do not count.
    pub breaker: Breaker,
    /// Regular expressions; what they match in a plugin's output is replaced by a fixed notice.
    ///
    /// On top of the built-in sanitizer, which makes the control syntax of models inert and needs no patterns.
    /// Rust's `regex` syntax, which runs in linear time. A pattern that is invalid, or that matches the empty
    /// text or the notice itself, is an error; so are more than 64 of them, and one longer than 4 KiB, because every
    /// answer is scanned for all of them.
    #[serde(default)]
    #[schemars(example = serde_json::json!([r"(?i)internal-only:\S+"]))]
    pub forbidden_patterns: Vec<String>,
}

/// When a plugin's calls are refused because it keeps failing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Breaker {
    /// How many host faults in a row, within `window`, open the breaker.
    ///
    /// 5 is more than one crash takes down with it when a few calls are in flight, and few enough to spare the
    /// sixth caller a timeout.
    #[schemars(range(min = 1, max = 1000))]
    pub failures: u32,
    /// The time within which the faults count.
    ///
    /// A minute tells a plugin that is down from one that fails now and then.
    pub window: Duration,
    /// How long calls are refused before one is let through to try.
    ///
    /// 10 seconds are about what a restart with its backoff takes. If the trial call succeeds, the breaker closes.
    /// At most a day.
    pub open_for: Duration,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            max_response_bytes: ByteSize::kib(64),
            max_structured_bytes: ByteSize::kib(64),
            max_argument_bytes: ByteSize::mib(1),
            max_message_bytes: ByteSize::mib(8),
            concurrency: 16,
            queue: 64,
            breaker: Breaker::default(),
            forbidden_patterns: Vec::new(),
        }
    }
}

impl Default for Breaker {
    fn default() -> Self {
        Self { failures: 5, window: Duration::from_secs(60), open_for: Duration::from_secs(10) }
    }
}
