//! A position in a trace, as the header `traceparent` of [W3C Trace Context](https://www.w3.org/TR/trace-context/)
//! has it: for the supervisor, which continues traces of callers, and for the agent, which begins them.

use std::fmt;
use std::str::FromStr;

/// The header.
pub const TRACE_PARENT: &str = "traceparent";

/// The length of a header of version 00: `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
const PARENT_BYTES: usize = 55;
/// The flag by which whoever began the trace says that it is recorded.
const SAMPLED: u8 = 1;

/// A position in a trace. Neither id is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace_id: u128,
    /// The span in it that is the parent of what follows.
    pub span_id: u64,
    /// The flags.
    pub flags: u8,
}

/// The text is no `traceparent`. The standard has it count as none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseTraceParentError;

impl fmt::Display for ParseTraceParentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is no traceparent: version, trace, span and flags in small hexadecimal digits")
    }
}

impl std::error::Error for ParseTraceParentError {}

impl TraceParent {
    /// Whether the trace is recorded.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The flags of a trace that is recorded, or not.
    #[must_use]
    pub fn flags_of(sampled: bool) -> u8 {
        if sampled { SAMPLED } else { 0 }
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }
}

impl FromStr for TraceParent {
    type Err = ParseTraceParentError;

    /// `version-trace-span-flags`. A later version may append fields; the known ones are taken.
    fn from_str(text: &str) -> Result<Self, ParseTraceParentError> {
        parse(text).ok_or(ParseTraceParentError)
    }
}

fn parse(text: &str) -> Option<TraceParent> {
    let (version, rest) = text.split_at_checked(2)?;
    let version = digits(version, 2)?;
    match text.len() {
        PARENT_BYTES => {}
        _ if version > 0 && text.as_bytes().get(PARENT_BYTES) == Some(&b'-') => {}
        _ => return None,
    }
    let mut fields = rest.strip_prefix('-')?.splitn(4, '-');
    let (trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?);
    let trace_id = digits(trace, 32)?;
    let span_id = u64::try_from(digits(span, 16)?).ok()?;
    // Flags have two digits, even if a later version appends fields.
    let flags = u8::try_from(digits(flags, 2)?).ok()?;
    (version != 0xff && trace_id != 0 && span_id != 0).then_some(TraceParent { trace_id, span_id, flags })
}

/// Exactly this number of hexadecimal digits, without capitals.
fn digits(text: &str, count: usize) -> Option<u128> {
    let good = text.len() == count && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    good.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Promises: TRACE-12
    #[test]
    fn what_is_not_as_the_standard_has_it_is_none() {
        for bad in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(bad.parse::<TraceParent>(), Err(ParseTraceParentError), "{bad}");
        }
        let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more".parse::<TraceParent>();
        assert!(later.is_ok_and(|parent| parent.is_sampled()));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(trace_id in 1..u128::MAX, span_id in 1..u64::MAX, flags: u8) {
            let parent = TraceParent { trace_id, span_id, flags };
            prop_assert_eq!(parent.to_string().parse(), Ok(parent));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,80}") {
            let _parsed = text.parse::<TraceParent>();
        }
    }
}
