//! Where something was said, and where its answer goes. Pure.

use std::fmt;

/// A channel, and a thread in it. As a text it is `CHANNEL` or `CHANNEL/THREAD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conversation {
    pub(crate) channel: String,
    /// The time of the thread's first message.
    pub(crate) thread: Option<String>,
}

/// Whether a channel is a conversation of one person with the app. Slack's ids say so.
pub(crate) fn is_direct(channel: &str) -> bool {
    channel.starts_with('D')
}

impl Conversation {
    /// Reads a text; `None` if it is no conversation of Slack's.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (channel, thread) = match text.split_once('/') {
            None => (text, None),
            Some((channel, thread)) => (channel, Some(thread)),
        };
        let is_channel = !channel.is_empty() && channel.chars().all(|c| c.is_ascii_alphanumeric());
        let is_time = |time: &str| !time.is_empty() && time.chars().all(|c| c.is_ascii_digit() || c == '.');
        (is_channel && thread.is_none_or(is_time))
            .then(|| Self { channel: channel.to_owned(), thread: thread.map(str::to_owned) })
    }
}

impl fmt::Display for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.thread {
            None => f.write_str(&self.channel),
            Some(thread) => write!(f, "{}/{thread}", self.channel),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_a_channel_and_perhaps_a_thread() {
        for text in ["D024BE91L", "C2147483705/1355517523.000005"] {
            assert_eq!(Conversation::parse(text).map(|read| read.to_string()).as_deref(), Some(text));
        }
        for wrong in ["", "/1.0", "C1/", "C1/x", "C 1", "C1/1.0/2", "#general"] {
            assert_eq!(Conversation::parse(wrong), None, "{wrong}");
        }
        assert!(is_direct("D024BE91L") && !is_direct("C2147483705") && !is_direct("G012AC86C"));
    }
}
