//! Classes of models.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A class of models by price and ability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Small and fast: questions and answers, focused tasks, summaries.
    Cheap,
    /// Follows instructions over many steps.
    Mid,
    /// The best there is, for what takes thought.
    Premium,
}

impl Tier {
    /// All of them, from the cheapest up.
    pub const ALL: [Self; 3] = [Self::Cheap, Self::Mid, Self::Premium];

    /// Where a model is looked for if this tier has none that can be asked, this tier first.
    ///
    /// Up before down: a better model does the same work for more money, which a budget bounds; a lesser one may not manage
    /// it, and is still better than no answer.
    #[must_use]
    pub const fn ladder(self) -> [Self; 3] {
        match self {
            Self::Cheap => [Self::Cheap, Self::Mid, Self::Premium],
            Self::Mid => [Self::Mid, Self::Premium, Self::Cheap],
            Self::Premium => [Self::Premium, Self::Mid, Self::Cheap],
        }
    }

    /// The word for programs: `cheap`, `mid` or `premium`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cheap => "cheap",
            Self::Mid => "mid",
            Self::Premium => "premium",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}
