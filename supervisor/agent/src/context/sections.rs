//! The token budget of each part of a question.

use super::Window;

/// Tokens by section: the founding numbers, 5,300 in all. With the safety rules, which are never cut and
/// belong to no section, a question has about 6,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Sections {
    /// Prompt without the safety rules: the operator's rules, the workspace's files, memories, hints. 500.
    pub system: usize,
    /// The running summary of what is no longer shown. 800.
    pub summary: usize,
    /// Turns that are shown as they were, with the one that is going on. 2,000.
    pub recent: usize,
    /// The latest results of tools. 500; each keeps [`super::MIN_RESULT_TOKENS`] all the same.
    pub tool_results: usize,
    /// What the tools are and how to call them. 1,500.
    pub tools: usize,
}

impl Default for Sections {
    fn default() -> Self {
        Self { system: 500, summary: 800, recent: 2_000, tool_results: 500, tools: 1_500 }
    }
}

impl Sections {
    /// The sum of all sections.
    #[must_use]
    pub fn total(self) -> usize {
        self.system + self.summary + self.recent + self.tool_results + self.tools
    }

    /// Shrinks all sections evenly if the window has no room for them beside the `fixed` tokens: then they
    /// use what the window has [comfortably](Window::comfortable), so that the agent's own question never
    /// causes a warning.
    #[must_use]
    pub fn within(self, window: Window, fixed: usize) -> Self {
        let (room, total) = (window.comfortable().saturating_sub(fixed), self.total());
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
        }
    }
}
