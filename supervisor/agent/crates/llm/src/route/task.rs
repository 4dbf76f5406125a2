//! Kinds of task, their complexity, and the resulting tier.

use std::fmt;

use serde::{Deserialize, Serialize};
pub use talon_agent_settings::Tier;

/// The kind of task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// A question of a person.
    Chat,
    /// To go on with a loop that uses tools.
    Orchestration,
    /// A focused task with a separate context.
    Subagent,
    /// Extended reasoning.
    Reasoning,
    /// Summarization.
    Summarization,
}

impl Task {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Chat, Self::Orchestration, Self::Subagent, Self::Reasoning, Self::Summarization];

    /// The word for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Orchestration => "orchestration",
            Self::Subagent => "subagent",
            Self::Reasoning => "reasoning",
            Self::Summarization => "summarization",
        }
    }

    /// The tier of a simple one.
    #[must_use]
    pub const fn tier(self) -> Tier {
        match self {
            Self::Chat | Self::Subagent | Self::Summarization => Tier::Cheap,
            Self::Orchestration => Tier::Mid,
            Self::Reasoning => Tier::Premium,
        }
    }

    /// Tokens that an answer is taken to have when its cost is estimated, before anybody knows.
    ///
    /// A paragraph or a few calls; of a summary what a running summary may have (800); of thought the several
    /// pages that such models write. The true cost is counted afterwards, so an estimate that is off does no
    /// lasting harm.
    #[must_use]
    pub const fn expected_output_tokens(self) -> u64 {
        match self {
            Self::Chat | Self::Orchestration | Self::Subagent => 500,
            Self::Summarization => 800,
            Self::Reasoning => 2000,
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// How hard it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Complexity {
    /// One thing, said in a few words.
    #[serde(alias = "low")]
    Simple,
    /// A few steps.
    #[serde(alias = "medium")]
    Moderate,
    /// Many steps, or much thought.
    #[serde(alias = "high")]
    Complex,
}

impl Complexity {
    /// All of them, from the easiest up.
    pub const ALL: [Self; 3] = [Self::Simple, Self::Moderate, Self::Complex];

    /// The word for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Moderate => "moderate",
            Self::Complex => "complex",
        }
    }

    /// The tier of the complexity alone: the cheapest, the middle, the best.
    #[must_use]
    pub const fn tier(self) -> Tier {
        match self {
            Self::Simple => Tier::Cheap,
            Self::Moderate => Tier::Mid,
            Self::Complex => Tier::Premium,
        }
    }
}

impl fmt::Display for Complexity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// The tier that a task of this complexity takes.
///
/// A task has its tier, and a hard one lifts it: a chat or a loop goes to the tier of its complexity if that
/// is higher. A sub-agent and a summary stay cheap however long their text is, since they are cut to be small
/// work and are many.
#[must_use]
pub fn tier_for(task: Task, complexity: Complexity) -> Tier {
    match task {
        Task::Subagent | Task::Summarization => task.tier(),
        Task::Chat | Task::Orchestration | Task::Reasoning => task.tier().max(complexity.tier()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The founding documents: "Simple Q&A", "Main Agent orchestration", "Sub-agent tasks", "Complex
    /// reasoning", "Memory summarization" with their tiers, and simple → cheapest, moderate → default,
    /// complex → best.
    // Promises: AGENT-17
    #[test]
    fn the_table_of_tiers_is_the_founding_one() {
        use Complexity::{Complex, Moderate, Simple};
        use Task::{Chat, Orchestration, Reasoning, Subagent, Summarization};
        use Tier::{Cheap, Mid, Premium};
        let table = [
            (Chat, [(Simple, Cheap), (Moderate, Mid), (Complex, Premium)]),
            (Orchestration, [(Simple, Mid), (Moderate, Mid), (Complex, Premium)]),
            (Subagent, [(Simple, Cheap), (Moderate, Cheap), (Complex, Cheap)]),
            (Reasoning, [(Simple, Premium), (Moderate, Premium), (Complex, Premium)]),
            (Summarization, [(Simple, Cheap), (Moderate, Cheap), (Complex, Cheap)]),
        ];
        assert_eq!(table.map(|(task, _)| task), Task::ALL);
        for (task, row) in table {
            for (complexity, tier) in row {
                assert_eq!(tier_for(task, complexity), tier, "{task} {complexity}");
            }
        }
    }

    #[test]
    fn a_ladder_has_every_tier_once_and_starts_with_its_own() {
        for tier in Tier::ALL {
            let mut ladder = tier.ladder();
            assert_eq!(ladder[0], tier);
            ladder.sort_unstable();
            assert_eq!(ladder, Tier::ALL);
        }
    }

    #[test]
    fn the_words_are_those_of_serde_and_the_founding_ones_are_taken() {
        for task in Task::ALL {
            assert_eq!(serde_json::to_value(task).expect("a word"), task.word());
        }
        for complexity in Complexity::ALL {
            assert_eq!(serde_json::to_value(complexity).expect("a word"), complexity.word());
        }
        for tier in Tier::ALL {
            assert_eq!(serde_json::to_value(tier).expect("a word"), tier.word());
        }
        let founding: [Complexity; 3] = serde_json::from_str(r#"["low", "medium", "high"]"#).expect("words");
        assert_eq!(founding, Complexity::ALL);
    }
}
