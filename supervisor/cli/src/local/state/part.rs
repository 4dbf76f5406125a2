//! The parts of the stored state.

use talon_proto::state::{Layers, Open};
use talon_supervisor::config::State;
use talon_supervisor::state;

/// A part of the stored state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum StatePart {
    /// The plugins' key-values.
    Plugins,
    /// Sessions and memory.
    Agent,
}

impl StatePart {
    /// All parts.
    pub(crate) const ALL: [Self; 2] = [Self::Plugins, Self::Agent];

    /// The value on the wire.
    pub(crate) fn layers(self) -> Layers {
        match self {
            Self::Plugins => Layers::KeyValues,
            Self::Agent => Layers::Conversations,
        }
    }

    /// The name for people.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Plugins => "the plugins' state",
            Self::Agent => "sessions and memory",
        }
    }

    /// The value on the command line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Plugins => "plugins",
            Self::Agent => "agent",
        }
    }

    /// The request to open it; `None` if no state is stored.
    pub(super) fn open(self, state: &State) -> Option<Open> {
        match self {
            Self::Plugins => state::plugins(state),
            Self::Agent => state::agents(state),
        }
    }

    /// The file name of its database.
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Plugins => state::STATE_FILE,
            Self::Agent => state::AGENT_FILE,
        }
    }

    /// Its path below the data directory, and its owner.
    pub(super) fn location(self) -> (&'static str, &'static str) {
        match self {
            Self::Plugins => (state::STATE_DIR, "talon-state"),
            Self::Agent => (state::AGENT_DIR, "talon-agent"),
        }
    }
}
