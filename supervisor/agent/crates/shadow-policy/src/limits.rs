//! What the operator and the person permit.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What the policy keeps to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyLimits {
    /// The least time between two ghosts, in milliseconds.
    pub cooldown_ms: u64,
    /// The most ghosts within an hour. 0: none at all.
    pub max_ghosts_per_hour: u32,
    /// Whether a candidate waits until a piece of work ends.
    pub boundaries_only: bool,
    /// When nothing is asked, by the local clock.
    pub quiet_hours: Option<QuietHours>,
    /// Absolute paths of work trees of which nothing is asked.
    pub muted: Vec<String>,
    /// The most tokens of one day.
    pub tokens_per_day: u64,
    /// The most tokens that one question takes, answer included.
    pub tokens_per_question: u64,
    /// The most picodollars of one day. Absent: no limit of its own.
    pub pico_usd_per_day: Option<u64>,
}

impl PolicyLimits {
    /// The stricter of these limits and what a person's own file says.
    #[must_use]
    pub fn stricter(self, cooldown_ms: Option<u64>, max_ghosts_per_hour: Option<u32>) -> Self {
        Self {
            cooldown_ms: cooldown_ms.map_or(self.cooldown_ms, |theirs| theirs.max(self.cooldown_ms)),
            max_ghosts_per_hour: max_ghosts_per_hour
                .map_or(self.max_ghosts_per_hour, |theirs| theirs.min(self.max_ghosts_per_hour)),
            ..self
        }
    }
}

/// A part of each day, in minutes since midnight. One that ends before it begins goes over midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QuietHours {
    from: u16,
    to: u16,
}

/// A text is no part of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuietHoursError;

impl fmt::Display for QuietHoursError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write it as \"22:00-07:00\", with two different times")
    }
}

impl std::error::Error for QuietHoursError {}

impl QuietHours {
    /// Whether a minute of the day belongs to it: the first one does, the last one does not.
    #[must_use]
    pub const fn contains(self, minute: u16) -> bool {
        if self.from < self.to {
            self.from <= minute && minute < self.to
        } else {
            self.from <= minute || minute < self.to
        }
    }
}

impl FromStr for QuietHours {
    type Err = QuietHoursError;

    fn from_str(text: &str) -> Result<Self, QuietHoursError> {
        let (from, to) = text.trim().split_once('-').ok_or(QuietHoursError)?;
        let (from, to) = (minute(from.trim())?, minute(to.trim())?);
        if from == to {
            return Err(QuietHoursError);
        }
        Ok(Self { from, to })
    }
}

fn minute(text: &str) -> Result<u16, QuietHoursError> {
    let (hours, minutes) = text.split_once(':').ok_or(QuietHoursError)?;
    let number = |digits: &str, below: u16| {
        let is_number = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        let value = if is_number { digits.parse::<u16>().ok() } else { None };
        value.filter(|value| *value < below).ok_or(QuietHoursError)
    };
    Ok(number(hours, 24)? * 60 + number(minutes, 60)?)
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

impl TryFrom<String> for QuietHours {
    type Error = QuietHoursError;

    fn try_from(text: String) -> Result<Self, QuietHoursError> {
        text.parse()
    }
}

impl From<QuietHours> for String {
    fn from(hours: QuietHours) -> Self {
        hours.to_string()
    }
}
