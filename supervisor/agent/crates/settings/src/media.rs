//! `agent.media`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Images in questions and in results of tools, and other files in questions.
///
/// A limit that is passed refuses a question, and leaves an image of a tool out with a text that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MediaKeys {
    /// The most images of one question, and of one result of a tool.
    ///
    /// 5 is what Groq takes in a request; most others take more.
    #[schemars(range(min = 0, max = 20))]
    pub images: u32,
    /// The largest image, in bytes.
    ///
    /// The default is 3.75 MiB, which are 5 MiB in base64: the largest that Anthropic takes.
    #[schemars(range(min = 1_024, max = 8_388_608))]
    pub image_bytes: u32,
    /// The most other files of one question: what is no image for models, such as a PDF, an archive, or a long
    /// text. 0: none are taken.
    #[schemars(range(min = 0, max = 20))]
    pub files: u32,
    /// The largest of these files, in bytes.
    ///
    /// The default is 4 MiB: a book as text, or a PDF of some hundred pages.
    #[schemars(range(min = 1_024, max = 8_388_608))]
    pub file_bytes: u32,
    /// The most bytes of all images of one question to a model, those of earlier turns included; older ones
    /// are described in words. Images and files that a person sends at once may have as many.
    ///
    /// The default is 8 MiB, which also is the most: Gemini takes 20 MB with everything around them, and base64
    /// makes a third more of them.
    #[schemars(range(min = 1_024, max = 8_388_608))]
    pub request_bytes: u32,
    /// The most bytes of images and files that are stored of a session; the oldest are deleted for new ones.
    /// Default: 64 MiB, about as many screenshots.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub session_bytes: u32,
    /// The most bytes of images and files that are stored of all sessions; beyond it new ones are refused.
    /// Default: 1 GiB.
    #[schemars(range(min = 1_024, max = 1_099_511_627_776_u64))]
    pub total_bytes: u64,
    /// How many days images and files are stored; then a text says what was there. 0: as long as their session. Default:
    /// 30.
    #[schemars(range(min = 0, max = 36_500))]
    pub keep_days: u32,
}

impl Default for MediaKeys {
    fn default() -> Self {
        Self {
            images: 5,
            image_bytes: 15 << 18,
            files: 5,
            file_bytes: 4 << 20,
            request_bytes: MAX_REQUEST_IMAGE_BYTES,
            session_bytes: 64 << 20,
            total_bytes: 1 << 30,
            keep_days: 30,
        }
    }
}

impl MediaKeys {
    /// How long images are stored; `None` as long as their session.
    #[must_use]
    pub fn keep(&self) -> Option<Duration> {
        const DAY: u64 = 24 * 60 * 60;
        (self.keep_days > 0).then(|| Duration::from_secs(u64::from(self.keep_days) * DAY))
    }
}

/// The most that `request_bytes` may be: the agent's largest request holds as much.
pub const MAX_REQUEST_IMAGE_BYTES: u32 = 8 << 20;
