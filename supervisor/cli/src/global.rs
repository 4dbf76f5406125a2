//! The options that every verb accepts.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options that every verb accepts.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// The supervisor's socket. Otherwise $TALON_HOST_SOCKET, then host.sock in the runtime directory that
    /// the configuration names, then /run/talon/host.sock.
    #[arg(long, global = true, value_name = "PATH", help_heading = "Global options")]
    pub(crate) socket: Option<PathBuf>,
    /// The configuration file. Otherwise $TALON_CONFIG, then /etc/talon/talon.yaml for root and
    /// $XDG_CONFIG_HOME/talon/talon.yaml for other users; the file is optional.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
    /// The output format: tables for people, JSON for programs.
    #[arg(long, global = true, value_enum, default_value_t = Format::Table, help_heading = "Global options")]
    pub(crate) output: Format,
    /// When to use colour; `auto` means on a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, help_heading = "Global options")]
    pub(crate) color: Color,
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For programs: one JSON value, or one per line for streamed results.
    Json,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
