//! Names and ids that every provider accepts.
//!
//! A transcript may go to another provider next, and contains names made up by models: OpenAI and Anthropic
//! answer a name with a dot with a 400, for as long as it is in the transcript.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The longest name of a tool with every provider.
const MAX_NAME_BYTES: usize = 64;
/// The longest id of a call: OpenAI's.
const MAX_ID_BYTES: usize = 40;
/// What a call without a name is called when the transcript is sent.
const NAMELESS: &str = "unnamed";

/// A tool's name as it is sent.
pub(crate) fn sent_name(name: &str) -> Cow<'_, str> {
    if name.is_empty() { Cow::Borrowed(NAMELESS) } else { plain(name, MAX_NAME_BYTES) }
}

/// A call's id as it is sent: the same for the call and for its result.
pub(crate) fn sent_id(id: &str) -> Cow<'_, str> {
    plain(id, MAX_ID_BYTES)
}

/// A call's id in the nine letters and digits that Mistral demands.
pub(crate) fn nine_characters(id: &str) -> Cow<'_, str> {
    /// The length.
    const LENGTH: usize = 9;
    if id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Cow::Borrowed(id);
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let mut rest = hasher.finish();
    let digits = (0..LENGTH).map(|_| {
        let digit = rest % 36;
        rest /= 36;
        u32::try_from(digit).ok().and_then(|digit| char::from_digit(digit, 36)).unwrap_or('0')
    });
    Cow::Owned(digits.collect())
}

fn plain(text: &str, max_bytes: usize) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if text.len() <= max_bytes && text.chars().all(fits) {
        return Cow::Borrowed(text);
    }
    // Two texts may differ only in replaced characters, so a digest is added. This hasher has no random seed,
    // so the next request is the same, and the provider's cache stays valid.
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let start: String =
        text.chars().map(|c| if fits(c) { c } else { '_' }).take(max_bytes.saturating_sub(9)).collect();
    Cow::Owned(format!("{start}_{:08x}", hasher.finish() >> 32))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_everybody_takes_stays() {
        assert_eq!(sent_name("notes_add"), "notes_add");
        assert_eq!(sent_id("toolu_01A09q90qw90lq917835lq9"), "toolu_01A09q90qw90lq917835lq9");
        assert_eq!(sent_name(""), "unnamed");
        assert!(sent_name("notes.add").starts_with("notes_add_"));
        assert_ne!(sent_id("functions.a:0"), sent_id("functions.a:1"));
    }

    proptest! {
        #[test]
        fn all_are_taken(text in ".{0,100}") {
            for (sent, max) in [(sent_name(&text), MAX_NAME_BYTES), (sent_id(&text), MAX_ID_BYTES)] {
                prop_assert!(sent.len() <= max);
                prop_assert!(sent.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            }
            prop_assert_eq!(sent_id(&text), sent_id(&text));
            let nine = nine_characters(&text);
            prop_assert!(nine.len() == 9 && nine.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{}", nine);
        }
    }
}
