//! What every suite works with.

use indicatif::ProgressBar;

use crate::figures::Figures;
use crate::machine::Probe;

/// How much of everything is measured.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The short run: fewer cases, fewer and shorter rounds.
    pub quick: bool,
    /// Beside busy neighbours: only the cases that ratios of goals are about.
    pub loaded: bool,
}

/// The context of a suite.
pub struct Bench<'b> {
    /// How much is measured.
    pub plan: Plan,
    /// The recorded figures.
    pub book: &'b mut Figures,
    /// The noise probe, run once a round.
    pub probe: &'b mut Probe,
    /// Shows what is being measured.
    pub progress: ProgressBar,
}
