//! The libraries of scripts, on the command line.

use clap::{Args, ValueEnum};

use super::tool::Tool;

/// Libraries beside those of every script.
#[derive(Debug, Default, Args)]
pub(super) struct Libraries {
    /// A library beside string, table, math and os.time, as `plugins.lua.libraries` names it; may be given several times.
    #[arg(long = "library", value_enum, value_name = "NAME")]
    names: Vec<LibraryName>,
}

/// The libraries that `plugins.lua.libraries` may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LibraryName {
    /// Texts as characters.
    Utf8,
    /// Bytes.
    Buffer,
    /// Bits of numbers.
    Bit32,
    /// Coroutines.
    Coroutine,
}

impl LibraryName {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "utf8",
            Self::Buffer => "buffer",
            Self::Bit32 => "bit32",
            Self::Coroutine => "coroutine",
        }
    }
}

impl Libraries {
    pub(super) fn add_to(&self, tool: &mut Tool) {
        for name in &self.names {
            tool.option("library", name.as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_command_line() {
        for name in LibraryName::value_variants() {
            assert_eq!(name.to_possible_value().unwrap().get_name(), name.as_str());
        }
    }
}
