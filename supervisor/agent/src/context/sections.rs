//! The token budget of each part of a question.

/// The budgets of one question, in tokens unless stated otherwise: a [`ContextPlan`](super::ContextPlan) for
/// one model's window.
///
/// The default has the founding numbers, 5,300 in all. With the safety rules, which are never cut and belong
/// to no section, a question has about 6,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Sections {
    /// Prompt without the safety rules: the operator's rules, the workspace's files, memories, hints. 500.
    pub system: usize,
    /// The running summary of what is no longer shown. 800.
    pub summary: usize,
    /// Turns that are shown as they were, with the current one. 2,000.
    pub recent: usize,
    /// The latest results of tools. 500; each keeps [`Sections::min_result`] all the same.
    pub tool_results: usize,
    /// What the tools are and how to call them. 1,500.
    pub tools: usize,
    /// What a shortened result keeps at least. 150.
    pub min_result: usize,
    /// The most turns shown, including the current one, and those that stay when older ones are summarized:
    /// the founding "last 5–10".
    pub turns: (usize, usize),
    /// When results and turns are shortened.
    pub pressure: Pressure,
}

/// When results and turns are shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Pressure {
    /// Always, to the sections.
    Constant,
    /// Only while the turns do not fit; then older turns are summarized until the rest has this many
    /// hundredths of [`Sections::recent`].
    WhenFull {
        /// Hundredths.
        target: usize,
    },
}

impl Default for Sections {
    fn default() -> Self {
        Self {
            system: 500,
            summary: 800,
            recent: 2_000,
            tool_results: 500,
            tools: 1_500,
            min_result: 150,
            turns: (10, 5),
            pressure: Pressure::Constant,
        }
    }
}

impl Sections {
    /// The sum of all sections.
    #[must_use]
    pub fn total(self) -> usize {
        self.system + self.summary + self.recent + self.tool_results + self.tools
    }

    /// Shrinks all sections evenly if they do not fit into this many tokens, so that the agent's own question
    /// never causes a warning.
    #[must_use]
    pub fn within(self, room: usize) -> Self {
        let total = self.total();
        if total <= room || total == 0 {
            return self;
        }
        let share = |tokens: usize| tokens * room / total;
        Self {
            system: share(self.system),
            summary: share(self.summary),
            recent: share(self.recent),
            tool_results: share(self.tool_results),
            tools: share(self.tools),
            ..self
        }
    }
}
