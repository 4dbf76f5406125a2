//! What a peer may send beside the data of its calls.

use std::time::Instant;

use super::scanner::{DATA, FrameHead, HEADERS};

/// How many control frames a peer may send at once: SETTINGS, PING, WINDOW_UPDATE, PRIORITY, RST_STREAM,
/// CONTINUATION, unknown ones, HEADERS, and DATA that only ends its stream. The requests of 128 streams begin with some five of
/// them each, and three times as many are read within some milliseconds. At more, and none left of the
/// following two, the connection ends.
pub const CONTROL_BURST: u32 = 2048;
/// How many more each second. Answering a thousand of them takes some milliseconds of a core.
pub const CONTROL_PER_SECOND: u32 = 1000;
/// How many more for each HEADERS or DATA frame that was sent to the peer. A call is two frames each way; the
/// most talkative servers known (gRPC for Go and for C) add two WINDOW_UPDATE and two PING to each call.
pub const CREDIT_PER_FRAME: u32 = 4;
/// And one more for each KiB of it, because a receiver reports how much it has read.
pub const CREDIT_BYTES: usize = 1 << 10;
/// The most that is kept of this credit: a thousand calls at once, as many as a plugin of the SDK takes.
pub const MAX_CREDIT: u32 = 8192;
/// DATA below this size is tiny: it costs more to handle than to send. A message of a tool's answer or of
/// progress is longer, because it names the call.
pub const TINY_DATA_BYTES: usize = 32;
/// How many tiny frames of DATA may come at once, such as lines of a program's output.
pub const TINY_BURST: u32 = 32 << 10;
/// How many more each second: about a hundredth of a core.
pub const TINY_PER_SECOND: u32 = 10_000;

/// How many frames of DATA without data a connection may have that do not end their stream. They mean nothing,
/// and h2 ends a connection at the next one without a reason (its `MAX_RECV_EMPTY_DATA_FRAMES`), so this is no
/// part of [`FrameLimits`].
pub const MAX_EMPTY_DATA: u32 = 100;

/// Payload that control frames of the usual sizes have; a longer one counts as several.
const CONTROL_BYTES: usize = 512;

/// How many frames a peer may send at once and each second, beside those that its calls earn it
/// ([`CREDIT_PER_FRAME`]). The default is this module's constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLimits {
    /// See [`CONTROL_BURST`].
    pub control_burst: u32,
    /// See [`CONTROL_PER_SECOND`].
    pub control_per_second: u32,
    /// See [`TINY_BURST`].
    pub tiny_burst: u32,
    /// See [`TINY_PER_SECOND`].
    pub tiny_per_second: u32,
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self {
            control_burst: CONTROL_BURST,
            control_per_second: CONTROL_PER_SECOND,
            tiny_burst: TINY_BURST,
            tiny_per_second: TINY_PER_SECOND,
        }
    }
}

impl FrameLimits {
    /// Those of a connection with so many streams at once: the same for each stream as the default has for 128, and never less than the
    /// default.
    #[must_use]
    pub fn of_streams(streams: u32) -> Self {
        const STREAMS: u32 = 128;
        let times = streams.div_ceil(STREAMS).max(1);
        let Self { control_burst, control_per_second, tiny_burst, tiny_per_second } = Self::default();
        Self {
            control_burst: control_burst.saturating_mul(times),
            control_per_second: control_per_second.saturating_mul(times),
            tiny_burst: tiny_burst.saturating_mul(times),
            tiny_per_second: tiny_per_second.saturating_mul(times),
        }
    }
}

/// A peer exceeded its budget of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameFloodError {
    /// Of control frames, by these limits.
    Control(FrameLimits),
    /// Of tiny frames of data.
    TinyData(FrameLimits),
    /// Of frames of data that are empty.
    EmptyData,
}

impl std::fmt::Display for FrameFloodError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Control(FrameLimits { control_burst, control_per_second, .. }) => write!(
                f,
                "it sent HTTP/2 control frames without end: {control_burst} at once and {control_per_second} a second are \
                 allowed, and {CREDIT_PER_FRAME} more for each frame of a call"
            ),
            Self::TinyData(FrameLimits { tiny_burst, tiny_per_second, .. }) => write!(
                f,
                "it sent HTTP/2 data in tiny frames without end: {tiny_burst} at once and {tiny_per_second} a second of less \
                 than {TINY_DATA_BYTES} bytes are allowed"
            ),
            Self::EmptyData => write!(
                f,
                "it sent HTTP/2 data without content: {MAX_EMPTY_DATA} such frames of a connection are allowed beside those that \
                 end a stream"
            ),
        }
    }
}

impl std::error::Error for FrameFloodError {}

/// The budget of one connection.
#[derive(Debug)]
pub(super) struct FrameBudget {
    limits: FrameLimits,
    control: TokenBucket,
    tiny: TokenBucket,
    empty_left: u32,
    credit: u32,
}

impl FrameBudget {
    pub(super) fn new(limits: FrameLimits, now: Instant) -> Self {
        Self {
            limits,
            control: TokenBucket::new(limits.control_burst, limits.control_per_second, now),
            tiny: TokenBucket::new(limits.tiny_burst, limits.tiny_per_second, now),
            empty_left: MAX_EMPTY_DATA,
            credit: 0,
        }
    }

    /// Notes a frame that was sent to the peer. Answers to its control frames earn it nothing.
    pub(super) fn sent(&mut self, head: FrameHead) {
        if head.kind == DATA || head.kind == HEADERS {
            let earned = count(head.length / CREDIT_BYTES).saturating_add(CREDIT_PER_FRAME);
            self.credit = self.credit.saturating_add(earned).min(MAX_CREDIT);
        }
    }

