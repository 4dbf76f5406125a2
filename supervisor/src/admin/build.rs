//! What this binary was built from.

/// The version of the release.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit, if whoever built it said so by `TALON_COMMIT`: what a package is built from has no repository around it.
pub(super) const COMMIT: &str = match option_env!("TALON_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};
/// The compiler.
pub(super) const RUSTC: &str = env!("TALON_RUSTC");
