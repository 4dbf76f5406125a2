//! Classes of models.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What stands before a tier in the place of a model. A provider of this name keeps its models.
const ROUTES: &str = "talon/";

/// A class of models by price and ability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Small and fast: questions and answers, focused tasks, summaries.
    Cheap,
    /// Follows instructions over many steps.
    Mid,
    /// The best models, for difficult tasks.
    Premium,
}

impl Tier {
    /// All tiers, the cheapest first.
    pub const ALL: [Self; 3] = [Self::Cheap, Self::Mid, Self::Premium];

    /// The order in which tiers are searched for a model that can be asked, this tier first.
    ///
    /// Higher tiers come before lower ones: a better model does the same work for more money, which a budget
    /// limits. A weaker one may fail, which is still better than no answer.
    #[must_use]
    pub const fn ladder(self) -> [Self; 3] {
        match self {
            Self::Cheap => [Self::Cheap, Self::Mid, Self::Premium],
            Self::Mid => [Self::Mid, Self::Premium, Self::Cheap],
            Self::Premium => [Self::Premium, Self::Mid, Self::Cheap],
        }
    }

    /// The tier that a request names in the place of a model: `talon/cheap`, `talon/mid` or `talon/premium`.
    #[must_use]
    pub fn of_route(name: &str) -> Option<Self> {
        let word = name.strip_prefix(ROUTES)?;
        Self::ALL.into_iter().find(|tier| tier.word() == word)
    }

    /// The name for programs: `cheap`, `mid` or `premium`.
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
