//! `guard`: limits of one call, and what becomes of its answer.

mod breaker;
mod envelope;
mod oversize;
mod quarantine;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_plugin_config::units::{ByteSize, Duration};

pub use self::breaker::Breaker;
pub use self::envelope::Envelope;
pub use self::oversize::{Oversize, Pages};
pub use self::quarantine::Quarantine;

/// The guard stack's settings, for every call to every plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Guard {
    /// How long one call may take, from its arrival to its answer, waiting included.
    ///
    /// 30 seconds is what a person waits for a tool before thinking it broken. Past it the call is cancelled
    /// on the wire and its caller gets an error result that names the plugin and this timeout. At most a day:
    /// what takes longer is a job, and has no business holding a place.
    pub timeout: Duration,
    /// How much of one answer's text its caller gets, in bytes.
    ///
    /// 64 KiB is about 16,000 tokens, a sizeable part of a small model's context. A longer text is cut at a
    /// character boundary, with a notice that says how much was left out.
    pub max_response_bytes: ByteSize,
    /// The largest structured content of one answer, in bytes of JSON.
    ///
    /// The same as `max_response_bytes`, for the same reason. Of larger structured content the long texts and
    /// lists are cut, so that it keeps its form; a notice in the text says so. What does not fit even so is
    /// left out whole.
    pub max_structured_bytes: ByteSize,
    /// How many images, pieces of audio, resources and links one answer may have, of plugins that are granted
    /// `media`.
    ///
    /// 16 are more than a page of a report shows. Further ones are dropped, with a notice in the text.
    #[schemars(range(max = 1000))]
    pub max_media_items: usize,
    /// How many bytes the media of one answer may have together.
    ///
    /// 4 MiB take a few screenshots, and leave half of `max_message_bytes` to the text. What is more is
    /// dropped, with a notice in the text.
    pub max_media_bytes: ByteSize,
    /// The largest sum of one call's arguments, names and values, in bytes; of texts and of JSON each.
    ///
    /// 1 MiB takes a source file or a long document; what is larger belongs into a file that the plugin
    /// reads. A larger call is refused before it reaches the plugin.
    pub max_argument_bytes: ByteSize,
    /// The largest message accepted from a plugin, in bytes. The hard limit of the transport.
    ///
    /// 8 MiB leaves room for answers that will be cut, and bounds what one call can hold in memory. A larger
    /// message fails the call as soon as its length is known, without being read.
    pub max_message_bytes: ByteSize,
    /// How many calls of one plugin run at once.
    ///
    /// 16 keeps a plugin with a thread for each call busy and its memory small. Further calls wait in
    /// `queue`.
    #[schemars(range(min = 1, max = 100_000))]
    pub concurrency: usize,
    /// How many calls of one plugin wait for a place.
    ///
    /// 64 absorbs a burst of several agents. Further calls would hardly get an answer within their timeout,
    /// so they are refused at once with an error that says a retry can help. With 0, calls never wait.
    #[schemars(range(max = 1_000_000))]
    pub queue: usize,
    /// The circuit breaker of each plugin: after repeated host faults (died, timed out, unavailable) calls
    /// are refused for a while instead of waiting for the next fault. Errors that a tool answers do not
    /// count.
    pub breaker: Breaker,
    /// Regular expressions; what they match in a plugin's output is replaced by a fixed notice.
    ///
    /// On top of the built-in sanitizer, which makes the control syntax of models inert and needs no
    /// patterns. Rust's `regex` syntax, which runs in linear time. A pattern that is invalid, or that matches
    /// the empty text or the notice itself, is an error; so are more than 64 of them, and one longer than 4
    /// KiB, because every answer is scanned for all of them.
    #[serde(default)]
    #[schemars(example = serde_json::json!([r"(?i)internal-only:\S+"]))]
    pub forbidden_patterns: Vec<String>,
    /// How an answer is marked for a model: `plain`, `nonce` or `quoted`.
    ///
    /// `plain` is what clients of the founding format look for. With `nonce` the closing delimiter cannot be
    /// guessed; `quoted` also prevents any syntax that starts at the beginning of a line, and shows a model
    /// on each line whose text it reads.
    pub envelope: Envelope,
    /// What a caller gets of a text over `max_response_bytes`: `cut` or `excerpt`.
    ///
    /// `cut`, because an excerpt offers models one more action, `talon.read_more`.
    pub oversize: Oversize,
    /// Where texts are kept that were over their limit, with `oversize: excerpt`.
    pub pages: Pages,
    /// How much of the plugins' raw answers (before the guard) is stored for administrators: `talon guard raw
    /// CALL_ID`.
    ///
    /// 0 stores nothing, because these texts are what the guard protects from. They are held in memory, and
    /// the oldest are dropped first.
    pub keep_raw_bytes: ByteSize,
    /// Whether calls are marked whose arguments contain text from a recent answer of a plugin (`tainted_by`).
    ///
    /// On: it costs a microsecond or so per call, changes nothing, and shows policies and people where an
    /// argument is from.
    pub taint: bool,
    /// When a plugin is quarantined because its answers keep containing control syntax: its calls are refused
    /// until an operator starts it again.
    ///
    /// Not set, so it never happens: a plugin that reads web pages or mails answers what others wrote. Set it
    /// for plugins that write their own text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<Quarantine>,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            max_response_bytes: ByteSize::kib(64),
            max_structured_bytes: ByteSize::kib(64),
            max_media_items: talon_guard::media::DEFAULT_MAX_MEDIA_ITEMS,
            max_media_bytes: ByteSize::mib(4),
            max_argument_bytes: ByteSize::mib(1),
            max_message_bytes: ByteSize::mib(8),
            concurrency: 16,
            queue: 64,
            breaker: Breaker::default(),
            forbidden_patterns: Vec::new(),
            envelope: Envelope::default(),
            oversize: Oversize::default(),
            pages: Pages::default(),
            keep_raw_bytes: ByteSize::bytes(0),
            taint: true,
            quarantine: None,
        }
    }
}
