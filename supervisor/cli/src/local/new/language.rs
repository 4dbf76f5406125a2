//! The languages of a new plugin, and that of scripts.

use clap::ValueEnum;

/// The supported languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Language {
    /// With talon-sdk.
    Rust,
    /// With a virtual environment: grpcio.
    Python,
    /// On top of HashiCorp's go-plugin, as Debian packages it.
    Go,
    /// With @grpc/grpc-js from npm.
    Node,
    /// A script for `plugins.lua`, which is no plugin of its own.
    Lua,
}

impl Language {
    /// Its name on the command line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Go => "go",
            Self::Node => "node",
            Self::Lua => "lua",
        }
    }

    /// The command that runs its tests in the plugin's directory.
    pub(super) const fn tests(self) -> &'static str {
        match self {
            Self::Rust => "cargo test",
            Self::Python => "venv/bin/python -m unittest",
            Self::Go => "./go.sh test .",
            Self::Node => "npm test",
            Self::Lua => "talon lua test .",
        }
    }
}
