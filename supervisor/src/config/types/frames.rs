//! `host.frames` and `plugins.tools.frames`: what the other end of a connection may send beside its calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_wire::frames::{self, FrameLimits};

/// How many HTTP/2 frames that carry nothing of a call, or almost nothing, one connection may bring. Reading
/// and answering them costs more than sending them, so that without a limit one peer keeps a core busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Frames {
    /// How many control frames may come at once: SETTINGS, PING, WINDOW_UPDATE, PRIORITY, RST_STREAM,
    /// CONTINUATION, HEADERS, unknown ones, and DATA that only ends its stream.
    ///
    /// 2,048: the requests of 128 streams begin with some five of them each, and three times as many are
    /// read within milliseconds. Each call earns its connection more of them.
    #[schemars(range(min = 256, max = 10_000_000))]
    pub control_burst: u32,
    /// How many more control frames may come each second.
    ///
    /// 1,000: answering them takes some milliseconds of a core.
    #[schemars(range(min = 100, max = 10_000_000))]
    pub control_per_second: u32,
    /// How many frames of DATA with less than 32 bytes may come at once.
    ///
    /// 32,768: the lines of a program's output, sent one by one.
    #[schemars(range(min = 256, max = 10_000_000))]
    pub tiny_burst: u32,
    /// How many more tiny frames of DATA may come each second.
    ///
    /// 10,000: about a hundredth of a core.
    #[schemars(range(min = 100, max = 10_000_000))]
    pub tiny_per_second: u32,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            control_burst: frames::CONTROL_BURST,
            control_per_second: frames::CONTROL_PER_SECOND,
            tiny_burst: frames::TINY_BURST,
            tiny_per_second: frames::TINY_PER_SECOND,
        }
    }
}

impl From<Frames> for FrameLimits {
    fn from(frames: Frames) -> Self {
        let Frames { control_burst, control_per_second, tiny_burst, tiny_per_second } = frames;
        Self { control_burst, control_per_second, tiny_burst, tiny_per_second }
    }
}
