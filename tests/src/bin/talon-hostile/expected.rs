//! The expected result of each attack, from `tests/jail/expected.toml`.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::column::{Column, Confinement};

const TEXT: &str = include_str!("../../../jail/expected.toml");

/// The result of an attack, actual or expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// It succeeded.
    Open,
    /// It was refused, or ended.
    Blocked,
    /// It succeeded, but its effect stayed inside.
    Contained,
    /// It could not be tried on this machine.
    Untried,
}

/// What a cell of the table may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Expectation {
    Open,
    Blocked,
    Contained,
    /// Open if root made the outer namespace; an ordinary user cannot make what the attack needs.
    OpenAsRoot,
    /// Depends on the machine, as the attack's note says; only without our jail.
    Any,
    /// Not run there, as the attack's note says.
    Skip,
}

impl Expectation {
    pub(crate) fn met_by(self, verdict: Verdict) -> bool {
        match self {
            Self::Open => verdict == Verdict::Open,
            Self::OpenAsRoot => verdict == Verdict::Open || !talon_tests::is_root(),
            Self::Blocked => verdict == Verdict::Blocked,
            Self::Contained => verdict == Verdict::Contained,
            Self::Any | Self::Skip => true,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    pub(crate) theme: Vec<Theme>,
}

/// Attacks on one target.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Theme {
    pub(crate) name: String,
    pub(crate) attack: Vec<Attack>,
}

/// One attack, named as the program names it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attack {
    pub(crate) name: String,
    pub(crate) what: String,
    /// Without any jail.
    none: Expectation,
    /// In bubblewrap's.
    bwrap: Expectation,
    /// In ours, whatever its network, unless `but` says otherwise.
    jail: Expectation,
    /// Exceptions, by a column's name or a network's.
    #[serde(default)]
    but: BTreeMap<String, Expectation>,
    /// In ours where no control group limits memory.
    #[serde(default)]
    without_group: Option<Expectation>,
    /// Takes long and has nothing to do with the network: one network is enough.
    #[serde(default)]
    pub(crate) once: bool,
    /// The harness judges it by what it leaves behind, not by its output.
    #[serde(default)]
    pub(crate) lifecycle: bool,
    /// Has a terminal as its standard input.
    #[serde(default)]
    pub(crate) terminal: bool,
    /// Why the result is as it is, for the reader of the table.
    #[serde(default)]
    pub(crate) note: String,
}

impl Attack {
    /// `grouped`: whether a control group limits the column's memory.
    pub(crate) fn expectation(&self, column: &Column, grouped: bool) -> Expectation {
        match column.held {
            Confinement::Unconfined => self.none,
            Confinement::Bubblewrap => self.bwrap,
            Confinement::Jailed(network) => {
                if self.once && !network.is_first() {
                    return Expectation::Skip;
                }
                if let Some(without) = self.without_group.filter(|_| !grouped) {
                    return without;
                }
                let names = [column.name.as_str(), network.name()];
                names.iter().find_map(|name| self.but.get(*name).copied()).unwrap_or(self.jail)
            }
        }
    }
}

/// The whole list.
pub(crate) fn load() -> anyhow::Result<Expected> {
    let expected: Expected = toml::from_str(TEXT).context("tests/jail/expected.toml")?;
    Ok(expected)
}

impl Expected {
    pub(crate) fn attacks(&self) -> impl Iterator<Item = &Attack> {
        self.theme.iter().flat_map(|theme| &theme.attack)
    }
}
