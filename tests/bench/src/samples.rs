//! Values of one figure from several rounds.

use serde::{Deserialize, Serialize};

/// One value for each round, in the order of the rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Samples(pub Vec<f64>);

/// A summary of samples: the median and the quartiles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Half of the samples are at most this.
    pub median: f64,
    /// A quarter of the samples is at most this.
    pub low: f64,
    /// Three quarters of the samples are at most this.
    pub high: f64,
}

impl Samples {
    /// Median and quartiles; `None` if there are no samples.
    #[must_use]
    pub fn spread(&self) -> Option<Spread> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        // Linear interpolation between two neighbours.
        let at = |part: f64| {
            let place = last as f64 * part;
            let below = place.floor();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a place in the list"
            )]
            let below_at = below as usize;
            let above_at = (below_at + 1).min(last);
            sorted[below_at] + (sorted[above_at] - sorted[below_at]) * (place - below)
        };
        Some(Spread { median: at(0.5), low: at(0.25), high: at(0.75) })
    }

    /// Divides each sample by that of the same round.
    #[must_use]
    pub fn divided_by(&self, those: &Self) -> Self {
        self.combine(those, |this, that| this / that)
    }

    /// Subtracts from each sample that of the same round.
    #[must_use]
    pub fn minus(&self, those: &Self) -> Self {
        self.combine(those, |this, that| this - that)
    }

    fn combine(&self, those: &Self, both: impl Fn(f64, f64) -> f64) -> Self {
        Self(self.0.iter().zip(&those.0).map(|(this, that)| both(*this, *that)).collect())
    }
}

impl Spread {
    /// The interquartile range, as a part of the median.
    #[must_use]
    pub fn relative_width(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.high - self.low).abs() / self.median.abs() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_middle_half() {
        let spread = Samples(vec![5.0, 1.0, 3.0, 2.0, 4.0]).spread().expect("five");
        assert_eq!((spread.low, spread.median, spread.high), (2.0, 3.0, 4.0));
        let spread = Samples(vec![1.0, 2.0]).spread().expect("two");
        assert_eq!((spread.low, spread.median, spread.high), (1.25, 1.5, 1.75));
        assert_eq!(Samples::default().spread(), None);
    }

    #[test]
    fn ratios_are_those_of_the_same_round() {
        let (ours, theirs) = (Samples(vec![2.0, 30.0]), Samples(vec![1.0, 10.0]));
        assert_eq!(ours.divided_by(&theirs).0, [2.0, 3.0]);
        assert_eq!(ours.minus(&theirs).0, [1.0, 20.0]);
    }
}
