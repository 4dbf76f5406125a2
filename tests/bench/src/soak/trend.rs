//! Decides whether a metric is flat: by the slope of a regression line through its samples with the slope's
//! standard error, and by the medians of the two halves.

use serde::{Deserialize, Serialize};

use crate::samples::Samples;

/// A slope is significant from this many standard errors on. Three leave a chance of one in some hundreds,
/// and consecutive samples are less independent than the formula assumes; so the halves have to agree as
/// well.
pub const ERRORS: f64 = 3.0;

/// One metric over a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// How much it grows in an hour, by least squares.
    pub slope_per_hour: f64,
    /// The standard error of that.
    pub error_per_hour: f64,
    /// The median of the first half of the samples.
    pub first: f64,
    /// The median of the second.
    pub second: f64,
}

/// By how much the second half may be above the first and still count as equal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Allowance {
    /// In the metric's own unit.
    pub absolute: f64,
    /// And as a part of the first half's median.
    pub relative: f64,
}

impl Trend {
    /// The trend of samples, each with its time in seconds; `None` for fewer than four, or if all have the
    /// same time.
    #[must_use]
    pub fn of(samples: &[(f64, f64)]) -> Option<Self> {
        const HOUR: f64 = 3600.0;
        if samples.len() < 4 {
            return None;
        }
        let count = samples.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| samples.iter().map(of).sum::<f64>() / count;
        let (mean_time, mean_value) = (mean(|sample| sample.0), mean(|sample| sample.1));
        let (mut squares, mut products) = (0.0, 0.0);
        for (time, value) in samples {
            squares += (time - mean_time).powi(2);
            products += (time - mean_time) * (value - mean_value);
        }
        if squares == 0.0 {
            return None;
        }
        let slope = products / squares;
        let off = |(time, value): &(f64, f64)| (value - mean_value - slope * (time - mean_time)).powi(2);
        let residue: f64 = samples.iter().map(off).sum();
        let error = (residue / (count - 2.0) / squares).sqrt();
        let (first, second) = samples.split_at(samples.len() / 2);
        let middle = |half: &[(f64, f64)]| {
            let values = Samples(half.iter().map(|(_, value)| *value).collect());
            values.spread().map(|spread| spread.median)
        };
        Some(Self {
            slope_per_hour: slope * HOUR,
            error_per_hour: error * HOUR,
            first: middle(first)?,
            second: middle(second)?,
        })
    }

    /// Flat means not growing: the slope is at most [`ERRORS`] of its standard errors above zero, or the
    /// second half's median is above the first's by no more than is allowed. A shrinking metric is flat.
    #[must_use]
    pub fn is_flat(&self, allowed: Allowance) -> bool {
        let rises = self.slope_per_hour > ERRORS * self.error_per_hour;
        let grown = self.second - self.first > allowed.absolute + allowed.relative * self.first.abs();
        !(rises && grown)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOTHING: Allowance = Allowance { absolute: 0.0, relative: 0.0 };

    fn every_second(values: &[f64]) -> Vec<(f64, f64)> {
        values.iter().enumerate().map(|(second, value)| (second as f64, *value)).collect()
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-6 * (1.0 + one.abs() + other.abs())
    }

    #[test]
    fn too_little_has_no_trend() {
        assert_eq!(Trend::of(&every_second(&[1.0, 2.0, 3.0])), None);
        assert_eq!(Trend::of(&[(5.0, 1.0); 9]), None);
    }

    // Promises: SPEED-5
    #[test]
    fn a_leak_below_the_noise_of_each_sample_is_seen() {
        // A mebibyte an hour, in samples that scatter by up to two.
        let values: Vec<f64> = (0..1800)
            .map(|second| 20.0 + f64::from(second) / 3600.0 + f64::from(second * 7 % 5) * 0.5)
            .collect();
        let trend = Trend::of(&every_second(&values)).expect("many samples");
        assert!(near(trend.slope_per_hour.round(), 1.0), "{trend:?}");
        assert!(!trend.is_flat(Allowance { absolute: 0.1, relative: 0.0 }), "{trend:?}");
        assert!(trend.is_flat(Allowance { absolute: 0.5, relative: 0.0 }), "{trend:?}");
    }

    // Promises: SPEED-5
    #[test]
    fn a_step_that_stays_within_what_is_allowed_is_flat() {
        let mut values = vec![100.0; 50];
        values.extend([102.0; 50]);
        let trend = Trend::of(&every_second(&values)).expect("many samples");
        assert!(!trend.is_flat(Allowance { absolute: 1.0, relative: 0.0 }));
        assert!(trend.is_flat(Allowance { absolute: 0.0, relative: 0.03 }));
    }

    proptest! {
        #[test]
        fn a_line_has_its_own_slope_and_no_error(
            from in -1e3_f64..1e3, per_hour in -1e4_f64..1e4, count in 4_usize..200,
        ) {
            let values: Vec<f64> = (0..count).map(|at| from + per_hour / 3600.0 * at as f64).collect();
            let trend = Trend::of(&every_second(&values)).expect("enough samples");
            prop_assert!(near(trend.slope_per_hour, per_hour), "{trend:?}");
            prop_assert!(trend.error_per_hour.abs() < 1e-3, "{trend:?}");
        }

        // Promises: SPEED-5
        #[test]
        fn what_stays_or_falls_is_flat(mut values in prop::collection::vec(0.0_f64..1e6, 4..200)) {
            prop_assert!(Trend::of(&every_second(&vec![values[0]; values.len()])).expect("enough").is_flat(NOTHING));
            values.sort_by(|one, other| other.total_cmp(one));
            prop_assert!(Trend::of(&every_second(&values)).expect("enough").is_flat(NOTHING));
        }

        #[test]
        fn what_is_the_same_backwards_has_no_slope(half in prop::collection::vec(-1e3_f64..1e3, 2..100)) {
            let values: Vec<f64> = half.iter().chain(half.iter().rev()).copied().collect();
            let trend = Trend::of(&every_second(&values)).expect("enough samples");
            prop_assert!(trend.slope_per_hour.abs() < 1e-3, "{trend:?}");
            prop_assert!(near(trend.first, trend.second));
        }

        #[test]
        fn a_leak_on_top_moves_the_slope_by_itself(
            values in prop::collection::vec(-1e3_f64..1e3, 4..100), per_hour in 0.0_f64..1e5,
        ) {
            let leaks = |values: &[f64], per_hour: f64| -> Vec<(f64, f64)> {
                every_second(values).iter().map(|(at, value)| (*at, value + per_hour / 3600.0 * at)).collect()
            };
            let without = Trend::of(&leaks(&values, 0.0)).expect("enough samples");
            let with = Trend::of(&leaks(&values, per_hour)).expect("enough samples");
            prop_assert!(near(with.slope_per_hour, without.slope_per_hour + per_hour), "{with:?} {without:?}");
            prop_assert!(with.second - with.first >= without.second - without.first - 1e-6);
        }
    }
}
