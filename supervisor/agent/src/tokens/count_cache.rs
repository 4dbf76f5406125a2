//! Remembers how many tokens long texts have. Prompts, tools and the messages of a session are counted again with each question, and a
//! tokenizer takes milliseconds for what a hash takes microseconds.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::cache_key::{CacheKey, CacheKeys};

/// The shortest text that is remembered. 1 KiB: a shorter one is counted in a fraction of a millisecond.
const MIN_BYTES: usize = 1 << 10;
/// The most texts that are remembered, in 24 bytes each. 4,096: prompts and messages of dozens of sessions. At it all are forgotten, and
/// counted anew.
const MAX_TEXTS: usize = 4096;

/// The counts of one tokenizer.
#[derive(Debug, Default)]
pub(super) struct CountCache {
    keys: CacheKeys,
    counts: Mutex<HashMap<CacheKey, usize>>,
}

impl CountCache {
    /// The tokens of a text: as `count` says, which is asked unless it is known.
    pub(super) fn count(&self, text: &str, count: impl FnOnce(&str) -> usize) -> usize {
        if text.len() < MIN_BYTES {
            return count(text);
        }
        let key = self.keys.of(text);
        let known = self.counts.lock().get(&key).copied();
        if let Some(tokens) = known {
            return tokens;
        }
        let tokens = count(text);
        let mut counts = self.counts.lock();
        if counts.len() >= MAX_TEXTS {
            counts.clear();
        }
        counts.insert(key, tokens);
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-296
    #[test]
    fn a_long_text_is_counted_once_and_what_is_remembered_is_bounded() {
        let (cache, counted) = (CountCache::default(), std::cell::Cell::new(0));
        let count = |text: &str| {
            cache.count(text, |text| {
                counted.set(counted.get() + 1);
                text.len()
            })
        };
        let long = |number: usize| format!("{number:04}{}", "x".repeat(MIN_BYTES));
        for _ in 0..3 {
            assert_eq!(count(&long(1)), MIN_BYTES + 4);
        }
        assert_eq!(counted.get(), 1);
        let other = format!("{}y", long(1));
        assert_eq!((count(&other), counted.get()), (MIN_BYTES + 5, 2));
        assert_eq!((count("short"), count("short"), counted.get()), (5, 5, 4));
        for number in 0..MAX_TEXTS * 2 {
            count(&long(number));
        }
        assert!(cache.counts.lock().len() <= MAX_TEXTS);
    }
}
