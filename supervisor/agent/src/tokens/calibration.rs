//! Corrects the estimate for a model by what its provider reports.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::counter::{Accuracy, TokenCounter, counter_for};

/// The ratio of a model that nothing is known of: the estimate as it is.
const ONE: u64 = 1_000;
/// The smallest ratio that is believed, in thousandths. The estimate is 10 to 30 % off; a report below that is
/// rather of a server that leaves out what it had cached, and a window counted with it would overflow.
const MIN_RATIO: u64 = 700;
/// The largest ratio, in thousandths. A larger one counts as this.
const MAX_RATIO: u64 = 2_000;
/// How far a ratio moves towards a new one, as a divisor: some questions are code, and others prose.
const INERTIA: u64 = 4;
/// The fewest tokens of a question that says something: in a shorter one, what providers add around messages is
/// a large part.
const MIN_TOKENS: u64 = 500;
/// The most models: as many as a catalog has.
const MAX_MODELS: usize = 1_000;

/// The ratios of reported to estimated tokens, by model.
#[derive(Debug, Default)]
pub struct Calibration(Mutex<BTreeMap<String, u64>>);

/// Counts for one model: by its own tokenizer, or by the corrected estimate.
#[derive(Debug, Clone, Copy)]
pub struct ModelCounter {
    base: &'static dyn TokenCounter,
    /// In thousandths.
    ratio: u64,
}

impl ModelCounter {
    /// The counter for a model of this name, of which nothing is known.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self { base: counter_for(name), ratio: ONE }
    }
}

impl TokenCounter for ModelCounter {
    fn count(&self, text: &str) -> usize {
        let tokens = u64::try_from(self.base.count(text)).unwrap_or(u64::MAX);
        usize::try_from(tokens.saturating_mul(self.ratio).div_ceil(ONE)).unwrap_or(usize::MAX)
    }

    fn accuracy(&self) -> Accuracy {
        self.base.accuracy()
    }
}

impl Calibration {
    /// The counter for a model: `id` is provider and name, `name` the provider's name for it.
    #[must_use]
    pub fn counter(&self, id: &str, name: &str) -> ModelCounter {
        let counter = ModelCounter::of(name);
        match counter.accuracy() {
            Accuracy::Exact => counter,
            Accuracy::Estimate => {
                let ratio = self.0.lock().get(id).copied().unwrap_or(ONE);
                ModelCounter { ratio, ..counter }
            }
        }
    }

    /// Learns of a question that [`Calibration::counter`] counted with `counted` tokens, and of which the provider
    /// reported `reported`. A report of far less than the estimate teaches nothing.
    pub fn learn(&self, id: &str, name: &str, counted: u64, reported: u64) {
        if counted < MIN_TOKENS || reported == 0 || counter_for(name).accuracy() == Accuracy::Exact {
            return;
        }
        let mut ratios = self.0.lock();
        let before = ratios.get(id).copied().unwrap_or(ONE);
        let seen = before.saturating_mul(reported) / counted;
        if seen < MIN_RATIO {
            return;
        }
        let seen = seen.min(MAX_RATIO);
        // A catalog that changed leaves models behind.
        if ratios.len() >= MAX_MODELS && !ratios.contains_key(id) {
            ratios.clear();
        }
        ratios.insert(id.to_owned(), (before * (INERTIA - 1) + seen) / INERTIA);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "a text of some words that is counted again and again ";

    fn counted(calibration: &Calibration, text: &str) -> u64 {
        calibration.counter("p/claude", "claude").count(text) as u64
    }

    // Promises: AGENT-165
    #[test]
    fn the_estimate_comes_near_to_what_a_provider_reports() {
        let (calibration, text) = (Calibration::default(), TEXT.repeat(200));
        let reported = counted(&calibration, &text) * 13 / 10;
        let mut error = u64::MAX;
        for _ in 0..12 {
            let counted = counted(&calibration, &text);
            assert!(reported.abs_diff(counted) <= error, "it never gets worse");
            error = reported.abs_diff(counted);
            calibration.learn("p/claude", "claude", counted, reported);
        }
        assert!(error * 100 < reported * 2, "{error} of {reported}");
        // Another model is as it was.
        let other = calibration.counter("q/claude", "claude").count(TEXT);
        assert_eq!(other, ModelCounter::of("claude").count(TEXT));
    }

    // Promises: AGENT-165
    #[test]
    fn short_questions_partial_reports_and_exact_counts_teach_nothing() {
        let calibration = Calibration::default();
        calibration.learn("p/claude", "claude", MIN_TOKENS - 1, 5_000);
        calibration.learn("p/claude", "claude", 5_000, 0);
        calibration.learn("p/gpt-4o", "gpt-4o", 5_000, 10_000);
        calibration.learn("p/claude", "claude", 5_000, 100);
        assert!(calibration.0.lock().is_empty());
    }

    proptest! {
        #[test]
        fn no_report_moves_it_beyond_its_bounds(reports in proptest::collection::vec((500_u64.., 0_u64..), 0..50)) {
            let calibration = Calibration::default();
            for (counted, reported) in reports {
                calibration.learn("p/claude", "claude", counted, reported);
            }
            for ratio in calibration.0.lock().values() {
                prop_assert!((MIN_RATIO..=MAX_RATIO).contains(ratio), "{ratio}");
            }
        }
    }
}
