//! A built-in pattern with its examples.

use talon_agent_settings::ConfirmPattern;

/// A built-in pattern.
pub(super) struct BuiltInPattern {
    /// Its name, which is shown to people.
    pub(super) name: &'static str,
    /// Its expression.
    pub(super) expression: &'static str,
    /// What takes a match back ([`ConfirmPattern::unless`]).
    pub(super) unless: Option<&'static str>,
    /// What it finds.
    pub(super) finds: &'static [&'static str],
    /// What it leaves alone.
    pub(super) leaves: &'static [&'static str],
}

impl BuiltInPattern {
    pub(super) const fn new(
        name: &'static str,
        expression: &'static str,
        finds: &'static [&'static str],
        leaves: &'static [&'static str],
    ) -> Self {
        Self { name, expression, unless: None, finds, leaves }
    }

    pub(super) fn to_pattern(&self) -> ConfirmPattern {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        ConfirmPattern {
            name: self.name.to_owned(),
            pattern: self.expression.to_owned(),
            unless: self.unless.map(str::to_owned),
            matches: owned(self.finds),
            no_match: owned(self.leaves),
        }
    }
}
