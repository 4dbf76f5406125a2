//! Counts of what was neutralized, by family.

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
    /// `[plugin_output]`, `[structured]`: the delimiters of Talon's own envelopes.
    Envelope,
    /// `"tool_calls": [`, `"type": "function"`: JSON that a client would execute as a call.
    JsonCall,
    /// A fenced block that a model runtime executes.
    Fence,
    /// A line that passes the turn to another speaker, or to a tool: `Human:`, `Action Input:`,
    /// `### Instruction`.
    Turn,
    /// `]<]` and `[>[`: brackets in an order that only sentinels use.
    Sentinel,
    /// Characters that are invisible, but that a model reads.
    Invisible,
    /// Control characters, terminal escapes among them.
    Control,
    /// A match of an operator's pattern.
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

/// How a finding was written; for characters, their purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FindingKind {
    /// Syntax whose opener is an ASCII character; a match of a pattern.
    Plain,
    /// Syntax whose opener is another character that folds to it: `＜`, `【`.
    LookAlike,
    /// Syntax whose opener is escaped: `&lt;`, `\u003c`, `%3c`.
    Spelled,
    /// An invisible or control character, by its purpose.
    Character(char),
    /// A terminal's colour, which was removed.
    Colour,
}

/// The kinds of each family, in the order of [`NAMES`].
const KINDS: [&[&str]; NAMES.len()] = {
    let syntax: &[&str] = &["plain", "look-alike", "spelled"];
    let invisible: &[&str] = &["zero-width", "direction", "tag", "selector", "filler", "other"];
    let control: &[&str] = &["escape", "nul", "backspace", "return", "other", "colour"];
    [syntax, syntax, syntax, syntax, syntax, syntax, syntax, syntax, invisible, control, &["plain"]]
};
/// The number of kinds of the family with the most.
const MAX_KINDS: usize = 6;

impl FindingKind {
    /// Its index among the kinds of the family.
    fn index(self, family: Family) -> usize {
        match (self, family) {
            (Self::Plain, _) => 0,
            (Self::LookAlike, _) => 1,
            (Self::Spelled, _) => 2,
            (Self::Colour, _) => 5,
            (Self::Character(c), Family::Invisible) => match c {
                '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' => 0,
                '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => 1,
                '\u{e0000}'..='\u{e007f}' => 2,
                '\u{fe00}'..='\u{fe0f}'
                | '\u{180b}'..='\u{180d}'
                | '\u{180f}'
                | '\u{e0100}'..='\u{e01ef}' => 3,
                '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => 4,
                _ => 5,
            },
            // The control sequence introducer is an escape in one character.
            (Self::Character(c), _) => match c {
                '\u{1b}' | '\u{9b}' => 0,
                '\0' => 1,
                '\u{8}' => 2,
                '\r' => 3,
                _ => 4,
            },
        }
    }
}

/// Counts of what was neutralized, by family: `tag`, `bar-tag`, `bracket`, `envelope`, `json-call`, `fence`,
/// `turn`, `sentinel`, `invisible` (a run counts once), `control` and `pattern`.
///
/// One value may be passed to several calls; the counts add up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FamilyCounts {
    counts: [[u32; MAX_KINDS]; NAMES.len()],
}

impl FamilyCounts {
    /// The families that occurred, with their counts, in a fixed order.
    pub fn families(&self) -> impl Iterator<Item = (&'static str, u32)> {
        NAMES.into_iter().zip(self.counts.map(sum)).filter(|&(_, count)| count > 0)
    }

    /// The same in more detail: family, kind, count. The counts of a family add up to the one of
    /// [`Self::families`].
    ///
    /// - For syntax the kind is how its opener was written, for a turn how its line begins: `plain`,
    ///   `look-alike` (`＜`), `spelled` (`&lt;`, `\u003c`, `%3c`). White space inside a delimiter is not a
    ///   separate kind, because the shapes do not record it.
    /// - For `invisible` it is the purpose of the first character of the run: `zero-width`, `direction`,
    ///   `tag`, `selector`, `filler`, `other`.
    /// - For `control`: `escape`, `nul`, `backspace`, `return`, `other`, and `colour` for what is removed.
    /// - For `pattern` it is always `plain`.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str, u32)> {
        NAMES.into_iter().zip(KINDS).zip(self.counts).flat_map(|((family, kinds), counts)| {
            let counted = kinds.iter().zip(counts).filter(|&(_, count)| count > 0);
            counted.map(move |(&kind, count)| (family, kind, count))
        })
    }

    /// The number of neutralized places.
    pub fn total(&self) -> u32 {
        sum(self.counts.map(sum))
    }

    /// Adds other counts.
    pub fn merge(&mut self, other: &FamilyCounts) {
        for (mine, theirs) in self.counts.iter_mut().flatten().zip(other.counts.iter().flatten()) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    pub(crate) fn add(&mut self, family: Family, kind: FindingKind) {
        self.add_many(family, kind, 1);
    }

    pub(crate) fn add_many(&mut self, family: Family, kind: FindingKind, more: u32) {
        let count = &mut self.counts[family as usize][kind.index(family)];
        *count = count.saturating_add(more);
    }
}

fn sum<const N: usize>(counts: [u32; N]) -> u32 {
    counts.into_iter().fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use crate::{FamilyCounts, Sanitizer};

    fn kinds(text: &str) -> Vec<(&'static str, &'static str, u32)> {
        let mut tally = FamilyCounts::default();
        Sanitizer::default().text(text, &mut tally);
        let families: Vec<_> = tally.families().collect();
        for (family, count) in families {
            let summed: u32 = tally.kinds().filter(|&(of, ..)| of == family).map(|(.., count)| count).sum();
            assert_eq!(summed, count, "{family} of {text:?}");
        }
        tally.kinds().collect()
    }

    #[test]
    fn the_kind_of_syntax_is_how_its_opener_is_written() {
        let text = "<think> ＜think> ＜/think> &lt;think> \\u003cthink> %3cthink> ＆lt;think>";
        assert_eq!(kinds(text), [("tag", "plain", 1), ("tag", "look-alike", 2), ("tag", "spelled", 4)]);
        assert_eq!(kinds("a\n\nНuman: hi"), [("turn", "look-alike", 1)]);
        assert_eq!(kinds("a\n\nHuman: hi"), [("turn", "plain", 1)]);
        assert_eq!(kinds("[TOOL_CALLS]"), [("bracket", "plain", 1)]);
    }

    #[test]
    fn the_kind_of_a_character_is_what_it_is_for() {
        assert_eq!(
            kinds("a\u{200b}b\u{202e}c\u{e0041}\u{e0042}d\u{fe0f}e\u{3164}f\u{206a}g"),
            ["zero-width", "direction", "tag", "selector", "filler", "other"].map(|kind| (
                "invisible",
                kind,
                1
            ))
        );
        assert_eq!(
            kinds("\u{1b}[2J\u{9b}0m\0a\u{8}b\rc\u{7}"),
            [("escape", 2), ("nul", 1), ("backspace", 1), ("return", 1), ("other", 1)]
                .map(|(kind, count)| ("control", kind, count))
        );
    }
}
