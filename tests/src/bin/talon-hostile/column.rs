//! The columns of the table: what holds an attack, and as whom it is started.

use serde::{Deserialize, Serialize};

/// A network that a jail gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Net {
    None,
    Loopback,
    Full,
    /// The host's, with TCP to one port alone.
    Ports,
}

impl Net {
    const ALL: [Self; 4] = [Self::None, Self::Loopback, Self::Full, Self::Ports];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Loopback => "loopback",
            Self::Full => "full",
            Self::Ports => "ports",
        }
    }

    pub(crate) fn is_first(self) -> bool {
        self == Self::None
    }
}

/// What holds an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    Not,
    Bubblewrap,
    Jailed(Net),
}

/// As whom our side runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Root,
    User,
}

impl Side {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::User => "user",
        }
    }

    pub(crate) fn parse(name: &str) -> anyhow::Result<Self> {
        match name {
            "root" => Ok(Self::Root),
            "user" => Ok(Self::User),
            other => anyhow::bail!("{other} is neither root nor user"),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) side: Side,
    pub(crate) held: Held,
}

/// All of them, in the table's order.
pub(crate) fn all() -> Vec<Column> {
    let column = |name: &str, side, held| Column { name: name.to_owned(), side, held };
    let mut columns =
        vec![column("no jail", Side::User, Held::Not), column("bwrap", Side::User, Held::Bubblewrap)];
    for side in [Side::Root, Side::User] {
        for net in Net::ALL {
            columns.push(column(&format!("{} {}", side.name(), net.name()), side, Held::Jailed(net)));
        }
    }
    columns
}