    /// Charges a frame that the peer sent. The clock is read only if there is not enough left. Returns
    /// whether it cost something.
    ///
    /// # Errors
    /// The budget is exceeded.
    pub(super) fn received(
        &mut self,
        head: FrameHead,
        now: impl FnOnce() -> Instant,
    ) -> Result<bool, FrameFloodError> {
        if head.kind == DATA && head.length > 0 {
            if head.length >= TINY_DATA_BYTES {
                return Ok(false);
            }
            return if self.tiny.take(1, now) {
                Ok(true)
            } else {
                Err(FrameFloodError::TinyData(self.limits))
            };
        }
        if head.continues {
            self.empty_left = self.empty_left.checked_sub(1).ok_or(FrameFloodError::EmptyData)?;
            return Ok(true);
        }
        let cost = count(head.length / CONTROL_BYTES).saturating_add(1);
        let by_credit = cost.min(self.credit);
        self.credit -= by_credit;
        if self.control.take(cost - by_credit, now) {
            Ok(true)
        } else {
            Err(FrameFloodError::Control(self.limits))
        }
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Tokens that are spent at once and come back with time.
#[derive(Debug)]
struct TokenBucket {
    left: u32,
    burst: u32,
    per_second: u32,
    filled: Instant,
}

impl TokenBucket {
    fn new(burst: u32, per_second: u32, now: Instant) -> Self {
        Self { left: burst, burst, per_second, filled: now }
    }

    fn take(&mut self, tokens: u32, now: impl FnOnce() -> Instant) -> bool {
        if tokens > self.left {
            self.refill(now());
        }
        match self.left.checked_sub(tokens) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    fn refill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.filled);
        let earned = elapsed.as_millis().saturating_mul(u128::from(self.per_second)) / 1000;
        if earned > 0 {
            self.left = u32::try_from(earned).unwrap_or(u32::MAX).saturating_add(self.left).min(self.burst);
            self.filled = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PING: FrameHead = control(6, 8);

    const fn control(kind: u8, length: usize) -> FrameHead {
        FrameHead { kind, length, continues: false }
    }

    const fn data(length: usize) -> FrameHead {
        FrameHead { kind: DATA, length, continues: true }
    }

    fn spend(budget: &mut FrameBudget, frame: FrameHead, now: Instant) -> u32 {
        let mut taken = 0;
        while budget.received(frame, || now).is_ok() {
            taken += 1;
        }
        taken
    }

    // Promises: WIRE-15
    #[test]
    fn control_frames_have_a_burst_and_a_rate() {
        let start = Instant::now();
        let mut budget = FrameBudget::new(FrameLimits::default(), start);
        assert_eq!(spend(&mut budget, PING, start), CONTROL_BURST);
        assert_eq!(budget.received(PING, || start), Err(FrameFloodError::Control(FrameLimits::default())));
        assert_eq!(spend(&mut budget, PING, start + Duration::from_secs(1)), CONTROL_PER_SECOND);
        assert_eq!(
            spend(&mut budget, PING, start + Duration::from_secs(100)),
            CONTROL_BURST,
            "no more than at first"
        );
    }

    // Promises: WIRE-17
    #[test]
    fn other_limits_count_and_are_named() {
        let start = Instant::now();
        let limits =
            FrameLimits { control_burst: 3, control_per_second: 2, tiny_burst: 5, tiny_per_second: 1 };
        let mut budget = FrameBudget::new(limits, start);
        assert_eq!(spend(&mut budget, PING, start), 3);
        assert_eq!(spend(&mut budget, PING, start + Duration::from_secs(1)), 2);
        assert_eq!(spend(&mut budget, data(1), start), 5);
        assert!(FrameFloodError::Control(limits).to_string().contains("3 at once and 2 a second"));
        assert!(FrameFloodError::TinyData(limits).to_string().contains("5 at once and 1 a second"));
    }

    #[test]
    fn calls_earn_what_their_answers_take_and_answers_to_control_frames_earn_nothing() {
        let start = Instant::now();
        let mut budget = FrameBudget::new(FrameLimits::default(), start);
        // Ten thousand calls in no time, each with all that a talkative peer adds.
        for _ in 0..10_000 {
            budget.sent(control(HEADERS, 100));
            budget.sent(data(100));
            for kind in [8, 8, 6, 6, HEADERS, HEADERS] {
                assert_eq!(budget.received(control(kind, 8), || start), Ok(true));
            }
        }
        let mut budget = FrameBudget::new(FrameLimits::default(), start);
        (0..10_000).for_each(|_| budget.sent(PING));
        assert_eq!(spend(&mut budget, PING, start), CONTROL_BURST);
        (0..10_000).for_each(|_| budget.sent(data(0)));
        assert_eq!(spend(&mut budget, PING, start), MAX_CREDIT);
    }

    #[test]
    fn data_is_free_unless_it_is_tiny_or_empty_and_large_control_frames_cost_more() {
        let start = Instant::now();
        let mut budget = FrameBudget::new(FrameLimits::default(), start);
        for _ in 0..1_000_000 {
            assert_eq!(budget.received(data(TINY_DATA_BYTES), || start), Ok(false));
        }
        assert_eq!(spend(&mut budget, data(1), start), TINY_BURST);
        assert_eq!(spend(&mut budget, control(DATA, 0), start), CONTROL_BURST, "each ends a stream");
        assert_eq!(spend(&mut budget, data(0), start), MAX_EMPTY_DATA);
        assert_eq!(budget.received(data(0), || start), Err(FrameFloodError::EmptyData));
        let mut budget = FrameBudget::new(FrameLimits::default(), start);
        assert_eq!(spend(&mut budget, control(0xfa, 1 << 20), start), 0);
    }
}
