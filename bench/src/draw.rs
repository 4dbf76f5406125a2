//! Numbers that look drawn and are the same in each run, so that two runs call the same plugins in the same order.

/// Splitmix64: every state follows from the one before, and none is left out.
#[derive(Debug, Clone)]
pub struct Draw(u64);

impl Draw {
    /// Those that follow from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next one, below a bound; 0 where there is none below it.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.0;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        drawn ^= drawn >> 31;
        usize::try_from(drawn % (bound.max(1) as u64)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_drawn_and_none_beyond() {
        let (mut draw, mut drawn) = (Draw::new(1), [0_u32; 7]);
        for _ in 0..700 {
            drawn[draw.below(7)] += 1;
        }
        assert!(drawn.iter().all(|count| (50..150).contains(count)), "{drawn:?}");
        assert_eq!(Draw::new(1).below(0), 0);
    }
}
