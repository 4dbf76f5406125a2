//! Pseudo-random numbers that are the same in each run, so that two runs call the same plugins in the same
//! order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// SplitMix64: a generator with a full period.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below a bound; 0 if the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.0;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        drawn ^= drawn >> 31;
        usize::try_from(drawn % (bound.max(1) as u64)).unwrap_or(0)
    }
}

/// Picks one of many plugins: each of them once, and from then on at random. A plugin's first call allocates
/// memory on both sides that later calls reuse, and with hundreds of plugins one call in ten would otherwise
/// be a first one.
#[derive(Debug, Clone)]
pub(crate) struct PluginPicker {
    count: usize,
    /// How many were called once, by all clones together.
    met: Arc<AtomicUsize>,
    draw: SplitMix64,
}

impl PluginPicker {
    pub(crate) fn of(count: usize) -> Self {
        Self { count, met: Arc::default(), draw: SplitMix64::new(1) }
    }

    pub(crate) fn next(&mut self) -> usize {
        if self.met.load(Ordering::Relaxed) < self.count {
            let met = self.met.fetch_add(1, Ordering::Relaxed);
            if met < self.count {
                return met;
            }
        }
        self.draw.below(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_drawn_and_none_beyond() {
        let (mut draw, mut drawn) = (SplitMix64::new(1), [0_u32; 7]);
        for _ in 0..700 {
            drawn[draw.below(7)] += 1;
        }
        assert!(drawn.iter().all(|count| (50..150).contains(count)), "{drawn:?}");
        assert_eq!(SplitMix64::new(1).below(0), 0);
    }

    #[test]
    fn each_is_called_once_before_any_is_drawn() {
        let mut whom = PluginPicker::of(5);
        let mut other = whom.clone();
        let met: Vec<usize> = (0..5).map(|turn| if turn < 3 { whom.next() } else { other.next() }).collect();
        assert_eq!(met, [0, 1, 2, 3, 4]);
        let (mut draw, drawn) = (SplitMix64::new(1), [whom.next(), whom.next()]);
        assert_eq!(drawn, [draw.below(5), draw.below(5)]);
    }
}
