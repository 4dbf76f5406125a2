//! What was made inert, counted by family.

/// A family of control syntax. Events and metrics count by it, so its names are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Family {
    /// `<tool_call>`, `</think>`, `<function=…>`: a tag with a tool-ish name.
    Tag,
    /// `<|im_start|>`, `[|assistant|]`: a name between bars.
    BarTag,
    /// `[TOOL_CALLS]`, `[/INST]`: a bracketed tool-ish name.
    Bracket,
    /// `[plugin_output]`, `[structured]`: the delimiters Talon itself wraps answers in.
    Envelope,
    /// `"tool_calls": [`, `"type": "function"`: JSON that a client takes for a call.
    JsonCall,
    /// A fenced block that a model runtime executes.
    Fence,
    /// A line that hands the turn to somebody else, or to a tool: `Human:`, `Action Input:`, `### Instruction`.
    Turn,
    /// `]<]` and `[>[`: brackets in an order that only sentinels have.
    Sentinel,
    /// Characters that nobody sees but a model reads.
    Invisible,
    /// Control characters, terminal escapes among them.
    Control,
    /// What an operator's own pattern matched.
    Pattern,
}

const NAMES: [&str; 11] = [
    "tag",
    "bar-tag",
    "bracket",
    "envelope",
    "json-call",
    "fence",
    "turn",
    "sentinel",
    "invisible",
    "control",
    "pattern",
];

/// Counts of what was neutralised, by family: `tag`, `bar-tag`, `bracket`, `envelope`, `json-call`, `fence`,
/// `turn`, `sentinel`, `invisible` (a run counts once), `control` and `pattern`.
///
/// One tally may be handed to several calls; the counts add up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    counts: [u32; NAMES.len()],
}

impl Tally {
    /// The families that occurred, with how often, in a fixed order.
    pub fn families(&self) -> impl Iterator<Item = (&'static str, u32)> {
        NAMES.into_iter().zip(self.counts).filter(|&(_, count)| count > 0)
    }

    /// How many places were neutralised in all.
    pub fn total(&self) -> u32 {
        self.counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Adds the counts of another tally.
    pub fn merge(&mut self, other: &Tally) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine = mine.saturating_add(theirs);
        }
    }

    pub(crate) fn add(&mut self, family: Family) {
        let count = &mut self.counts[family as usize];
        *count = count.saturating_add(1);
    }
}
