//! What this binary was built from.

/// The version of the release.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit, if the build set `TALON_COMMIT`: a source package has no repository.
pub(super) const COMMIT: &str = match option_env!("TALON_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};
/// The compiler.
pub(super) const RUSTC: &str = env!("TALON_RUSTC");
