//! The columns of the table: how an attack is confined, and with which user the jail is started.

use serde::{Deserialize, Serialize};

/// The network of a jail.
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

/// How an attack is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confinement {
    Unconfined,
    Bubblewrap,
    Jailed(Net),
}

/// The user of our side.
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
    pub(crate) held: Confinement,
}

/// All of them, in the table's order.
pub(crate) fn all() -> Vec<Column> {
    let column = |name: &str, side, held| Column { name: name.to_owned(), side, held };
    let mut columns = vec![
        column("no jail", Side::User, Confinement::Unconfined),
        column("bwrap", Side::User, Confinement::Bubblewrap),
    ];
    for side in [Side::Root, Side::User] {
        for net in Net::ALL {
            columns.push(column(&format!("{} {}", side.name(), net.name()), side, Confinement::Jailed(net)));
        }
    }
    columns
}
